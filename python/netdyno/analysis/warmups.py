"""Whose JIT was given time to compile. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.findings import WarmedUp
from netdyno.model.metrics import Counted
from netdyno.model.trial import Warmup


def warmed_up(ranked: Sequence[Counted]) -> tuple[WarmedUp, ...]:
    """By contestant, what its trials were made with, each once."""
    found: dict[str, list[Warmup]] = {}
    for trial, _ in ranked:
        each = found.setdefault(trial.contestant, [])
        if trial.warmup is not None and trial.warmup not in each:
            each.append(trial.warmup)
    return tuple(WarmedUp(name, tuple(each)) for name, each in sorted(found.items()) if each)
