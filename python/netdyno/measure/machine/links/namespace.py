"""A private network namespace: packets sent in it never leave it. Root is not needed where users may have namespaces
(user_namespaces(7)). docs/adr/private-network.md says what it is for."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from netdyno.kit.errors import UserError
from netdyno.measure.machine.links import namespace_child

_END_TIMEOUT_S = 10.0
_OWN_USERS = ("--user", "--map-root-user")
_ENTER_USERS = ("--user", "--preserve-credentials")


class NotAllowedError(Exception):
    """The system does not allow a namespace here; the text says why."""


class Namespace(msgspec.Struct, frozen=True):
    """A namespace that lives as long as the process `pid` that keeps it. Its first interface is `lo`, which is up.

    `enter`, put before a command, runs it inside, under the same process id. The kernel's counters of the namespace are
    in /proc/<pid>/net. `other_users`: it lies in another user namespace than this process."""

    pid: int
    enter: tuple[str, ...]
    other_users: bool = False

    def run(self, *command: str, given: str = "") -> str:
        """Run a command inside, with `given` as input, and return its output. Raises CalledProcessError when it
        fails."""
        return subprocess.run([*self.enter, *command], input=given, check=True, capture_output=True, text=True).stdout

    def open_datagram_socket(self, address: str) -> socket.socket:
        """Open a UDP socket of the namespace for this process, bound to a free port of an address that the namespace
        has. Raises CalledProcessError when it cannot be made."""
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with near, far:
            command = [*self.enter, *_build_child_command("hand-out", address)]
            subprocess.run(command, stdin=far.fileno(), check=True, capture_output=True, text=True)
            _, (descriptor,), _, _ = socket.recv_fds(near, 100, 1)
        return socket.socket(fileno=descriptor)


@contextmanager
def make_namespace(
    hosts: Path | None = None, partner: Namespace | None = None, settings: Sequence[str] = ()
) -> Iterator[Namespace]:
    """Make a namespace. It and everything in it are gone when the block ends, and also when this process is killed.
    With `hosts`, programs in it have that file as their /etc/hosts. A namespace with a `partner` has the same users,
    so that root in one may give it interfaces of the other. `settings` are FILE=VALUE of /proc/sys; those that a
    namespace does not have of its own are left alone. Raises NotAllowedError."""
    mounts = ("--mount",) if hosts else ()
    with _start_keeper(mounts, [str(hosts or ""), *settings], partner) as (pid, other_users):
        yield Namespace(pid, _build_enter_command(pid, (*mounts, *(_ENTER_USERS if other_users else ()))), other_users)


def wrap_in_namespace(command: Sequence[str]) -> list[str]:
    """Return the command line of a program that makes a namespace of its own and runs in it as the same process: the
    namespace ends with it. Raises NotAllowedError."""
    why_not = ""
    for users in _list_options():
        start = ["unshare", *users, "--net", "--"]
        if not (why_not := _find_failure([*start, "true"])):
            return [*start, *_build_child_command("become"), *command]
    raise NotAllowedError(f"{why_not} ({_suggest_remedy()})")


def build_entry_words(pid: int) -> tuple[str, ...]:
    """Return the words to put before a command to run it in the namespace in which `wrap_in_namespace` or
    `Namespace.enter` started a process. Raises UserError when it is in none."""
    try:
        network = namespace_child.read_network(pid)
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError as error:
        raise UserError(f"process {pid} cannot be inspected: {error.strerror}") from error
    # A running program has the mark; only unshare(1), which starts it, does not.
    if f"{namespace_child.MARK}={network}".encode() not in variables:
        raise UserError(f"process {pid} is in no private network namespace of netdyno's")
    other_users = Path(f"/proc/{pid}/ns/user").stat().st_ino != Path("/proc/self/ns/user").stat().st_ino
    return _build_enter_command(pid, _ENTER_USERS if other_users else ())


def _build_enter_command(pid: int, more: Sequence[str]) -> tuple[str, ...]:
    mark = f"{namespace_child.MARK}={namespace_child.read_network(pid)}"
    return ("nsenter", "--target", str(pid), "--net", *more, "--", "env", mark)


@contextmanager
def _start_keeper(
    mounts: Sequence[str], arguments: Sequence[str], partner: Namespace | None
) -> Iterator[tuple[int, bool]]:
    """Start the process that keeps a new namespace; yield its number, and whether it has other users than this
    process."""
    why_not = ""
    for users in [()] if partner else _list_options():
        unshare = [*(partner.enter if partner else ()), "unshare", *users, "--net", *mounts, "--"]
        command = [*unshare, *_build_child_command("keep", *arguments)]
        pipe = subprocess.PIPE
        # A session of its own: Ctrl-C ends the harness in order, and the keeper after it.
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
        ) as keeper:
            assert keeper.stdin is not None
            assert keeper.stdout is not None
            assert keeper.stderr is not None
            if keeper.stdout.readline() != "made\n":
                why_not = keeper.stderr.read().strip() or f"unshare ended with {keeper.wait()}"
                continue
            try:
                yield keeper.pid, partner.other_users if partner else bool(users)
            finally:
                keeper.stdin.close()
                _await_end(keeper)
            return
    raise NotAllowedError(f"{why_not} ({_suggest_remedy()})")


def _await_end(keeper: subprocess.Popen[str]) -> None:
    """Wait until it has ended by itself, after all processes in the namespace. If it hangs, which is a fault, kill it
    and raise TimeoutExpired."""
    try:
        keeper.wait(_END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        keeper.kill()
        raise


def _list_options() -> list[tuple[str, ...]]:
    """List the options with which to try: root needs none, but may not make one in every container; any user may with
    users of its own, where the system allows that."""
    missing = [tool for tool in ("unshare", "nsenter") if shutil.which(tool) is None]
    if missing:
        raise NotAllowedError(f"{' and '.join(missing)} not found: install util-linux")
    return [*([()] if os.geteuid() == 0 else []), _OWN_USERS]


def _suggest_remedy() -> str:
    """Suggest what to change where the system refused. The two sysctls are of these distributions' own kernels."""
    if os.geteuid() == 0:
        return "in a container, start that with CAP_SYS_ADMIN"
    return (
        "run it as root, or let users have namespaces: sysctl kernel.unprivileged_userns_clone=1 on Debian, "
        "kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu"
    )


def _build_child_command(*arguments: str) -> tuple[str, ...]:
    """Return the command of the part that runs inside, without the modules that an interpreter usually loads first."""
    return (sys.executable, "-I", "-S", str(Path(namespace_child.__file__)), *arguments)


def _find_failure(command: Sequence[str]) -> str:
    """Run a command and return the reason of its failure; empty where it succeeds."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"
