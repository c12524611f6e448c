"""What is not as it was: the environments of two runs, or of one run at two times. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from netdyno.model.base import Name
from netdyno.model.run import OF_LOAD

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
    "limit.cpu_quota_cores",
    "build",
    "build_type",
    "compiler",
    "compiler_flags",
    "linker_flags",
    "build_environment",
    "rust",
    "go",
    "java",
    "interprocedural_optimization",
    "libc",
    "libraries",
    "programs",
    "runtimes",
    "link",
)
"""Of the environment: what decides how fast a program is. A load average or a measured link differs every time."""
DECISIVE_PREFIXES = ("sysctl.", "pinning.", "ground.")
_OF_A_LOAD = re.compile(rf"\A{re.escape(OF_LOAD)}(-\d+)?\.")
"""Before the key of a host that makes a load, which is recorded where it is not that of the server's host."""


@dataclass(frozen=True)
class Change:
    """A key with both of its values; None where it had none."""

    key: Name
    was: object
    now: object


def decisive(before: Mapping[str, object], now: Mapping[str, object]) -> list[Change]:
    """What decides on speed and is not as it was."""
    return between(before, now, filter(_decides, dict.fromkeys((*before, *now))))


def _decides(key: str) -> bool:
    of_host = _OF_A_LOAD.sub("", key)
    return of_host in DECISIVE or of_host.startswith(DECISIVE_PREFIXES)


def between(before: Mapping[str, object], now: Mapping[str, object], keys: Iterable[str]) -> list[Change]:
    """Those of the keys whose values differ."""
    return [Change(key, before.get(key), now.get(key)) for key in keys if before.get(key) != now.get(key)]
