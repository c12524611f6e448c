"""The neighbours beside which a scenario was measured. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable

from netdyno.analysis.found.notices import Company
from netdyno.model.trial import Trial


def find_neighbours(ranked: Iterable[Trial]) -> Company | None:
    """Return the neighbours of a scenario's trials; None where the machine was every trial's own."""
    besides = [trial.beside for trial in ranked]
    neighbours = tuple(dict.fromkeys(neighbour for neighbour in besides if neighbour is not None))
    accompanied = sum(neighbour is not None for neighbour in besides)
    return Company(accompanied, len(besides), neighbours) if neighbours else None
