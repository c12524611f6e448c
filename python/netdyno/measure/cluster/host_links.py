"""The connections between two hosts: what is sent over them within a trial, and the rate of the link below, which is
that of a short transfer over one of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from netdyno.measure.cluster import engine
from netdyno.model.base import Frozen

MOST_BYTES = 16 << 20
MOST_S = 0.3
"""A transfer ends with the first of both."""
_CHUNK_BYTES = 256 << 10


class HostLink(Frozen):
    """The link from another host: the shortest round trip, and the bits per second that came from there; None where the
    link was not filled. The rate is limited by the decryption of a Python worker: a link may carry more."""

    round_trip_ns: int
    bits_per_second: float | None = None


class Channel:
    """A connection on which several tasks send."""

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self._writing = asyncio.Lock()

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message. Raises OSError where the connection has ended."""
        async with self._writing:
            await self.comm.write(message)

    async def send_heartbeats(self) -> None:
        """Send signs of life until the connection ends, which the task that reads from it notices, too."""
        with suppress(OSError):
            while True:
                await self.send({"beat": True})
                await asyncio.sleep(engine.BEAT_S)


class Transfers:
    """The running transfers of a host. Its trials wait until they are over."""

    def __init__(self) -> None:
        self._count = 0
        self._over = asyncio.Event()
        self._over.set()

    @contextmanager
    def count_transfer(self) -> Iterator[None]:
        self._count += 1
        self._over.clear()
        try:
            yield
        finally:
            self._count -= 1
            if self._count == 0:
                self._over.set()

    async def await_end(self) -> None:
        await self._over.wait()


async def fill(comm: Any) -> None:
    """Send bytes, which the other side counts, until it has enough and closes the connection. Raises OSError then."""
    chunk = bytes(_CHUNK_BYTES)
    for _ in range(MOST_BYTES // _CHUNK_BYTES):
        # The stream below Dask's messages: a message of a slow link would be longer than the transfer.
        await asyncio.wait_for(comm.stream.write(chunk), engine.LOST_S)
    await await_close(comm)


async def await_close(comm: Any) -> None:
    """Wait until the other side, which sends nothing more, closes the connection. Raises OSError then."""
    await asyncio.wait_for(comm.stream.read_bytes(1), engine.LOST_S)


async def measure_rate(comm: Any) -> float:
    """Measure the bits per second that the other side sends, from its first bytes on. Raises OSError where none
    come."""
    read = comm.stream.read_bytes
    first = len(await asyncio.wait_for(read(_CHUNK_BYTES, partial=True), engine.LOST_S))
    began = last = time.monotonic()
    counted = 0
    while first + counted < MOST_BYTES and (left_s := began + MOST_S - time.monotonic()) > 0:
        try:
            counted += len(await asyncio.wait_for(read(_CHUNK_BYTES, partial=True), left_s))
        except TimeoutError:
            break
        last = time.monotonic()
    return 8 * counted / (last - began) if counted else 0.0
