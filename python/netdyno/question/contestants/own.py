"""Servers of the user's own: no folder and no manifest, but a command line or an address, and the workload that they
speak."""

from __future__ import annotations

import ipaddress
import itertools
import json
import re
import shlex
import shutil
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from netdyno.kit import addresses
from netdyno.kit.errors import UserError
from netdyno.kit.paths import ENTRY
from netdyno.model.contestant import OWN_SETTINGS, About, Contestant, Manifest, Own
from netdyno.model.own_requests import BYTES
from netdyno.question.contestants import stand_in

STAND_IN = Path(__file__).with_name("stand_in.py")
PORT = "{port}"
PLACES = ("port", "address")
"""What a trial fills in a command line (stand_in.py)."""
DEFAULT_WORKLOAD = "http"
SCHEMES = {"tcp": 0, "tls": 0, "http": 80, "https": 443}
"""Of addresses, with their usual ports."""
USUAL_PORTS = ("http", "https")
ENCRYPTED = ("tls", "https")
MAY_LOAD = "yes-i-may-load-it"
"""The option that permits loading a server beyond the loopback."""
GIVEN_A_PORT = "It gets a port and none of the experiment's options, and its own counters are not read."
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=,+-]*")


def make_contestants(servers: Sequence[Own], names: Sequence[str], taken: Collection[str]) -> tuple[Contestant, ...]:
    """Make contestants of the user's servers, with the given names in their order; one without, or with an empty
    one, is called as its program, or as its address. Raises UserError for an impossible command or address, or a name
    that cannot be used."""
    if len(names) > len(servers):
        raise UserError(f"--as {names[len(servers)]!r}: there is no --server or --address for this name")
    contestants: list[Contestant] = []
    for number, own in enumerate(servers):
        used = {server.name for server in contestants}
        given = names[number] if number < len(names) else ""
        name = given or _find_free_name(_make_short_name(own), taken, used)
        if not NAME.fullmatch(name):
            raise UserError(f"--as {name!r} is no name; letters, digits, '.', '_' and '-' make one")
        if name in taken:
            raise UserError(
                f"--as {name!r}: netdyno has a server of that name ({ENTRY} list servers); write --as own-{name}"
            )
        if name in used:
            raise UserError(f"--as {name!r}: there is a server of that name already")
        contestants.append(make_contestant(name, own))
    return tuple(contestants)


def resolve_server(
    address: str, workload: str, *, may_be_loaded: bool, tls: bool = False, unix_socket: str = ""
) -> Own:
    """The server at tcp://HOST:PORT or http://HOST, by the numeric address that its host has now: of several, the first
    that accepts connections. Raises UserError where that is no such address, or is not on this machine's loopback and
    `may_be_loaded` is false."""
    scheme, host, port = _parse_address(address)
    try:
        hosts = [ipaddress.ip_address(resolved.host) for resolved in addresses.resolve(host, port)]
    except UnicodeError as error:  # no name that DNS could hold, such as a..b
        raise UserError(f"--address {address!r}: {host} is no name of a host") from error
    except OSError as error:
        raise UserError(f"--address {address!r}: {host} has no address: {error.strerror}") from error
    if not all(numeric.is_loopback for numeric in hosts) and not may_be_loaded:
        raise UserError(
            f"--address {address!r} is not on the loopback: a run is a load test of that server and of the "
            f"network to it. If you are allowed to do that, add --{MAY_LOAD}"
        )
    numeric = next((numeric for numeric in hosts if stand_in.try_connect(str(numeric), port)), hosts[0])
    return Own(
        command="",
        workload=workload,
        address=f"tcp://[{numeric}]:{port}" if numeric.version == 6 else f"tcp://{numeric}:{port}",
        host="" if host == str(numeric) else host if port == SCHEMES[scheme] else f"{host}:{port}",
        tls=tls or scheme in ENCRYPTED,
        unix_socket=unix_socket,
    )


def _parse_address(address: str) -> tuple[str, str, int]:
    """Return scheme, host and port. Raises UserError where the text is no such address."""
    scheme, _, rest = address.partition("://")
    scheme = scheme.lower()
    place, slash, path = rest.partition("/")
    if scheme in SCHEMES and path:
        raise UserError(f"--address {address!r} takes no path; add --path /{path}")
    with_port = place if re.search(r":\d+\Z", place) or scheme not in USUAL_PORTS else f"{place}:{SCHEMES[scheme]}"
    host, port = stand_in.place(f"{scheme}://{with_port}")
    if scheme not in SCHEMES or (slash and scheme not in USUAL_PORTS) or not host or not 0 < port < 2**16:
        raise UserError(f"--address {address!r}: write http://HOST[:PORT], https://HOST[:PORT] or tcp://HOST:PORT")
    return scheme, host, port


def make_contestant(name: str, own: Own) -> Contestant:
    """The server as any other contestant; the program that the harness starts for it stands in for what it lacks of the
    contract."""
    words = (stand_in.AT, own.address) if own.address else tuple(_split_words(own.command))
    started_with = _list_start_settings(own)
    if own.unix_socket and not own.address and PORT not in own.unix_socket:
        raise UserError(f"--unix-socket {own.unix_socket!r}: write {PORT} in its name, for each trial starts a server")
    manifest = Manifest(
        kind="command",
        model="your own",
        summary=own.command or own.address,
        workloads=(own.workload, BYTES),
        threads="any",
        caveats=_list_caveats(own.address) if own.address else (GIVEN_A_PORT,),
    )
    command = stand_in_for((*started_with, *words))
    why_not = _explain_why_not(own, words[0])
    return Contestant(name=name, manifest=manifest, command=command, available=not why_not, why_not=why_not, own=own)


def stand_in_for(words: Sequence[str]) -> tuple[str, ...]:
    """Return the command of the program that stands in for a server that knows nothing of netdyno."""
    return (sys.executable, "-I", "-S", str(STAND_IN), *words)


def insert_entry(command: Sequence[str], entry: Sequence[str]) -> list[str]:
    """Put words in front of the command of a server, behind its stand-in where it has one. Pure."""
    start = command.index(str(STAND_IN)) + 1 if str(STAND_IN) in command else 0
    start += 2 if start and command[start] == stand_in.SETTINGS else 0
    return [*command[:start], *entry, *command[start:]]


def behind_stand_in(contestant: Contestant) -> list[str]:
    """Return the words that start the server that a stand-in stands for; none where it is started directly."""
    if contestant.own is not None:
        return shlex.split(contestant.own.command)[:1]
    return list(contestant.command[len(stand_in_for(())) :]) if contestant.manifest.is_framework else []


def _list_start_settings(own: Own) -> tuple[str, ...]:
    """Return the words that tell the stand-in how the server is started and when it is ready; none for the defaults."""
    described = stand_in.ServerSettings(
        env=dict(variable.split("=", 1) for variable in own.env),
        directory=own.directory,
        unix_socket=own.unix_socket,
        tls=own.tls,
        ready_path=own.ready_path,
        ready_timeout_s=own.ready_timeout_s,
    )._asdict()
    given = {name: value for name, value in described.items() if value != stand_in.DEFAULTS[name]}
    return (stand_in.SETTINGS, json.dumps(given)) if given else ()


def _explain_why_not(own: Own, program: str) -> str:
    if own.address:
        where = own.unix_socket or own.address
        reached = stand_in.try_connect(*stand_in.place(own.address), own.unix_socket)
        return "" if reached else f"no server accepts connections at {where}"
    if own.directory and not Path(own.directory).is_dir():
        return f"{own.directory} is no folder"
    path = str(Path(own.directory) / program) if own.directory and "/" in program else program
    return "" if shutil.which(path) else f"{program} is no program that can be started"


def _list_caveats(address: str) -> tuple[str, ...]:
    state_caveat = (
        "The run neither started nor stopped it: each trial found it as the last had left it, on its own cores, and "
        "its peak memory is that of its whole life."
    )
    options_caveat = "It gets none of the experiment's options, and its own counters are not read."
    if ipaddress.ip_address(stand_in.place(address)[0]).is_loopback:
        return state_caveat, options_caveat
    return (
        state_caveat,
        options_caveat,
        "It is not on the loopback; the user of this run confirmed that it may be loaded.",
    )


def restore_servers(about: Iterable[About]) -> tuple[Contestant, ...]:
    """The user's servers of a stored run. To start one, ask the user first."""
    return tuple(
        make_contestant(description.name, description.own) for description in about if description.own is not None
    )


def check_stored(server: Own) -> None:
    """Raise ValueError for a server that no user can have given: its command line is no words, or its address is none.
    Pure."""
    for option in OWN_SETTINGS.values():
        value = getattr(server, option.field)
        if value != type(value)() and not isinstance(value, int | float):
            option.takes.read(list(value) if isinstance(value, tuple) else value)
    if not server.address:
        shlex.split(server.command)
        return
    host, port = stand_in.place(server.address)
    ipaddress.ip_address(host)
    if not server.address.startswith("tcp://") or not 0 < port < 2**16:
        raise ValueError(f"{server.address!r} is no address of a server")


def _make_short_name(own: Own) -> str:
    if own.address:
        return own.address.removeprefix("tcp://").translate({ord("["): None, ord("]"): None, ord(":"): "-"}).lstrip("-")
    return re.sub(r"[^\w.-]", "-", Path(_split_words(own.command)[0]).name)


def _split_words(line: str) -> list[str]:
    try:
        words = shlex.split(line.encode().decode())
    except UnicodeEncodeError as error:  # it could not be stored
        raise UserError(f"the command {line!r} is no text; put such a command into a script") from error
    except ValueError as error:
        raise UserError(f"the command {line!r} cannot be read as a shell would: {error}") from error
    if not any(PORT in word for word in words):
        raise UserError(f"the command {line!r} does not say where its port goes: write {PORT} there")
    return words


def _find_free_name(name: str, taken: Collection[str], used: Collection[str]) -> str:
    """Return the name, with "own-" in front where a server of netdyno's has it, or the first free one with a number."""
    first = f"own-{name}" if name in taken else name
    numbered = (first if number == 1 else f"{first}-{number}" for number in itertools.count(1))
    return next(candidate for candidate in numbered if candidate not in {*taken, *used})
