"""The canary's readings of the machine over a run, as frozen data. Pure functions."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence
from datetime import datetime

from netdyno.analysis.found.canary import MachineOverTime, Range, TrialSpeeds
from netdyno.model import outcomes
from netdyno.model.observation import CANARY_FIGURES, CanaryReading
from netdyno.model.run import Run
from netdyno.model.trial import Trial


def summarise_run(run: Run) -> MachineOverTime | None:
    """Return the readings of a run; None where no trial has one: a run stored before there were any."""
    with_canary = sorted(
        (trial for trial in run.all_trials if trial.canary is not None), key=lambda trial: (trial.block, trial.position)
    )
    read = [
        (trial, sides)
        for trial in with_canary
        if trial.canary is not None
        if (sides := tuple(reading for _, reading in trial.canary.list_sides()))
    ]
    if not read:
        return None
    began = datetime.fromisoformat(read[0][0].started_at)
    trials = tuple(_describe_speeds(trial, sides, began) for trial, sides in read)
    readings = [reading for _, sides in read for reading in sides]
    return MachineOverTime(
        trials=trials,
        ranges=tuple(_find_range(number, name, readings, trials) for number, name in enumerate(CANARY_FIGURES)),
        invalid=sum(trial.invalid for trial in trials),
        unread=sum(trial.canary is not None and bool(trial.canary.unread) for trial in with_canary),
        unjudged=sum(not outcomes.is_canary_judged(trial) for trial in with_canary),
        counted=run.environment.get("foreign_load") == "count",
    )


def _has_passed(trial: Trial) -> bool | None:
    """Return whether a trial passed this audit on all hosts; None where it has none."""
    passed = [audit.passed for audit in trial.audits if audit.name == outcomes.CANARY]
    return all(passed) if passed else None


def _describe_speeds(trial: Trial, sides: Sequence[CanaryReading], began: datetime) -> TrialSpeeds:
    speeds = [[speed(reading) for reading in sides] for speed in CANARY_FIGURES.values()]
    return TrialSpeeds(
        at_s=(datetime.fromisoformat(trial.started_at) - began).total_seconds(),
        block=trial.block,
        speeds=tuple(map(statistics.geometric_mean, speeds)),
        least=tuple(map(min, speeds)),
        most=tuple(map(max, speeds)),
        invalid=_has_passed(trial) is False and len(sides) > 1,
    )


def _find_range(number: int, name: str, readings: Sequence[CanaryReading], trials: Sequence[TrialSpeeds]) -> Range:
    speeds = [CANARY_FIGURES[name](reading) for reading in readings]
    medians = [statistics.median(trial.speeds[number] for trial in block) for block in group_by_block(trials)]
    return Range(name, min(speeds), statistics.median(speeds), max(speeds), max(medians) / min(medians))


def group_by_block(trials: Iterable[TrialSpeeds]) -> list[list[TrialSpeeds]]:
    """Return the trials of each block, in the order in which they ran."""
    return [list(block) for _, block in itertools.groupby(trials, key=lambda trial: trial.block)]
