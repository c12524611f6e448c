"""The two long-running programs: the scheduler, and the worker of a host. Each runs until it is ended.

A controller requests a trial from the worker of the host of servers, which requests the load from the worker of another
host. Each does so over a connection of Dask's, on which both sides send signs of life; so one port a host is enough."""

from __future__ import annotations

import asyncio
import os
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

from netdyno.kit import addresses
from netdyno.kit.errors import UserError
from netdyno.kit.held_signals import list_ending_signals
from netdyno.kit.paths import ENTRY
from netdyno.kit.temporary import temporary_folder
from netdyno.kit.url import TcpUrl, parse_tls_url
from netdyno.measure.cluster import authority, clocks, engine, host_links, remote_load, trial_helper
from netdyno.measure.cluster.authority import Role
from netdyno.measure.cluster.described import describe
from netdyno.measure.cluster.host_links import Channel
from netdyno.measure.cluster.requests import MOST_REPLY, LoadEnded, NotDone
from netdyno.measure.cluster.trial_helper import REPLY, REQUEST, WAY
from netdyno.measure.machine import digests

LONGEST_LINE = 128 << 20
"""Bytes of a line that a helper may print: of a result, which has 64 MiB at most, as JSON within JSON."""
PIECE = 256 << 10
"""Bytes of a Reply that are sent at once: each piece is a sign of life."""


class HelperError(Exception):
    """A request to this host has failed; the text says why."""


class Scheduler(DaskScheduler):  # type: ignore[misc]
    """A scheduler that listens at its given address alone. It knows which hosts have joined, and does nothing else."""

    async def add_worker(self, comm: Any, *, name: object, **named: Any) -> None:
        """Admit a host, under a name of its role."""
        if str(name).startswith(f"{comm.role}@"):
            await super().add_worker(comm, name=name, **named)
        else:
            why = f"its certificate is for {comm.role}"
            await comm.write({"status": "refused", "message": why, "time": time.time()})

    def start_http_server(self, *_: object, **__: object) -> None:
        """Start none: Dask's has no encryption."""


class Worker(DaskWorker):  # type: ignore[misc]
    """The worker of a host. It has no tasks: requests to it are the operations named netdyno_..."""

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
        self.netdyno_harness = digests.digest_harness()  # the files may change while this runs
        self.netdyno_loading = asyncio.Lock()
        self.netdyno_performing = asyncio.Lock()
        self.netdyno_transfers = host_links.Transfers()
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
        """Start none, as above."""

    async def tell_clock(self) -> int:
        return time.monotonic_ns()

    async def tell_description(self) -> bytes:
        identity = self.netdyno_role, self.netdyno_cores, self.netdyno_address, self.netdyno_findings
        return msgspec.json.encode(describe(*identity, harness=self.netdyno_harness, is_busy=self._is_busy()))

    def _is_busy(self) -> bool:
        """Return whether a load or a trial has begun: no transfer begins from then on."""
        return self.netdyno_loading.locked() or self.netdyno_performing.locked()

    async def tell_round_trip(self, address: str) -> int:
        """Return the shortest round trip to another host, in nanoseconds."""
        return (await clocks.measure(self.rpc(address).netdyno_clock, engine.CONNECT_S)).round_trip_ns

    async def tell_rate(self, address: str) -> float | None:
        """Measure the bits per second from another host; None where either of both is at work."""
        if self._is_busy():
            return None
        with self.netdyno_transfers.count_transfer():
            async with self.connected(address) as comm:
                await comm.write({"op": "netdyno_fill", "reply": False})
                async with asyncio.timeout(engine.LOST_S):
                    fills = (await comm.read())["fills"]
                return await host_links.measure_rate(comm) if fills else None

    async def fill_link(self, comm: Any) -> Status:
        """Fill the link to a host that requests it, after a message whether this is done."""
        with suppress(OSError):
            if self._is_busy():
                await comm.write({"fills": False})
                await host_links.await_close(comm)
            else:
                with self.netdyno_transfers.count_transfer():
                    await comm.write({"fills": True})
                    await host_links.fill(comm)
        comm.abort()
        return Status.dont_reply

    async def perform(self, comm: Any, request: bytes) -> Status:
        """Perform a controller's Request, as long as that sends signs of life, and send it the Reply."""
        channel = Channel(comm)
        beating = asyncio.create_task(channel.send_heartbeats())
        performing = asyncio.create_task(self._perform(channel, request))
        watching = asyncio.create_task(_await_silence(comm))
        try:
            await asyncio.wait((performing, watching), return_when=asyncio.FIRST_COMPLETED)
            if performing.done():
                await _send(channel, performing.result())
                await watching  # until it has been read
        finally:
            tasks = (beating, performing, watching)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            comm.abort()
        return Status.dont_reply

    async def _perform(self, channel: Channel, request: bytes) -> bytes:
        """Perform a request and return the Reply."""
        try:
            # The one before may have its reply and still be ending.
            await asyncio.wait_for(self.netdyno_performing.acquire(), engine.LOST_S)
        except TimeoutError:
            return msgspec.json.encode(NotDone(why="it is busy with another run"))
        try:
            await self.netdyno_transfers.await_end()
            return await self._run_helper(channel, request)
        except HelperError as error:
            return msgspec.json.encode(NotDone(why=str(error)))
        finally:
            self.netdyno_performing.release()

    async def _run_helper(self, channel: Channel, request: bytes) -> bytes:
        """Run a helper for a request, and send its progress on. The helper ends with this method. Raises
        HelperError."""
        with tempfile.TemporaryDirectory(dir=self.local_directory, prefix="task-") as scratch:
            folder = Path(scratch)
            (folder / REQUEST).write_bytes(request)
            way = await self._open_way(folder / WAY)
            try:
                with (folder / "stderr").open("w+b", buffering=0) as errors:
                    helper = await asyncio.create_subprocess_exec(
                        *(sys.executable, "-P", "-m", trial_helper.__name__, scratch, str(os.getpid())),
                        stdin=asyncio.subprocess.DEVNULL,
                        stdout=asyncio.subprocess.PIPE,
                        stderr=errors,
                        start_new_session=True,
                    )
                    assert helper.stdout is not None
                    try:
                        while line := await helper.stdout.readline():
                            completed, seconds = line.split()
                            await _write(channel, {"completed": int(completed), "seconds": float(seconds)})
                        await asyncio.wait_for(helper.wait(), engine.CONNECT_S)
                    finally:
                        with suppress(ProcessLookupError):
                            helper.kill()
                        await helper.wait()
                    if helper.returncode != 0 or not (folder / REPLY).is_file():
                        errors.seek(0)
                        words = errors.read().decode("utf-8", "replace").strip().splitlines()
                        raise HelperError(words[-1] if words else f"its helper ended with {helper.returncode}")
                if (folder / REPLY).stat().st_size > MOST_REPLY:
                    raise HelperError(f"its result has more than {MOST_REPLY >> 20} MiB")
                return (folder / REPLY).read_bytes()
            finally:
                way.close()

    async def _open_way(self, path: Path) -> asyncio.AbstractServer:
        """Open the socket to which stand-ins for the load of this host's trial connect (load_stand_in.py)."""
        return await asyncio.start_unix_server(self._serve_load, path, limit=LONGEST_LINE)

    async def _serve_load(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await remote_load.serve_request(self, reader, writer)

    @asynccontextmanager
    async def connected(self, address: str) -> AsyncIterator[Any]:
        """Open a separate connection to another host."""
        comm = await connect(address, timeout=engine.LOST_S, **self.connection_args)
        try:
            yield comm
        finally:
            comm.abort()

    async def ask_clock(self, address: str) -> int:
        """Read another host's clock, in nanoseconds."""
        return int(await self.rpc(address).netdyno_clock())

    async def make_load(self, comm: Any, request: dict[str, Any]) -> Status:
        """Make the load that another host requests (PartRequest), as long as that sends signs of life."""
        try:
            # The one before may have its reply and still be ending.
            await asyncio.wait_for(self.netdyno_loading.acquire(), engine.LOST_S / 2)
        except TimeoutError:
            await comm.write(_build_last_line("this host already makes another load"))
            await _await_silence(comm)
            return Status.dont_reply
        channel = Channel(comm)
        beating = asyncio.create_task(channel.send_heartbeats())
        try:
            await self.netdyno_transfers.await_end()
            # Not a folder of the helper, which may be ended at any moment.
            with tempfile.TemporaryDirectory(
                dir=self.local_directory, prefix="load-", ignore_cleanup_errors=True
            ) as folder:
                await self._make_load(channel, {**request, "parent": os.getpid(), "folder": folder})
        finally:
            beating.cancel()
            self.netdyno_loading.release()
        return Status.dont_reply

    async def _make_load(self, channel: Channel, request: dict[str, Any]) -> None:
        helper = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "netdyno.measure.cluster.load_helper"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=LONGEST_LINE,
        )
        assert helper.stdin is not None
        assert helper.stdout is not None
        helper.stdin.write(msgspec.json.encode(request) + b"\n")
        sending = asyncio.create_task(_send_lines(helper.stdout, channel))
        try:
            await _await_silence(channel.comm, helper.stdin)  # the requesting host has the last line, or is gone
        finally:
            sending.cancel()
            with suppress(ProcessLookupError):
                helper.kill()
            await helper.wait()
            channel.comm.abort()


async def _write(channel: Channel, words: dict[str, Any]) -> None:
    """Write a message. Where the connection has ended, the task that awaits its silence notices."""
    with suppress(OSError):
        await channel.send(words)


async def _send(channel: Channel, reply: bytes) -> None:
    """Send a reply piece by piece (requests.HostMessage)."""
    for offset in range(0, len(reply), PIECE):
        await _write(channel, {"piece": reply[offset : offset + PIECE], "last": offset + PIECE >= len(reply)})


async def _send_lines(lines: asyncio.StreamReader, channel: Channel) -> None:
    """Send the lines of a helper on; the last one once it is known to be the last."""
    with suppress(OSError):
        line = await lines.readline()
        while line:
            following = lines.readline() if b'"event"' in line[:16] else None
            await channel.send({"line": line, "last": following is None})
            if following is None:
                return
            line = await following
        await channel.send(_build_last_line("the helper of the load has ended"))


def _build_last_line(why: str) -> dict[str, Any]:
    """Return the last line of a load that was not made."""
    return {"line": msgspec.json.encode(LoadEnded(code=1, output=f"{why}\n", result=None)) + b"\n", "last": True}


async def _await_silence(comm: Any, helper: asyncio.StreamWriter | None = None) -> None:
    """Wait until the other side is silent. The order to begin a load, and the total that all parts of a chat sent, go
    on to the helper."""
    with suppress(OSError, TimeoutError):
        while True:
            async with asyncio.timeout(engine.LOST_S):
                message = await comm.read()
            order = next((word for word in ("go", "sent") if word in message), None)
            if order is not None and helper is not None:
                helper.write(f"{order} {message[order]}\n".encode())
                await helper.drain()


def schedule(folder: Path) -> int:
    """Run `cluster scheduler`. Raises UserError where it cannot listen."""
    url = parse_tls_url(authority.read_scheduler(folder))
    security = engine.configure_security(folder, "scheduler", authority.read_scheduler(folder))

    async def run() -> None:
        with temporary_folder("scheduler") as scratch, dask.config.set({"temporary-directory": str(scratch)}):
            scheduler = Scheduler(
                protocol="tls",
                host=url.host,
                port=url.port,
                security=security,
                dashboard=False,
                dashboard_address=None,
                extensions={},
            )
            await _start(scheduler, f"the scheduler cannot listen on {url.host}, port {url.port}")
            ended = _catch_signals()
            print(f"scheduler at tls://{url.host}:{url.port}, which hosts join by {ENTRY} cluster join", flush=True)
            await _await_end(scheduler, ended)

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
    """Run `cluster join`; return 0 when it was ended. Raises UserError where no scheduler lets it in, or the scheduler
    is gone."""
    url = parse_tls_url(scheduler)
    security = engine.configure_security(folder, role, scheduler)
    host = address or find_own_address(url)

    async def run() -> int:
        with temporary_folder("host") as scratch:
            worker = Worker(
                scheduler,
                host=host,
                port=port,
                protocol="tls",
                security=security,
                local_directory=str(scratch),
                name=f"{role}@{host}:{port}-{uuid.uuid4().hex}",
                death_timeout=engine.CONNECT_S,
                role=role,
                cores=tuple(cores),
                findings=tuple(findings),
            )
            await _start(worker, f"no scheduler lets this host in at {scheduler}, or port {port} of {host} is taken")
            ended = _catch_signals()
            print(f"joined {scheduler} as {role}, at {worker.address}", flush=True)
            return 0 if await _await_end(worker, ended) else 1

    code = asyncio.run(run())
    if code:
        raise UserError(
            f"the scheduler at {scheduler} is gone; this host has left, and nothing of the run goes on here"
        )
    return code


def find_own_address(remote: TcpUrl) -> str:
    """Return the address of this host from which it would reach another. Nothing is sent. Raises UserError."""
    why: Exception | None = None
    try:
        for family, address in addresses.resolve(remote.host, remote.port):
            try:
                with socket.socket(family, socket.SOCK_DGRAM) as probe:
                    probe.connect(address)
                    return str(probe.getsockname()[0])
            except OSError as error:
                why = why or error
    except (OSError, UnicodeError) as error:
        why = error
    raise UserError(f"{remote.host} cannot be reached: {getattr(why, 'strerror', None) or why}") from why


async def _start(server: Any, why_not: str) -> None:
    starting = await _run_within(2 * engine.CONNECT_S, server)
    error = starting.exception() if starting.done() else TimeoutError("it took too long")
    if error is None:
        return
    if not isinstance(error, OSError | RuntimeError | ValueError):
        raise error
    await _close(server)
    raise UserError(f"{why_not} ({_find_innermost(error)})") from error


async def _close(server: Any) -> None:
    closing = await _run_within(engine.CONNECT_S, server.close())
    if closing.done():
        closing.exception()  # whatever it was, it has ended


async def _run_within(limit_s: float, work: Awaitable[Any]) -> asyncio.Future[Any]:
    """Run a task and cancel it at the limit. Not by wait_for, which awaits the cancelled task: Dask then closes what it
    had begun, and that may never end."""
    task = asyncio.ensure_future(work)
    await asyncio.wait({task}, timeout=limit_s)
    task.cancel()
    return task


def _find_innermost(error: BaseException) -> str:
    """Return the text of the error at the end of the chain: Dask's own only says that something went wrong."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return str(error) or type(error).__name__


def _catch_signals() -> asyncio.Event:
    """Return an event that a signal to end sets from now on; called before the ready line, after which a user may end
    the program."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in list_ending_signals():
        loop.add_signal_handler(number, ended.set)
    return ended


async def _await_end(server: Any, ended: asyncio.Event) -> bool:
    """Wait until a signal ends it (True), or it has ended by itself."""
    signalled, gone = asyncio.create_task(ended.wait()), asyncio.create_task(server.finished())
    await asyncio.wait((signalled, gone), return_when=asyncio.FIRST_COMPLETED)
    await _close(server)
    return signalled.done()
