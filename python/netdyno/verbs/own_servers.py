"""The user's own servers, as options of a command describe them: the one resolver of all verbs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from netdyno.kit import quantities
from netdyno.kit.errors import UserError
from netdyno.model import own_requests
from netdyno.model.contestant import OWN_SETTINGS, Contestant, Own
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.observation import ForeignLoad
from netdyno.model.options import REQUESTS
from netdyno.model.own_requests import BYTES, SWITCH
from netdyno.model.values import NAMES, Option
from netdyno.question.contestants import own, siblings
from netdyno.question.request_files import insert_files
from netdyno.verbs.flags import GivenOptions

SPEAKS_HTTP = own.DEFAULT_WORKLOAD
OF_RUNNING = ("tls", "unix-socket")
"""The settings that a server at an address can have."""
REPLACED_BY_BYTES = (SPEAKS_HTTP, "echo")
"""The workloads whose place the user's own bytes take: the other ones have a protocol of netdyno's own."""


OPEN_PLACE = re.compile(r"(?<![$%])\{([A-Za-z][\w-]*)\}")
"""A place in a command line; ${NAME} and %{NAME} are of other programs."""


def _declare_texts(name: str, metavar: str, text: str) -> Option:
    return Option(replace(NAMES, typed=list, metavar=metavar), text, "own server", name, name)


VARY = _declare_texts(
    "vary",
    "NAME=LEVEL,...",
    "An option of your own server, with {NAME} in its command line: it is measured at each level; may be repeated.",
)
NAMING: tuple[Option, ...] = (
    _declare_texts("server", "COMMAND", "Your own server: 'my-server --port {port}'; may be repeated."),
    _declare_texts(
        "address",
        "URL",
        "Your own server that is already running, and is neither started nor stopped: http://127.0.0.1:8080, "
        "https://... or tcp://...; may be repeated.",
    ),
    _declare_texts(
        "as",
        "NAME",
        "The name of your server; may be repeated: for each --server in order, then for each --address.",
    ),
    VARY,
    Option(SWITCH, "The address is not on the loopback, and I may load it.", "own server", own.MAY_LOAD),
)
"""The options that name one's own servers, of every verb that loads them."""
SENDING = tuple(replace(option, default=None) for option in (*REQUESTS.values(), *OWN_SETTINGS.values()))
"""The options that say what they are sent, under the names of `load`, and how they are started."""


class OwnServers(msgspec.Struct, frozen=True):
    """The user's own servers: command lines, addresses, names for the first of them in that order, the levels of their
    knobs, the workload of all (None: not given), whether those beyond the loopback may be loaded, and by option what
    they are sent and how they are started."""

    commands: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    knobs: tuple[str, ...] = ()
    workload: str | None = None
    may_be_loaded: bool = False
    requests: Mapping[str, Any] = MappingProxyType({})
    settings: Mapping[str, Any] = MappingProxyType({})


NO_SERVERS = OwnServers()


class MeasureRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What each verb that measures is asked: the folder of its runs, whether stdout is for JSON alone, and the rule on
    trials that shared the machine."""

    results: Path
    as_json: bool
    foreign_load: ForeignLoad


class ServersRequest(MeasureRequest, frozen=True, kw_only=True):
    """The request of a verb that measures servers: these by name, and the user's own; `given` has a value for each
    option of the verb that has one."""

    servers: tuple[str, ...]
    own: OwnServers = NO_SERVERS
    given: GivenOptions


def describe(given: GivenOptions, workload: str | None = None) -> OwnServers:
    """Return the servers that the options NAMING and SENDING of a command line describe."""
    settings = {name: value for name, value in given.items() if name in OWN_SETTINGS}
    if "directory" in settings:
        settings["directory"] = str(Path(settings["directory"]).resolve())
    return OwnServers(
        commands=given.get("server", ()),
        addresses=given.get("address", ()),
        names=given.get("as", ()),
        knobs=given.get("vary", ()),
        workload=workload,
        may_be_loaded=given.get(own.MAY_LOAD, False),
        requests=insert_files({name: value for name, value in given.items() if name in REQUESTS}, "--"),
        settings=settings,
    )


def has_servers(description: OwnServers) -> bool:
    return bool(description.commands or description.addresses)


def resolve(description: OwnServers, taken: Sequence[str]) -> tuple[Contestant, ...]:
    """Return the user's own servers; `taken` are the names of others. Raises UserError where one cannot be started or
    reached, or where options describe servers that are not given."""
    own_servers, names = list_servers(description)
    return own.make_contestants(own_servers, names, taken)


def list_servers(description: OwnServers) -> tuple[list[Own], list[str]]:
    """Return each server at each level of its knobs, with its name, empty where it has none. Raises UserError where
    that is not possible, or where options describe servers that are not given."""
    workload = _choose_workload(description)
    knobs = siblings.parse_knobs(description.knobs)
    fields = {OWN_SETTINGS[name].field: value for name, value in description.settings.items()}
    own_servers = [_set_environment(Own(command=line, workload=workload, **fields)) for line in description.commands]
    own_servers += _resolve_running(description, workload)
    if not own_servers and (given := _list_given(description)):
        raise UserError(f"--{given[0]} is for your own servers; add --server or --address")
    expanded, names = siblings.expand_all(own_servers, description.names, knobs)
    for server in expanded:
        _check_places(server)
    return expanded, names


def _set_environment(server: Own) -> Own:
    """Return the server with the variables that hold a knob in its command line, where levels take their places."""
    with_knob = [variable for variable in server.env if OPEN_PLACE.search(variable)]
    if not with_knob:
        return server
    others = tuple(variable for variable in server.env if variable not in with_knob)
    return msgspec.structs.replace(server, command=f"env {shlex.join(with_knob)} {server.command}", env=others)


def _check_places(server: Own) -> None:
    """Raise UserError for a place in the command line that nothing fills."""
    open_places = [name for name in OPEN_PLACE.findall(server.command) if name not in own.PLACES]
    if open_places:
        name = open_places[0]
        raise UserError(
            f"the command {server.command!r}: nothing fills {{{name}}}; add --vary {name}=LEVEL,LEVEL, or put a "
            "command with such braces into a script"
        )


def _resolve_running(description: OwnServers, workload: str) -> list[Own]:
    started_with = [name for name in description.settings if name not in OF_RUNNING]
    if started_with and description.addresses and not description.commands:
        raise UserError(f"--{started_with[0]} is for a server that netdyno starts (--server)")
    return [
        own.resolve_server(
            address,
            workload,
            may_be_loaded=description.may_be_loaded,
            tls=description.settings.get("tls", False),
            unix_socket=description.settings.get("unix-socket", ""),
        )
        for address in description.addresses
    ]


def _list_given(description: OwnServers) -> list[str]:
    named = {"as": description.names, "vary": description.knobs, "workload": description.workload}
    return [*(name for name, value in named.items() if value), *description.requests, *description.settings]


def _choose_workload(description: OwnServers) -> str:
    if "send" in description.requests and description.workload is not None:
        raise UserError("--send says what is sent; leave --workload out")
    return description.workload or SPEAKS_HTTP


def set_requests(experiment: Experiment, given: Mapping[str, Any], servers: Sequence[Contestant]) -> Experiment:
    """Return the experiment with what its scenarios send to the user's own servers: what is given, or else `GET /`
    where nothing but the user's own servers speak http. Raises UserError for options that contradict each other."""
    own_names = {server.name for server in servers if server.own is not None}
    taken_by = REPLACED_BY_BYTES if "send" in given else (SPEAKS_HTTP,)
    if given and not any(scenario.workload in taken_by for scenario in experiment.scenarios):
        raise UserError(
            f"--{next(iter(given))}: experiment {experiment.name!r} has no scenario of {quantities.listed(taken_by)}"
        )
    return experiment.change_each(lambda scenario: _set_requests(scenario, given, own_names))


def _set_requests(scenario: Scenario, given: Mapping[str, Any], own_names: set[str]) -> Scenario:
    sends = "send" in given
    if scenario.workload not in (REPLACED_BY_BYTES if sends else (SPEAKS_HTTP,)):
        return scenario
    fields = {REQUESTS[name].field: value for name, value in given.items()}
    scenario = msgspec.structs.replace(scenario, **fields)
    if fault := own_requests.check(scenario, "--" if given else ""):
        raise UserError(fault)
    others = [name for name in scenario.contestants if name not in own_names]
    if others and (scenario.are_own or fields.keys() - {"verify"} or scenario.verify not in (None, "echo")):
        if not given:
            return scenario  # those cells are skipped
        raise UserError(
            f"--{next(iter(given))}: {quantities.listed(others)} can only repeat the URL of a request; leave them out, "
            "or compare by --verify echo"
        )
    if sends:
        return msgspec.structs.replace(scenario, workload=BYTES)
    if others or scenario.are_own or scenario.verify == "echo":
        return scenario
    return msgspec.structs.replace(scenario, path=("/",))
