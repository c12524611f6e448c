"""The judgement of whether other work stays on the cores beside a run, or came in a burst. Pure functions of trials in
the order in which they ran, and of a watch of the cores between two of them (measure/machine/cpu_users.py). No figure
of a load is used.

After a burst, the disturbed trials are repeated. A neighbour that stays would leave no valid trial at all, so the run
measures beside it (docs/adr/foreign-load.md)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from netdyno.kit import quantities
from netdyno.measure.audits.of_trial import FOREIGN_SHARE, allowed
from netdyno.model.observation import Neighbour, ProgramShare
from netdyno.model.trial import Trial

DOZEN = 12
"""Tries in a row that distinguish a neighbour from a burst. Beside a neighbour that comes and goes (bench/disturb.py),
three tries in ten are undisturbed."""
UNLIKE_DOZENS = 3
"""The number of dozens in a row after which it stays, however different its shares are."""
ALIKE = 0.5
"""The least share in a dozen, as a part of the median: below this, some try was nearly undisturbed."""
NAMED_SHARE = 0.15
"""A part of the neighbour's whole share: programs below this are not named."""
MOST_NAMED = 3
TAKES_CORES = ("foreign_load", "steal")
"""The audits that a neighbour fails."""


def latest_streak(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """Return the latest tries in a row in which other programs took more than is allowed. Tries without a window, such
    as those of a server that does not start, show nothing and are left out."""
    observed = [trial for trial in trials if trial.machine is not None]
    length = next((count for count, trial in enumerate(reversed(observed)) if not is_crowded(trial)), len(observed))
    return tuple(observed[len(observed) - length :])


def is_crowded(trial: Trial) -> bool:
    """Whether other programs took more of the cores than is allowed beside the neighbour that was known, if any."""
    return _takes_more(trial, trial.neighbour)


def _takes_more(trial: Trial, neighbour: Neighbour | None) -> bool:
    machine = trial.machine
    if machine is None:
        return False
    limits = allowed(machine, machine.window_s, neighbour)
    return machine.foreign_s > limits.foreign_s or machine.steal_s > limits.steal_s


def stays(streak: Sequence[Trial]) -> bool:
    """Whether a streak is a neighbour's: at least a dozen tries, and the last dozen alike. Alike are the cores taken,
    for a program with a fixed demand; or the share of the rest that the trials left, for a program that takes all it
    gets."""
    if len(streak) < DOZEN:
        return False
    taken = [_count_taken_cores(trial) for trial in streak[-DOZEN:]]
    shares = [_compute_share_of_rest(trial) for trial in streak[-DOZEN:]]
    return _are_alike(taken) or _are_alike(shares) or len(streak) >= UNLIKE_DOZENS * DOZEN


def _are_alike(values: Sequence[float]) -> bool:
    return min(values) >= ALIKE * statistics.median(values)


def _count_taken_cores(trial: Trial) -> float:
    machine = trial.machine
    return (machine.foreign_s + machine.steal_s) / machine.window_s if machine else 0.0


def _compute_share_of_rest(trial: Trial) -> float:
    """Return the share taken of the cores' time that a trial did not use; 1 where, by the readings, it left none."""
    machine = trial.machine
    if machine is None:
        return 0.0
    rest_s = machine.cores * machine.window_s - machine.own_s
    return 1.0 if rest_s <= 0 else min(1.0, (machine.foreign_s + machine.steal_s) / rest_s)


def find_quota_cores(trials: Sequence[Trial]) -> float:
    """Return how many cores' worth of time a CPU quota withheld from the last dozen tries, in the median; 0 where it
    did not stop each of them beyond what is allowed."""
    observed = [trial.machine for trial in trials if trial.machine is not None][-DOZEN:]
    withheld_s = [machine.throttled_s or 0.0 for machine in observed]
    limits_s = [allowed(machine, machine.window_s).throttled_s for machine in observed]
    if len(observed) < DOZEN or any(held <= limit for held, limit in zip(withheld_s, limits_s, strict=True)):
        return 0.0
    return statistics.median(held / machine.window_s for held, machine in zip(withheld_s, observed, strict=True))


def make_quota(quota_cores: float, *, cores: int) -> Neighbour:
    """Return a CPU quota as the only neighbour."""
    return Neighbour(cores=cores, foreign_cores=0.0, steal_cores=0.0, most_cores=0.0, quota_cores=quota_cores)


def describe(
    streak: Sequence[Trial], foreign_cores: float, programs: Sequence[ProgramShare], *, cores: int
) -> Neighbour | None:
    """Return the neighbour of a streak that stays. `foreign_cores` and `programs` were used by others between trials.
    None where neither these nor the hypervisor show a neighbour, unless every trial of at least three dozen is invalid
    for it: what looks foreign may be the kernel's work for the trials themselves."""
    steals = [trial.machine.steal_s / trial.machine.window_s for trial in streak[-DOZEN:] if trial.machine]
    steal_cores = statistics.median(steals)
    taken = [_count_taken_cores(trial) for trial in streak[-DOZEN:]]
    if max(foreign_cores, steal_cores) <= FOREIGN_SHARE * cores:
        all_invalid = all(
            any(audit.name in TAKES_CORES and not audit.passed for audit in trial.audits) for trial in streak
        )
        if len(streak) < UNLIKE_DOZENS * DOZEN or not all_invalid:
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
    observed = [trial for trial in trials if trial.machine is not None][-DOZEN:]
    return len(observed) == DOZEN and all(
        trial.neighbour is not None and not _takes_more(trial, None) for trial in observed
    )


def name(neighbour: Neighbour) -> str:
    """Return the neighbour in words, with its share: "1.8 cores of clang++", "0.4 cores that the hypervisor took"."""
    shares = []
    least = FOREIGN_SHARE * neighbour.cores
    if neighbour.foreign_cores > least or not (neighbour.steal_cores or neighbour.quota_cores):
        shares.append(f"{_format_cores(neighbour.foreign_cores)} of {_format_programs(neighbour)}")
    if neighbour.steal_cores > least or not (shares or neighbour.quota_cores):
        shares.append(f"{_format_cores(neighbour.steal_cores)} that the hypervisor took")
    if neighbour.quota_cores:
        shares.append(f"{_format_cores(neighbour.quota_cores)} that a CPU quota withheld")
    return " and ".join(shares)


def _format_cores(cores: float) -> str:
    return f"{cores:.1f} cores" if cores >= 0.1 else f"{cores:.2f} cores"


def named_programs(neighbour: Neighbour) -> tuple[ProgramShare, ...]:
    """Return its programs with the largest shares; none where none can be seen from here."""
    worth_naming = [program for program in neighbour.programs if program.cores >= NAMED_SHARE * neighbour.foreign_cores]
    return tuple(worth_naming[:MOST_NAMED])


def _format_programs(neighbour: Neighbour) -> str:
    named = named_programs(neighbour)
    if not named:
        return "programs that cannot be seen from here"
    rest = neighbour.foreign_cores - sum(program.cores for program in named)
    names = [program.name for program in named] + (["others"] if rest > NAMED_SHARE * neighbour.foreign_cores else [])
    return quantities.listed(names)
