"""What the kernel says about a process and its sockets: proc(5), and for TCP what ss(8) asks it by sock_diag(7)."""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import subprocess
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.patience import PATIENCE_S

ESTABLISHED, SYN_SENT, LISTEN = "ESTAB", "SYN-SENT", "LISTEN"
"""States of a TCP socket as ss(8) calls them."""
TIME_WAIT = 6
STATES = (
    "", ESTABLISHED, SYN_SENT, "SYN-RECV", "FIN-WAIT-1", "FIN-WAIT-2", "TIME-WAIT", "UNCONN", "CLOSE-WAIT", "LAST-ACK",
    LISTEN, "CLOSING", "SYN-RECV", "BOUND-INACTIVE",
)  # fmt: skip
"""As they are numbered (net/tcp_states.h)."""
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, ANY = 4, 20, 0xFFFFFFFF
NLM_F_REQUEST, NLM_F_DUMP, NLMSG_ERROR, NLMSG_DONE = 1, 0x300, 2, 3
"""linux/netlink.h, linux/sock_diag.h."""
SOON_S = 30.0
"""A limit for a stuck test, never waited for in one that passes."""


def ends(pidfd: int) -> bool:
    """Return whether that process comes to an end."""
    ready, _, _ = select.select([pidfd], [], [], PATIENCE_S)
    os.close(pidfd)
    return bool(ready)


def family(pid: int) -> list[int]:
    """The process and all that its first thread and theirs have started, as far as they are still there."""
    pids = [pid]
    with suppress(FileNotFoundError, ProcessLookupError):
        for child in children(pid):
            pids += family(child)
    return pids


def of_started(figure: Callable[[int], int], pid: int) -> Iterator[int]:
    """Yield a figure of each process that a process has started (docs/adr/processes.md)."""
    for member in family(pid)[1:]:
        with suppress(OSError, KeyError):  # it has ended: its descriptors are root's, and it has no memory
            yield figure(member)


def descriptors(pid: int) -> int:
    """How many file descriptors the process has open, and those that it has started beside what they inherited."""
    own = _descriptors(pid)
    return len(own) + sum(of_started(lambda member: len(_descriptors(member) - own), pid))


def _descriptors(pid: int) -> set[tuple[str, str]]:
    """Return the number of each descriptor with its file."""
    links = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since the listing
            links.add((fd.name, str(fd.readlink())))
    return links


def threads(pid: int) -> int:
    """How many threads the process has, and those that it has started."""
    return status(pid, "Threads") + sum(of_started(lambda member: status(member, "Threads"), pid))


def status(pid: int, key: str) -> int:
    """A number of /proc/PID/status: `Threads`, or `VmRSS` and its kind in KiB."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0])
    raise KeyError(f"/proc/{pid}/status has no {key}")


def resident_bytes(pid: int) -> int:
    """Resident memory now. Of several processes what each has of it in proportion (Pss, proc(5)), since they share."""
    if len(family(pid)) == 1:
        return status(pid, "VmRSS") * 1024
    return _proportional_bytes(pid) + sum(of_started(_proportional_bytes, pid))


def _proportional_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads, also those that have ended, and of the processes that it has started, also
    those that it has waited for; it moves in ticks of 10 ms."""
    return (_ticks(pid) + sum(of_started(_ticks, pid))) / os.sysconf("SC_CLK_TCK")


def _ticks(pid: int) -> int:
    """Return utime, stime, cutime and cstime of /proc/PID/stat."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15]))


def run_queue_wait_s(pid: int) -> float:
    """How long its threads, taken together, stood ready to run while something else had the core; 0 where the kernel
    keeps no such count (Documentation/scheduler/sched-stats.rst)."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_text(encoding="ascii").split()[1]) for file in files) / 1e9


def stands_still(pid: int) -> bool:
    """All threads of the process and of those that it has started are stopped, or have ended."""
    return _are_all_in(pid, "TtZX")


def all_threads_sleep(pid: int) -> bool:
    """All threads of the process and of those that it has started wait for something."""
    return _are_all_in(pid, "S")


def _are_all_in(pid: int, states: str) -> bool:
    """All threads are in one of these states (proc(5), task/TID/stat)."""
    try:
        files = [file for member in family(pid) for file in Path(f"/proc/{member}/task").glob("*/stat")]
        stats = [file.read_text(encoding="utf-8") for file in files]
    except OSError:  # one ends just now
        return False
    return all(stat.rpartition(")")[2].split()[0] in states for stat in stats)


def children(pid: int) -> list[int]:
    """The processes that its first thread has started and that were not waited for (proc(5), task/TID/children)."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def carries(pid: int, library: str) -> bool:
    """The process has a library of that name mapped."""
    return library in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")


def sanitized(pid: int) -> bool:
    """The program carries a sanitizer, so its memory and its speed say nothing."""
    libraries = ("libasan", "libtsan", "libubsan")
    return any(carries(pid, library) for library in libraries) or _detects_races(Path(f"/proc/{pid}/exe").resolve())


@cache
def _detects_races(program: Path) -> bool:
    """Go's -race, whose library is within the program; its build information tells."""
    return b"build\t-race=true" in program.read_bytes()


@dataclass(frozen=True)
class TcpRow:
    """One TCP socket: addresses, state, and bytes not yet acknowledged or not yet read."""

    local: tuple[str, int]
    remote: tuple[str, int]
    state: str
    unacknowledged: int
    unread: int
    inode: int


def queued(local: tuple[str, int], remote: tuple[str, int]) -> tuple[int, int]:
    """Bytes not yet read and not yet acknowledged at the first end of the TCP connection between two addresses of this
    network namespace; none of either where it is gone."""
    return struct.unpack_from("=II", _looked_up(local, remote), 56)


def is_open(local: tuple[str, int], remote: tuple[str, int]) -> bool:
    """A process still has the first end of that connection, whatever other descriptors it opens and closes."""
    (inode,) = struct.unpack_from("=I", _looked_up(local, remote), 68)
    return bool(inode)


def _looked_up(local: tuple[str, int], remote: tuple[str, int]) -> bytes:
    """Return the struct inet_diag_msg of one end of a connection, all zeros where it is gone. The kernel finds it by
    its hash (sock_diag(7), struct inet_diag_req_v2), and walks no table."""
    family = socket.AF_INET6 if ":" in local[0] else socket.AF_INET
    hosts = (socket.inet_pton(family, address) for address, _ in (local, remote))
    request = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, ANY)
    request += struct.pack(">HH16s16s", local[1], remote[1], *hosts) + struct.pack("=III", 0, ANY, ANY)
    header = struct.pack("=IHHII", 16 + len(request), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
        kernel.send(header + request)
        answer = kernel.recv(65536)
    if struct.unpack_from("=H", answer, 4)[0] == NLMSG_ERROR:
        number = -struct.unpack_from("=i", answer, 16)[0]
        if number == errno.ENOENT:
            return bytes(72)
        raise OSError(number, f"sock_diag: {os.strerror(number)}")
    return answer[16:]


def tcp_table(port: int, process: int | str = "self") -> list[TcpRow]:
    """Every TCP socket of the network namespace of a process that has the port at either end, but for those in
    TIME_WAIT, which belong to no process: tests leave thousands, and each read of /proc/net/tcp prints them all, which
    was most of what the contract tests cost."""
    if _namespace(process) == _namespace("self"):
        return [row for row in _dumped() if port in (row.local[1], row.remote[1])]
    which = ("exclude", "time-wait", f"( sport = :{port} or dport = :{port} )")
    command = ("nsenter", f"--target={process}", "--net", "ss", "-tanHe", *which)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [_row(line) for line in done.stdout.splitlines()]


def _dumped() -> Iterator[TcpRow]:
    """The TCP sockets of this network namespace, but for those in TIME_WAIT. The kernel lists them (sock_diag(7)): to
    start ss(8) takes as long as many of the tests."""
    header = struct.pack("=HHII", SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
        for family in (socket.AF_INET, socket.AF_INET6):
            request = header + struct.pack("=BBBxI48x", family, socket.IPPROTO_TCP, 0, ANY & ~(1 << TIME_WAIT))
            kernel.send(struct.pack("=I", 4 + len(request)) + request)
            done = False
            while not done:
                answer, offset = kernel.recv(1 << 20), 0
                while offset < len(answer):
                    size, kind = struct.unpack_from("=IH", answer, offset)
                    if kind == NLMSG_ERROR:
                        number = -struct.unpack_from("=i", answer, offset + 16)[0]
                        raise OSError(number, f"sock_diag: {os.strerror(number)}")
                    if done := kind == NLMSG_DONE:
                        break
                    yield _dumped_row(answer[offset + 16 : offset + size])
                    offset += (size + 3) & ~3  # linux/netlink.h, NLMSG_ALIGN


def _dumped_row(answer: bytes) -> TcpRow:
    """A struct inet_diag_msg (linux/inet_diag.h): a listening socket has its backlog where others have what is not
    acknowledged."""
    family, state = answer[0], STATES[answer[1]]
    width = 4 if family == socket.AF_INET else 16
    ports = struct.unpack_from(">HH", answer, 4)
    local, remote = (socket.inet_ntop(family, answer[offset : offset + width]) for offset in (8, 24))
    unread, unacknowledged, _, inode = struct.unpack_from("=IIII", answer, 56)
    return TcpRow((local, ports[0]), (remote, ports[1]), state, 0 if state == LISTEN else unacknowledged, unread, inode)


def _namespace(process: int | str) -> str:
    return str(Path(f"/proc/{process}/ns/net").readlink())


def sockets(pid: int) -> dict[int, int]:
    """The inodes of the process's sockets, by descriptor: two may be of one socket."""
    inodes = {}
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(fd.readlink())
        except FileNotFoundError:
            continue  # closed since the listing
        if target.startswith("socket:["):
            inodes[int(fd.name)] = int(target[8:-1])
    return inodes


def socket_inodes(pid: int) -> frozenset[int]:
    """The inodes of the sockets of the process and of those that it has started. Raises OSError when it is gone."""
    inodes = set(sockets(pid).values())
    for member in family(pid)[1:]:
        with suppress(OSError):  # it has ended
            inodes |= set(sockets(member).values())
    return frozenset(inodes)


def tcp_rows(pid: int, port: int) -> list[TcpRow]:
    """The TCP sockets of the process and of those that it has started that have the port at either end, each once."""
    inodes = socket_inodes(pid)
    return [row for row in tcp_table(port, pid) if row.inode in inodes]


def tcp_sockets(pid: int, port: int) -> dict[int, TcpRow]:
    """The TCP sockets of a process that have the port at either end, by descriptor."""
    rows = {row.inode: row for row in tcp_table(port, pid)}
    return {fd: rows[inode] for fd, inode in sockets(pid).items() if inode in rows}


def tcp_sockets_of_family(pid: int, port: int) -> Iterator[tuple[int, dict[int, TcpRow]]]:
    """Yield the process and each that it has started, with its TCP sockets that have the port at either end."""
    yield pid, tcp_sockets(pid, port)
    for member in family(pid)[1:]:
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            yield member, tcp_sockets(member, port)


def find_holder(pid: int, port: int, remotes: Collection[tuple[str, int]]) -> tuple[int, set[int]]:
    """Return which of the process and those that it has started has the sockets of these clients, and their
    descriptors there. Raises AssertionError where none has."""
    for member, rows in tcp_sockets_of_family(pid, port):
        if descriptors := {fd for fd, row in rows.items() if row.remote in remotes}:
            return member, descriptors
    raise AssertionError("no process of the server has these clients' sockets")


def _row(line: str) -> TcpRow:
    """A line of `ss -tanHe` (ss(8)): a listening socket has its backlog where others have what is not acknowledged, and
    one that no descriptor refers to has no inode."""
    state, unread, unacknowledged, local, remote, *rest = line.split()
    inode = next((int(word.removeprefix("ino:")) for word in rest if word.startswith("ino:")), 0)
    sent = 0 if state == LISTEN else int(unacknowledged)
    return TcpRow(_address(local), _address(remote), state, sent, int(unread), inode)


def _address(text: str) -> tuple[str, int]:
    """`127.0.0.1:80`, `[::1]:80`, and `*` for any address or port."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), 0 if port == "*" else int(port)
