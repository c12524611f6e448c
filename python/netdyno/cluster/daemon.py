"""The two programs that stay: the scheduler, and the worker of a host. Each runs until it is ended.

A controller asks the worker of the host of servers for a trial, and that has the load made by the worker of another
host. Each does so over a connection of Dask's, and both sides tell each other on it that they live; so one port a host
is enough."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import dask
import msgspec
from distributed import Scheduler as DaskScheduler
from distributed import Worker as DaskWorker
from distributed.core import Status, connect

from netdyno.base import addresses
from netdyno.base.errors import UserError
from netdyno.base.temporary import temporary_folder
from netdyno.base.url import TcpUrl, parse_tls_url
from netdyno.cluster import authority, clocks, engine, links, loads
from netdyno.cluster.authority import Role
from netdyno.cluster.described import describe
from netdyno.cluster.requests import MOST_REPLY, LoadEnded, NotDone
from netdyno.cluster.trial_helper import REPLY, REQUEST, WAY
from netdyno.machine import digests

LONGEST_LINE = 128 << 20
"""Bytes of a line that a helper says: of a result, which has 64 MiB at the most, as JSON within JSON."""
PIECE = 256 << 10
"""Bytes of a Reply that are sent at once: each is a sign of life."""


class HelperError(Exception):
    """What was wanted of this host has failed; the text says why."""


class Scheduler(DaskScheduler):  # type: ignore[misc]
    """Listens where it was told, and nowhere else. It knows who has joined, and has nothing else to do."""

    async def add_worker(self, comm: Any, *, name: object, **named: Any) -> None:
        """Take a host in, under a name of its role."""
        if str(name).startswith(f"{comm.role}@"):
            await super().add_worker(comm, name=name, **named)
        else:
            why = f"its certificate is for {comm.role}"
            await comm.write({"status": "refused", "message": why, "time": time.time()})

    def start_http_server(self, *_: object, **__: object) -> None:
        """Dask's has no encryption."""


class Worker(DaskWorker):  # type: ignore[misc]
    """One host. It has no tasks: what it is asked for are the operations that are named netdyno_..."""

    def __init__(
        self,
        *arguments: Any,
        role: Role,
        cores: tuple[int, ...],
        host: str,
        findings: tuple[str, ...],
        **named: Any,
    ) -> None:
        self.netdyno_findings = findings
        self.netdyno_role = role
        self.netdyno_address = host
        self.netdyno_cores = cores
        self.netdyno_harness = digests.harness()  # what is on the disk may be changed while this stays
        self.netdyno_loading = asyncio.Lock()
        self.netdyno_performing = asyncio.Lock()
        self.netdyno_transfers = links.Transfers()
        super().__init__(*arguments, host=host, nthreads=1, memory_limit=0, extensions={}, **named)
        self.handlers |= {
            "netdyno_clock": self.tell_clock,
            "netdyno_describe": self.tell_description,
            "netdyno_fill": self.fill_link,
            "netdyno_load": self.make_load,
            "netdyno_perform": self.perform,
            "netdyno_rate": self.tell_rate,
            "netdyno_round_trip": self.tell_round_trip,
        }

    def start_http_server(self, *_: object, **__: object) -> None:
        """As above."""

    async def tell_clock(self) -> int:
        return time.monotonic_ns()

    async def tell_description(self) -> bytes:
        who = self.netdyno_role, self.netdyno_cores, self.netdyno_address, self.netdyno_findings
        return msgspec.json.encode(describe(*who, harness=self.netdyno_harness, is_busy=self._is_busy()))

    def _is_busy(self) -> bool:
        """From the moment at which something is begun: no transfer begins from then on."""
        return self.netdyno_loading.locked() or self.netdyno_performing.locked()

    async def tell_round_trip(self, address: str) -> int:
        """The shortest to another host."""
        return (await clocks.measure(self.rpc(address).netdyno_clock, engine.CONNECT_S)).round_trip_ns

    async def tell_rate(self, address: str) -> float | None:
        """How many bits a second come from another host; None where one of both is at work."""
        if self._is_busy():
            return None
        with self.netdyno_transfers.another():
            async with self.connected(address) as comm:
                await comm.write({"op": "netdyno_fill", "reply": False})
                async with asyncio.timeout(engine.LOST_S):
                    fills = (await comm.read())["fills"]
                return await links.rate(comm) if fills else None

    async def fill_link(self, comm: Any) -> Status:
        """To a host that asks for it, which is told first whether that is done."""
        with suppress(OSError):
            if self._is_busy():
                await comm.write({"fills": False})
                await links.closed(comm)
            else:
                with self.netdyno_transfers.another():
                    await comm.write({"fills": True})
                    await links.fill(comm)
        comm.abort()
        return Status.dont_reply

    async def perform(self, comm: Any, request: bytes) -> Status:
        """Do what a controller wants (a Request), as long as that says that it lives, and send it the Reply."""
        writing = asyncio.Lock()
        beating = asyncio.create_task(_beat(comm, writing))
        performing = asyncio.create_task(self._perform(comm, writing, request))
        watching = asyncio.create_task(_await_silence(comm))
        try:
            await asyncio.wait((performing, watching), return_when=asyncio.FIRST_COMPLETED)
            if performing.done():
                await _send(comm, writing, performing.result())
                await watching  # until it has been read
        finally:
            tasks = (beating, performing, watching)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            comm.abort()
        return Status.dont_reply

    async def _perform(self, comm: Any, writing: asyncio.Lock, request: bytes) -> bytes:
        """The Reply."""
        try:
            # The one before may be told and still be on its way out.
            await asyncio.wait_for(self.netdyno_performing.acquire(), engine.LOST_S)
        except TimeoutError:
            return msgspec.json.encode(NotDone(why="it is busy with another run"))
        try:
            await self.netdyno_transfers.over()
            return await self._helped(comm, writing, request)
        except HelperError as error:
            return msgspec.json.encode(NotDone(why=str(error)))
        finally:
            self.netdyno_performing.release()

    async def _helped(self, comm: Any, writing: asyncio.Lock, request: bytes) -> bytes:
        """Have a helper do it, and hand on how far it is. It ends with this. Raises HelperError."""
        with tempfile.TemporaryDirectory(dir=self.local_directory, prefix="task-") as scratch:
            folder = Path(scratch)
            (folder / REQUEST).write_bytes(request)
            way = await self._open_way(folder / WAY)
            try:
                with (folder / "said").open("w+b", buffering=0) as said:
                    helper = await asyncio.create_subprocess_exec(
                        *(sys.executable, "-P", "-m", "netdyno.cluster.trial_helper", scratch, str(os.getpid())),
                        stdin=asyncio.subprocess.DEVNULL,
                        stdout=asyncio.subprocess.PIPE,
                        stderr=said,
                        start_new_session=True,
                    )
                    assert helper.stdout is not None
                    try:
                        while line := await helper.stdout.readline():
                            completed, seconds = line.split()
                            await _write(comm, writing, {"completed": int(completed), "seconds": float(seconds)})
                        await asyncio.wait_for(helper.wait(), engine.CONNECT_S)
                    finally:
                        with suppress(ProcessLookupError):
                            helper.kill()
                        await helper.wait()
                    if helper.returncode != 0 or not (folder / REPLY).is_file():
                        said.seek(0)
                        words = said.read().decode("utf-8", "replace").strip().splitlines()
                        raise HelperError(words[-1] if words else f"its helper ended with {helper.returncode}")
                if (folder / REPLY).stat().st_size > MOST_REPLY:
                    raise HelperError(f"its result has more than {MOST_REPLY >> 20} MiB")
                return (folder / REPLY).read_bytes()
            finally:
                way.close()

    async def _open_way(self, path: Path) -> asyncio.AbstractServer:
        """Where stand-ins for the load of this host's trial come to (stand_in.py)."""
        return await asyncio.start_unix_server(self._stand_in, path, limit=LONGEST_LINE)

    async def _stand_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await loads.stand_in(self, reader, writer)

    @asynccontextmanager
    async def connected(self, address: str) -> AsyncIterator[Any]:
        """A connection to another host, of its own."""
        comm = await connect(address, timeout=engine.LOST_S, **self.connection_args)
        try:
            yield comm
        finally:
            comm.abort()

    async def ask_clock(self, address: str) -> int:
        """What another host's clock shows."""
        return int(await self.rpc(address).netdyno_clock())

    async def make_load(self, comm: Any, wanted: dict[str, Any]) -> Status:
        """Make the load that another host asks for (LoadWanted), as long as that says that it lives."""
        try:
            # The one before may be told and still be on its way out.
            await asyncio.wait_for(self.netdyno_loading.acquire(), engine.LOST_S / 2)
        except TimeoutError:
            await comm.write(_ended("this host already makes another load"))
            await _await_silence(comm)
            return Status.dont_reply
        writing = asyncio.Lock()
        beating = asyncio.create_task(_beat(comm, writing))
        try:
            await self.netdyno_transfers.over()
            # Not the helper's own, which may be ended at any moment.
            with tempfile.TemporaryDirectory(
                dir=self.local_directory, prefix="load-", ignore_cleanup_errors=True
            ) as folder:
                await self._make_load(comm, writing, {**wanted, "parent": os.getpid(), "folder": folder})
        finally:
            beating.cancel()
            self.netdyno_loading.release()
        return Status.dont_reply

    async def _make_load(self, comm: Any, writing: asyncio.Lock, wanted: dict[str, Any]) -> None:
        helper = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "netdyno.cluster.load_helper"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=LONGEST_LINE,
        )
        assert helper.stdin is not None
        assert helper.stdout is not None
        helper.stdin.write(msgspec.json.encode(wanted) + b"\n")
        telling = asyncio.create_task(_tell(helper.stdout, comm, writing))
        try:
            await _await_silence(comm, helper.stdin)  # whoever asked has heard the last line, or is gone
        finally:
            telling.cancel()
            with suppress(ProcessLookupError):
                helper.kill()
            await helper.wait()
            comm.abort()


async def _write(comm: Any, writing: asyncio.Lock, words: dict[str, Any]) -> None:
    """Where the connection has ended, who waits for its silence sees that."""
    with suppress(OSError):
        async with writing:
            await comm.write(words)


async def _send(comm: Any, writing: asyncio.Lock, reply: bytes) -> None:
    """Piece by piece (requests.Said)."""
    for at in range(0, len(reply), PIECE):
        await _write(comm, writing, {"piece": reply[at : at + PIECE], "last": at + PIECE >= len(reply)})


async def _beat(comm: Any, writing: asyncio.Lock) -> None:
    """Say that this host lives, until the connection ends."""
    with suppress(OSError):
        while True:
            async with writing:
                await comm.write({"beat": True})
            await asyncio.sleep(engine.BEAT_S)


async def _tell(lines: asyncio.StreamReader, comm: Any, writing: asyncio.Lock) -> None:
    """Pass on what a helper says; the last line once it is known to be that."""
    with suppress(OSError):
        line = await lines.readline()
        while line:
            following = lines.readline() if b'"event"' in line[:16] else None
            async with writing:
                await comm.write({"line": line, "last": following is None})
            if following is None:
                return
            line = await following
        async with writing:
            await comm.write(_ended("the helper of the load has ended"))


def _ended(why: str) -> dict[str, Any]:
    """A last line, of a load that nobody made."""
    return {"line": msgspec.json.encode(LoadEnded(code=1, said=f"{why}\n", result=None)) + b"\n", "last": True}


async def _await_silence(comm: Any, helper: asyncio.StreamWriter | None = None) -> None:
    """Until the other side says nothing more. When a load is to begin, and what all parts of a chat sent, is handed
    on."""
    with suppress(OSError, TimeoutError):
        while True:
            async with asyncio.timeout(engine.LOST_S):
                said = await comm.read()
            order = next((word for word in ("go", "sent") if word in said), None)
            if order is not None and helper is not None:
                helper.write(f"{order} {said[order]}\n".encode())
                await helper.drain()


def schedule(folder: Path) -> int:
    """`cluster scheduler`. Raises UserError where it cannot listen."""
    at = parse_tls_url(authority.scheduler_of(folder))
    security = engine.security(folder, "scheduler", authority.scheduler_of(folder))

    async def run() -> None:
        with temporary_folder("scheduler") as scratch, dask.config.set({"temporary-directory": str(scratch)}):
            scheduler = Scheduler(
                protocol="tls",
                host=at.host,
                port=at.port,
                security=security,
                dashboard=False,
                dashboard_address=None,
                extensions={},
            )
            await _start(scheduler, f"the scheduler cannot listen on {at.host}, port {at.port}")
            ended = _heed_signals()
            print(f"scheduler at tls://{at.host}:{at.port}, which hosts join by ./netdyno cluster join", flush=True)
            await _until_ended(scheduler, ended)

    asyncio.run(run())
    return 0


def join(
    folder: Path,
    scheduler: str,
    role: Role,
    address: str | None,
    port: int,
    cores: Sequence[int],
    findings: Sequence[str],
) -> int:
    """`cluster join`: exit code 0 when it was ended, 1 when the scheduler is gone. Raises UserError where there is none
    that lets it in."""
    at = parse_tls_url(scheduler)
    security = engine.security(folder, role, scheduler)
    own = address or own_address(at)

    async def run() -> int:
        with temporary_folder("host") as scratch:
            worker = Worker(
                scheduler,
                host=own,
                port=port,
                protocol="tls",
                security=security,
                local_directory=str(scratch),
                name=f"{role}@{own}:{port}-{uuid.uuid4().hex}",
                death_timeout=engine.CONNECT_S,
                role=role,
                cores=tuple(cores),
                findings=tuple(findings),
            )
            await _start(worker, f"no scheduler lets this host in at {scheduler}, or port {port} of {own} is taken")
            ended = _heed_signals()
            print(f"joined {scheduler} as {role}, at {worker.address}", flush=True)
            return 0 if await _until_ended(worker, ended) else 1

    code = asyncio.run(run())
    if code:
        raise UserError(
            f"the scheduler at {scheduler} is gone; this host has left, and nothing of the run goes on here"
        )
    return code


def own_address(other: TcpUrl) -> str:
    """The address of this host by which it would reach another. Nothing is sent. Raises UserError."""
    why: Exception | None = None
    try:
        for family, there in addresses.resolve(other.host, other.port):
            try:
                with socket.socket(family, socket.SOCK_DGRAM) as asked:
                    asked.connect(there)
                    return str(asked.getsockname()[0])
            except OSError as error:
                why = why or error
    except (OSError, UnicodeError) as error:
        why = error
    raise UserError(f"{other.host} cannot be reached: {getattr(why, 'strerror', None) or why}") from why


async def _start(server: Any, why_not: str) -> None:
    starting = await _within(2 * engine.CONNECT_S, server)
    error = starting.exception() if starting.done() else TimeoutError("it took too long")
    if error is None:
        return
    if not isinstance(error, OSError | RuntimeError | ValueError):
        raise error
    await _close(server)
    raise UserError(f"{why_not} ({_innermost(error)})") from error


async def _close(server: Any) -> None:
    closing = await _within(engine.CONNECT_S, server.close())
    if closing.done():
        closing.exception()  # whatever it was, it has ended


async def _within(limit_s: float, what: Awaitable[Any]) -> asyncio.Future[Any]:
    """What is not done by then is cancelled. Not by wait_for, which waits for what it has cancelled: Dask then closes
    what it had begun, and that may never end."""
    task = asyncio.ensure_future(what)
    await asyncio.wait({task}, timeout=limit_s)
    task.cancel()
    return task


def _innermost(error: BaseException) -> str:
    """Dask says that something went wrong; what it was stands at the end of the chain."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return str(error) or type(error).__name__


def _heed_signals() -> asyncio.Event:
    """What SIGINT and SIGTERM set from here on; before anybody is told that this stands, and may end it."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    return ended


async def _until_ended(server: Any, ended: asyncio.Event) -> bool:
    """Until it is told to end (True), or has ended by itself."""
    told, gone = asyncio.create_task(ended.wait()), asyncio.create_task(server.finished())
    await asyncio.wait((told, gone), return_when=asyncio.FIRST_COMPLETED)
    await _close(server)
    return told.done()
