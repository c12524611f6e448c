"""Processes that programs leave behind: in sessions of their own, so that no signal to a group reaches them. Within
`end` they become children of this process once their parents have ended (PR_SET_CHILD_SUBREAPER, prctl(2)). A cgroup
would hold them as well, but not every user may make one."""

from __future__ import annotations

import ctypes
import os
import select
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from netdyno.measure.machine import server_proc
from netdyno.measure.machine.process import Process

_PR_SET_CHILD_SUBREAPER = 36
_GONE_WITHIN_S = 1.0
"""Seconds that the kernel may take to end a process. One that is not gone by then hangs in the kernel."""
_libc = ctypes.CDLL(None, use_errno=True)
_earlier: set[int] | None = None
"""The children that this process had at the beginning of `end`; None outside of it, where it inherits none."""


@contextmanager
def end(report: Callable[[Sequence[str]], None] = lambda _names: None) -> Iterator[list[str]]:
    """End, at the end of the block, every process that the programs started in it have left; the programs themselves
    have ended by then. The list then has their names, and `report` is called with them, also where an exception ends
    the block."""
    global _earlier
    names: list[str] = []
    known = set(server_proc.find_children(os.getpid()))
    _earlier = set(known)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield names
    finally:
        _earlier = None
        while left := [pid for pid in server_proc.find_children(os.getpid()) if pid not in known and _is_apart(pid)]:
            known |= set(left)  # a process that cannot be ended is not tried again
            names += [name for pid in left if (name := _end_process(pid))]
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        if names:
            report(names)


def is_inherited(pid: int) -> bool:
    """Return whether a child of this process was started by another, which has ended."""
    return _earlier is not None and pid not in _earlier and not Process.is_running(pid) and _is_apart(pid)


def _is_apart(pid: int) -> bool:
    """Return whether it is in another session, and so was not started by this process by other means."""
    try:
        return os.getsid(pid) != os.getsid(0)
    except ProcessLookupError:
        return False


def _end_process(pid: int) -> str:
    """End a process and return its name; empty where it had ended already and was only to be reaped."""
    stat = server_proc.read_file(f"/proc/{pid}/stat").decode("utf-8", "replace")
    name, _, rest = stat.partition("(")[2].rpartition(")")
    pidfd = os.pidfd_open(pid)
    with suppress(PermissionError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    if poll.poll(1000 * _GONE_WITHIN_S):
        os.waitpid(pid, 0)
    os.close(pidfd)
    return "" if rest.split()[0] == "Z" else name
