"""What programs start and leave behind: processes in sessions of their own, which no signal to a group reaches. While
somebody looks, they become children of this process once their parents have ended (PR_SET_CHILD_SUBREAPER, prctl(2)).
A cgroup would hold them as well, but not everybody may make one."""

from __future__ import annotations

import ctypes
import os
import select
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from netdyno.machine import server_proc

_PR_SET_CHILD_SUBREAPER = 36
_GONE_WITHIN_S = 1.0
"""How long the kernel may take to end a process. One that is not gone by then hangs in the kernel."""
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def end(told: Callable[[Sequence[str]], None] = lambda _names: None) -> Iterator[list[str]]:
    """At the end of the block, every process is ended that the programs started in it have left; they themselves have
    ended by then. The list has their names then, and `told` is told them, also where an exception ends the block."""
    names: list[str] = []
    known = set(server_proc.children(os.getpid()))
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield names
    finally:
        while found := [pid for pid in server_proc.children(os.getpid()) if pid not in known and _is_apart(pid)]:
            known |= set(found)  # whoever cannot be ended is not tried again
            names += [name for pid in found if (name := _end(pid))]
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        if names:
            told(names)


def _is_apart(pid: int) -> bool:
    """In another session: no process that this one has started by other means."""
    try:
        return os.getsid(pid) != os.getsid(0)
    except ProcessLookupError:
        return False


def _end(pid: int) -> str:
    """Its name; empty where it had ended already and nobody had waited for it."""
    stat = server_proc.read_file(f"/proc/{pid}/stat").decode("utf-8", "replace")
    name, _, rest = stat.partition("(")[2].rpartition(")")
    gone = os.pidfd_open(pid)
    with suppress(PermissionError):
        signal.pidfd_send_signal(gone, signal.SIGKILL)
    poll = select.poll()
    poll.register(gone, select.POLLIN)
    if poll.poll(1000 * _GONE_WITHIN_S):
        os.waitpid(pid, 0)
    os.close(gone)
    return "" if rest.split()[0] == "Z" else name
