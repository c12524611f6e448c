"""The differences of two environments: of two runs, or of one run at two times. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from netdyno.analysis.found.compare import Change
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
    "erlang",
    "interprocedural_optimization",
    "libc",
    "libraries",
    "programs",
    "runtimes",
    "frameworks",
    "link",
)
"""The keys that decide how fast a program is. A load average or a measured link differs every time."""
DECISIVE_PREFIXES = ("sysctl.", "pinning.", "ground.")
_OF_A_LOAD = re.compile(rf"\A{re.escape(OF_LOAD)}(-\d+)?\.")
"""The prefix of a load host's key, which is recorded only where the server's host has another value."""


def list_decisive(before: Mapping[str, object], now: Mapping[str, object]) -> list[Change]:
    """Return the changes that decide on speed."""
    return list_changes(before, now, filter(_is_decisive, dict.fromkeys((*before, *now))))


def _is_decisive(key: str) -> bool:
    host_key = _OF_A_LOAD.sub("", key)
    return host_key in DECISIVE or host_key.startswith(DECISIVE_PREFIXES)


def list_changes(before: Mapping[str, object], now: Mapping[str, object], keys: Iterable[str]) -> list[Change]:
    """Return the keys with different values."""
    return [Change(key, before.get(key), now.get(key)) for key in keys if before.get(key) != now.get(key)]
