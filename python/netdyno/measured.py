"""Which stored trials stand for the cells of a run. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from netdyno.levels import level_key
from netdyno.model import LoadResult, Run, Scenario, Status, Trial

VALID: tuple[Status, ...] = ("valid",)
MEASURED: tuple[Status, ...] = ("valid", "struck_out")
NO_REASON = "no reason was stored"


def valid(run: Run, scenario: Scenario) -> Iterator[tuple[Trial, LoadResult]]:
    """The trials that enter a figure."""
    return first(run, scenario.name, VALID)


def first(run: Run, scenario: str, statuses: Collection[Status]) -> Iterator[tuple[Trial, LoadResult]]:
    """Trials with figures of one of these statuses; of a cell measured twice the first, so that no repeat can be picked
    for its value."""
    seen: set[tuple[int, str, str]] = set()
    for trial in run.trials:
        key = (trial.block, level_key(trial.levels), trial.contestant)
        counts = trial.scenario == scenario and trial.status in statuses and not trial.twin
        if counts and trial.load is not None and key not in seen:
            seen.add(key)
            yield trial, trial.load


def cause(trial: Trial) -> str:
    """What trials set aside for the same cause have in common: the failed audits, or the reason itself."""
    failed = [audit.name for audit in trial.audits if not audit.passed]
    return ", ".join(failed) or trial.reason or NO_REASON
