"""Waiting for events. No test sleeps for a fixed time: it waits for a condition, and fails when that never comes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from netdyno.kit.paths import build_dir

SLOWER = 5
"""What is waited for programs with a sanitizer, in times of what is waited for others."""


def slowness(build: Path) -> int:
    """SLOWER where the programs of a build directory are built with a sanitizer, else 1."""
    try:
        cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    except OSError:
        return 1
    kind = cache.partition("NETDYNO_SANITIZE:STRING=")[2].partition("\n")[0]
    return SLOWER if kind else 1


# How long anything may take that should come at once, on a busy machine. Not a speed limit.
PATIENCE_S = 60.0 * slowness(build_dir())
POLL_S = 0.005


def eventually(
    condition: Callable[[], bool],
    what: Callable[[], str] | str,
    patience_s: float = PATIENCE_S,
    poll_s: float = POLL_S,
) -> None:
    """Return once `condition()` holds; AssertionError with `what` when it never does."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {patience_s:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(poll_s)
