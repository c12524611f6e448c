"""`netdyno cluster`: certificates, the scheduler, the hosts and their status."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec

from netdyno.kit import quantities
from netdyno.kit.errors import UserError
from netdyno.kit.escape import harmless_lines
from netdyno.kit.paths import ENTRY, build_dir
from netdyno.measure.cluster import authority, engine
from netdyno.measure.cluster.authority import Role
from netdyno.measure.cluster.described import Host
from netdyno.measure.cluster.host_links import HostLink
from netdyno.question.contestants import building

PORT = 8786


def create_certificates(folder: Path, scheduler: str | None, days: int) -> int:
    """Make the certificates, and print the instructions for them."""
    url = scheduler or f"tls://{_find_address()}:{PORT}"
    authority.create(folder, url, days)
    print(f"{folder}: an authority, and certificates for {', '.join(authority.ROLES)}, for {days} days")
    print(
        f"Give each host ca.pem with the two files of its role, and no host ca-key.pem. The scheduler will be at {url}."
    )
    return 0


def schedule(folder: Path) -> int:
    """Run the scheduler. Raises UserError."""
    engine.require_dask()
    from netdyno.measure.cluster import daemon

    return daemon.schedule(folder)


def join(folder: Path, scheduler: str, role: Role, address: str | None, port: int, cores: str | None) -> int:
    """Build the generator, and join. Raises UserError."""
    engine.require_dask()
    authority.find_files(folder, role)  # before Dask is loaded and something is built
    from netdyno.measure.cluster import daemon

    building.make((building.GENERATOR, building.CANARY), build_dir())
    return daemon.join(
        folder, scheduler, role, address, port, () if cores is None else parse_cores(cores), _find_faults()
    )


def _find_faults() -> list[str]:
    """List what the doctor finds wrong with this host."""
    from netdyno.verbs.instruments.doctor import examine
    from netdyno.verbs.instruments.doctor.system import System

    verdicts = ("bad", "could be better")
    return [
        f"{finding.verdict}: {finding.name}: {finding.found}"
        for finding in examine(System())
        if finding.verdict in verdicts
    ]


def print_hosts(folder: Path, as_json: bool) -> int:
    """Print the hosts. Raises UserError."""
    engine.require_dask()
    from netdyno.measure.cluster.controller import Controller

    with Controller(folder) as control:
        hosts = control.hosts(links=True)
    if as_json:
        print(msgspec.json.encode(hosts).decode())
    elif not hosts:
        print(f"no host has joined ({ENTRY} cluster join)")
    else:
        print(harmless_lines("\n".join(map(_format_host, hosts))))
    return 0


def _format_host(host: Host) -> str:
    description = host.description
    busy = ", at work" if description.is_busy else ""
    findings = "".join(f"\n  {finding}" for finding in description.findings)
    link_lines = "".join(f"\n  {_link_text(link)} {host_name}" for host_name, link in host.links.items())
    return (
        f"{description.role} {description.host} at {host.address}{busy}\n"
        f"  cores {','.join(map(str, description.cores))}, kernel {description.kernel}\n"
        f"  {_format_us(host.clock.round_trip_ns)} from here and back; its clock is "
        f"{host.clock.offset_ns / 1e9:+.6f} s off ours{link_lines}{findings}"
    )


def _link_text(link: HostLink) -> str:
    rate = link.bits_per_second
    carried = "link not filled, as a host is at work" if rate is None else f"{quantities.bits(rate)} come from there"
    return f"{_format_us(link.round_trip_ns)} there and back, {carried}:"


def _format_us(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e3:.0f} us"


def parse_cores(text: str) -> tuple[int, ...]:
    """Read a list of cores such as "0,2-3". Raises UserError where this process may not use one of them."""
    usable = os.sched_getaffinity(0)
    chosen: set[int] = set()
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
        chosen.update(cores)
    return tuple(sorted(chosen))


def _find_address() -> str:
    """Return the address of this machine's default route. Sends nothing. Raises UserError where it has none."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))  # RFC 5737: reserved for documentation
            return str(probe.getsockname()[0])
    except OSError as error:
        raise UserError("this machine has no route to others: say --scheduler tls://ADDRESS:8786") from error
