"""How fast this machine copies memory: no message crosses it faster than it is copied."""

from __future__ import annotations

import functools
import time

SIZES = (32 << 10, 256 << 10, 2 << 20)
"""Bytes: what fits into a first cache, into a second one, and hardly into either. The fastest counts."""
REPEATS = 50


@functools.cache
def bytes_hz() -> float:
    """Bytes per second that one core copies at the most, measured once, in some milliseconds: the best of many short
    copies, so that a core that is busy or taken away meanwhile does not make it less."""
    return max(size / _shortest_s(size) for size in SIZES)


def _shortest_s(size: int) -> float:
    source, target = bytes(size), memoryview(bytearray(size))
    times_ns = []
    for _ in range(REPEATS):
        began = time.perf_counter_ns()
        target[:] = source  # memmove(3)
        times_ns.append(time.perf_counter_ns() - began)
    return max(min(times_ns), 1) / 1e9
