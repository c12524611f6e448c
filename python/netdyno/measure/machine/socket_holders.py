"""The processes that serve an endpoint: those that have one of its sockets open, listening or accepted, by the kernel's
tables of sockets (proc_pid_net(5)) and the descriptors of all processes. A scan of all takes 20 ms, and 0.3 s beside
110,000 sockets in TIME_WAIT, so it is made outside of windows."""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from netdyno.measure.machine import cpu_users, server_proc, server_processes
from netdyno.measure.machine.server_processes import Origin
from netdyno.model.own_requests import AT_FILE

TABLES = ("tcp", "tcp6", "udp", "udp6")
_ESTABLISHED, _LISTENS = "01", "0A"
"""States of the tables: TCP_ESTABLISHED and TCP_LISTEN of the kernel's tcp_states.h."""
_ACCEPTS = 0x10000
"""A flag of /proc/net/unix: __SO_ACCEPTCON of the kernel's net.h."""
PASSES_ON = frozenset({"docker-proxy", "rootlesskit", "rootlessport", "slirp4netns", "pasta"})
"""Programs that listen for a container and pass on what arrives: the server is in a network of its own."""
_NO_PROCESS = "0"
"""The inode of a socket that no process has open any more."""


class SocketRow(msgspec.Struct, frozen=True):
    """A socket of the kernel's tables; the addresses as they stand there."""

    local: str
    remote: str
    state: str
    inode: str


def find_elsewhere(origin: Origin, net: Path, endpoint: str) -> tuple[int, ...]:
    """Return the processes that serve at this endpoint and descend neither from the server's nor from this one, without
    those whose parent does: it got the socket from a daemon or by a message. Not taken for it are our own ancestors: an
    init that listens for its services."""
    holders = find_server_holders(net, endpoint) - {*server_processes.find_members(origin._replace(elsewhere=()))}
    if not holders:
        return ()
    parents = server_proc.read_parents()
    holders -= {*list_ancestors(os.getpid(), parents), *server_proc.find_descendants(os.getpid(), parents)}
    return tuple(sorted(pid for pid in holders if parents.get(pid) not in holders))


def find_serving(stand_in: int, started: int, net: Path, endpoint: str) -> int | None:
    """Return the process that serves where a stand-in has `started` one: that where it listens itself or nothing can be
    read, else the first of the family that listens, which it has detached or had a daemon start. Where it started none
    (`started` is the stand-in itself), the first of those that listen. None where that is not known: it may not be
    read, it only passes on to another network, or several are not of one family. Our own ancestors are not taken for
    it, for the load is of that family, too."""
    inodes = _find_sockets(net, endpoint, is_listening=True)
    holders = find_holders(inodes)
    has_started = started != stand_in
    if started in holders or (has_started and not inodes):
        return started
    parents = server_proc.read_parents()
    holders -= {*list_ancestors(stand_in, parents)}
    first = [pid for pid in holders if parents.get(pid) not in holders]
    serving = first[0] if len(first) == 1 else None
    if has_started and any(stand_in in list_ancestors(pid, parents) for pid in holders):
        return serving or started
    return None if serving is None or cpu_users.read_name(serving) in PASSES_ON else serving


def list_ancestors(pid: int, parents: Mapping[int, int]) -> Iterator[int]:
    """Yield a process, its parent, and so on. Pure."""
    while pid:
        yield pid
        pid = parents.get(pid, 0)


def find_server_holders(net: Path, endpoint: str) -> set[int]:
    """Return the processes that have a socket of the server at this endpoint open, as far as their descriptors may be
    read. `net` is the net folder of its network namespace."""
    return find_holders(_find_sockets(net, endpoint) - {_NO_PROCESS})


def _find_sockets(net: Path, endpoint: str, *, is_listening: bool = False) -> set[str]:
    """Return the inodes of the sockets of the server at this endpoint: all, or those that listen."""
    address, _, file = endpoint.partition(AT_FILE)
    if file:
        return _find_file_sockets(net, file, _ACCEPTS if is_listening else 0)
    places = format_places(address)
    rows = [row for row in read_rows(net) if row.local in places]
    return {row.inode for row in rows if not is_listening or row.state == _LISTENS}


def _find_file_sockets(net: Path, file: str, flags: int) -> set[str]:
    """Return the inodes of the sockets of a file: the one that listens there, and those that it accepted; or those with
    certain flags."""
    with suppress(OSError):
        rows = [line.split(maxsplit=7) for line in (net / "unix").read_text().splitlines()[1:]]
        return {row[6] for row in rows if len(row) == 8 and row[7] == file and int(row[3], 16) & flags == flags}
    return set()


def find_client_holders(net: Path, endpoint: str) -> set[int]:
    """Return the processes that are connected to the server at this endpoint. Of those at a file the kernel's tables
    do not say it: none."""
    if AT_FILE in endpoint:
        return set()
    places = format_places(endpoint)
    rows = read_rows(net)
    return find_holders({row.inode for row in rows if row.remote in places and row.state == _ESTABLISHED})


def read_rows(net: Path) -> list[SocketRow]:
    """Read the sockets of a network namespace; none where the tables cannot be read."""
    rows: list[SocketRow] = []
    for name in TABLES:
        with suppress(OSError):
            rows += parse_rows((net / name).read_text())
    return rows


def parse_rows(table: str) -> Iterator[SocketRow]:
    """Yield the sockets of a table. Pure."""
    for line in table.splitlines()[1:]:
        _, local, remote, state, *fields = line.split()
        yield SocketRow(local, remote, state, fields[5])


def format_places(endpoint: str) -> set[str]:
    """Return the places at which a server of this endpoint has its sockets, as in the tables: its address, the same
    within IPv6, and every address. Pure."""
    host, _, port = endpoint.partition("://")[2].partition("?")[0].rpartition(":")
    host = host.strip("[]")
    packed = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    mapped = bytes(10) + b"\xff\xff" + packed if len(packed) == 4 else packed
    return {f"{_format_address(address)}:{int(port):04X}" for address in (packed, mapped, bytes(4), bytes(16))}


def _format_address(packed: bytes) -> str:
    """Format an address as the kernel does on a little-endian processor: each four bytes as one number. Pure."""
    return "".join(packed[offset : offset + 4][::-1].hex().upper() for offset in range(0, len(packed), 4))


def find_holders(inodes: Collection[str]) -> set[int]:
    """Return the processes that have one of these sockets open."""
    links = {f"socket:[{inode}]" for inode in inodes}
    if not links:
        return set()
    with os.scandir("/proc") as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    return {pid for pid in pids if _has_open(pid, links)}


def _has_open(pid: int, links: Collection[str]) -> bool:
    with suppress(OSError):  # it has ended, or is another user's
        return any(link in links for _, link in server_proc.read_links(pid))
    return False
