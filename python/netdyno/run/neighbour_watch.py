"""Watch for a neighbour that stays on the cores beside a run, and report after each trial when that changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from netdyno.audits import neighbour
from netdyno.base.quantities import plural
from netdyno.machine.cpu_users import CpuUse, look
from netdyno.model.observation import ForeignLoad, Neighbour
from netdyno.model.trial import Trial


def look_here() -> CpuUse:
    """Watch the cores that the harness may use."""
    return look(os.sched_getaffinity(0))


class NeighbourWatch:
    """The neighbour of a run, by its trials. Trials run beside `present`; those of a resumed run do from the first
    on."""

    def __init__(
        self, trials: Sequence[Trial], foreign_load: ForeignLoad, look_now: Callable[[], CpuUse] = look_here
    ) -> None:
        """`trials` are the stored ones. `look_now` watches the machine while no trial runs."""
        ran = [trial for trial in trials if trial.status != "skipped"]
        self.present: Neighbour | None = max(ran, key=lambda trial: trial.started_at).beside if ran else None
        self._policy = foreign_load
        self._look = look_now
        self._trials: list[Trial] = []
        """The trials since the last change."""
        self._next_look = neighbour.DOZEN

    @property
    def may_stay(self) -> bool:
        """Whether the latest tries were lost, and too few to tell a neighbour from a burst."""
        return 0 < len(neighbour.latest_streak(self._trials)) < neighbour.DOZEN

    def add(self, trial: Trial) -> str:
        """Add the latest trial. Return a notice where the neighbour has changed, else an empty text."""
        self._trials.append(trial)
        if self.present is not None and neighbour.has_gone(self._trials):
            gone, self.present = self.present, None
            self._restart()
            return explain_free_cores(gone, self._policy)
        streak = neighbour.latest_streak(self._trials)
        if not streak:
            self._next_look = neighbour.DOZEN
        if len(streak) < self._next_look or not neighbour.stays(streak):
            return ""
        self._next_look = 2 * len(streak)
        observed = self._look()
        neighbour_now = neighbour.describe(
            streak, observed.foreign_cores, observed.programs, cores=len(os.sched_getaffinity(0))
        )
        if neighbour_now is None:
            return ""
        self.present = neighbour_now
        self._restart()
        return explain_busy_cores(neighbour_now, len(streak), self._policy)

    def _restart(self) -> None:
        self._trials = []
        self._next_look = neighbour.DOZEN


def explain_busy_cores(busy: Neighbour, tries: int, foreign_load: ForeignLoad) -> str:
    """Say which programs take the cores, how to end that, and what the run does until then."""
    outcome = "were disturbed" if foreign_load == "count" else "were lost"
    if busy.quota_cores:
        return (
            f"Programs of this run were stopped: {tries} tries in a row {outcome}, beside {neighbour.name(busy)}. For "
            "undisturbed figures, raise the quota (cpu.max; docker run --cpus). The run goes on: it compares the "
            "contestants under this quota; absolute figures are marked."
        )
    named = neighbour.named_programs(busy)
    shares = f" ({', '.join(f'{program.name} {program.cores:.1f}' for program in named)})" if len(named) > 1 else ""
    advice = "end them, or stop here (Ctrl-C) and run again later" if named else "run again later"
    return (
        f"Other programs use this machine: {tries} tries in a row {outcome}, beside {neighbour.name(busy)}{shares} on "
        f"{plural(busy.cores, 'core')}. For undisturbed figures, {advice}. The run goes on: comparisons hold, as all "
        "contestants are disturbed equally; absolute figures are marked."
    )


def explain_free_cores(gone: Neighbour, foreign_load: ForeignLoad) -> str:
    """Say that the machine is free again."""
    rule = "" if foreign_load == "count" else ": disturbed trials are retried, as before"
    return f"The machine is free again, without {neighbour.name(gone)}{rule}."
