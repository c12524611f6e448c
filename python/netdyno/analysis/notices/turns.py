"""The contestants that took no turns with others. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.found.notices import MeasuredAlone
from netdyno.model.metrics import TrialWithLoad


def find_measured_alone(ranked: Sequence[TrialWithLoad]) -> tuple[MeasuredAlone, ...]:
    """Return the contestants that have a trial of their own, by the reason for it."""
    contestants: dict[str, set[str]] = {}
    for trial, _ in ranked:
        if trial.alone:
            contestants.setdefault(trial.alone, set()).add(trial.contestant)
    return tuple(MeasuredAlone(tuple(sorted(names)), why) for why, names in sorted(contestants.items()))
