"""Watch for a neighbour that stays on the cores beside a run, and report after each trial when that changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from netdyno.measure.audits import neighbour
from netdyno.measure.machine.cpu_users import CpuUse, watch_cores
from netdyno.measure.run.progress import NeighbourChange
from netdyno.model.observation import ForeignLoad, Neighbour
from netdyno.model.trial import Trial


class NeighbourWatch:
    """The neighbour of a run, by its trials: programs or a hypervisor, which may go, and a CPU quota, which stays until
    the run ends. Trials run beside `present`; those of a resumed run do from the first on."""

    def __init__(
        self,
        trials: Sequence[Trial],
        foreign_load: ForeignLoad,
        watch_now: Callable[[], CpuUse] = lambda: watch_cores(os.sched_getaffinity(0)),
    ) -> None:
        """`trials` are the stored ones. `watch_now` watches the cores while no trial runs."""
        ran = [trial for trial in trials if trial.status != "skipped"]
        self.present: Neighbour | None = max(ran, key=lambda trial: trial.started_at).neighbour if ran else None
        self._policy = foreign_load
        self._watch_now = watch_now
        self._trials: list[Trial] = []
        """The trials since the last change."""
        self._next_watch = neighbour.DOZEN

    @property
    def may_stay(self) -> bool:
        """Whether the latest tries were lost, and too few to tell a neighbour from a burst."""
        return 0 < len(neighbour.latest_streak(self._trials)) < neighbour.DOZEN

    def add(self, trial: Trial) -> NeighbourChange | None:
        """Add the latest trial. Return how the neighbour has changed, where it has."""
        self._trials.append(trial)
        return self._find_quota() or self._find_departure() or self._find_programs()

    @property
    def _quota_cores(self) -> float:
        return self.present.quota_cores if self.present else 0.0

    def _find_quota(self) -> NeighbourChange | None:
        if self._quota_cores or not (withheld_cores := neighbour.find_quota_cores(self._trials)):
            return None
        quota = neighbour.make_quota(withheld_cores, cores=len(os.sched_getaffinity(0)))
        self._change(replace(self.present, quota_cores=withheld_cores) if self.present else quota)
        return NeighbourChange("quota", quota, neighbour.DOZEN, self._policy)

    def _find_departure(self) -> NeighbourChange | None:
        if self.present is None or not self.present.most_cores or not neighbour.has_gone(self._trials):
            return None
        gone = replace(self.present, quota_cores=0.0)
        self._change(neighbour.make_quota(self._quota_cores, cores=gone.cores) if self._quota_cores else None)
        return NeighbourChange("gone", gone, 0, self._policy)

    def _find_programs(self) -> NeighbourChange | None:
        streak = neighbour.latest_streak(self._trials)
        if not streak:
            self._next_watch = neighbour.DOZEN
        if len(streak) < self._next_watch or not neighbour.stays(streak):
            return None
        self._next_watch = 2 * len(streak)
        observed = self._watch_now()
        neighbour_now = neighbour.describe(
            streak, observed.foreign_cores, observed.programs, cores=len(os.sched_getaffinity(0))
        )
        if neighbour_now is None:
            return None
        self._change(replace(neighbour_now, quota_cores=self._quota_cores))
        return NeighbourChange("programs", neighbour_now, len(streak), self._policy)

    def _change(self, present: Neighbour | None) -> None:
        self.present = present
        self._trials = []
        self._next_watch = neighbour.DOZEN
