"""Starting a client contestant and ending it, by its contract alone (protocol/client.md): options, events, result."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import msgspec

from netdyno.model.load_result import ClientReport, LoadResult
from tests.support import proc
from tests.support.patience import PATIENCE_S
from tests.support.server import SANITIZER_REPORTS

# Tests end a client when they have seen enough; until then it goes on.
ENDLESS = ("--warmup", "0", "--duration", "10m")
Event = dict[str, int | float | str]


@dataclass(frozen=True)
class ClientOutcome:
    """How a client ended, and what it wrote."""

    code: int
    stderr: str
    result: LoadResult
    stdout: str
    starved_s: float  # how long it stood ready to run without a core, up to its signal

    @property
    def client(self) -> ClientReport:
        """The part of the result that only client contestants have."""
        assert self.result.client is not None, "the result has no object 'client'"
        return self.result.client

    @property
    def failures(self) -> dict[str, int]:
        """The stages that failed, and how often."""
        counts: dict[str, int] = msgspec.structs.asdict(self.client)
        del counts["tick_lag_ns"], counts["recovered"]
        return {stage: count for stage, count in counts.items() if count}

    @property
    def failed_audits(self) -> list[str]:
        """Their names."""
        return [audit.name for audit in self.result.audits if not audit.passed]


@dataclass
class RunningClient:
    """A client under test."""

    process: subprocess.Popen[bytes]
    events_fd: int
    errors: IO[bytes]
    file: Path
    events: list[Event] = field(default_factory=list)
    starved_s: float = 0
    _buffer: bytes = b""

    @property
    def pid(self) -> int:
        """The process id of the client itself."""
        return self.process.pid

    def wait_event(self, name: str) -> Event:
        """The next event of that name; AssertionError when the client ends without it."""
        while (event := self._next_event())["event"] != name:
            pass
        return event

    def wait_completed(self, count: int) -> None:
        """Wait until that many responses more than in the first report have come."""
        least = int(self.wait_event("progress")["completed"]) + count
        while int(self.wait_event("progress")["completed"]) < least:
            pass

    def stop(self, how: signal.Signals = signal.SIGTERM) -> ClientOutcome:
        """Tell it to end, and wait for its result."""
        self.starved_s = proc.run_queue_wait_s(self.pid)
        self.process.send_signal(how)
        return self.wait()

    def kill(self) -> None:
        """Kill it (SIGKILL) and wait until the programs that it has started, at least one, have ended too."""
        children = [os.pidfd_open(pid) for pid in proc.children(self.pid)]
        assert children
        self.process.kill()
        try:
            for child in children:
                assert select.select([child], [], [], PATIENCE_S)[0], "a program that it has started goes on"
        finally:
            for child in children:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(child, signal.SIGKILL)
                os.close(child)

    def wait(self) -> ClientOutcome:
        """Wait until it ends by itself."""
        stdout, _ = self.process.communicate(timeout=2 * PATIENCE_S)
        while self._read():
            pass
        stderr = self.stderr()
        assert not any(report in stderr for report in SANITIZER_REPORTS), stderr
        assert self.file.is_file(), f"exit code {self.process.returncode} and no result; stderr: {stderr}"
        result = msgspec.json.decode(self.file.read_bytes(), type=LoadResult)
        return ClientOutcome(self.process.returncode, stderr, result, stdout.decode(), self.starved_s)

    def stderr(self) -> str:
        """All that came on stderr so far."""
        return os.pread(self.errors.fileno(), os.fstat(self.errors.fileno()).st_size, 0).decode(errors="replace")

    def _next_event(self) -> Event:
        deadline = time.monotonic() + PATIENCE_S
        seen = len(self.events)
        while len(self.events) == seen:
            if b"\n" not in self._buffer:
                readable, _, _ = select.select([self.events_fd], [], [], max(0.0, deadline - time.monotonic()))
                assert readable, f"waited {PATIENCE_S:g} s for an event after {self.events}; stderr: {self.stderr()}"
            assert self._read(), f"ended after {self.events}; stderr: {self.stderr()}"
        return self.events[seen]

    def _read(self) -> bool:
        """Take one event; False at the end of them."""
        while b"\n" not in self._buffer:
            data = os.read(self.events_fd, 4096)
            if not data:
                return False
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        self.events.append(json.loads(line))
        return True


@contextmanager
def running(command: Sequence[str], url: str, *options: str) -> Iterator[RunningClient]:
    """A client that runs. Ended by its pid when the test is done."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
        reading, writing = os.pipe()
        file = Path(folder) / "result.json"
        arguments = [*command, url, *options, "--json", str(file), "--events-fd", str(writing)]
        process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, pass_fds=(writing,)
        )
        os.close(writing)
        try:
            yield RunningClient(process, reading, errors, file)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
            os.close(reading)
