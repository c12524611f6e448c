"""What the canary says of the machine over a run, as frozen data. Pure."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from netdyno.audits import canary
from netdyno.audits.canary import FIGURES
from netdyno.model.base import Name
from netdyno.model.observation import CanaryReading, CanaryReadings
from netdyno.model.run import Run
from netdyno.model.trial import Trial


@dataclass(frozen=True)
class Beside:
    """One trial: when it began, in seconds since the first one did, its block, and the figures of the canary beside it
    in the order of FIGURES: the geometric mean of before and after, the lesser and the greater of these two. `struck`:
    its machine was not that of its block."""

    at_s: float
    block: int
    speeds: tuple[float, ...]
    least: tuple[float, ...]
    most: tuple[float, ...]
    struck: bool


@dataclass(frozen=True)
class Range:
    """One figure of the canary over the run, a second: over all readings, and by how much blocks differ in the
    median (the fastest divided by the slowest)."""

    name: Name
    least: float
    median: float
    most: float
    drift: float


@dataclass(frozen=True)
class MachineOverTime:
    trials: tuple[Beside, ...]
    """In the order in which they ran."""
    ranges: tuple[Range, ...]
    """In the order of FIGURES."""
    struck: int
    """Trials whose machine was not that of their block, as this audit has found, with or without others."""
    unread: int
    """Trials beside which the canary could not be read."""
    unjudged: int
    """Trials whose block did not come to its end, so that they have no such audit."""
    counted: bool
    """The run was to count and not to strike out."""

    @property
    def drift(self) -> Range:
        """The figure that drifted most; of those that drifted alike, the first."""
        return max(self.ranges, key=lambda one: round(one.drift, 3))


def of_run(run: Run) -> MachineOverTime | None:
    """None where no trial has a reading: a run that was stored before there were any."""
    told = sorted(
        (trial for trial in run.all_trials if trial.canary is not None), key=lambda one: (one.block, one.position)
    )
    read = [(trial, sides) for trial in told if trial.canary is not None if (sides := _sides(trial.canary))]
    if not read:
        return None
    began = datetime.fromisoformat(read[0][0].started_at)
    trials = tuple(_beside(trial, sides, began) for trial, sides in read)
    readings = [reading for _, sides in read for reading in sides]
    return MachineOverTime(
        trials=trials,
        ranges=tuple(_range(number, name, readings, trials) for number, name in enumerate(FIGURES)),
        struck=sum(one.struck for one in trials),
        unread=sum(trial.canary is not None and bool(trial.canary.unread) for trial in told),
        unjudged=sum(not canary.is_judged(trial) for trial in told),
        counted=run.environment.get("foreign_load") == "count",
    )


def _audited(trial: Trial) -> bool | None:
    """Whether it passed this audit on all hosts; None where it was not asked."""
    found = [audit.passed for audit in trial.audits if audit.name == canary.NAME]
    return all(found) if found else None


def _sides(readings: CanaryReadings) -> tuple[CanaryReading, ...]:
    """Those that there are."""
    return tuple(reading for _, reading in canary.sides(readings))


def _beside(trial: Trial, sides: Sequence[CanaryReading], began: datetime) -> Beside:
    speeds = [[speed(one) for one in sides] for speed in FIGURES.values()]
    return Beside(
        at_s=(datetime.fromisoformat(trial.started_at) - began).total_seconds(),
        block=trial.block,
        speeds=tuple(map(statistics.geometric_mean, speeds)),
        least=tuple(map(min, speeds)),
        most=tuple(map(max, speeds)),
        struck=_audited(trial) is False and len(sides) > 1,
    )


def _range(number: int, name: str, readings: Sequence[CanaryReading], trials: Sequence[Beside]) -> Range:
    speeds = [FIGURES[name](one) for one in readings]
    medians = [statistics.median(one.speeds[number] for one in block) for block in by_block(trials)]
    return Range(name, min(speeds), statistics.median(speeds), max(speeds), max(medians) / min(medians))


def by_block(trials: Iterable[Beside]) -> list[list[Beside]]:
    """The trials of each block, in the order in which they ran."""
    return [list(block) for _, block in itertools.groupby(trials, key=lambda one: one.block)]
