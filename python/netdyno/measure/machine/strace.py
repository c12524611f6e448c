"""strace(1) on a running server: attach to it, detach from it, and count the recorded calls within a window.

The server is not started under strace: what it does before it is ready is no message's work. Every call is recorded
with its time, and not summed by strace itself (-c), so that exactly those are counted that returned within the window
in which the load counted its messages."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from netdyno.measure.machine import server_proc
from netdyno.measure.machine.process import Process, TrialError
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.model.trial import SystemCall

NAME = "strace"
OPTIONS = ("-f", "-q", "-ttt", "-T", "-e", "raw=all", "-e", "signal=none")
"""All threads, and what is forked; when each call began and how long it took, in microseconds; arguments as numbers, as
they are not read and following pointers costs time."""

ATTACH_S = 5.0
"""Seconds that strace may take to reach all threads, or to detach from them."""

_CALL = re.compile(
    r"(?P<thread>\d+) +(?P<at>\d+\.\d+) (?:<\.\.\. (?P<resumed>\w+) resumed>|(?P<whole>\w+)\().*= (?:\?|-?\w+)"
    r"(?: (?P<error>E[A-Z0-9_]+))?(?: \([^<]*\))?(?: <(?P<took>\d+\.\d+)>)?"
)
_NO_RETURN = re.compile(r"\d+ +\d+\.\d+ (?:.* <(?:unfinished|detached) \.\.\.>|(?:\+\+\+|---) .*)")
"""A line that is no return: the first half of a call in two lines, a thread's end, a signal."""


class UnreadableTraceError(Exception):
    """A line of a trace has no known form; the text holds it."""


class Call(msgspec.Struct, frozen=True):
    """A system call that returned: its end, by the wall clock, and its duration. `error` is errno's name."""

    thread: int
    name: str
    ended_at_s: float
    took_s: float
    error: str


@contextmanager
def attach_tracer(tool: str, pid: int, cores: Sequence[int], trace: Path, log: TrialLog) -> Iterator[Process]:
    """Trace all threads of a process and its descendants, and those that they start, into a file. The tracer runs on
    these cores: best the server's own, as both take turns at each call. Raises TrialError where it may not trace."""
    deadline = time.monotonic() + ATTACH_S
    while True:
        attached = server_proc.find_family(pid)
        words = [word for member in attached for word in ("-p", str(member))]
        command = [tool, *OPTIONS, "-o", str(trace), *words]
        with log.section(NAME, command) as output, Process(command, cores, output, name=NAME) as tracer:
            if _await_threads(pid, attached, tracer, deadline):
                yield tracer
                return


def let_go(tracer: Process) -> None:
    """Wait until a tracer that got SIGTERM has detached itself and written all that it saw."""
    if not tracer.wait(time.monotonic() + ATTACH_S):
        raise TrialError(f"{NAME} did not detach from the server within {ATTACH_S:g} s")


def _await_threads(pid: int, attached: Sequence[int], tracer: Process, deadline: float) -> bool:
    """Wait until all threads of a process and its descendants are traced. False where one of these was forked after
    they were looked up and before its parent was traced."""
    while untraced := _find_untraced(pid, tracer.pid):
        if untraced.isdisjoint(attached):
            return False
        if tracer.has_ended():
            raise TrialError(f"{NAME} may not trace here{tracer.read_reason()}")
        if time.monotonic() > deadline:
            raise TrialError(f"{NAME} did not attach to all threads of the server within {ATTACH_S:g} s")
        time.sleep(0.002)
    return True


def _find_untraced(pid: int, tracer: int) -> set[int]:
    """Return those of a process and its descendants of which a thread is not traced by another. They are listed again
    until the list holds none that was not checked: one that was started after the list was read, and before its
    parent was traced, is not traced. Raises TrialError when the process is gone."""
    checked: set[tuple[int, str]] = set()
    untraced: set[int] = set()
    while started := _list_threads(pid) - checked:
        untraced |= {member for member, thread in started if _read_tracer(member, thread) not in (tracer, None)}
        checked |= started
    return untraced


def _list_threads(pid: int) -> set[tuple[int, str]]:
    """List the threads of a process and its descendants, each with its process."""
    threads: set[tuple[int, str]] = set()
    for member in server_proc.find_family(pid):
        try:
            threads |= {(member, thread.name) for thread in Path(f"/proc/{member}/task").iterdir()}
        except OSError as error:
            if member == pid:
                raise TrialError(f"the server had ended before {NAME} could attach") from error
    return threads


def _read_tracer(member: int, thread: str) -> int | None:
    """Read which process traces a thread; None where it has just ended."""
    try:
        return parse_tracer(Path(f"/proc/{member}/task/{thread}/status").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None


def parse_tracer(status: str) -> int | None:
    """Read TracerPid in a thread's status (proc_pid_status(5)): 0 where nothing traces it, None where it is missing."""
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("TracerPid:")), None)


def parse_calls(lines: Iterable[str]) -> Iterator[Call]:
    """Parse the calls that returned, in their order. Pure. Raises UnreadableTraceError.

    A call that another thread's line interrupts stands in two lines; the second has the time of its return, an
    uninterrupted line that of its beginning."""
    for line in lines:
        fields = _CALL.fullmatch(line.rstrip("\n"))
        if fields is None:
            if not _NO_RETURN.fullmatch(line.rstrip("\n")):
                raise UnreadableTraceError(f"{NAME} wrote a line that is not understood: {line[:200]!r}")
            continue
        at_s, took_s = float(fields["at"]), float(fields["took"] or 0.0)
        yield Call(
            thread=int(fields["thread"]),
            name=fields["resumed"] or fields["whole"],
            ended_at_s=at_s if fields["resumed"] else at_s + took_s,
            took_s=took_s,
            error=fields["error"] or "",
        )


def count(seen: Iterable[Call], start_s: float, end_s: float) -> tuple[tuple[SystemCall, ...], int]:
    """Count the calls that returned within a window by name, the most frequent first, and the threads that made
    them."""
    within = [call for call in seen if start_s <= call.ended_at_s <= end_s]
    by_name: dict[str, list[Call]] = {}
    for call in within:
        by_name.setdefault(call.name, []).append(call)
    counted = [
        SystemCall(
            name=name,
            calls=len(calls),
            again=sum(call.error == "EAGAIN" for call in calls),
            failed=sum(call.error not in ("", "EAGAIN") for call in calls),
            time_s=sum(min(call.took_s, call.ended_at_s - start_s) for call in calls),
        )
        for name, calls in by_name.items()
    ]
    counted.sort(key=lambda call: (-call.calls, call.name))
    return tuple(counted), len({call.thread for call in within})
