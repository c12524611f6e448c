"""Waiting for events. No test sleeps for a fixed time: it waits for a condition, and fails when that never comes."""

from __future__ import annotations

import time
from collections.abc import Callable

# How long anything may take that should come at once, on a busy machine and under a sanitizer. Not a speed limit.
PATIENCE_S = 30.0
POLL_S = 0.005


def eventually(condition: Callable[[], bool], what: Callable[[], str] | str, patience_s: float = PATIENCE_S) -> None:
    """Return once `condition()` holds; AssertionError with `what` when it never does."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {patience_s:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(POLL_S)
