"""asyncio with streams: an instance is a coroutine, and all of them share the application's event loop (source B)."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

from netdyno.kit.addresses import SocketAddress, resolve
from netdyno.kit.held_signals import list_ending_signals
from netdyno.protocol import wire
from netdyno_client.application import Application
from netdyno_client.journal import Caller, FailedError, Failure, Journal, connect_failure
from netdyno_client.plan import ClientPlan, await_go, parse_client_plan
from netdyno_client.room import Room, Speaker

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
PROBE_AGAIN_S = 0.05


class Instance:
    """One client: resolve, connect, request, response, request, … and from the beginning after a failure."""

    def __init__(self, network: Network, caller: Caller) -> None:
        self.caller = caller
        self._network = network
        self._plan = network.plan
        self._open: asyncio.StreamWriter | None = None

    async def run(self) -> None:
        """Run until the load is over and the last answer is in, or given up. Its connection stays."""
        while True:
            try:
                return await self._attempt()
            except FailedError as failed:
                self.caller.failed(failed.failure)
            if self._network.is_over:
                return None
            self._network.attempt_ended()
            await asyncio.sleep(self._plan.retry_delay_ns / 1e9)

    def close(self) -> None:
        """Let go of the connection; unsent bytes are dropped."""
        if self._open is not None:
            self._open.transport.abort()
            self._open = None

    async def _attempt(self) -> None:
        """Make one connection, from the name to the last of its answers. Raises FailedError."""
        deadline = asyncio.get_running_loop().time() + self._plan.connect_timeout_ns / 1e9
        reader, writer = await self._connect(await self._resolve(deadline), deadline)
        self._open = writer
        try:
            self.caller.connected()
            self._network.attempt_ended()
            await self._talk(reader, writer)
        except BaseException:
            self.close()
            raise

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Exchange messages from the start of the load to the last answer."""
        await self._network.begun.wait()
        while self._network.journal.may_send():
            await self._exchange(reader, writer)

    async def _resolve(self, deadline: float) -> list[SocketAddress]:
        """Return the addresses of the server. Raises FailedError where they are not known in time."""
        try:
            async with asyncio.timeout_at(deadline):
                return await asyncio.shield(self._network.lookup())
        except (OSError, UnicodeError) as error:  # UnicodeError: a label that is empty or too long for a name
            raise FailedError(Failure.RESOLVE_FAILED) from error  # TimeoutError is an OSError

    async def _connect(self, addresses: list[SocketAddress], deadline: float) -> Stream:
        """Return a stream to the first address that answers, all of them within one time limit."""
        self.caller.connecting()
        last_error = OSError()
        try:
            async with asyncio.timeout_at(deadline):
                for address in addresses:
                    try:
                        return await _open_stream(address, self._plan.nodelay)
                    except OSError as error:
                        last_error = error
        except TimeoutError as error:
            raise FailedError(Failure.CONNECT_TIMED_OUT) from error
        raise FailedError(connect_failure(last_error)) from last_error

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send one request and receive its response."""
        header, body = self.caller.next()
        limit = asyncio.timeout(self._plan.timeout_ns / 1e9)
        try:
            async with limit:
                self._write(writer, header, body)
                await writer.drain()
                while not await self._receive(reader):
                    pass
        except asyncio.IncompleteReadError as error:
            self.caller.cut_off(error.partial)
            raise FailedError(Failure.CLOSED) from error
        except OSError as error:  # the time limit is one too: TimeoutError
            raise FailedError(Failure.RESPONSE_TIMEOUT if limit.expired() else Failure.RESET) from error

    async def _receive(self, reader: asyncio.StreamReader) -> bool:
        """Receive a message; returns whether it is the response to the request under way."""
        size = self.caller.parse_body_size(await reader.readexactly(wire.FRAME_HEADER))
        return self.caller.receive(await reader.readexactly(size))

    def _write(self, writer: asyncio.StreamWriter, header: bytes, body: bytes) -> None:
        """Write a message. Each write is a system call at once where the socket has room, which here nothing else
        fills."""
        if self._plan.split:
            writer.write(header)
            writer.write(body)
        else:
            writer.write(header + body)


class Chatter(Instance):
    """One client of a chat: connect, send as many messages as may be in flight, hear all others, and send the next one
    when its timer has heard one. It connects once: a client that is not in the room when it opens stays out."""

    def __init__(self, network: Network, speaker: Speaker) -> None:
        super().__init__(network, speaker)
        self._speaker = speaker

    async def run(self) -> None:
        """Run until all members have heard everything, or that is given up."""
        try:
            await self._attempt()
        except FailedError as failed:
            self.caller.failed(failed.failure)
            self._network.room.left(self._speaker.identity)
            self._network.attempt_ended()

    def say(self) -> None:
        """Send the next message while the load lasts; before it, the early ones that may be in flight."""
        if self._open is None:
            return
        if self._network.journal.may_send():
            self._write(self._open, *self._speaker.next())
        elif early := self._network.room.speak_early(self._speaker.identity):
            self._open.write(early)

    def probe(self) -> None:
        """Send a message that only shows which members hear it."""
        if self._open is not None:
            self._open.write(self._network.room.probe())

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hear all messages, until the network ends it."""
        self.say()
        try:
            while True:
                size = self.caller.parse_body_size(await reader.readexactly(wire.FRAME_HEADER))
                speaker = self._speaker.hear(await reader.readexactly(size))
                self._network.heard(speaker)
        except asyncio.IncompleteReadError as error:
            self.caller.cut_off(error.partial)
            raise FailedError(Failure.CLOSED) from error
        except OSError as error:
            raise FailedError(Failure.RESET) from error


async def _open_stream(address: SocketAddress, nodelay: bool) -> Stream:
    """Return a connected stream, as asyncio.open_connection makes it, but to exactly this address. Raises OSError."""
    sock = socket.socket(address.family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, address.address)
        stream = await asyncio.open_connection(sock=sock)  # which sets TCP_NODELAY
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)
    except BaseException:
        sock.close()
        raise
    return stream


def _retrieve_exception(lookup: asyncio.Future[list[SocketAddress]]) -> None:
    """Retrieve the exception of a lookup: perhaps no instance waits for it any more, and asyncio would complain."""
    if not lookup.cancelled():
        lookup.exception()


class Network:
    """All instances, and the start and the end of their load."""

    def __init__(self, plan: ClientPlan) -> None:
        self.plan = plan
        self.journal = Journal(plan)
        self.begun = asyncio.Event()
        self.is_over = False
        self._end_requested = asyncio.Event()
        self._settled = False
        members = plan.connections if plan.workload == "chat" else 0
        self.room = Room(self.journal, members, plan.depth if plan.speaks_at_once else 0)
        self._application = Application(plan, self.journal)
        self._chatters = [Chatter(self, speaker) for speaker in self.room.speakers]
        self._instances: list[Instance] = [*self._chatters]
        if plan.workload == "rpc":
            self._instances = [Instance(self, Caller(self.journal, identity)) for identity in range(plan.connections)]
        self._tasks: list[asyncio.Task[None]] = []
        self._wake_up: asyncio.TimerHandle | None = None
        self._lookup: asyncio.Future[list[SocketAddress]] | None = None

    async def run(self) -> int:
        """Run the load; returns the program's exit code."""
        loop = asyncio.get_running_loop()
        for number in list_ending_signals():
            loop.add_signal_handler(number, self._stop)
        self._wake()
        async with asyncio.TaskGroup() as group:  # an unforeseen exception ends everything, and is shown
            self._tasks = [group.create_task(instance.run()) for instance in self._instances]
        await self._linger()
        self.journal.recorder.finish()
        return self._application.finish()

    def lookup(self) -> asyncio.Future[list[SocketAddress]]:
        """Return the addresses of the server's name, by getaddrinfo(3) in a thread of the loop's pool: it blocks, and
        the loop must not. All instances that wait share one lookup: the pool is small, and slow ones would add up."""
        if not self.is_resolving():
            loop = asyncio.get_running_loop()
            self._lookup = loop.run_in_executor(None, resolve, self.plan.url.host, self.plan.url.port)
            self._lookup.add_done_callback(_retrieve_exception)
        assert self._lookup is not None
        return self._lookup

    def is_resolving(self) -> bool:
        """Whether a thread may still be in getaddrinfo(3), which cannot be broken off."""
        return self._lookup is not None and not self._lookup.done()

    def attempt_ended(self) -> None:
        """Note that an attempt has succeeded or failed. With the last of the first attempts the load starts."""
        if self.journal.begun() or not self.journal.settled():
            return
        if not self._chatters:
            self._settle()
        elif not self.room.is_open:
            self.room.open()
            self._probe(PROBE_AGAIN_S)

    def heard(self, speaker: int | None) -> None:
        """Note a message of a chat, with which a speaker may go on."""
        if speaker is not None:
            self._chatters[speaker].say()
        elif not self.journal.begun() and self.room.is_known:
            self._settle()
        if self.is_over and self.room.has_heard_all:
            self._give_up()

    def _probe(self, again_s: float) -> None:
        """Probe until the server knows all connected members: some may wait in its backlog, and would miss messages.
        With a slow server the pauses get longer."""
        if self.journal.begun():
            return
        if self.room.is_known:
            self._settle()
            return
        for identity in self.room.inside()[:2]:
            self._chatters[identity].probe()
        asyncio.get_running_loop().call_later(again_s, self._probe, 2 * again_s)

    def _settle(self) -> None:
        """Start the load, at once or at the moment that stdin names."""
        if self._settled:
            return
        self._settled = True
        self._application.connected()
        if self.plan.await_go:
            asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._go)
        else:
            self._begin(time.monotonic_ns())

    def _go(self) -> None:
        """Read the moment of the start."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(sys.stdin.fileno())
        if self.is_over:
            return
        begin_ns = await_go(self.plan.program)
        self._begin(begin_ns)

    def _begin(self, begin_ns: int) -> None:
        window = self.journal.begin(begin_ns)
        loop = asyncio.get_running_loop()
        loop.call_at(window.end / 1e9, self.end)
        self._application.begin(window)
        self._wake()
        loop.call_at(begin_ns / 1e9, self._start)

    def _start(self) -> None:
        if self.is_over:
            return
        self.begun.set()
        for chatter in self._chatters:
            for _ in range(self.plan.depth):
                chatter.say()

    def end(self) -> None:
        """End all sending; an instance that waits for a response waits on."""
        if self.is_over:
            return
        self.is_over = True
        self.journal.stop()
        if self._chatters and not self.room.has_heard_all:
            asyncio.get_running_loop().call_later(self.plan.timeout_ns / 1e9, self._give_up)
            return
        for instance, task in zip(self._instances, self._tasks, strict=True):
            if not instance.caller.waiting:
                task.cancel()

    def _give_up(self) -> None:
        """End all tasks."""
        for task in self._tasks:
            task.cancel()

    def _stop(self) -> None:
        """End the load early, and then close with the last answer; end the linger where that has begun."""
        self._end_requested.set()
        self.end()

    async def _linger(self) -> None:
        """Keep the connections for a while after the last answer, and close them."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.plan.linger_ns / 1e9):
                await self._end_requested.wait()
        for instance in self._instances:
            instance.close()

    def _wake(self) -> None:
        """Wake the application, now and whenever it is due."""
        if self._wake_up is not None:
            self._wake_up.cancel()
        self._application.wake()
        self._wake_up = asyncio.get_running_loop().call_at(self._application.due() / 1e9, self._wake)


def main() -> int:
    plan = parse_client_plan(Path(__file__).parent.name, sys.argv[1:], ("rpc", "chat"))
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    network = Network(plan)
    code = loop.run_until_complete(network.run())
    if network.is_resolving():
        sys.stdout.flush()
        os._exit(code)  # the interpreter would wait for the resolver's threads
    loop.close()
    return code


if __name__ == "__main__":
    sys.exit(main())
