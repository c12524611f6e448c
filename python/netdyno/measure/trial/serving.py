"""The server of a trial: its command, its start, the two lines that it says, and its end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import IO

import msgspec

from netdyno.kit import url
from netdyno.measure.machine import server_proc, socket_holders
from netdyno.measure.machine.links.network import Network
from netdyno.measure.machine.pinning import count_server_cores
from netdyno.measure.machine.process import (
    UNREADABLE,
    LateServerError,
    LineReader,
    Process,
    ServerError,
    describe_exit,
)
from netdyno.measure.trial.backend import Backend
from netdyno.measure.trial.command import build_listen_url, build_server_command, find_target
from netdyno.measure.trial.context import TrialContext
from netdyno.model import transports
from netdyno.model.contestant import Contestant
from netdyno.model.load_result import Distribution
from netdyno.model.options import Settings


class ReadyLine(msgspec.Struct, frozen=True):
    """The ready line; a server may say more than the contract requires. The stand-in for a server whose process is not
    known gives its own pid here, and is not `observed`."""

    ready: bool
    endpoint: str
    pid: int
    observed: bool = True
    ready_s: float = 0.0
    begun_cpu_s: float = 0.0
    """The time from the start of its program, and the CPU that its process had used before: of a stand-in's server by
    its stand-in."""


def build_networked_command(
    contestant: Contestant,
    settings: Settings,
    network: Network,
    context: TrialContext,
    backend: Backend | None = None,
    *,
    in_front: Sequence[str] = (),
) -> list[str]:
    """Return the command that starts a server in the network of its trial, beside its backend. `in_front`: words
    between the two."""
    server = build_server_command(
        contestant,
        settings,
        network.address,
        cores=count_server_cores(context.pinning),
        backend=backend.url if backend else "",
    )
    return [*network.server, *in_front, *server]


def start_server(
    command: Sequence[str], contestant: Contestant, context: TrialContext, output: IO[bytes], *, kept: bool = True
) -> Process:
    """Start a server whose work is to be charged to it: under a keeper, or its stand-in. Without a keeper, which takes
    longer to start than many a server, what it leaves behind is not charged."""
    return Process(command, context.pinning.server, output, talks=True, kept=kept and not contestant.has_stand_in)


def wait_ready(
    server: Process, lines: LineReader, context: TrialContext, contestant: Contestant, network: Network
) -> ReadyLine:
    """Read the server's ready line. Its endpoint must be the requested one, for the load must not reach anything else;
    its process must be one of the server's own, unless the server was running already."""
    timeout_s = contestant.own.ready_timeout_s if contestant.own is not None else context.ready_timeout_s
    line = lines.wait_line(time.monotonic() + timeout_s)
    taken_s = time.monotonic() - server.started_s
    if line is None:
        if lines.at_end and server.wait(time.monotonic() + timeout_s):
            how = describe_exit(server.exit_code())
            raise ServerError(f"the server ended with {how} before it was ready{server.read_reason()}")
        missing = "the server was not ready" if contestant.own else "no ready line from the server"
        raise LateServerError(f"{missing} within {timeout_s:g} s{server.read_reason()}")
    try:
        ready = msgspec.json.decode(line, type=ReadyLine)
    except UNREADABLE as error:
        raise ServerError(f"the server's first line is not a ready line: {line[:200]!r}") from error
    if transports.of_url(ready.endpoint) is None:
        raise ServerError(f"the server's ready line names no endpoint: {ready.endpoint[:200]!r}")
    listen_url = build_listen_url(contestant, network.address)
    endpoint = url.endpoint(listen_url, ready.endpoint)
    if endpoint is None:
        raise ServerError(
            f"the server's ready line names {ready.endpoint[:200]!r}, but it was started to listen at {listen_url}"
        )
    if contestant.own is None and ready.pid not in server_proc.find_family(server.pid):
        raise ServerError(f"the server's ready line names process {ready.pid}, which is not the server's")
    ready = msgspec.structs.replace(ready, endpoint=find_target(contestant, endpoint))
    if not contestant.has_stand_in:
        return msgspec.structs.replace(ready, ready_s=taken_s, begun_cpu_s=server.begun_cpu_s)
    serving = socket_holders.find_serving(server.pid, ready.pid, network.counters, ready.endpoint)
    return msgspec.structs.replace(ready, pid=serving or ready.pid, observed=serving is not None)


def shut_down(server: Process, lines: LineReader, context: TrialContext) -> tuple[str, str]:
    """Send SIGTERM; return the server's line of totals, and how it ended where that was not exit code 0."""
    deadline = time.monotonic() + context.shutdown_timeout_s
    server.terminate()
    line = lines.wait_line(deadline)
    if not server.wait(deadline):
        return "", f"nothing within {context.shutdown_timeout_s:g} s of SIGTERM"
    code = server.exit_code()
    return line or "", describe_exit(code) if code != 0 else ""


def read_totals(line: str) -> dict[str, int]:
    """Return the whole numbers of a line of totals; none where it is no such line (an audit then says so)."""
    return {
        name: value
        for name, value in _decode_entries(line).items()
        if isinstance(value, int) and not isinstance(value, bool)
    }


def read_connections_per_thread(line: str) -> tuple[int, ...]:
    """Return the connections of each thread, by the line of totals; none where it does not say."""
    try:
        return msgspec.convert(_decode_entries(line).get("connections_per_thread", ()), tuple[int, ...])
    except msgspec.ValidationError:
        return ()


def read_tick_lag(line: str) -> Distribution | None:
    """Return the lag of the server's main loop, by its line of totals; None where it does not say."""
    try:
        return msgspec.convert(_decode_entries(line).get("tick_lag_ns"), Distribution | None)
    except msgspec.ValidationError:
        return None


def _decode_entries(line: str) -> dict[str, object]:
    try:
        return msgspec.json.decode(line, type=dict[str, object])
    except UNREADABLE:
        return {}
