"""The offset between the clocks of two hosts: CLOCK_MONOTONIC counts from each host's own start."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from netdyno.model.base import Frozen

EXCHANGES = 20


class Offset(Frozen):
    """The amount by which the other clock is ahead of this host's, to within half the round trip."""

    offset_ns: int
    round_trip_ns: int


def estimate_offset(sent_ns: int, there_ns: int, answered_ns: int) -> Offset:
    """Return the offset by a question and its answer: `sent_ns` and `answered_ns` by this host's clock, `there_ns` by
    the other's. Pure."""
    return Offset(offset_ns=there_ns - (sent_ns + answered_ns) // 2, round_trip_ns=answered_ns - sent_ns)


def start_within_ns(before: Offset, after: Offset) -> float:
    """Return by how much the other host may have missed a common moment, which it got in the time of its own clock, as
    measured before. Pure."""
    return before.round_trip_ns / 2 + abs(after.offset_ns - before.offset_ns)


async def measure(ask: Callable[[], Awaitable[int]], limit_s: float, exchanges: int = EXCHANGES) -> Offset:
    """Measure the offset of another clock, whose time.monotonic_ns() `ask` fetches, by the shortest exchange: each of
    the others was delayed on one of its ways, and it is unknown on which. Raises TimeoutError where an answer takes
    longer than `limit_s`: a host that is stopped keeps its connections."""
    import asyncio  # the helpers of a trial do not need it

    measured: list[Offset] = []
    for _ in range(exchanges):
        async with asyncio.timeout(limit_s):
            sent_ns = time.monotonic_ns()
            there_ns = await ask()
            measured.append(estimate_offset(sent_ns, there_ns, time.monotonic_ns()))
    return min(measured, key=lambda offset: offset.round_trip_ns)
