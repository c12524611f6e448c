"""`netdyno cluster`: certificates, scheduler, hosts, and what they say of themselves."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec

from netdyno.base import quantities
from netdyno.base.errors import UserError
from netdyno.base.escape import harmless_lines
from netdyno.base.paths import build_dir
from netdyno.cluster import authority, engine
from netdyno.cluster.authority import Role
from netdyno.cluster.described import Host
from netdyno.cluster.links import Link
from netdyno.contestants import building

PORT = 8786


def init(folder: Path, scheduler: str | None, days: int) -> int:
    """Make the certificates, and say what becomes of them."""
    at = scheduler or f"tls://{_address()}:{PORT}"
    authority.init(folder, at, days)
    print(f"{folder}: an authority, and certificates for {', '.join(authority.ROLES)}, for {days} days")
    print(
        f"Give each host ca.pem with the two files of its role, and no host ca-key.pem. The scheduler will be at {at}."
    )
    return 0


def schedule(folder: Path) -> int:
    """Raises UserError."""
    engine.need()
    from netdyno.cluster import daemon

    return daemon.schedule(folder)


def join(folder: Path, scheduler: str, role: Role, address: str | None, port: int, cores: str | None) -> int:
    """Build the generator, and join. Raises UserError."""
    engine.need()
    authority.files(folder, role)  # before Dask is loaded and something is built
    from netdyno.cluster import daemon

    building.make((building.GENERATOR, building.CANARY), build_dir())
    return daemon.join(folder, scheduler, role, address, port, () if cores is None else cores_of(cores), _findings())


def _findings() -> list[str]:
    """What the doctor would have otherwise on this host."""
    from netdyno.instruments.doctor import examine
    from netdyno.instruments.doctor.system import System

    wanted = ("bad", "could be better")
    return [f"{one.verdict}: {one.name}: {one.found}" for one in examine(System()) if one.verdict in wanted]


def status(folder: Path, as_json: bool) -> int:
    """Raises UserError."""
    engine.need()
    from netdyno.cluster.control import Control

    with Control(folder) as control:
        hosts = control.hosts(links=True)
    if as_json:
        print(msgspec.json.encode(hosts).decode())
    elif not hosts:
        print("no host has joined (./netdyno cluster join)")
    else:
        print(harmless_lines("\n".join(map(_as_text, hosts))))
    return 0


def _as_text(host: Host) -> str:
    said = host.description
    busy = ", at work" if said.is_busy else ""
    findings = "".join(f"\n  {one}" for one in said.findings)
    others = "".join(f"\n  {_link_as_text(link)} {other}" for other, link in host.links.items())
    return (
        f"{said.role} {said.host} at {host.address}{busy}\n"
        f"  cores {','.join(map(str, said.cores))}, kernel {said.kernel}\n"
        f"  {_microseconds(host.clock.round_trip_ns)} from here and back; its clock is "
        f"{host.clock.offset_ns / 1e9:+.6f} s off ours{others}{findings}"
    )


def _link_as_text(link: Link) -> str:
    rate = link.bits_per_second
    carried = "link not filled, as a host is at work" if rate is None else f"{quantities.bits(rate)} come from there"
    return f"{_microseconds(link.round_trip_ns)} there and back, {carried}:"


def _microseconds(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e3:.0f} us"


def cores_of(text: str) -> tuple[int, ...]:
    """Cores as they are written ("0,2-3"). Raises UserError where this process may not use one of them."""
    usable = os.sched_getaffinity(0)
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            raise UserError(f"--cores: {text!r}: must be cores such as 0,2-3")
        if int(last or first) < int(first):
            raise UserError(f"--cores: {part!r} ends before it begins")
        cores = range(int(first), int(last or first) + 1)
        missing = next((core for core in cores if core not in usable), None)
        if missing is not None:
            raise UserError(f"--cores: there is no core {missing} for this process")
        found.update(cores)
    return tuple(sorted(found))


def _address() -> str:
    """That of this machine's default route. Nothing is sent. Raises UserError where it has none."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            asked.connect(("192.0.2.1", 9))  # RFC 5737: nobody's
            return str(asked.getsockname()[0])
    except OSError as error:
        raise UserError("this machine has no route to others: say --scheduler tls://ADDRESS:8786") from error
