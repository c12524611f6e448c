"""Loads with a burst."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from netdyno.model import burst
from netdyno.model.load_result import LoadResult, Step
from tests.support.builders.made_load import distribution

MS = 1_000_000
RATE, BURST_RATE = 600.0, 2000.0


def add_burst(load: LoadResult, p99_ms: Sequence[int | None], *, completed: int = 200, late: int = 0) -> LoadResult:
    """Return the load with a burst, in which so many were completed and late, and with these times in each interval."""
    begins_s, lengths = 0.0, burst.divide(load.plan.duration_s)
    steps = []
    for rate, length_s, counts in zip(
        (RATE, BURST_RATE, RATE), lengths, ((0, 0), (completed, late), (0, 0)), strict=True
    ):
        steps.append(
            Step(
                from_hz=rate,
                to_hz=rate,
                begins_s=begins_s,
                seconds=length_s,
                sent=0,
                completed=counts[0],
                per_second=counts[0] / length_s,
                errors=0,
                response_ns=distribution(1, MS),
                late=counts[1],
            )
        )
        begins_s += length_s
    p99_ns = tuple(None if time is None else time * MS for time in p99_ms)
    return replace(load, steps=tuple(steps), timeseries=replace(load.timeseries, p99_ns=p99_ns))


def add_recovery(load: LoadResult, recovery_ns: float) -> LoadResult:
    """Return the load with a burst that is over after this time, of a millisecond at least: with the last interval."""
    before, count = 5, 10 + math.ceil(recovery_ns / MS)
    p99_ms = [1] * before + [2] * (count - before - 1) + [1]
    load = add_burst(load, p99_ms)
    assert isinstance(load.steps, tuple)
    first, step, last = load.steps
    begins_s = before * MS / 1e9
    step = replace(step, begins_s=begins_s, seconds=(count * MS - recovery_ns) / 1e9 - begins_s)
    return replace(load, steps=(first, step, last), timeseries=replace(load.timeseries, interval_ns=MS))
