"""The backend that the server of a trial asks (protocol/WIRE.md, Backend): the calibration server, or PostgreSQL.

It is no part of that server. It runs on the cores of the load, where it comes before everything else, as a link's relay
does: so its waits are exact. Its CPU counts as the run's own, and so is neither the server's nor foreign."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from netdyno.kit.paths import backend_path, build_dir, postgresql_path
from netdyno.measure.machine.links.network import Network
from netdyno.measure.machine.process import RELAY_PRIORITY, UNREADABLE, LineReader, Process, TrialError
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.measure.trial import postgresql
from netdyno.measure.trial.context import TrialContext
from netdyno.model.options import Settings

Line = TypeVar("Line")


class BackendReady(msgspec.Struct, frozen=True):
    """The ready line of the backend."""

    endpoint: str


class BackendTotals(msgspec.Struct, frozen=True):
    """The count of questions in the backend's line of totals."""

    requests: int


class NoBackendError(Exception):
    """This machine does not have the backend of a cell."""


class Backend:
    """A running backend; `url` is where it listens."""

    def __init__(self, process: Process, lines: LineReader, patience_s: float) -> None:
        self._process = process
        self._lines = lines
        self._patience_s = patience_s
        self.url = self._read_line("ready line", BackendReady).endpoint

    def end(self) -> int:
        """End it, and return how many questions it was asked. Raises TrialError where it does not say so."""
        self._process.terminate()
        return self._read_line("line of totals", BackendTotals).requests

    def _read_line(self, name: str, kind: type[Line]) -> Line:
        line = self._lines.wait_line(time.monotonic() + self._patience_s)
        try:
            return msgspec.json.decode(line or "", type=kind)
        except UNREADABLE as error:
            raise TrialError(f"the backend wrote no {name}{self._process.read_reason()}") from error


def find_program(settings: Settings) -> list[str]:
    """Return the words that start the backend of a cell. Raises NoBackendError."""
    if not settings.asks_postgresql:
        return [str(backend_path(build_dir()))]
    if postgresql.find_programs() is None:
        raise NoBackendError(postgresql.WAY_OUT)
    if not postgresql_path(build_dir()).exists():
        raise NoBackendError("this build has no driver of PostgreSQL: install libpq-dev, then delete build/")
    return [sys.executable, "-m", postgresql.__name__]


@contextmanager
def start_backend(
    settings: Settings, network: Network, context: TrialContext, log: TrialLog
) -> Iterator[Backend | None]:
    """Run the backend of a cell beside the server, on its side of the link; None where the cell has none. Raises
    NoBackendError, and TrialError where it is not ready in time."""
    if not settings.has_backend:
        yield None
        return
    program = find_program(settings)
    command = [*network.server, *program, "--listen", f"tcp://{network.address}:0", "--workload", "rpc"]
    with (
        log.section("backend", command) as output,
        Process(
            command,
            context.load_cores,
            output,
            name="backend",
            talks=True,
            realtime=context.pinning.realtime,
            priority=RELAY_PRIORITY,
        ) as process,
    ):
        yield Backend(process, process.lines(), context.ready_timeout_s)
