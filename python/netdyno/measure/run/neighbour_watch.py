"""Watch for a neighbour that stays on the cores beside a run, and report after each trial when that changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from netdyno.kit.quantities import plural
from netdyno.measure.audits import neighbour
from netdyno.measure.machine.cpu_users import CpuUse, watch_cores
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

    def add(self, trial: Trial) -> str:
        """Add the latest trial. Return a notice where the neighbour has changed, else an empty text."""
        self._trials.append(trial)
        return self._find_quota() or self._find_departure() or self._find_programs()

    @property
    def _quota_cores(self) -> float:
        return self.present.quota_cores if self.present else 0.0

    def _find_quota(self) -> str:
        if self._quota_cores or not (withheld_cores := neighbour.find_quota_cores(self._trials)):
            return ""
        quota = neighbour.make_quota(withheld_cores, cores=len(os.sched_getaffinity(0)))
        self._change(replace(self.present, quota_cores=withheld_cores) if self.present else quota)
        return explain_quota(quota, self._policy)

    def _find_departure(self) -> str:
        if self.present is None or not self.present.most_cores or not neighbour.has_gone(self._trials):
            return ""
        gone = replace(self.present, quota_cores=0.0)
        self._change(neighbour.make_quota(self._quota_cores, cores=gone.cores) if self._quota_cores else None)
        return explain_free_cores(gone, self._policy)

    def _find_programs(self) -> str:
        streak = neighbour.latest_streak(self._trials)
        if not streak:
            self._next_watch = neighbour.DOZEN
        if len(streak) < self._next_watch or not neighbour.stays(streak):
            return ""
        self._next_watch = 2 * len(streak)
        observed = self._watch_now()
        neighbour_now = neighbour.describe(
            streak, observed.foreign_cores, observed.programs, cores=len(os.sched_getaffinity(0))
        )
        if neighbour_now is None:
            return ""
        self._change(replace(neighbour_now, quota_cores=self._quota_cores))
        return explain_busy_cores(neighbour_now, len(streak), self._policy)

    def _change(self, present: Neighbour | None) -> None:
        self.present = present
        self._trials = []
        self._next_watch = neighbour.DOZEN


def explain_quota(quota: Neighbour, foreign_load: ForeignLoad) -> str:
    """Say that a CPU quota stops the run's own programs, how to raise it, and what the run does until then."""
    return (
        f"A CPU quota is too small for this run: {neighbour.DOZEN} tries in a row {_describe_loss(foreign_load)}, "
        f"with {neighbour.name(quota)}. For undisturbed figures, raise it (cpu.max; docker run --cpus). The run "
        "goes on: it compares the contestants under this quota; absolute figures are marked."
    )


def explain_busy_cores(busy: Neighbour, tries: int, foreign_load: ForeignLoad) -> str:
    """Say which programs take the cores, how to end that, and what the run does until then."""
    named = neighbour.named_programs(busy)
    shares = f" ({', '.join(f'{program.name} {program.cores:.1f}' for program in named)})" if len(named) > 1 else ""
    advice = "end them, or stop here (Ctrl-C) and run again later" if named else "run again later"
    return (
        f"Other programs use this machine: {tries} tries in a row {_describe_loss(foreign_load)}, "
        f"beside {neighbour.name(busy)}{shares} on {plural(busy.cores, 'core')}. For undisturbed figures, {advice}. "
        "The run goes on: it compares where all contestants are disturbed equally; absolute figures are marked."
    )


def _describe_loss(foreign_load: ForeignLoad) -> str:
    return "were disturbed" if foreign_load == "count" else "were lost"


def explain_free_cores(gone: Neighbour, foreign_load: ForeignLoad) -> str:
    """Say that the machine is free again."""
    rule = "" if foreign_load == "count" else ": disturbed trials are retried, as before"
    return f"The machine is free again, without {neighbour.name(gone)}{rule}."
