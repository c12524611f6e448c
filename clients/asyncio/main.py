"""asyncio with streams: an instance is a coroutine, and all of them share the application's event loop (source B)."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

from netdyno.base.addresses import Found, resolve
from netdyno.protocol import wire
from netdyno_client.application import Application
from netdyno_client.journal import Caller, FailedError, Failure, Journal, connect_failure
from netdyno_client.plan import ClientPlan, awaited_go, parse_client_plan
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
        """Until nobody sends any more and the last answer is in, or not waited for any more. Its connection stays."""
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
        """Let go of the connection; what could not be sent by now is not waited for."""
        if self._open is not None:
            self._open.transport.abort()
            self._open = None

    async def _attempt(self) -> None:
        """One connection, from the name to the last of its answers. Raises FailedError."""
        until = asyncio.get_running_loop().time() + self._plan.connect_timeout_ns / 1e9
        reader, writer = await self._connect(await self._resolve(until), until)
        self._open = writer
        try:
            self.caller.connected()
            self._network.attempt_ended()
            await self._talk(reader, writer)
        except BaseException:
            self.close()
            raise

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """From the start of the load to the last answer."""
        await self._network.begun.wait()
        while self._network.journal.may_send():
            await self._exchange(reader, writer)

    async def _resolve(self, until: float) -> list[Found]:
        """The addresses of the server, if they are known in time."""
        try:
            async with asyncio.timeout_at(until):
                return await asyncio.shield(self._network.lookup())
        except (OSError, UnicodeError) as error:  # UnicodeError: a label that is empty or too long for a name
            raise FailedError(Failure.RESOLVE_FAILED) from error  # TimeoutError is an OSError

    async def _connect(self, addresses: list[Found], until: float) -> Stream:
        """A stream to the first address that answers, all of them within one time limit."""
        self.caller.connecting()
        why = OSError()
        try:
            async with asyncio.timeout_at(until):
                for found in addresses:
                    try:
                        return await _open(found, self._plan.nodelay)
                    except OSError as error:
                        why = error
        except TimeoutError as error:
            raise FailedError(Failure.CONNECT_TIMED_OUT) from error
        raise FailedError(connect_failure(why)) from why

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request and its response."""
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
        """The next message; whether it is the response that is waited for."""
        size = self.caller.body_size(await reader.readexactly(wire.FRAME_HEADER))
        return self.caller.receive(await reader.readexactly(size))

    def _write(self, writer: asyncio.StreamWriter, header: bytes, body: bytes) -> None:
        """Each write is a system call at once where the socket has room, which here nothing else fills."""
        if self._plan.split:
            writer.write(header)
            writer.write(body)
        else:
            writer.write(header + body)


class Chatter(Instance):
    """One client of a chat: connect, say as many things as may be in flight, hear everybody, and say the next thing
    when a witness has heard one. It connects once: who is not in the room when it opens stays out."""

    def __init__(self, network: Network, speaker: Speaker) -> None:
        super().__init__(network, speaker)
        self._speaker = speaker

    async def run(self) -> None:
        """Until everybody has heard everything, or that is not waited for any more."""
        try:
            await self._attempt()
        except FailedError as failed:
            self.caller.failed(failed.failure)
            self._network.room.left(self._speaker.identity)
            self._network.attempt_ended()

    def say(self) -> None:
        """The next message, while the load lasts."""
        if self._open is not None and self._network.journal.may_send():
            self._write(self._open, *self._speaker.next())

    def probe(self) -> None:
        """Something that only shows who hears it."""
        if self._open is not None:
            self._open.write(self._network.room.probe())

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hear whatever comes, until the network says that it was all."""
        try:
            while True:
                size = self.caller.body_size(await reader.readexactly(wire.FRAME_HEADER))
                answered = self._speaker.hear(await reader.readexactly(size))
                self._network.heard(answered)
        except asyncio.IncompleteReadError as error:
            self.caller.cut_off(error.partial)
            raise FailedError(Failure.CLOSED) from error
        except OSError as error:
            raise FailedError(Failure.RESET) from error


async def _open(found: Found, nodelay: bool) -> Stream:
    """A connected stream, as asyncio.open_connection makes it, but to exactly this address. Raises OSError."""
    sock = socket.socket(found.family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, found.address)
        stream = await asyncio.open_connection(sock=sock)  # which sets TCP_NODELAY
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)
    except BaseException:
        sock.close()
        raise
    return stream


def _take_error(lookup: asyncio.Future[list[Found]]) -> None:
    """Perhaps nobody waits for it any more, and asyncio would complain of an exception that was never retrieved."""
    if not lookup.cancelled():
        lookup.exception()


class Network:
    """All instances, and what they have in common: the start and the end of the load."""

    def __init__(self, plan: ClientPlan) -> None:
        self.plan = plan
        self.journal = Journal(plan)
        self.begun = asyncio.Event()
        self.is_over = False
        self._told_to_end = asyncio.Event()
        self._settled = False
        self.room = Room(self.journal, plan.connections if plan.workload == "chat" else 0)
        self._application = Application(plan, self.journal)
        self._chatters = [Chatter(self, speaker) for speaker in self.room.speakers]
        self._instances: list[Instance] = [*self._chatters]
        if plan.workload == "rpc":
            self._instances = [Instance(self, Caller(self.journal, identity)) for identity in range(plan.connections)]
        self._tasks: list[asyncio.Task[None]] = []
        self._wake_up: asyncio.TimerHandle | None = None
        self._lookup: asyncio.Future[list[Found]] | None = None

    async def run(self) -> int:
        """The whole run; the program's exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        self._wake()
        async with asyncio.TaskGroup() as group:  # an exception nobody foresaw ends everything, and is shown
            self._tasks = [group.create_task(instance.run()) for instance in self._instances]
        await self._linger()
        self.journal.recorder.finish()
        return self._application.finish()

    def lookup(self) -> asyncio.Future[list[Found]]:
        """The addresses of the server's name, by getaddrinfo(3) in a thread of the loop's pool: it blocks, and the loop
        must not. One lookup for all instances that wait for it: the pool is small, and slow ones would add up."""
        if not self.is_resolving():
            loop = asyncio.get_running_loop()
            self._lookup = loop.run_in_executor(None, resolve, self.plan.url.host, self.plan.url.port)
            self._lookup.add_done_callback(_take_error)
        assert self._lookup is not None
        return self._lookup

    def is_resolving(self) -> bool:
        """A thread may still be in getaddrinfo(3), which cannot be broken off."""
        return self._lookup is not None and not self._lookup.done()

    def attempt_ended(self) -> None:
        """An attempt has stood or failed. With the last of the first attempts the load starts."""
        if self.journal.begun() or not self.journal.settled():
            return
        if not self._chatters:
            self._settle()
        elif not self.room.is_open:
            self.room.open()
            self._probe(PROBE_AGAIN_S)

    def heard(self, answered: int | None) -> None:
        """A message of a chat has come, and with it somebody may speak again."""
        if answered is not None:
            self._chatters[answered].say()
        elif not self.journal.begun() and self.room.is_known:
            self._settle()
        if self.is_over and self.room.has_heard_all:
            self._give_up()

    def _probe(self, again_s: float) -> None:
        """Until the server knows everybody who is connected: some may wait in its backlog, and would miss messages.
        With a slow server it gets more patient."""
        if self.journal.begun():
            return
        if self.room.is_known:
            self._settle()
            return
        for identity in self.room.inside()[:2]:
            self._chatters[identity].probe()
        asyncio.get_running_loop().call_later(again_s, self._probe, 2 * again_s)

    def _settle(self) -> None:
        """The load starts, or when it is told to."""
        if self._settled:
            return
        self._settled = True
        self._application.connected()
        if self.plan.await_go:
            asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._go)
        else:
            self._begin(time.monotonic_ns())

    def _go(self) -> None:
        """Somebody says when."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(sys.stdin.fileno())
        if self.is_over:
            return
        at = awaited_go(self.plan.program)
        self._begin(at)

    def _begin(self, at: int) -> None:
        window = self.journal.begin(at)
        loop = asyncio.get_running_loop()
        loop.call_at(window.end / 1e9, self.end)
        self._application.begin(window)
        self._wake()
        loop.call_at(at / 1e9, self._start)

    def _start(self) -> None:
        if self.is_over:
            return
        self.begun.set()
        for chatter in self._chatters:
            for _ in range(self.plan.depth):
                chatter.say()

    def end(self) -> None:
        """Nobody sends any more; who waits for a response waits on."""
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
        """Nobody hears any more."""
        for task in self._tasks:
            task.cancel()

    def _stop(self) -> None:
        """End the load early, and then close with the last answer; end the linger where that has begun."""
        self._told_to_end.set()
        self.end()

    async def _linger(self) -> None:
        """After the last answer: keep the connections for a while, and close them."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.plan.linger_ns / 1e9):
                await self._told_to_end.wait()
        for instance in self._instances:
            instance.close()

    def _wake(self) -> None:
        """The application's turn, now and whenever something of it is due."""
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
