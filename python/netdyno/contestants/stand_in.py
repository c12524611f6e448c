"""Starts a server that knows nothing of netdyno, and stands in for what it lacks of a contestant's contract
(protocol/WIRE.md): it finds a port, says when the server accepts, and ends it on SIGTERM. A program of its own, which
imports the standard library only.

    stand_in.py COMMAND… --listen tcp://ADDRESS:0 [the options of a contestant]
    stand_in.py --at tcp://ADDRESS:PORT --listen … [the options of a contestant]

`{port}` and `{address}` in a word of the command stand for where it is to listen. The options are not passed on. With
`--at` the server stands already: it is looked for, and neither started nor ended."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NamedTuple

LOOK_EVERY_S = 0.01
"""Nobody is told that another's socket has begun to listen, so it is asked so often."""
NOT_READY_S = 9.0
"""After so long it is said where the server was looked for: a second before the harness gives it up."""
PATIENCE_S = 4.0
"""How long the server may take to end: a second less than the harness waits."""
AT = "--at"
_LISTENS = "0A"
"""A state of /proc/net/tcp (proc_pid_net(5)): TCP_LISTEN of the kernel's tcp_states.h."""
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


class Asked(NamedTuple):
    """The command of the server, and the address that it is to listen at."""

    command: tuple[str, ...]
    address: str


def parse(words: Sequence[str]) -> Asked:
    """Of the command line: the harness's options begin with the last --listen."""
    at = len(words) - 1 - list(reversed(words)).index("--listen")
    return Asked(tuple(words[:at]), place(words[at + 1])[0])


def place(url: str) -> tuple[str, int]:
    """Address and port of tcp://ADDRESS:PORT; the port is 0 where it says none. Pure."""
    host, _, port = url.partition("://")[2].rpartition(":")
    return host.strip("[]"), int(port) if port.isdecimal() else 0


def places(address: str) -> tuple[str, ...]:
    """Where a server may listen that was told an address, and only a port where its command has no place for the
    address: localhost is ::1, too. Pure."""
    return (address, "::1") if address == "127.0.0.1" else (address,)


def free_port(address: str) -> int:
    """One that nobody listens at, wherever the server may. Somebody may take it before the server does; then the server
    says so and ends."""
    while True:
        with socket.create_server((address, 0), family=_family(address)) as found:
            port: int = found.getsockname()[1]
            if all(_is_free(other, port) for other in places(address)[1:]):
                return port


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _is_free(address: str, port: int) -> bool:
    try:
        socket.create_server((address, port), family=_family(address)).close()
    except OSError as error:
        return error.errno != errno.EADDRINUSE  # else there is no such address here
    return True


def url_of(address: str, port: int) -> str:
    return f"tcp://[{address}]:{port}" if ":" in address else f"tcp://{address}:{port}"


def filled(command: Sequence[str], address: str, port: int) -> list[str]:
    """The words of the command with their places filled in. Pure."""
    return [word.replace("{port}", str(port)).replace("{address}", address) for word in command]


def accepts(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=1.0).close()
    except OSError:
        return False
    return True


def start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """The server, which dies with this process; its output goes to where ours complains. Raises OSError."""
    parent = os.getpid()

    def die_with_us() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, preexec_fn=die_with_us)


def end_all() -> int:
    """Whatever the server has started and left: as orphans they are ours (PR_SET_CHILD_SUBREAPER, prctl(2)). How many
    there were."""
    ended = 0
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while left := children.read_text().split():
        for pid in map(int, left):
            os.kill(pid, signal.SIGKILL)
            ended += os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    return ended


def end_of(server: subprocess.Popen[bytes]) -> int:
    """As a shell says it."""
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


def wait(pid: int, woken: int, at_most_s: float | None = None) -> None:
    """Until the server ends or a signal comes, without a single turn in between: a window may be open."""
    ended = os.pidfd_open(pid)
    poll = select.poll()
    for descriptor in (ended, woken):
        poll.register(descriptor, select.POLLIN)
    poll.poll(None if at_most_s is None else 1000 * at_most_s)
    os.close(ended)


def sockets_at(table: str, address: str, port: int) -> Iterator[str]:
    """The inodes of those who listen there, or everywhere, by the text of /proc/net/tcp or tcp6. Pure."""
    wanted = {address, f"::ffff:{address}", "0.0.0.0", "::"}
    for line in table.splitlines()[1:]:
        _, local, _, state, *fields = line.split()
        host, _, number = local.partition(":")
        if state != _LISTENS or int(number, 16) != port:
            continue
        words = bytes.fromhex(host)  # each four bytes as this processor, which is a little-endian one, holds them
        packed = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
        if socket.inet_ntop(socket.AF_INET6 if len(packed) == 16 else socket.AF_INET, packed) in wanted:
            yield fields[5]


def holders(inodes: Collection[str], proc: Path = Path("/proc")) -> dict[int, int]:
    """The processes that have one of these sockets open, as far as their descriptors may be read, and their parents."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    found = {}
    for process in proc.glob("[0-9]*"):
        with suppress(OSError):  # another user's, or just gone
            if any(_opened(descriptor) in wanted for descriptor in (process / "fd").iterdir()):
                found[int(process.name)] = parent(int(process.name), proc)
    return found


def _opened(descriptor: Path) -> str:
    """Empty where it has just been closed, as that of whoever asked last whether somebody accepts."""
    with suppress(OSError):
        return str(descriptor.readlink())
    return ""


def parent(pid: int, proc: Path = Path("/proc")) -> int:
    """0 where it has none here. Raises OSError when the process is gone."""
    return int((proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])


def ancestors(pid: int) -> Iterator[int]:
    """Who started it, who started that, and so on."""
    while pid := parent(pid):
        yield pid


def process_at(address: str, port: int) -> int | None:
    """The process that listens there, the first of a family that shares the socket. None where there is none that may
    be read, as on another machine, or several that are not of one family. Who started us is not taken for it, for the
    load is of that family too: an init that listens for its services, or a server that starts its own load test."""
    tables = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
    inodes = {inode for table in tables if table.exists() for inode in sockets_at(table.read_text(), address, port)}
    found = holders(inodes)
    for pid in ancestors(os.getpid()):
        found.pop(pid, None)
    first = [pid for pid, parent in found.items() if parent not in found]
    return first[0] if len(first) == 1 else None


def stand_beside(url: str) -> int:
    """Says where the server is, and ends when it is told to; the server does not. Where its process is not known, the
    ready line has ours in its place and says so."""
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    if not accepts(*place(url)):
        sys.exit(f"no server accepts connections at {url}")
    pid = process_at(*place(url))
    known = {"pid": os.getpid(), "observed": False} if pid is None else {"pid": pid}
    print(json.dumps({"ready": True, "endpoint": url, **known}), flush=True)
    signal.sigwait(ends)
    print("{}", flush=True)
    return 0


def main() -> int:
    asked = parse(sys.argv[1:])
    if asked.command[0] == AT:
        return stand_beside(asked.command[1])
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        return serve(asked)
    finally:
        end_all()


def serve(asked: Asked) -> int:
    """The exit code: 0 where it was told to end, else what the server ended with."""
    port = free_port(asked.address)
    told_to_end: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        told_to_end.append(number)

    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    try:
        server = start(filled(asked.command, asked.address, port))
    except OSError as error:
        sys.exit(f"{asked.command[0]} cannot be started: {error.strerror}")
    may_listen = places(asked.address)
    complain_at = time.monotonic() + NOT_READY_S
    while not (listens := next((place for place in may_listen if accepts(place, port)), None)):
        if server.poll() is not None:
            return end_of(server) or 1
        if told_to_end:
            return 1
        if time.monotonic() > complain_at:
            complain_at = float("inf")
            looked_at = " or ".join(url_of(place, port) for place in may_listen)
            print(f"it accepts no connection at {looked_at}", file=sys.stderr)
        wait(server.pid, woken, LOOK_EVERY_S)
    print(json.dumps({"ready": True, "endpoint": url_of(listens, port), "pid": server.pid}), flush=True)
    wait(server.pid, woken)
    if not told_to_end:
        server.wait()
        return end_of(server) or 1
    server.terminate()
    try:
        server.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        print(f"it did not end within {PATIENCE_S:g} s of SIGTERM", file=sys.stderr)
        server.kill()
        server.wait()
    print(json.dumps({"left_behind": end_all()}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
