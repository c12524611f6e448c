"""Starts a server and is the parent of all that it leaves: a program of its own, which imports the standard library
only.

    keeper.py COMMAND…

A process that forks twice, begins a session or asks for its parent's parent (CLONE_PARENT, clone(2)) stays a descendant
of this one (PR_SET_CHILD_SUBREAPER, prctl(2)), so that its work is charged to its contestant. SIGTERM is passed on, and
this program ends as the server does; where its own parent is killed, it ends all of them."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_NOT_FOUND = 127
"""The exit code of a shell for a command that cannot be started."""
_libc = ctypes.CDLL(None, use_errno=True)


def start(command: list[str]) -> int:
    """Start the server, which dies with this process. Return its process."""
    parent = os.getpid()
    server = os.fork()
    if server:
        return server
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # Python's own choice, which a program would inherit
        signal.signal(ignored, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]} cannot be started: {error.strerror}\n".encode())
    os._exit(_NOT_FOUND)


def pass_on(number: int, server: int) -> None:
    """Send the server a signal."""
    with suppress(ProcessLookupError):
        os.kill(server, number)


def end_all() -> None:
    """Kill all processes that the server has started and left, and end."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while pids := children.read_text().split():
        for pid in map(int, pids):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    os._exit(1)


def await_end(server: int) -> int:
    """Reap all children until the server has ended. Return its wait status."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == server:
            return status


def end_alike(status: int) -> None:
    """End as the server did: by its signal, or with its exit code."""
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # it is the server that crashed
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def main() -> None:
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGUSR1, lambda _number, _frame: end_all())
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1)  # instead of SIGKILL, which would leave what the server started
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    server = start(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda number, _frame: pass_on(number, server))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    end_alike(await_end(server))


if __name__ == "__main__":
    main()
