"""The load of a trial on this host, made by other hosts, whose output is passed to the trial.

A load of several hosts has one window: all of its connections stand before any of them is used, then all hosts begin at
one moment, each by its own clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import partial
from typing import Any, Protocol

import msgspec

from netdyno.measure.cluster import clocks, engine
from netdyno.measure.cluster.clocks import Offset
from netdyno.measure.cluster.host_links import Channel
from netdyno.measure.cluster.requests import (
    LoadEnded,
    LoadHost,
    LoadMade,
    LoadRequest,
    PartMade,
    PartRequest,
    PartsMade,
)
from netdyno.measure.machine.process import describe_exit
from netdyno.measure.trial.load import INVALID_LOAD, NOTHING_MEASURED
from netdyno.measure.trial.parts import Parts
from netdyno.model.observation import HostCanary

GO_AHEAD_NS = 500_000_000
"""The time by which the order precedes the common moment: many times that of its way, on busy hosts. Three programs
pass it on, each of which may have to wait for a core."""

Tell = Callable[[bytes], Awaitable[None]]


class Reach(Protocol):
    """The access to other hosts."""

    def connected(self, address: str) -> AbstractAsyncContextManager[Any]: ...
    async def ask_clock(self, address: str) -> int: ...


class LostError(Exception):
    """A host of the load is gone; the text says why."""


class _Host:
    """A host that makes a part of the load."""

    def __init__(self, address: str, comm: Any) -> None:
        self.address = address
        self.channel = Channel(comm)

    async def say(self, words: dict[str, Any]) -> None:
        """Send a message. Raises LostError."""
        try:
            await self.channel.send(words)
        except OSError as error:
            raise self.lost(error) from error

    async def hear(self) -> dict[str, Any]:
        """Receive a message. Raises LostError where none comes for too long."""
        try:
            # Not wait_for: in Python 3.11 it ignores the cancellation of its task if the answer has just come.
            async with asyncio.timeout(engine.LOST_S):
                message: dict[str, Any] = await self.channel.comm.read()
        except OSError as error:  # TimeoutError is one, without a text
            raise self.lost(error) from error
        return message

    def lost(self, error: OSError) -> LostError:
        return LostError(
            f"the host {self.address}, which makes the load, was lost: {str(error) or 'it sent nothing for a second'}"
        )


class _DistributedLoad:
    def __init__(self, hosts: Sequence[_Host], reach: Reach, tell: Tell) -> None:
        self._hosts = hosts
        self._reach = reach
        self._tell = tell
        self._parts = Parts(len(hosts))
        self._ended: dict[int, LoadEnded] = {}
        self._before: list[Offset] = []
        self._has_passed_sent = False
        self._last = b""

    async def make(self, requests: Sequence[PartRequest]) -> bytes:
        """Make the load and return the last line. Raises LostError."""
        for host, request in zip(self._hosts, requests, strict=True):
            await host.say({"op": "netdyno_load", "reply": False, "request": msgspec.to_builtins(request)})
        beating = [asyncio.create_task(host.channel.send_heartbeats()) for host in self._hosts]
        following = {asyncio.create_task(self._follow(number)) for number in range(len(self._hosts))}
        tasks = (*beating, *following)
        try:
            while following and not self._has_failed():
                done, following = await asyncio.wait(following, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            return self._add_canaries(self._last if len(self._hosts) == 1 else await self._end())
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, number: int) -> None:
        """Receive the lines of a part until its last one."""
        host = self._hosts[number]
        while True:
            message = await host.hear()
            if "line" not in message:
                continue
            if message["last"]:
                self._last = message["line"]
                self._ended[number] = msgspec.json.decode(self._last, type=LoadEnded)
                self._parts.end(number)
                await self._tell_sent()
                return
            if line := self._parts.hear(number, message["line"]):
                await self._tell(line)
                if len(self._hosts) > 1 and self._parts.all_stand and not self._before:
                    await self._go()
            await self._tell_sent()

    async def _tell_sent(self) -> None:
        """In a chat, send all hosts the total that was sent, once it is known."""
        if self._has_passed_sent or (sent := self._parts.all_sent) is None:
            return
        self._has_passed_sent = True
        for number, host in enumerate(self._hosts):
            if number not in self._ended:
                await host.say({"sent": sent})

    async def _go(self) -> None:
        self._before = await self._measure_offsets()
        start_ns = time.monotonic_ns() + GO_AHEAD_NS
        for number, (host, offset) in enumerate(zip(self._hosts, self._before, strict=True)):
            if number not in self._ended:  # a part without a connection has ended already
                await host.say({"go": start_ns + offset.offset_ns})

    async def _measure_offsets(self) -> list[Offset]:
        """Measure one host after the other: an exchange that waits for another's would be long."""
        offsets: list[Offset] = []
        for host in self._hosts:
            ask_clock = partial(self._reach.ask_clock, host.address)
            try:
                offsets.append(await clocks.measure(ask_clock, engine.LOST_S))
            except OSError as error:
                raise host.lost(error) from error
        return offsets

    def _add_canaries(self, line: bytes) -> bytes:
        """Return the last line with the readings of the canaries in its result."""
        ended = msgspec.json.decode(line, type=LoadEnded)
        canaries = tuple(
            HostCanary(host=self._hosts[number].address, readings=part.canary)
            for number, part in sorted(self._ended.items())
            if part.canary is not None
        )
        if ended.result is None or not canaries:
            return line
        made = LoadMade(canaries=canaries, result=msgspec.Raw(ended.result.encode()))
        return _encode_line(LoadEnded(code=ended.code, output=ended.output, result=msgspec.json.encode(made).decode()))

    def _has_failed(self) -> bool:
        return any(map(_is_failure, self._ended.values()))

    async def _end(self) -> bytes:
        printed = "".join(
            f"-- {self._hosts[number].address}\n{part.output}" for number, part in sorted(self._ended.items())
        )
        if self._has_failed():
            number, part = next(item for item in self._ended.items() if _is_failure(item[1]))
            text = f"{printed}the generator on {self._hosts[number].address} ended with {describe_exit(part.code)}"
            last = part.output.strip().rpartition("\n")[2]
            return _encode_line(LoadEnded(code=1, output=f"{text}: {last}\n" if last else f"{text}\n", result=None))
        after = await self._measure_offsets()
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
        code = max(part.code for part in self._ended.values())
        return _encode_line(LoadEnded(code=code, output=printed, result=msgspec.json.encode(made).decode()))


def _is_failure(ended: LoadEnded) -> bool:
    """Return whether a load program itself failed. A load without a right reply is a result, which the trial judges."""
    return ended.code not in (0, NOTHING_MEASURED, INVALID_LOAD) or ended.result is None


async def serve_request(reach: Reach, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve a request for a load on a socket, until all lines are sent or the requesting program has left."""

    async def tell(line: bytes) -> None:
        writer.write(line)
        await writer.drain()

    request = msgspec.json.decode(await reader.readline(), type=LoadRequest)
    making = asyncio.create_task(make(request, reach, tell))
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


async def make(request: LoadRequest, reach: Reach, tell: Tell) -> bytes:
    """Let the hosts make a load, and return its last line. Raises LostError."""
    requests = split_request(request)
    async with AsyncExitStack() as stack:
        hosts: list[_Host] = []
        for host in request.hosts[: len(requests)]:
            try:
                hosts.append(_Host(host.address, await stack.enter_async_context(reach.connected(host.address))))
            except OSError as error:
                raise _Host(host.address, None).lost(error) from error
        return await _DistributedLoad(hosts, reach, tell).make(requests)


def split_request(request: LoadRequest) -> list[PartRequest]:
    """Return the request to each host: for all of the load, or where the words say `--share 1/N` for a part to each of
    N hosts. Pure."""
    if "--share" not in request.words:
        return [_build_request(request, request.hosts[0], request.words)]
    position = request.words.index("--share") + 1
    count = int(request.words[position].partition("/")[2])
    return [
        _build_request(
            request,
            host,
            (*request.words[:position], f"{number}/{count}", *request.words[position + 1 :], "--await-go"),
        )
        for number, host in enumerate(request.hosts[:count], 1)
    ]


def _build_request(request: LoadRequest, host: LoadHost, words: tuple[str, ...]) -> PartRequest:
    return PartRequest(
        program=request.program,
        words=words,
        events=request.events,
        cores=host.cores,
        realtime=host.realtime,
        foreign_load=request.foreign_load,
        processes=request.processes,
    )


def _encode_line(ended: LoadEnded) -> bytes:
    return msgspec.json.encode(ended) + b"\n"
