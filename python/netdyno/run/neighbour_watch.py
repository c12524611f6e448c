"""Who stays on the cores beside a run: asked after each trial, it says when that changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from netdyno.audits import neighbour
from netdyno.machine.cpu_users import Look, look
from netdyno.model.observation import ForeignLoad, Neighbour
from netdyno.model.trial import Trial


def look_here() -> Look:
    """Watch the cores that the harness may use."""
    return look(os.sched_getaffinity(0))


class NeighbourWatch:
    """The neighbour of a run, as its trials tell. Trials run beside `present`; those of a run that goes on do from its
    first trial on."""

    def __init__(self, trials: Sequence[Trial], wanted: ForeignLoad, look_now: Callable[[], Look] = look_here) -> None:
        """`trials` are those that there are. `look_now` watches the machine while no trial runs."""
        ran = [trial for trial in trials if trial.status != "skipped"]
        self.present: Neighbour | None = max(ran, key=lambda one: one.started_at).beside if ran else None
        self._wanted = wanted
        self._look = look_now
        self._trials: list[Trial] = []
        """Those since the last change."""
        self._next_look = neighbour.DOZEN

    @property
    def may_stay(self) -> bool:
        """Whether the latest tries were lost, and too few to tell a neighbour from a burst."""
        return 0 < len(neighbour.latest_streak(self._trials)) < neighbour.DOZEN

    def add(self, trial: Trial) -> str:
        """Take the latest trial in. Returns what a person should know where the neighbour has changed; else nothing."""
        self._trials.append(trial)
        if self.present is not None and neighbour.has_gone(self._trials):
            gone, self.present = self.present, None
            self._begin_anew()
            return gone_words(gone, self._wanted)
        streak = neighbour.latest_streak(self._trials)
        if not streak:
            self._next_look = neighbour.DOZEN
        if len(streak) < self._next_look or not neighbour.stays(streak):
            return ""
        self._next_look = 2 * len(streak)
        seen = self._look()
        found = neighbour.describe(streak, seen.foreign_cores, seen.programs, cores=len(os.sched_getaffinity(0)))
        if found is None:
            return ""
        self.present = found
        self._begin_anew()
        return found_words(found, len(streak), self._wanted)

    def _begin_anew(self) -> None:
        self._trials = []
        self._next_look = neighbour.DOZEN


def found_words(found: Neighbour, tries: int, wanted: ForeignLoad) -> str:
    """Say who takes the cores, how to be rid of it, and what the run does until then."""
    what = "were disturbed" if wanted == "count" else "were lost"
    named = neighbour.named_programs(found)
    each = f" ({', '.join(f'{one.name} {one.cores:.1f}' for one in named)})" if len(named) > 1 else ""
    rid = "end it, or stop here (Ctrl-C) and run again when it has ended" if named else "run again when that is over"
    return (
        f"Other programs use this machine: {tries} tries in a row {what}, beside {neighbour.name(found)}{each}, of "
        f"{found.cores}. For undisturbed figures, {rid}. The run goes on: comparisons hold, because every contestant "
        "is disturbed alike; absolute figures are marked."
    )


def gone_words(gone: Neighbour, wanted: ForeignLoad) -> str:
    """Say that the machine is the run's own again."""
    rule = "" if wanted == "count" else ": disturbed trials are retried, as before"
    return f"The machine is free again, without {neighbour.name(gone)}{rule}."
