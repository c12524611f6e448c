"""How far the clocks of two hosts are apart: CLOCK_MONOTONIC counts from each host's own start."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence

from netdyno.model.base import Frozen

EXCHANGES = 20


class Exchange(Frozen):
    """One question and its answer: `asked_ns` and `answered_ns` by one's own clock, `there_ns` by the other's."""

    asked_ns: int
    there_ns: int
    answered_ns: int

    @property
    def round_trip_ns(self) -> int:
        return self.answered_ns - self.asked_ns


class Offset(Frozen):
    """What the other's clock shows more than one's own, to within half the round trip."""

    offset_ns: int
    round_trip_ns: int


def offset(exchanges: Sequence[Exchange]) -> Offset:
    """By the shortest exchange: whatever held up the others lay on one of its ways, and nobody knows on which. Pure."""
    best = min(exchanges, key=lambda exchange: exchange.round_trip_ns)
    middle_ns = (best.asked_ns + best.answered_ns) // 2
    return Offset(offset_ns=best.there_ns - middle_ns, round_trip_ns=best.round_trip_ns)


def start_within_ns(before: Offset, after: Offset) -> float:
    """How far from a moment the other may have begun, to which it was told that moment by its clock as it was found
    before. Pure."""
    return before.round_trip_ns / 2 + abs(after.offset_ns - before.offset_ns)


async def measure(ask: Callable[[], Awaitable[int]], limit_s: float, exchanges: int = EXCHANGES) -> Offset:
    """`ask` brings the other's time.monotonic_ns(). Raises TimeoutError where one answer takes longer than `limit_s`:
    a host that is stopped keeps its connections."""
    import asyncio  # which the helpers of a trial do without

    found: list[Exchange] = []
    for _ in range(exchanges):
        async with asyncio.timeout(limit_s):
            asked_ns = time.monotonic_ns()
            there_ns = await ask()
            found.append(Exchange(asked_ns=asked_ns, there_ns=there_ns, answered_ns=time.monotonic_ns()))
    return offset(found)
