"""Contestants with a JIT that was given time to compile. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.found.notices import WarmedUp
from netdyno.model.metrics import TrialWithLoad
from netdyno.model.trial import Warmup


def collect_by_contestant(ranked: Sequence[TrialWithLoad]) -> tuple[WarmedUp, ...]:
    """Return the warm-ups of each contestant's trials, each once."""
    by_name: dict[str, list[Warmup]] = {}
    for trial, _ in ranked:
        warmups = by_name.setdefault(trial.contestant, [])
        if trial.warmup is not None and trial.warmup not in warmups:
            warmups.append(trial.warmup)
    return tuple(WarmedUp(name, tuple(warmups)) for name, warmups in sorted(by_name.items()) if warmups)
