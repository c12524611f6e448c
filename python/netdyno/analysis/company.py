"""The neighbours beside which a scenario was measured. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from netdyno.model.observation import Neighbour
from netdyno.model.trial import Trial


@dataclass(frozen=True)
class Company:
    """The number of trials beside a neighbour that stays, out of the `of` behind the figures, and each neighbour."""

    trials: int
    of: int
    neighbours: tuple[Neighbour, ...]


def find_neighbours(ranked: Iterable[Trial]) -> Company | None:
    """Return the neighbours of a scenario's trials; None where the machine was every trial's own."""
    besides = [trial.beside for trial in ranked]
    neighbours = tuple(dict.fromkeys(neighbour for neighbour in besides if neighbour is not None))
    accompanied = sum(neighbour is not None for neighbour in besides)
    return Company(accompanied, len(besides), neighbours) if neighbours else None
