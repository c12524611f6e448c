"""The settings that every program of the harness gets before its exec: timer slack, priority, limits, environment.

Servers are to differ in what they do and not in what they were given (docs/adr/level-ground.md). This is the one place:
`process.Process` and the programs behind `./netdyno serve`, `client` and `load` take their settings from here."""

from __future__ import annotations

import ctypes
import os
import resource
from collections.abc import Mapping

import msgspec

TIMER_SLACK_NS = 1
"""The kernel's default of 50 us makes every sleep longer, and every poll with a timeout, but no timer of timerfd: it is
a cost of blocking servers alone (prctl(2), PR_SET_TIMERSLACK)."""

MOST_DESCRIPTORS = 1 << 20
"""A million is enough for every experiment, and the hard limit of some systems is a thousand times that."""

STACK_BYTES = 8 << 20
"""The kernel's default, which glibc reserves for a thread (pthread_create(3)); with "unlimited" that is 2 MiB."""

PASSED_ON: tuple[str, ...] = ("PATH", "HOME", "TMPDIR")
"""Variables that programs inherit from the harness."""
FIXED = {"LANG": "C.UTF-8"}
"""Variables that are the same everywhere. There are no others: nothing of MALLOC_*, GLIBC_TUNABLES, LD_*, NODE_OPTIONS,
UV_*, QT_* or GOMAXPROCS, with which a user tunes one contestant without knowing. A contestant that needs one has it in
the `run` of its manifest: ["env", "NAME=value", …]."""

_PR_SET_TIMERSLACK = 29
_POLICY_NAMES = {os.SCHED_OTHER: "SCHED_OTHER", os.SCHED_BATCH: "SCHED_BATCH", os.SCHED_IDLE: "SCHED_IDLE"}
_LIMITS = ("CORE", "MEMLOCK", "NOFILE", "NPROC", "STACK")
_libc = ctypes.CDLL(None, use_errno=True)

ResourceLimits = Mapping[str, tuple[int, int]]
"""Soft and hard limit by the name after RLIMIT_."""


class ProgramSettings(msgspec.Struct, frozen=True):
    """The settings of every program of a run. `limits` are those that are set; a program inherits all others from the
    harness. A real-time priority, which generator and relay may have, comes after these settings."""

    policy: int
    nice: int
    limits: ResourceLimits
    environment: dict[str, str]

    def apply(self) -> None:
        """Give all but the environment to this process. Raises OSError."""
        if os.sched_getscheduler(0) != self.policy:
            os.sched_setscheduler(0, self.policy, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, 0, self.nice)
        for name, bounds in self.limits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), bounds)
        # After the policy: a real-time task has no slack, and the kernel ignores one that is set for it.
        if _libc.prctl(_PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_TIMERSLACK)")

    def describe(self) -> dict[str, str | int]:
        """Return the settings for the record of a run."""
        return {
            "ground.timer_slack_ns": TIMER_SLACK_NS,
            "ground.policy": _POLICY_NAMES[self.policy],
            "ground.nice": self.nice,
            "ground.limits": ", ".join(
                f"{name.lower()} {format_limit(soft)}" for name, (soft, _) in self.limits.items()
            ),
            "ground.environment": " ".join(sorted(self.environment)),
        }


def choose() -> ProgramSettings:
    """Choose the settings of the programs of this process."""
    limits = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}")) for name in _LIMITS}
    return ProgramSettings(
        policy=choose_policy(os.sched_getscheduler(0)),
        nice=max(0, os.getpriority(os.PRIO_PROCESS, 0)),
        limits=choose_limits(limits),
        environment=build_environment(os.environ),
    )


def choose_policy(harness_policy: int) -> int:
    """Return the policy of programs: a real-time policy of the harness is its own alone; a lower one holds for all, as
    raising it again needs rights (sched(7)). The same holds for its niceness. Pure."""
    policy = harness_policy & ~os.SCHED_RESET_ON_FORK
    return policy if policy in _POLICY_NAMES else os.SCHED_OTHER


def choose_limits(harness_limits: ResourceLimits) -> dict[str, tuple[int, int]]:
    """Return the limits of programs: as much as this user may have, as no server is meant to run at a limit; no core
    file, which takes time to write; and the same stack for a thread everywhere. Pure."""
    descriptors = _limit_to_hard(harness_limits["NOFILE"][1], max(MOST_DESCRIPTORS, harness_limits["NOFILE"][0]))
    return {
        "CORE": (0, harness_limits["CORE"][1]),
        "MEMLOCK": (harness_limits["MEMLOCK"][1],) * 2,
        "NOFILE": (descriptors,) * 2,
        "NPROC": (harness_limits["NPROC"][1],) * 2,
        "STACK": (_limit_to_hard(harness_limits["STACK"][1], STACK_BYTES), harness_limits["STACK"][1]),
    }


def build_environment(harness_environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program, from the harness's. Pure."""
    return {name: harness_environment[name] for name in PASSED_ON if name in harness_environment} | FIXED


def format_limit(limit: int) -> str:
    """Format a limit for people. Pure."""
    return "unlimited" if limit == resource.RLIM_INFINITY else str(limit)


def _limit_to_hard(hard: int, needed: int) -> int:
    return needed if hard == resource.RLIM_INFINITY else min(hard, needed)
