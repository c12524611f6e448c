"""What the kernel says about a process and its sockets: proc(5), and for TCP the kernel's proc_net_tcp.rst."""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

ESTABLISHED = 0x01
SYN_SENT = 0x02
LISTEN = 0x0A


def descriptors(pid: int) -> int:
    """How many file descriptors the process has open."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def status(pid: int, key: str) -> int:
    """A number of /proc/PID/status: `Threads`, or `VmRSS` and its kind in KiB."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0])
    raise KeyError(f"/proc/{pid}/status has no {key}")


def resident_bytes(pid: int) -> int:
    """Resident memory now."""
    return status(pid, "VmRSS") * 1024


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads, also those that have ended; it moves in ticks of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_queue_wait_s(pid: int) -> float:
    """How long its threads, taken together, stood ready to run while something else had the core; 0 where the kernel
    keeps no such count (Documentation/scheduler/sched-stats.rst)."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_text(encoding="ascii").split()[1]) for file in files) / 1e9


def children(pid: int) -> list[int]:
    """The processes that its first thread has started and that were not waited for (proc(5), task/TID/children)."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def carries(pid: int, library: str) -> bool:
    """The process has a library of that name mapped."""
    return library in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")


def sanitized(pid: int) -> bool:
    """The program carries a sanitizer, so its memory and its speed say nothing."""
    return any(carries(pid, library) for library in ("libasan", "libtsan", "libubsan"))


@dataclass(frozen=True)
class TcpRow:
    """One line of /proc/net/tcp or tcp6: addresses, state, and bytes not yet acknowledged or not yet read."""

    local: tuple[str, int]
    remote: tuple[str, int]
    state: int
    unacknowledged: int
    unread: int
    inode: int


def tcp_table(port: int, of: int | str = "self") -> list[TcpRow]:
    """Every TCP socket of the network namespace of a process that has the port at either end."""
    rows = []
    for name in ("tcp", "tcp6"):
        path = Path(f"/proc/{of}/net/{name}")
        if path.exists():
            lines = path.read_text(encoding="ascii").splitlines()[1:]
            rows += [_row(line.split()) for line in lines if f":{port:04X} " in line]
    return rows


def tcp_sockets(pid: int, port: int) -> dict[int, TcpRow]:
    """The TCP sockets of a process that have the port at either end, by descriptor."""
    rows = {row.inode: row for row in tcp_table(port, pid)}
    found = {}
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(fd.readlink())
        except FileNotFoundError:
            continue  # closed since the listing
        if target.startswith("socket:[") and int(target[8:-1]) in rows:
            found[int(fd.name)] = rows[int(target[8:-1])]
    return found


def _row(fields: list[str]) -> TcpRow:
    unacknowledged, unread = (int(part, 16) for part in fields[4].split(":"))
    return TcpRow(_address(fields[1]), _address(fields[2]), int(fields[3], 16), unacknowledged, unread, int(fields[9]))


def _address(text: str) -> tuple[str, int]:
    """Addresses are printed as 32-bit words in the byte order of the machine."""
    host, port = text.split(":")
    packed = bytes.fromhex(host)
    if sys.byteorder == "little":
        packed = b"".join(packed[i : i + 4][::-1] for i in range(0, len(packed), 4))
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    return str(ipaddress.ip_address(socket.inet_ntop(family, packed))), int(port, 16)
