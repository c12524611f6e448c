"""The progress of a run, its events, and the display that shows them in words (present/prose/progress.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Literal, Protocol

import msgspec

from netdyno.kit.errors import UserError
from netdyno.model.base import Name, Quoted
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment
from netdyno.model.observation import ForeignLoad, Neighbour
from netdyno.model.outcomes import by_itself
from netdyno.model.trial import Trial, Warmup
from netdyno.question.plan import Cell, sum_trial_seconds


class Progress:
    """The progress of a run, and the time left. Of a run that goes on until it is precise enough, `total` and `blocks`
    are the most that it may have, and only `planned` trials are sure to come."""

    def __init__(self, cells: tuple[Cell, ...], trial_s: float, time_budget_s: float | None = None) -> None:
        self.total = self.planned = len(cells)
        self._goes_on = False
        self.blocks = max((cell.block for cell in cells), default=0)
        self._time_budget_s = time_budget_s
        self.counts: Counter[str] = Counter()
        self.retried = 0
        self._planned_trial_s = trial_s
        self._spent_s = 0.0

    def add(self, trial: Trial) -> None:
        self.counts[by_itself(trial)] += 1
        self._spent_s += sum_trial_seconds(trial)

    def again(self, disturbed: Trial) -> None:
        """Take back a trial that is retried."""
        self.counts[by_itself(disturbed)] -= 1
        self.retried += 1

    def revise(self, was: Trial, now: Trial) -> None:
        """Count a trial by its new verdict, which it got after it had been added."""
        self.counts[by_itself(was)] -= 1
        self.counts[by_itself(now)] += 1

    @property
    def done(self) -> int:
        return self.counts.total()

    def expect(self, planned: int, total: int, blocks: int, *, goes_on: bool = False) -> None:
        """Set the planned trials, and the most trials and blocks in all. `goes_on`: more come until the budget of time
        is used."""
        self.planned, self.total, self.blocks, self._goes_on = planned, total, blocks, goes_on

    @property
    def is_late(self) -> bool:
        """Whether retried trials keep the plan from ending within the budget of time."""
        budget_s = self._time_budget_s
        return bool(self.retried) and budget_s is not None and self._spent_s + self._planned_s > budget_s

    @property
    def _per_trial_s(self) -> float:
        return self._spent_s / self.done if self.done else self._planned_trial_s

    @property
    def _planned_s(self) -> float:
        return (self.planned - self.done) * self._per_trial_s

    def left_s(self) -> float:
        """Return the seconds left, at most: by the mean of the trials so far, skips included, else by the plan."""
        most_s = (self.total - self.done) * self._per_trial_s
        if self._time_budget_s is not None:
            left_s = self._time_budget_s - self._spent_s
            most_s = left_s if self._goes_on else min(most_s, left_s)
        return max(self._planned_s, most_s)


class RunPlan(msgspec.Struct, frozen=True):
    """The plan of a run, when it `begins` by the clock on the wall: its servers and clients by their names, its links
    (none: those of the experiment), and the seconds of the traces after its trials."""

    experiment: Experiment
    begins: datetime
    servers: Mapping[Name, Contestant]
    clients: Mapping[Name, Contestant] = MappingProxyType({})
    links: tuple[Name, ...] = ()
    traces_s: float = 0.0


class ResumedRun(msgspec.Struct, frozen=True):
    """A run goes on after so many of its planned trials."""

    run_id: Name
    question: Quoted
    done: int
    planned: int


class FirstFailure(msgspec.Struct, frozen=True):
    """One of a gate's two servers has no right reply to the first requests."""

    error: UserError


class MeasuredWarmup(msgspec.Struct, frozen=True):
    """The warm-up of a contestant in a scenario at its levels (`where`)."""

    contestant: Name
    where: Name
    warmup: Warmup


class TimeOfTrials(msgspec.Struct, frozen=True):
    """The seconds that all trials take with their warm-ups, and when they begin."""

    seconds: float
    begins: datetime


class LateRun(msgspec.Struct, frozen=True):
    """Retried trials keep a run from ending in its time: the seconds that are left, and the most in all, if any."""

    retried: int
    left_s: float
    limit_s: float | None


class NeighbourChange(msgspec.Struct, frozen=True):
    """What disturbs a run has changed: a CPU quota or programs came, or the neighbour has gone. `tries` were disturbed
    in a row."""

    change: Literal["quota", "programs", "gone"]
    neighbour: Neighbour
    tries: int
    foreign_load: ForeignLoad


class LostHosts(msgspec.Struct, frozen=True):
    """A run cannot continue on its hosts."""

    error: Exception


class PlannedTraces(msgspec.Struct, frozen=True):
    """So many traces of system calls begin, and take so many seconds."""

    count: int
    seconds: float


RunEvent = (
    RunPlan
    | ResumedRun
    | FirstFailure
    | MeasuredWarmup
    | TimeOfTrials
    | LateRun
    | NeighbourChange
    | LostHosts
    | PlannedTraces
)


class Display(Protocol):
    """The display that the runner writes to."""

    def begin(self, event: RunEvent) -> None: ...
    def trial_started(self, cell: Cell, progress: Progress) -> None: ...
    def throughput(self, completed: int, seconds: float) -> None: ...
    def trial_done(self, trial: Trial, progress: Progress) -> None: ...
    def note(self, event: RunEvent) -> None: ...
    def close(self) -> None: ...
