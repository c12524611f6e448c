"""The progress of a run, and the display that shows it."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from netdyno.kit.units import format_clock
from netdyno.model.outcomes import by_itself
from netdyno.model.trial import Trial
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

    def format_left(self) -> str:
        """ "4:05 left", or "at most 4:05 left"."""
        at_most = "at most " if self.total > self.planned else ""
        return f"{at_most}{format_clock(self.left_s())} left"


class Display(Protocol):
    """The display that the runner writes to."""

    def begin(self, text: str) -> None: ...
    def trial_started(self, cell: Cell, progress: Progress) -> None: ...
    def throughput(self, completed: int, seconds: float) -> None: ...
    def trial_done(self, trial: Trial, progress: Progress) -> None: ...
    def note(self, text: str) -> None: ...
    def close(self) -> None: ...
