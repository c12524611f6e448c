"""Two runs side by side.

Frozen data without words; units are in the names."""

from __future__ import annotations

import msgspec

from netdyno.kit.statistics.stats import Interval
from netdyno.model.base import Name
from netdyno.model.experiment import RankedBy


class Change(msgspec.Struct, frozen=True):
    """A key with its two values; None where it had none."""

    key: Name
    was: object
    now: object


class Both(msgspec.Struct, frozen=True):
    """One cell of both runs: its figures as in their reports, over all valid trials together, in messages a second or
    nanoseconds. `ratio` is that of a typical trial, the geometric mean of the second's trials divided by that of the
    first's; its interval is None below five blocks on a side."""

    scenario: Name
    contestant: Name
    level: Name
    metric: RankedBy
    first: float
    second: float
    first_trials: int
    second_trials: int
    ratio: float
    interval: Interval | None

    @property
    def apart(self) -> bool:
        """Whether the interval leaves out a ratio of 1."""
        return self.interval is not None and not self.interval.low <= 1 <= self.interval.high


class ChangedQuestion(msgspec.Struct, frozen=True):
    """A difference in the questions of a scenario of both runs; for the experiment itself the scenario is empty."""

    scenario: Name
    change: Change


class ScenarioOfOne(msgspec.Struct, frozen=True):
    """A scenario that only one of the runs has."""

    run: Name
    scenario: Name
    workload: Name


class SideBySide(msgspec.Struct, frozen=True):
    """The differences in the runs' environments and questions, and the cells of both; `alone` counts cells with a
    figure in only one run."""

    first: Name
    second: Name
    environment: tuple[Change, ...]
    questions: tuple[ChangedQuestion | ScenarioOfOne, ...] = msgspec.field(name="asked")
    cells: tuple[Both, ...]
    alone: int
