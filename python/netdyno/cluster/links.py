"""How much the way between two hosts carries: a short transfer over a connection of the cluster's own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from netdyno.cluster import engine
from netdyno.model.base import Frozen

MOST_BYTES = 16 << 20
MOST_S = 0.3
"""A transfer ends with either."""
_AT_ONCE = 256 << 10


class Link(Frozen):
    """From another host: the shortest round trip, and how many bits a second came from there; None where the link was
    not filled. That is what a worker of Python decrypts: a link may carry more."""

    round_trip_ns: int
    bits_per_second: float | None = None


class Transfers:
    """Those of a host that are under way. Its trials wait until they are over."""

    def __init__(self) -> None:
        self._count = 0
        self._over = asyncio.Event()
        self._over.set()

    @contextmanager
    def another(self) -> Iterator[None]:
        self._count += 1
        self._over.clear()
        try:
            yield
        finally:
            self._count -= 1
            if self._count == 0:
                self._over.set()

    async def over(self) -> None:
        await self._over.wait()


async def fill(comm: Any) -> None:
    """Send what the other side counts, until it has enough and closes the connection. Raises OSError then."""
    some = bytes(_AT_ONCE)
    for _ in range(MOST_BYTES // _AT_ONCE):
        # The stream below Dask's messages: a message of a slow link would be longer than the transfer.
        await asyncio.wait_for(comm.stream.write(some), engine.LOST_S)
    await closed(comm)


async def closed(comm: Any) -> None:
    """By the other side, which says nothing more. Raises OSError then."""
    await asyncio.wait_for(comm.stream.read_bytes(1), engine.LOST_S)


async def rate(comm: Any) -> float:
    """Bits a second of what the other side sends, once its first bytes are here. Raises OSError where none come."""
    read = comm.stream.read_bytes
    first = len(await asyncio.wait_for(read(_AT_ONCE, partial=True), engine.LOST_S))
    began = last = time.monotonic()
    counted = 0
    while first + counted < MOST_BYTES and (left_s := began + MOST_S - time.monotonic()) > 0:
        try:
            counted += len(await asyncio.wait_for(read(_AT_ONCE, partial=True), left_s))
        except TimeoutError:
            break
        last = time.monotonic()
    return 8 * counted / (last - began) if counted else 0.0
