"""Contestants with something to know about their trials that excludes nothing. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable

from netdyno.analysis.found.notices import Noted
from netdyno.model import outcomes
from netdyno.model.trial import Trial

SHOWN = ("left_behind", "strangers")
"""The audits of the kind `note` that stand below the ranking; that of a moving figure has its own rule."""


def find_noted(trials: Iterable[Trial]) -> tuple[Noted, ...]:
    """Return the failed notes of each contestant, the most frequent detail of each."""
    details: dict[tuple[str, str], list[str]] = {}
    run = [trial for trial in trials if trial.status in outcomes.MEASURED]
    for trial in run:
        for audit in outcomes.failed(trial, "note"):
            if audit.name in SHOWN:
                details.setdefault((trial.contestant, audit.name), []).append(audit.detail)
    return tuple(
        Noted(
            contestant=name,
            audit=audit,
            trials=len(found),
            of=sum(trial.contestant == name for trial in run),
            detail=max(sorted(set(found)), key=found.count),
        )
        for (name, audit), found in sorted(details.items())
    )
