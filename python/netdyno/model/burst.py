"""A burst within the window of an open loop: its place, and the figures of a trial that has one. Pure.

The load keeps its rate for a quarter of the window, then that of the burst for an eighth, and its own again for the
rest. A server that is offered 60% of its capacity, and twice its capacity in the burst, has worked its queue off after
five sixteenths of the window, and five remain."""

from __future__ import annotations

import math

from netdyno.model.load_result import LoadResult, Step

BEFORE, DURING = 0.25, 0.125
"""The shares of the window before the burst and in it."""
USUAL = 0.75
"""The share of the intervals before the burst in which p99 was what it is to be again: the others may have met a pause
of the machine."""


def divide(window_s: float) -> tuple[float, float, float]:
    """Return the seconds before a burst, in it, and after it."""
    before_s, during_s = BEFORE * window_s, DURING * window_s
    return before_s, during_s, window_s - before_s - during_s


def find_patience_s(timeout_s: float, window_s: float, *, has_burst: bool) -> float:
    """Return how long the last answers are waited for after the window (LoadPlan::last_patience in the generator)."""
    return max(timeout_s, window_s) if has_burst else timeout_s


def read_burst(load: LoadResult) -> Step | None:
    """Return the step of a load that is its burst; None where its rate did not change so."""
    return load.steps[1] if isinstance(load.steps, tuple) and len(load.steps) == 3 else None


def compute_goodput(load: LoadResult) -> float | None:
    """Return the messages a second that were answered in time within the burst; None without one."""
    burst = read_burst(load)
    return (burst.completed - burst.late) / burst.seconds if burst and burst.seconds else None


def compute_recovery_ns(load: LoadResult) -> float | None:
    """Return the time from the end of the burst to that of the first interval in which p99 is no higher than in three
    of four intervals before it; all the rest of the window where there is none. Response times are counted in the
    interval of their answer, from the moment at which the message was due. None without a burst, or without an answer
    before it."""
    burst = read_burst(load)
    if burst is None:
        return None
    times = load.timeseries
    begins_ns, ends_ns = 1e9 * burst.begins_s, 1e9 * (burst.begins_s + burst.seconds)
    starts = [number * times.interval_ns for number in range(len(times.p99_ns))]
    p99_by_start = [(start, p99) for start, p99 in zip(starts, times.p99_ns, strict=True) if p99 is not None]
    before = sorted(p99 for start, p99 in p99_by_start if start + times.interval_ns <= begins_ns)
    if not before:
        return None
    usual = before[math.ceil(USUAL * len(before)) - 1]
    recovered = (start + times.interval_ns for start, p99 in p99_by_start if start >= ends_ns and p99 <= usual)
    return next(recovered, 1e9 * load.plan.duration_s) - ends_ns
