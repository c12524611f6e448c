"""The stored trials that stand for the cells of a run. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from netdyno.analysis.found.exclusions import ExclusionCause
from netdyno.model import outcomes, uneven_load
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_key
from netdyno.model.load_result import LoadResult
from netdyno.model.run import Run
from netdyno.model.trial import Status, Trial


def select_valid(run: Run, scenario: Scenario) -> Iterator[tuple[Trial, LoadResult]]:
    """Return the trials that enter a ranking."""
    return select_distinct((trial for trial in run.trials if trial.scenario == scenario.name), outcomes.RANKED)


def select_distinct(trials: Iterable[Trial], statuses: Collection[Status]) -> Iterator[tuple[Trial, LoadResult]]:
    """Yield the trials of one scenario; of a cell measured twice the first, so that no repeat can be picked for its
    value."""
    seen: set[tuple[int, str, str]] = set()
    for trial in trials:
        key = (trial.block, level_key(trial.levels), trial.contestant)
        if trial.status in statuses and not trial.twin and trial.load is not None and key not in seen:
            seen.add(key)
            yield trial, trial.load


def find_exclusion_cause(trial: Trial) -> ExclusionCause:
    """Return why a trial enters no figure."""
    if uneven := [audit for audit in outcomes.failed(trial, "machine") if audit.name == uneven_load.NAME]:
        return ExclusionCause(reason=uneven[0].detail)
    if outcomes.is_disturbed(trial):
        return ExclusionCause(disturbed=True)
    decided = outcomes.faults(trial) or outcomes.failed(trial, "server") or outcomes.failed(trial, "instrument")
    return ExclusionCause(audits=tuple(audit.name for audit in decided), reason="" if decided else trial.reason)
