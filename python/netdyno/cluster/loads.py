"""Has the load of a trial on this host made by others, and tells it all that comes of it.

A load of several hosts has one window: all of its connections stand before one of them is used, then all hosts begin at
one moment, each by its own clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import partial
from typing import Any, Protocol

import msgspec

from netdyno.cluster import clocks, engine
from netdyno.cluster.clocks import Offset
from netdyno.cluster.requests import LoadAsked, LoadEnded, LoadHost, LoadMade, LoadWanted, PartMade, PartsMade
from netdyno.machine.process import describe_exit
from netdyno.model.observation import HostCanary
from netdyno.trial.load import NOT_BELIEVED, NOTHING_MEASURED
from netdyno.trial.parts import Parts

GO_AHEAD_NS = 500_000_000
"""How long before the common moment it is told: many times what the way takes, on hosts that are busy. Three programs
hand it on, each of which may have to wait for a core."""

Tell = Callable[[bytes], Awaitable[None]]


class Reach(Protocol):
    """How other hosts are talked to."""

    def connected(self, address: str) -> AbstractAsyncContextManager[Any]: ...
    async def ask_clock(self, address: str) -> int: ...


class LostError(Exception):
    """A host of the load is gone; the text says why."""


class _Host:
    """One that makes a part."""

    def __init__(self, address: str, comm: Any) -> None:
        self.address = address
        self._comm = comm
        self._writing = asyncio.Lock()

    async def say(self, words: dict[str, Any]) -> None:
        """Raises LostError."""
        try:
            async with self._writing:
                await self._comm.write(words)
        except OSError as error:
            raise self.lost(error) from error

    async def hear(self) -> dict[str, Any]:
        """Raises LostError where it says nothing for too long."""
        try:
            # Not wait_for: in Python 3.11 it does not end with its task where it has just been answered.
            async with asyncio.timeout(engine.LOST_S):
                said: dict[str, Any] = await self._comm.read()
        except OSError as error:  # TimeoutError is one, and says nothing
            raise self.lost(error) from error
        return said

    async def beat(self) -> None:
        """Say that this side lives, until it is told no more."""
        with suppress(LostError):
            while True:
                await self.say({"beat": True})
                await asyncio.sleep(engine.BEAT_S)

    def lost(self, error: OSError) -> LostError:
        return LostError(
            f"the host {self.address}, which makes the load, was lost: {str(error) or 'it said nothing for a second'}"
        )


class _Load:
    def __init__(self, hosts: Sequence[_Host], reach: Reach, tell: Tell) -> None:
        self._hosts = hosts
        self._reach = reach
        self._tell = tell
        self._parts = Parts(len(hosts))
        self._ended: dict[int, LoadEnded] = {}
        self._before: list[Offset] = []
        self._has_told_sent = False
        self._last = b""

    async def make(self, wanted: Sequence[LoadWanted]) -> bytes:
        """Returns the last line. Raises LostError."""
        for host, one in zip(self._hosts, wanted, strict=True):
            await host.say({"op": "netdyno_load", "reply": False, "wanted": msgspec.to_builtins(one)})
        beating = [asyncio.create_task(host.beat()) for host in self._hosts]
        following = {asyncio.create_task(self._follow(number)) for number in range(len(self._hosts))}
        tasks = (*beating, *following)
        try:
            while following and not self._has_failed():
                done, following = await asyncio.wait(following, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            return self._with_canaries(self._last if len(self._hosts) == 1 else await self._end())
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, number: int) -> None:
        """Until a part has said its last line."""
        host = self._hosts[number]
        while True:
            said = await host.hear()
            if "line" not in said:
                continue
            if said["last"]:
                self._last = said["line"]
                self._ended[number] = msgspec.json.decode(self._last, type=LoadEnded)
                self._parts.end(number)
                await self._tell_sent()
                return
            if line := self._parts.hear(number, said["line"]):
                await self._tell(line)
                if len(self._hosts) > 1 and self._parts.all_stand and not self._before:
                    await self._go()
            await self._tell_sent()

    async def _tell_sent(self) -> None:
        """Chat: what there was to hear, once that is known."""
        if self._has_told_sent or (sent := self._parts.all_sent) is None:
            return
        self._has_told_sent = True
        for number, host in enumerate(self._hosts):
            if number not in self._ended:
                await host.say({"sent": sent})

    async def _go(self) -> None:
        self._before = await self._offsets()
        at_ns = time.monotonic_ns() + GO_AHEAD_NS
        for number, (host, offset) in enumerate(zip(self._hosts, self._before, strict=True)):
            if number not in self._ended:  # one that got no connection is over already
                await host.say({"go": at_ns + offset.offset_ns})

    async def _offsets(self) -> list[Offset]:
        """One host after the other: an exchange that waits for another's is a long one."""
        found: list[Offset] = []
        for host in self._hosts:
            ask = partial(self._reach.ask_clock, host.address)
            try:
                found.append(await clocks.measure(ask, engine.LOST_S))
            except OSError as error:
                raise host.lost(error) from error
        return found

    def _with_canaries(self, line: bytes) -> bytes:
        """The last line, whose result knows what they read."""
        ended = msgspec.json.decode(line, type=LoadEnded)
        canaries = tuple(
            HostCanary(host=self._hosts[number].address, readings=one.canary)
            for number, one in sorted(self._ended.items())
            if one.canary is not None
        )
        if ended.result is None or not canaries:
            return line
        made = LoadMade(canaries=canaries, result=msgspec.Raw(ended.result.encode()))
        return _line(LoadEnded(code=ended.code, said=ended.said, result=msgspec.json.encode(made).decode()))

    def _has_failed(self) -> bool:
        return any(map(_failed, self._ended.values()))

    async def _end(self) -> bytes:
        said = "".join(f"-- {self._hosts[number].address}\n{one.said}" for number, one in sorted(self._ended.items()))
        if self._has_failed():
            number, one = next(item for item in self._ended.items() if _failed(item[1]))
            told = f"{said}the generator on {self._hosts[number].address} ended with {describe_exit(one.code)}"
            last = one.said.strip().rpartition("\n")[2]
            return _line(LoadEnded(code=1, said=f"{told}: {last}\n" if last else f"{told}\n", result=None))
        after = await self._offsets()
        made = PartsMade(
            parts=tuple(
                PartMade(
                    host=host.address,
                    before=self._before[number],
                    after=after[number],
                    result=msgspec.Raw((self._ended[number].result or "").encode()),
                )
                for number, host in enumerate(self._hosts)
            )
        )
        code = max(one.code for one in self._ended.values())
        return _line(LoadEnded(code=code, said=said, result=msgspec.json.encode(made).decode()))


def _failed(ended: LoadEnded) -> bool:
    """Whether a load program failed itself. That no reply was right is a result, which the trial judges."""
    return ended.code not in (0, NOTHING_MEASURED, NOT_BELIEVED) or ended.result is None


async def stand_in(reach: Reach, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """For one load, to whoever asks for it on a socket, until all of it is told or that has left."""

    async def tell(line: bytes) -> None:
        writer.write(line)
        await writer.drain()

    asked = msgspec.json.decode(await reader.readline(), type=LoadAsked)
    making = asyncio.create_task(make(asked, reach, tell))
    gone = asyncio.create_task(reader.read())
    try:
        await asyncio.wait((making, gone), return_when=asyncio.FIRST_COMPLETED)
        if making.done():
            try:
                await tell(making.result())
            except LostError as lost:
                await tell(msgspec.json.encode({"lost": str(lost)}) + b"\n")
    finally:
        making.cancel()
        gone.cancel()
        await asyncio.gather(making, gone, return_exceptions=True)
        with suppress(OSError):
            writer.close()


async def make(asked: LoadAsked, reach: Reach, tell: Tell) -> bytes:
    """Have it made, and return the last line. Raises LostError."""
    each = wanted(asked)
    async with AsyncExitStack() as stack:
        hosts: list[_Host] = []
        for host in asked.hosts[: len(each)]:
            try:
                hosts.append(_Host(host.address, await stack.enter_async_context(reach.connected(host.address))))
            except OSError as error:
                raise _Host(host.address, None).lost(error) from error
        return await _Load(hosts, reach, tell).make(each)


def wanted(asked: LoadAsked) -> list[LoadWanted]:
    """What each host is to make: all of it, or where the words say `--share 1/N` each of N hosts its part. Pure."""
    if "--share" not in asked.words:
        return [_of(asked, asked.hosts[0], asked.words)]
    at = asked.words.index("--share") + 1
    count = int(asked.words[at].partition("/")[2])
    return [
        _of(asked, host, (*asked.words[:at], f"{number}/{count}", *asked.words[at + 1 :], "--await-go"))
        for number, host in enumerate(asked.hosts[:count], 1)
    ]


def _of(asked: LoadAsked, host: LoadHost, words: tuple[str, ...]) -> LoadWanted:
    return LoadWanted(
        program=asked.program,
        words=words,
        events=asked.events,
        cores=host.cores,
        realtime=host.realtime,
        foreign_load=asked.foreign_load,
        processes=asked.processes,
    )


def _line(ended: LoadEnded) -> bytes:
    return msgspec.json.encode(ended) + b"\n"
