"""Beside whom a scenario was measured. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from netdyno.model.observation import Neighbour
from netdyno.model.trial import Trial


@dataclass(frozen=True)
class Company:
    """Of the `of` trials behind the figures, so many ran beside a neighbour that stays, and each such neighbour."""

    trials: int
    of: int
    neighbours: tuple[Neighbour, ...]


def company(ranked: Iterable[Trial]) -> Company | None:
    """None where the machine was every trial's own."""
    besides = [trial.beside for trial in ranked]
    neighbours = tuple(dict.fromkeys(one for one in besides if one is not None))
    accompanied = sum(one is not None for one in besides)
    return Company(accompanied, len(besides), neighbours) if neighbours else None
