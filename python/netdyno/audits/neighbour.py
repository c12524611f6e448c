"""Whether other work stays on the cores beside a run, or came in a burst. Pure functions of trials that ran, in their
order, and of a look at the machine between two of them (machine/cpu_users.py). No figure of a load is looked at.

A burst is waited for: what it disturbed is made again. Who stays would leave no trial at all, so that the run measures
beside it (docs/adr/foreign-load.md)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from netdyno.audits.of_trial import FOREIGN_SHARE, allowed
from netdyno.base import quantities
from netdyno.model.observation import Neighbour, ProgramShare
from netdyno.model.trial import Trial

DOZEN = 12
"""Tries in a row that tell a neighbour from a burst. Beside one that comes and goes (bench/disturb.py) three tries in
ten are left alone."""
UNLIKE_DOZENS = 3
"""After so many dozens in a row it stays, however unlike its shares are."""
ALIKE = 0.5
"""The least share of a dozen, as a part of the median: lower than this, some try was nearly left alone."""
NAMED_SHARE = 0.15
"""Of the neighbour's whole share: programs below this are not named."""
MOST_NAMED = 3
TAKES_CORES = ("foreign_load", "steal")
"""The audits that a neighbour fails."""


def latest_streak(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """Return the latest tries in a row in which others took more than is allowed. Tries without a window, such as those
    of a server that does not start, say nothing and are left out."""
    told = [trial for trial in trials if trial.machine is not None]
    length = next((count for count, trial in enumerate(reversed(told)) if not is_crowded(trial)), len(told))
    return tuple(told[len(told) - length :])


def is_crowded(trial: Trial) -> bool:
    """Whether others took more of the cores than is allowed beside the neighbour that was known, if any."""
    return _takes_more(trial, trial.beside)


def _takes_more(trial: Trial, beside: Neighbour | None) -> bool:
    machine = trial.machine
    if machine is None:
        return False
    limits = allowed(machine, machine.window_s, beside)
    return machine.foreign_s > limits.foreign_s or machine.steal_s > limits.steal_s


def stays(streak: Sequence[Trial]) -> bool:
    """Whether a streak is a neighbour's: at least a dozen, and the last dozen alike. Alike are cores taken, of a
    program that wants so much; or the share of what the trials left, of one that takes what it gets."""
    if len(streak) < DOZEN:
        return False
    taken = [_taken_cores(trial) for trial in streak[-DOZEN:]]
    shares = [_share_of_rest(trial) for trial in streak[-DOZEN:]]
    return _are_alike(taken) or _are_alike(shares) or len(streak) >= UNLIKE_DOZENS * DOZEN


def _are_alike(values: Sequence[float]) -> bool:
    return min(values) >= ALIKE * statistics.median(values)


def _taken_cores(trial: Trial) -> float:
    machine = trial.machine
    return (machine.foreign_s + machine.steal_s) / machine.window_s if machine else 0.0


def _share_of_rest(trial: Trial) -> float:
    """Of the cores' time that a trial did not use; all of it where it used more than there was, by the readings."""
    machine = trial.machine
    if machine is None:
        return 0.0
    rest_s = machine.cores * machine.window_s - machine.own_s
    return 1.0 if rest_s <= 0 else min(1.0, (machine.foreign_s + machine.steal_s) / rest_s)


def describe(
    streak: Sequence[Trial], foreign_cores: float, programs: Sequence[ProgramShare], *, cores: int
) -> Neighbour | None:
    """Return the neighbour of a streak that stays. `foreign_cores` and `programs` are what others used between trials.
    None where nobody is there then and no trial was struck out for it before the third dozen: what looks foreign may be
    the kernel's work for the trials themselves."""
    steals = [trial.machine.steal_s / trial.machine.window_s for trial in streak[-DOZEN:] if trial.machine]
    steal_cores = statistics.median(steals)
    taken = [_taken_cores(trial) for trial in streak[-DOZEN:]]
    if max(foreign_cores, steal_cores) <= FOREIGN_SHARE * cores:
        struck_out = all(any(one.name in TAKES_CORES and not one.passed for one in trial.audits) for trial in streak)
        if len(streak) < UNLIKE_DOZENS * DOZEN or not struck_out:
            return None
        foreign_cores, programs = statistics.median(taken) - steal_cores, ()
    return Neighbour(
        cores=cores,
        foreign_cores=foreign_cores,
        steal_cores=steal_cores,
        most_cores=max(*taken, foreign_cores + steal_cores),
        programs=tuple(programs),
    )


def has_gone(trials: Sequence[Trial]) -> bool:
    """Whether the last dozen tries beside a neighbour had the machine for themselves."""
    told = [trial for trial in trials if trial.machine is not None][-DOZEN:]
    return len(told) == DOZEN and all(one.beside is not None and not _takes_more(one, None) for one in told)


def name(neighbour: Neighbour) -> str:
    """Return who it is with its share: "1.8 cores of clang++", "0.4 cores that the hypervisor took"."""
    found = []
    if neighbour.foreign_cores > FOREIGN_SHARE * neighbour.cores or not neighbour.steal_cores:
        found.append(f"{_cores(neighbour.foreign_cores)} of {_programs(neighbour)}")
    if neighbour.steal_cores > FOREIGN_SHARE * neighbour.cores or not found:
        found.append(f"{_cores(neighbour.steal_cores)} that the hypervisor took")
    return " and ".join(found)


def _cores(cores: float) -> str:
    return f"{cores:.1f} cores" if cores >= 0.1 else f"{cores:.2f} cores"


def named_programs(neighbour: Neighbour) -> tuple[ProgramShare, ...]:
    """Return its programs with the largest shares; none where none can be seen from here."""
    worth_naming = [one for one in neighbour.programs if one.cores >= NAMED_SHARE * neighbour.foreign_cores]
    return tuple(worth_naming[:MOST_NAMED])


def _programs(neighbour: Neighbour) -> str:
    named = named_programs(neighbour)
    if not named:
        return "programs that cannot be seen from here"
    rest = neighbour.foreign_cores - sum(one.cores for one in named)
    names = [one.name for one in named] + (["others"] if rest > NAMED_SHARE * neighbour.foreign_cores else [])
    return quantities.listed(names)
