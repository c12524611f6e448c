"""What is not as it was: the environments of two runs, or of one run at two times. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

DECISIVE = (
    "git_commit",
    "git_dirty",
    "kernel",
    "kernel_version",
    "kernel_command_line",
    "architecture",
    "cpu_model",
    "cores_online",
    "cores_allowed",
    "smt",
    "governor",
    "boost",
    "clocksource",
    "mitigations",
    "limit.cgroup_cpu",
    "build",
    "build_type",
    "compiler",
    "compiler_flags",
    "interprocedural_optimization",
    "libc",
    "libraries",
    "programs",
    "link",
)
"""Of the environment: what decides how fast a program is. A load average or a measured link differs every time."""
DECISIVE_PREFIXES = ("sysctl.", "pinning.", "ground.")
MOST_NAMED = 3
"""Of a list that differs, entries that are named."""


def decisive(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """What decides on speed and is not as it was, each with both values."""
    keys = [key for key in dict.fromkeys((*before, *now)) if key in DECISIVE or key.startswith(DECISIVE_PREFIXES)]
    return between(before, now, keys)


def between(before: Mapping[str, object], now: Mapping[str, object], keys: Iterable[str]) -> list[str]:
    """Those of the keys whose values differ, each with both values."""
    return [_difference(key, before.get(key), now.get(key)) for key in keys if before.get(key) != now.get(key)]


def _difference(key: str, was: object, now: object) -> str:
    if not isinstance(was, list) or not isinstance(now, list):
        return f"{key} was {_shown(was)} and is {_shown(now)}"
    gone, new = ([one for one in some if one not in others] for some, others in ((was, now), (now, was)))
    return f"{key} had {_some(gone)} and has {_some(new)}"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "nothing" if value is None else _some(value) if isinstance(value, list) else str(value)


def _some(entries: Iterable[object]) -> str:
    told = [str(one) for one in entries]
    if not told:
        return "nothing beside"
    more = len(told) - MOST_NAMED
    return ", ".join(told[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
