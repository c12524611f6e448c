"""Child processes of one trial: each leads a session of its own, dies with the harness, and is never waited for
without a deadline."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import selectors
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import IO, ClassVar, Self

from netdyno.kit import held_signals
from netdyno.measure.machine import keeper, program_settings, trial_log

_PR_SET_PDEATHSIG = 1
_PR_SET_PTRACER = 0x59616D61
_PR_SET_PTRACER_ANY = ctypes.c_ulong(-1)

REALTIME_PRIORITY = 2
"""The generator's priority under SCHED_FIFO: of the thread that announces the window; the loading threads are one
below."""
RELAY_PRIORITY = REALTIME_PRIORITY + 1
"""The priority of the relay of a link: a frame that is due interrupts even the generator, as an interrupt would."""

LONGEST_LINE = 64 << 10
"""The bytes of a line that a program may print. A line of totals has some hundred."""
MOST_LOG = 64 << 20
"""Bytes that a program may write into its log: an access log of some seconds. One that writes more is ended, before the
disk is full. Its size is read every POLL_S, as a reader at the end of a pipe would cost more."""
BEGINNING = struct.Struct("dd")
"""The moment at which a program begins (time.monotonic) and the CPU seconds of its process, as the process says it."""
POLL_S = 0.1
KILLED = -signal.SIGKILL
"""The exit code of a program that SIGKILL ended."""
UNREADABLE = (ValueError, RecursionError)
"""The errors of msgspec on the output of a program: no JSON, wrong types, no UTF-8, or endless nesting."""

KEEPER = (sys.executable, "-I", "-S", str(Path(keeper.__file__)))
"""The command of the program that keeps a server and all that it starts as its descendants."""
_libc = ctypes.CDLL(None, use_errno=True)


class TrialError(Exception):
    """A trial cannot be completed; the text is the stored reason."""


class ServerError(TrialError):
    """A trial cannot be completed because its server ended or never stood; the text is the stored reason."""


class KilledError(ServerError):
    """SIGKILL ended the server, which a machine without memory sends."""


class GoneServerError(ServerError):
    """The server was gone when it was to be observed, before its exit was known."""

    def __init__(self) -> None:
        super().__init__("the server was gone when it was to be observed")


class LateServerError(ServerError):
    """The server was not ready in time, which a busy machine can cause."""


def describe_exit(code: int) -> str:
    """Describe an exit code for people: "exit code 3", "signal SIGSEGV", "signal SIGRTMIN+6"."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal, of which Python names the ends only
        return f"signal SIGRTMIN+{-code - signal.SIGRTMIN}"


_AFTER_REASON = re.compile(
    r"\s*$|\s*\^|\s+at |\s+\d+: |\s+\S+:\d+( \+0x\w+)?$|\s+(code|errno|syscall|address|port|path): |[]})]|#\d|==\d+=="
    r"|Node\.js v|Emitted '|\[signal |goroutine \d|created by |exit status |note: |stack backtrace:"
    r"|\S*\w\.\S*\([^:]*\)$"
)
"""Lines that follow the reason in Node.js, Java, Go, Rust and PHP: frames, fields of an error, a version, a hint."""


class Process:
    """A program under the harness. Used as a context manager, it and its whole group are gone afterwards. Every wait
    also checks the logs of all running programs."""

    _alive: ClassVar[list[Process]] = []

    def __init__(
        self,
        command: Sequence[str],
        cores: Sequence[int],
        output: IO[bytes],
        *,
        name: str = "server",
        talks: bool = False,
        realtime: bool = False,
        priority: int = REALTIME_PRIORITY,
        pass_fds: Sequence[int] = (),
        traceable: bool = False,
        kept: bool = False,
        joins_session: bool = False,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        """Start it with its output going to a file; one that `talks` has its stdout read line by line instead. `name`
        is its name in error texts; a fault of the "server" is a ServerError. `realtime` puts it before everything else
        on its cores (SCHED_FIFO at `priority`, sched(7)). One that is `traceable` lets any program of the same user
        trace it, which Yama otherwise allows its ancestors only (PR_SET_PTRACER, prctl(2)). One that is `kept` runs
        under a keeper, whose process stands for it here (measure/machine/keeper.py). One that `joins_session` competes
        for cores with other such programs as the threads of one program do, where others have a session of their own
        and with it a share of the cores (autogroup, sched(7)). Raises TrialError when it cannot be started."""
        self.name = name
        self._error = ServerError if name == "server" else TrialError
        given = program_settings.choose()
        self.output = output
        parent = os.getpid()

        beginning = mmap.mmap(-1, BEGINNING.size)  # shared, so that the child can say when it begins

        def prepare() -> None:
            held.release_in_child()
            # prctl(2): PR_SET_PDEATHSIG, so that kill -9 of the harness leaves nothing behind; the parent may have
            # died before the call, hence the second check. Affinity is set before exec, so every thread inherits it.
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
            if traceable:
                _libc.prctl(_PR_SET_PTRACER, _PR_SET_PTRACER_ANY)  # EINVAL without Yama, which then forbids nothing
            given.apply()
            if cores:
                os.sched_setaffinity(0, cores)
            if realtime:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
            beginning[:] = BEGINNING.pack(time.monotonic(), time.process_time())

        with held_signals.hold() as held:
            try:
                # The harness has one thread, which is what makes preexec_fn safe, and the child's parent the thread
                # whose death the kernel watches.
                self._popen = subprocess.Popen(
                    [*(KEEPER if kept else ()), *command],
                    stdin=stdin,
                    stdout=subprocess.PIPE if talks else output,
                    stderr=output,
                    env=given.environment,
                    pass_fds=tuple(pass_fds),
                    start_new_session=not joins_session,
                    process_group=0 if joins_session else None,
                    preexec_fn=prepare,
                )
            except OSError as error:
                raise TrialError(f"{command[0]} cannot be started: {error.strerror}") from error
            except ValueError as error:  # a word with a zero byte
                raise TrialError(f"{command[0]} cannot be started: {error}") from error
            self.pid = self._popen.pid
            self.started_s, self.begun_cpu_s = BEGINNING.unpack(beginning[:])
            """The moment at which its program took the place of this one (execve(2)), and the CPU seconds that its
            process had used by then, in this program's name."""
            beginning.close()
            self.pidfd = os.pidfd_open(self.pid)
            self._alive.append(self)
            try:
                held.release()
            except BaseException:  # the caller gets no object with which to end it
                self.__exit__()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._alive.remove(self)
        self.kill()
        os.close(self.pidfd)
        if self._popen.stdout is not None:
            self._popen.stdout.close()

    def lines(self) -> LineReader:
        """Return a reader of its stdout, for one that `talks`."""
        assert self._popen.stdout is not None
        return LineReader(self._popen.stdout.fileno(), self.name, self._error)

    @classmethod
    def is_running(cls, pid: int) -> bool:
        """Return whether this process is one that the harness has started as a program."""
        return any(process.pid == pid for process in cls._alive)

    @classmethod
    def check_logs(cls) -> None:
        """Check the logs of all running programs. Raises TrialError when one has written too much."""
        for process in cls._alive:
            if os.fstat(process.output.fileno()).st_size > MOST_LOG:
                raise process._error(f"the {process.name} wrote more than {MOST_LOG >> 20} MiB to its log")

    def read_reason(self) -> str:
        """Return the line at the end of its output that says why it ended, as the end of a sentence: the last one, or
        the last before a trace of its stack."""
        lines = trial_log.end_of(self.output, 65536).decode("utf-8", "replace").splitlines()
        reason = next((line for line in reversed(lines) if not _AFTER_REASON.match(line)), lines[-1] if lines else "")
        return f": {reason.strip()[:300]}" if lines else ""

    def has_ended(self) -> bool:
        """Return whether it has ended; it stays unreaped, so that its process group cannot belong to another
        program."""
        return _poll_readable(self.pidfd, 0)

    def exit_code(self) -> int:
        """Reap it and return its exit code (negative: signal). Only after it has ended."""
        return self._popen.wait()

    def wait(self, deadline: float) -> bool:
        """Wait until it ends, at most until `deadline` (time.monotonic). False when it has not."""
        return _await(self.pidfd, deadline)

    def expect_end(self, began: float, patience_s: float, also: Collection[int] = ()) -> None:
        """Wait until it ends, until `patience_s` after `began` (time.monotonic) at most. Raises TrialError when that is
        not enough, or the exit code is neither 0 nor in `also`."""
        if not self.wait(began + patience_s):
            raise TrialError(f"the {self.name} did not end within {patience_s:g} s{self.read_reason()}")
        self.expect_success(also)

    def expect_success(self, also: Collection[int] = ()) -> None:
        """Reap it. Only after it has ended. Raises TrialError when its exit code is neither 0 nor in `also`."""
        if (code := self.exit_code()) != 0 and code not in also:
            raise TrialError(f"the {self.name} ended with {describe_exit(code)}{self.read_reason()}")

    def terminate(self) -> None:
        """Ask it to end (SIGTERM)."""
        if self._popen.returncode is None:
            self._popen.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it and everything it has started in its group, now."""
        if self._popen.returncode is None:
            os.killpg(self.pid, signal.SIGKILL)
            self._popen.wait()


class LineReader:
    """A reader of whole lines from a descriptor, which never blocks, however much is written there."""

    def __init__(self, fd: int, name: str = "program", error: type[TrialError] = TrialError) -> None:
        """`name` is the writer's name in error texts; `error` is raised when it writes no line."""
        self.fd = fd
        self.at_end = False
        self._name = name
        self._error = error
        self._buffer = b""
        os.set_blocking(fd, False)

    def read_lines(self) -> list[str]:
        """Return every line that has become complete; at the end of the stream also a last one without its newline. A
        writer that never pauses gives some lines at a time. Raises TrialError when a line is longer than
        LONGEST_LINE."""
        while not self.at_end and len(self._buffer) <= LONGEST_LINE:
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                break
            self.at_end = not data
            self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        if self.at_end and self._buffer:
            lines.append(self._buffer)
            self._buffer = b""
        if any(len(line) > LONGEST_LINE for line in (*lines, self._buffer)):
            raise self._error(f"the {self._name} printed a line of more than {LONGEST_LINE >> 10} KiB")
        return [line.decode("utf-8", "replace") for line in lines]

    def wait_line(self, deadline: float) -> str | None:
        """Return the next line, or None at the deadline or the end of the stream. Further lines read with it are
        dropped: the programs print one line and then wait. Raises TrialError as `read_lines` does."""
        while True:
            lines = self.read_lines()
            if lines:
                return lines[0]
            if self.at_end or time.monotonic() >= deadline or not _await(self.fd, deadline):
                return None


def _await(fd: int, deadline: float) -> bool:
    """Wait until it can be read; return whether that was before the deadline. Raises TrialError where a log grows too
    long meanwhile."""
    while True:
        Process.check_logs()
        left_s = deadline - time.monotonic()
        if _poll_readable(fd, min(max(0.0, left_s), POLL_S)):
            return True
        if left_s <= POLL_S:
            return False


def _poll_readable(fd: int, timeout_s: float) -> bool:
    with selectors.PollSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        return bool(selector.select(timeout_s))
