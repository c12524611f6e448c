"""Starting a server under test and ending it again, by the program contract alone: arguments, ready line, signals."""

from __future__ import annotations

import ipaddress
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from typing import IO

from tests.support import proc
from tests.support.patience import PATIENCE_S, eventually

TOTALS = ("requests", "bytes_in", "bytes_out", "connections", "protocol_errors", "slow_closed")
TOTALS_OF_PEERS = ("oversized", "peers_refused", "peers_expired", "strangers", "send_dropped", "receive_dropped")
STANDS_STILL_S = 1.97
"""The part of the two seconds of grace for which a server is stopped that has work until they are over."""
BURNT_S, BURNT_BLINDLY_S = 0.03, 0.1
"""CPU that a server which burns some uses before it stands still: once it accepts no more, or though it does."""
SANITIZER_REPORTS = ("ERROR: ", "WARNING: ThreadSanitizer", "runtime error:", "WARNING: DATA RACE")


@dataclass
class Server:
    """A running server. `pid` and `endpoint` are what its ready line says, `lines` what came on stdout so far."""

    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    pid: int = 0
    endpoint: str = ""
    address: tuple[str, int] = ("", 0)
    lines: list[str] = field(default_factory=list)
    first_sockets: frozenset[int] = frozenset()
    _buffer: bytes = b""

    def wait_ready(self) -> None:
        """Take the ready line; AssertionError when something else comes first, or nothing."""
        line = self._next_line()
        ready = json.loads(line) if line else {}
        assert ready.get("ready") is True, f"no ready line but {line!r}; stderr: {self.stderr()}"
        self.endpoint = ready["endpoint"]
        host, _, port = self.endpoint.partition("://")[2].partition("?")[0].rpartition(":")
        self.address = (host.strip("[]"), int(port))
        self.pid = ready["pid"]
        self.first_sockets = proc.socket_inodes(self.pid)

    @property
    def transport(self) -> str:
        """What it speaks, as its ready line says."""
        return self.endpoint.partition("://")[0]

    def stop(self, how: signal.Signals = signal.SIGTERM) -> dict[str, int]:
        """End the server and return its totals; AssertionError when it does not end as the contract says."""
        self.signal(how)
        return self.wait_stopped()

    def signal(self, how: signal.Signals) -> None:
        """Send a signal to the server itself; SIGSTOP and SIGCONT also to the processes that it has started. After a
        SIGSTOP it stands still: one thread takes that, when it gets a core, and until then the others go on."""
        pid = self.pid or self.process.pid
        if how is signal.SIGCONT:
            _signal_started(pid, how)  # first: a server that goes on may end, and then they are its children no more
        os.kill(pid, how)
        if how is signal.SIGSTOP:
            eventually(lambda: _stop_family(pid) and proc.stands_still(pid), "it does not stand still")

    def wait_for_grace(self, *, burns: bool) -> None:
        """Wait until a server that received a signal to end knows of it: it accepts no more, or has burnt much more CPU
        where it burns some. It may burn that in a loop that sees nothing else."""
        cpu = proc.cpu_seconds(self.pid)
        least_s, most_s = (BURNT_S, BURNT_BLINDLY_S) if burns else (0.0, inf)

        def has_begun() -> bool:
            if self.process.poll() is not None:
                return True
            burnt = proc.cpu_seconds(self.pid) - cpu
            try:
                return burnt > most_s or (burnt >= least_s and not self._accepts())
            except PermissionError:  # proc(5): it has ended meanwhile, and its descriptors are root's
                return True

        eventually(has_begun, "it accepts, or burns no more CPU", poll_s=0.02)

    def _accepts(self) -> bool:
        """Whether it has a listening TCP socket. Some servers close theirs to end, and others shut it down."""
        if self.transport != "tcp" or not self.first_sockets.issubset(proc.socket_inodes(self.pid)):
            return False
        return any(row.state == proc.LISTEN for row in proc.tcp_rows(self.pid, self.address[1]))

    def wait_stopped(self) -> dict[str, int]:
        """Wait for the end of a server that was signalled: exit 0, one line of totals and nothing after it."""
        line = self._next_line()
        assert line, f"no line of totals; {self.how_it_ended()}"
        totals: dict[str, int] = json.loads(line)
        shares: object = totals.pop("connections_per_thread", None)
        totals.pop("tick_lag_ns", None)  # the only ones that are no numbers
        expected = TOTALS + (TOTALS_OF_PEERS if self.transport not in ("", "tcp") else ())
        missing = [key for key in expected if not isinstance(totals.get(key), int)]
        assert not missing, f"the totals lack {missing}: {line}"
        assert not isinstance(shares, list) or sum(shares) == totals["connections"], (
            f"connections that no thread got: {line}"
        )
        extra = self._next_line()
        assert not extra, f"more on stdout after the totals: {extra!r}"
        code = self.process.wait(PATIENCE_S)
        assert code == 0, f"exit {code} after a signal to end; stderr: {self.stderr()}"
        self.expect_clean()
        return totals

    def expect_clean(self) -> None:
        """No sanitizer had anything to report so far."""
        text = self.stderr()
        assert not any(report in text for report in SANITIZER_REPORTS), text

    def expect_alive(self) -> None:
        """The process is still there."""
        assert self.process.poll() is None, self.how_it_ended()

    def how_it_ended(self) -> str:
        """For messages: exit code and stderr."""
        return f"exit code {self.process.poll()}; stderr: {self.stderr()}"

    def stderr(self) -> str:
        """All that came on stderr so far."""
        size = os.fstat(self.errors.fileno()).st_size
        return os.pread(self.errors.fileno(), size, 0).decode(errors="replace")

    def wait_read(self, *clients: tuple[str, int]) -> None:
        """Wait until the server has read all that these clients (by local address) have sent so far."""
        assert not ipaddress.ip_address(self.address[0]).is_unspecified  # a connection is looked up by both addresses
        eventually(lambda: not self._unread(clients), lambda: f"never read by the server: {self._unread(clients)}")

    def wait_at_rest(self, *clients: tuple[str, int]) -> None:
        """The same, and until all of its threads wait for something."""
        self.wait_read(*clients)
        eventually(lambda: proc.all_threads_sleep(self.pid), "not all of its threads wait for something")

    def has_connections(self) -> bool:
        """Whether a connection is open at its end. Its table is read only where it has more sockets than at first."""
        if self.first_sockets.issuperset(proc.socket_inodes(self.pid)):
            return False
        return any(row.state != proc.LISTEN for row in proc.tcp_rows(self.pid, self.address[1]))

    def _unread(self, clients: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
        """Return the clients with bytes on their way or in the server's own buffer."""
        return [peer for peer in clients if proc.queued(peer, self.address)[1] or proc.queued(self.address, peer)[0]]

    def _next_line(self) -> str:
        """The next line of stdout; empty at its end."""
        assert self.process.stdout is not None
        fd = self.process.stdout.fileno()
        deadline = time.monotonic() + PATIENCE_S
        while b"\n" not in self._buffer:
            readable, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
            assert readable, (
                f"waited {PATIENCE_S:g} s for a line on stdout, got {self._buffer!r}; {self.how_it_ended()}"
            )
            data = os.read(fd, 65536)
            if not data:
                break
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        if line:
            self.lines.append(line.decode())
        return line.decode()


def _signal_started(pid: int, how: signal.Signals) -> None:
    """Send a signal to the processes that a process has started."""
    for member in proc.family(pid)[1:]:
        with suppress(ProcessLookupError):
            os.kill(member, how)


def _stop_family(pid: int) -> bool:
    """Stop the processes that a process has started: it may have started one just before it stood still itself."""
    _signal_started(pid, signal.SIGSTOP)
    return True


def stand_still_in_grace(*servers: Server, signalled_s: float, burns: bool) -> None:
    """Stop servers that got their signal to end at this moment (time.monotonic) once their grace has begun, so that
    they take no CPU from others; continue them before it ends, which is by the clock."""
    for server in servers:
        server.wait_for_grace(burns=burns)
        if server.process.poll() is None:
            server.signal(signal.SIGSTOP)
    time.sleep(max(0.0, signalled_s + STANDS_STILL_S - time.monotonic()))
    for server in servers:
        if server.process.poll() is None:
            server.signal(signal.SIGCONT)


@contextmanager
def launched(command: Sequence[str], *arguments: str) -> Iterator[Server]:
    """The server as a process, whatever comes of it. Ended by its pid when the test is done."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [*command, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        )
        try:
            yield Server(process, errors)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


@contextmanager
def serving(command: Sequence[str], *arguments: str) -> Iterator[Server]:
    """A server that accepts. When the block ends well, the server must still be there and free of reports."""
    with launched(command, *arguments) as server:
        server.wait_ready()
        yield server
        if server.process.returncode is None:
            server.expect_alive()
            server.stop()


@dataclass(frozen=True)
class Finished:
    """The exit code and output of a program that ended by itself."""

    code: int
    stdout: str
    stderr: str


def run(command: Sequence[str], *arguments: str) -> Finished:
    """Run a program that ends by itself; subprocess.TimeoutExpired when it does not."""
    done = subprocess.run(
        [*command, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=False
    )
    return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())


def expect_refused(finished: Finished, named: str) -> None:
    """Exit 2, nothing on stdout, and on stderr one line that names the culprit."""
    assert finished.code == 2, finished
    assert finished.stdout == "", finished
    assert finished.stderr.count("\n") == 1, finished
    assert finished.stderr.endswith("\n"), finished
    assert named in finished.stderr, finished
