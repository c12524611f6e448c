"""Servers of the user's own: no folder and no manifest, but a command line or an address, and the workload that they
speak."""

from __future__ import annotations

import ipaddress
import re
import shlex
import shutil
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from netdyno.base import addresses
from netdyno.base.errors import UserError
from netdyno.contestants import stand_in
from netdyno.model.contestant import About, Contestant, Manifest, Own

STAND_IN = Path(__file__).with_name("stand_in.py")
PORT = "{port}"
DEFAULT_WORKLOAD = "http"
GIVEN_A_PORT = "It gets a port and none of the experiment's options, and its own counters are not read."
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def named(servers: Sequence[Own], names: Sequence[str], taken: Collection[str]) -> tuple[Contestant, ...]:
    """Each by the names in their order; who has none is called as its program, or as its address. Raises UserError
    where a command or an address cannot be meant, or a name cannot be had."""
    if len(names) > len(servers):
        raise UserError(f"--as {names[len(servers)]!r}: there is no --server or --address for this name")
    found: list[Contestant] = []
    for number, own in enumerate(servers):
        used = {*taken, *(one.name for one in found)}
        name = names[number] if number < len(names) else _free(_short(own), used)
        if not NAME.fullmatch(name):
            raise UserError(f"--as {name!r} is no name; letters, digits, '.', '_' and '-' make one")
        if name in used:
            raise UserError(f"--as {name!r}: there is a server of that name already")
        found.append(contestant(name, own))
    return tuple(found)


def at(address: str, workload: str, *, may_be_loaded: bool) -> Own:
    """The server at tcp://HOST:PORT, by the number that its host has now: of several the first where it accepts
    connections. Raises UserError where that is no such address, or not on this machine's loopback and nobody said that
    it may be loaded."""
    host, port = stand_in.place(address)
    if not address.lower().startswith("tcp://") or not host or not 0 < port < 2**16:
        raise UserError(f"--address {address!r}: write tcp://HOST:PORT, such as tcp://127.0.0.1:9000")
    try:
        found = [ipaddress.ip_address(one.host) for one in addresses.resolve(host, port)]
    except UnicodeError as error:  # no name that DNS could hold, such as a..b
        raise UserError(f"--address {address!r}: {host} is no name of a host") from error
    except OSError as error:
        raise UserError(f"--address {address!r}: {host} has no address: {error.strerror}") from error
    if not all(numeric.is_loopback for numeric in found) and not may_be_loaded:
        raise UserError(
            f"--address {address!r} is not on the loopback: a run is a load test of that server and of the "
            f"network to it. If you are allowed to do that, add --yes-i-may-load-it"
        )
    numeric = next((numeric for numeric in found if stand_in.accepts(str(numeric), port)), found[0])
    return Own(
        command="",
        workload=workload,
        address=f"tcp://[{numeric}]:{port}" if numeric.version == 6 else f"tcp://{numeric}:{port}",
    )


def contestant(name: str, own: Own) -> Contestant:
    """The server as any other; the program that the harness starts for it stands in for what it lacks of the
    contract."""
    words = (stand_in.AT, own.address) if own.address else tuple(_words(own.command))
    manifest = Manifest(
        kind="command",
        model="your own",
        summary=own.command or own.address,
        workloads=(own.workload,),
        threads="any",
        caveats=_of_address(own.address) if own.address else (GIVEN_A_PORT,),
    )
    command = (sys.executable, "-I", "-S", str(STAND_IN), *words)
    why_not = _why_not(own, words[0])
    return Contestant(name=name, manifest=manifest, command=command, available=not why_not, why_not=why_not, own=own)


def _why_not(own: Own, program: str) -> str:
    if own.address:
        return (
            "" if stand_in.accepts(*stand_in.place(own.address)) else f"no server accepts connections at {own.address}"
        )
    return "" if shutil.which(program) else f"{program} is no program that can be started"


def _of_address(address: str) -> tuple[str, ...]:
    found_there = (
        "It was neither started nor stopped by the run: each trial found it as the trial before had left it, on its "
        "own cores, and its peak memory is that of its whole life."
    )
    untold = "It gets none of the experiment's options, and its own counters are not read."
    if ipaddress.ip_address(stand_in.place(address)[0]).is_loopback:
        return found_there, untold
    return found_there, untold, "It is not on the loopback; the user of this run confirmed that it may be loaded."


def of_run(about: Iterable[About]) -> tuple[Contestant, ...]:
    """Those that a stored run was made with; who starts one has asked the user."""
    return tuple(contestant(one.name, one.own) for one in about if one.own is not None)


def check_stored(server: Own) -> None:
    """Raise ValueError for a server that nobody can have been given: its command line is no words, or its address is
    none. Pure."""
    if not server.address:
        shlex.split(server.command)
        return
    host, port = stand_in.place(server.address)
    ipaddress.ip_address(host)
    if not server.address.startswith("tcp://") or not 0 < port < 2**16:
        raise ValueError(f"{server.address!r} is no address of a server")


def _short(own: Own) -> str:
    if own.address:
        return own.address.removeprefix("tcp://").translate({ord("["): None, ord("]"): None, ord(":"): "-"}).lstrip("-")
    return re.sub(r"[^\w.-]", "-", Path(_words(own.command)[0]).name)


def _words(line: str) -> list[str]:
    try:
        words = shlex.split(line.encode().decode())
    except UnicodeEncodeError as error:  # it could not be stored
        raise UserError(f"--server {line!r} is no text; put such a command into a script") from error
    except ValueError as error:
        raise UserError(f"--server {line!r} cannot be read as a shell would: {error}") from error
    if not any(PORT in word for word in words):
        raise UserError(f"--server {line!r} does not say where its port goes: write {PORT} there")
    return words


def _free(name: str, used: Collection[str]) -> str:
    """The name, or the first with a number that nobody has."""
    numbered = (name if number == 1 else f"{name}-{number}" for number in range(1, len(used) + 2))
    return next(one for one in numbered if one not in used)
