"""The speed at which this machine copies memory: no message crosses it faster than it is copied."""

from __future__ import annotations

import functools
import time

SIZES = (32 << 10, 256 << 10, 2 << 20)
"""Bytes: the first size fits into a first cache, the second into a second one, the third hardly into either. The
fastest counts."""
REPEATS = 50


@functools.cache
def measure_bytes_hz() -> float:
    """Measure, once and in some milliseconds, the bytes per second that one core copies at most: the best of many short
    copies, so that a core that is busy or taken away meanwhile does not lower it."""
    return max(size / _measure_shortest_s(size) for size in SIZES)


def _measure_shortest_s(size: int) -> float:
    source, target = bytes(size), memoryview(bytearray(size))
    times_ns = []
    for _ in range(REPEATS):
        began = time.perf_counter_ns()
        target[:] = source  # memmove(3)
        times_ns.append(time.perf_counter_ns() - began)
    return max(min(times_ns), 1) / 1e9
