"""The controller's side: it asks the scheduler which hosts have joined, and the hosts themselves for all else.

An answer may be anything that a user of a host has written: it is plain data (secure_comm.py), checked against the
request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
from distributed.comm import CommClosedError
from distributed.core import connect
from msgspec.structs import replace

from netdyno.kit.errors import UserError
from netdyno.kit.paths import ENTRY
from netdyno.kit.url import parse_tls_url
from netdyno.measure.cluster import authority, clocks, engine
from netdyno.measure.cluster.described import Description, Host
from netdyno.measure.cluster.host_links import Channel, HostLink
from netdyno.measure.cluster.requests import MOST_REPLY, HostMessage
from netdyno.measure.run.hosts import GoneError

T = TypeVar("T")
MOST_TEXT = 300
"""The most characters of a host's error text."""


class Joined(msgspec.Struct):
    """A host that has joined, as the scheduler knows it."""

    name: str


class Known(msgspec.Struct):
    """All hosts that have joined, by their addresses."""

    workers: dict[str, Joined]


class Controller:
    """The connections to the scheduler and the hosts, used as a context manager."""

    def __init__(self, folder: Path) -> None:
        """Connect to the scheduler. Raises UserError where none lets it in."""
        self._scheduler = authority.read_scheduler(folder)
        self._connection = engine.configure_security(folder, "control", self._scheduler).get_connection_args("client")
        self._comms: dict[str, Any] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="cluster", daemon=True)
        self._thread.start()
        try:
            self._wait(self._names())
        except BaseException as error:
            self._end()
            if not isinstance(error, OSError):
                raise
            raise UserError(
                f"no scheduler of this cluster answers at {self._scheduler} "
                f"({ENTRY} cluster scheduler --cluster {folder})"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()

    def hosts(self, *, links: bool = False) -> tuple[Host, ...]:
        """Return all hosts that have joined, servers first. With `links` each link is filled, one after the other, but
        not while a host is at work. Raises UserError where a host does not answer."""
        joined = self._wait(self._hosts(links=links))
        return tuple(sorted(joined, key=lambda host: (host.description.role != "server", host.address)))

    def names(self) -> dict[str, str]:
        """Return the names of all hosts still there, by their addresses. Raises GoneError where the scheduler does not
        answer."""
        try:
            return self._wait(self._names())
        except OSError as error:
            raise GoneError("the scheduler is gone") from error

    def answers(self, address: str) -> bool:
        """Return whether a host answers; the scheduler notices a broken link only some seconds later."""
        try:
            self._wait(self._ask(address, "netdyno_clock", int, limit_s=engine.CONNECT_S))
        except OSError:
            return False
        return True

    def perform(self, address: str, request: bytes, hear: Callable[[int, float], None], limit_s: float) -> bytes:
        """Send a request to a host, and return its Reply as it came. `hear` gets the progress of the window, in another
        thread. Raises OSError where the host is silent for a second, sends what it may not send, or takes too long."""
        return self._wait(self._perform(address, request, hear, limit_s))

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return its result, once it has run in the thread of all connections."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _end(self) -> None:
        async def abort() -> None:
            for comm in self._comms.values():
                comm.abort()
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

        self._wait(abort())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _names(self) -> dict[str, str]:
        known = await self._ask(self._scheduler, "identity", Known, n_workers=-1)
        for address in known.workers:
            parse_tls_url(address)
        return {address: worker.name for address, worker in known.workers.items()}

    async def _hosts(self, *, links: bool) -> tuple[Host, ...]:
        try:
            names = await self._names()
        except OSError as error:
            raise UserError("the scheduler does not answer") from error
        joined = [await self._describe_host(address, name) for address, name in names.items()]
        if not links:
            return tuple(joined)
        return tuple([replace(host, links=await self._measure_links(host.address, tuple(names))) for host in joined])

    async def _describe_host(self, address: str, name: str) -> Host:
        try:
            description = await self._fetch_description(address)
            clock = await clocks.measure(partial(self._ask, address, "netdyno_clock", int), engine.ANSWER_S)
        except OSError as error:
            raise UserError(f"the host {address} has joined and does not answer: {error}") from error
        if description.role != (role := self._comms[address].role):
            raise UserError(f"the host {address} says it is {description.role}, and its certificate is for {role}")
        return Host(address=address, name=name, clock=clock, description=description, links={})

    async def _fetch_description(self, address: str) -> Description:
        text = await self._ask(address, "netdyno_describe", bytes)
        try:
            return msgspec.json.decode(text, type=Description)
        except msgspec.DecodeError as error:
            raise OSError(f"it does not describe itself: {error}") from error

    async def _measure_links(self, address: str, everyone: Sequence[str]) -> dict[str, HostLink]:
        """Measure the links to a host from all others. A check before each skips it while a host is at work, which may
        begin at any time; if it begins just then, the host itself waits for the transfer (daemon.py)."""
        measured: dict[str, HostLink] = {}
        for remote in everyone:
            if remote == address:
                continue
            try:
                round_trip_ns = await self._ask(address, "netdyno_round_trip", int, address=remote)
                is_busy = any([(await self._fetch_description(peer)).is_busy for peer in everyone])
                # Not repeated: the first transfer may go on, and would share the link with the second.
                rate = (
                    None
                    if is_busy
                    else await self._ask(address, "netdyno_rate", float | None, is_repeatable=False, address=remote)
                )
            except OSError as error:
                raise UserError(f"{remote} does not answer {address}, or {address} us: {error}") from error
            measured[remote] = HostLink(round_trip_ns=round_trip_ns, bits_per_second=rate)
        return measured

    async def _ask(
        self,
        address: str,
        operation: str,
        kind: Any,
        /,
        *,
        limit_s: float = engine.ANSWER_S,
        is_repeatable: bool = True,
        **words: Any,
    ) -> Any:
        """Ask a peer and return its answer. Raises OSError where that is not of the `kind`, or none comes. A connection
        that the peer has ended since the last question may seem open until now, so a question that `is_repeatable` is
        then repeated."""
        question = {"op": operation, "reply": True, **words}
        async with asyncio.timeout(limit_s):
            comm = self._comms.get(address)
            if comm is not None and not comm.closed():
                try:
                    return _convert_answer(await _exchange(comm, question), kind)
                except CommClosedError:
                    if not is_repeatable:
                        raise
            comm = self._comms[address] = await connect(address, engine.CONNECT_S, **self._connection)
            return _convert_answer(await _exchange(comm, question), kind)

    async def _perform(self, address: str, request: bytes, hear: Callable[[int, float], None], limit_s: float) -> bytes:
        limit = asyncio.timeout(limit_s)
        try:
            async with limit:
                async with asyncio.timeout(engine.CONNECT_S):
                    comm = await connect(address, engine.CONNECT_S, **self._connection)
                try:
                    await comm.write({"op": "netdyno_perform", "reply": False, "request": request})
                    beating = asyncio.create_task(Channel(comm).send_heartbeats())
                    try:
                        return await _receive_reply(comm, hear)
                    finally:
                        beating.cancel()
                finally:
                    comm.abort()
        except TimeoutError as error:
            if limit.expired():
                raise OSError(f"it did not answer within {limit_s:.0f} s") from error
            raise


async def _exchange(comm: Any, question: Mapping[str, object]) -> object:
    """Send a question and return the answer to it."""
    try:
        await comm.write(question)
        return await comm.read()
    except BaseException:
        comm.abort()  # a late answer would be taken for that to the next question
        raise


async def _receive_reply(comm: Any, hear: Callable[[int, float], None]) -> bytes:
    """Receive the pieces of a Reply and join them. Raises OSError."""
    pieces: list[bytes] = []
    patience_s = 2 * engine.LOST_S  # before the first message, the request has to arrive
    while True:
        try:
            async with asyncio.timeout(patience_s):
                message = _convert_answer(await comm.read(), HostMessage)
        except TimeoutError as error:
            raise OSError("it sent nothing for a second") from error
        patience_s = engine.CONNECT_S if pieces else engine.LOST_S
        if message.completed is not None:
            hear(message.completed, message.seconds)
        if message.piece is not None:
            pieces.append(message.piece)
            if sum(map(len, pieces)) > MOST_REPLY:
                raise OSError(f"its answer has more than {MOST_REPLY >> 20} MiB")
        if message.last:
            return b"".join(pieces)


def _convert_answer(answer: object, kind: Any) -> Any:
    """Convert an answer to its kind. Raises OSError where that fails."""
    if isinstance(answer, dict) and isinstance(why := answer.get("exception_text"), str):
        raise OSError(why[:MOST_TEXT])
    try:
        return msgspec.convert(answer, type=kind)
    except msgspec.ValidationError as error:
        raise OSError(f"its answer does not match the request: {error}"[:MOST_TEXT]) from error
