"""One `[[scenario]]` of an experiment file, parsed into frozen values (docs/experiments.md), and checked for what would
go wrong in the middle of a run. Whatever is not understood is an error that names the file, the key and the nearest
valid key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from netdyno.base.errors import UserError, check_keys, table_in
from netdyno.base.units import duration_words
from netdyno.experiment.capacity import check_capacity
from netdyno.model.base import type_level
from netdyno.model.contestant import GENERATOR
from netdyno.model.experiment import Scenario
from netdyno.model.levels import combinations
from netdyno.model.links import LINKS
from netdyno.model.options import (
    LOAD,
    MACHINE,
    OWN,
    SERVER,
    SHARED,
    SIDES,
    Settings,
    check_connections,
    is_witnessed,
    most_generator_threads,
    read_level,
    read_value,
    settings,
)
from netdyno.model.transports import SOME_SERVERS_OPTIONS

WHERE_POSSIBLE = ("threads", *SOME_SERVERS_OPTIONS)
"""What one server can have and another cannot, and a comparison may still leave to each (transports.py)."""
MOST_SERVICE_TIME_S = 10  # protocol/WIRE.md

T = TypeVar("T")


# --- what a file may say once for all scenarios ---------------------------------------------------------------------


SCENARIO_KEYS = (*OWN, *SHARED, "factors", "server", "where-possible")


def read_shared(where: str, table: Mapping[str, object]) -> dict[str, object]:
    """The fields of a scenario that a table says under the keys of SHARED."""
    return {option.field: read_value(where, option, table[key]) for key, option in SHARED.items() if key in table}


# --- one scenario -----------------------------------------------------------------------------------------------------


def parse(table: object, shared: Mapping[str, object], where: str) -> Scenario:
    """One scenario; `shared` are the fields that the file says for all, of which it may say its own. Pure."""
    if not isinstance(table, dict):
        raise UserError(f"{where}: must be a table")
    if isinstance(table.get("name"), str):
        where = f"{where} ({table['name']!r})"
    check_keys(where, table, SCENARIO_KEYS)
    for key in ("name", "workload"):
        if key not in table:
            raise UserError(f"{where}: the key {key!r} is missing")
    values: dict[str, object] = {**shared, **read_shared(where, table)}
    for key, value in table.items():
        if key in OWN:
            values[OWN[key].field] = read_value(where, OWN[key], value)
    values["server"] = _options(where, table, "server", SERVER)
    values["where_possible"] = _options(where, table, "where-possible", WHERE_POSSIBLE)
    values["factors"] = _factors(f"{where}: factors", table_in(where, table, "factors"))
    return build(where, values, has_depth="depth" in table)


def build(where: str, values: Mapping[str, object], *, has_depth: bool = False) -> Scenario:
    """A scenario of these fields, checked as a whole. `has_depth`: somebody has said one. Pure."""
    scenario = convert(where, values, Scenario)
    check_capacity(scenario, where)
    for levels in combinations(scenario):
        wanted = settings(scenario, levels)
        _check_loop(where, wanted, has_depth=has_depth or "depth" in scenario.factors)
        _check_hosts(where, wanted)
        _check_load(where, wanted)
        _check_client(where, wanted)
        _check_processes(f"{where}: key 'client-processes': {wanted.client_processes}", wanted)
        _check_link(where, wanted, scenario)
        _check_placement(where, wanted)
    return scenario


def _options(where: str, parent: Mapping[str, object], key: str, known: Iterable[str]) -> dict[str, type_level]:
    """A table of server options, each with a value that it takes."""
    table = table_in(where, parent, key)
    check_keys(f"{where}: {key}", table, known)
    return {name: read_level(f"{where}: {key}", name, value) for name, value in table.items()}


def _factors(where: str, table: Mapping[str, object]) -> dict[str, tuple[type_level, ...]]:
    factors: dict[str, tuple[type_level, ...]] = {}
    for key, levels in flat(where, table).items():
        if not isinstance(levels, list) or not levels:
            raise UserError(f"{where}: key {key!r} must be a list of levels, such as [10, 100]")
        factors[key] = tuple(read_level(where, key, level) for level in levels)
        if len(set(factors[key])) != len(levels):
            raise UserError(f"{where}: key {key!r} names a level twice")
    return factors


def flat(where: str, table: Mapping[str, object]) -> dict[str, object]:
    """The factors by their full names (options.whose); an option that two of them would set is an error."""
    on_both_sides = [name for name in LOAD if name in SERVER]
    check_keys(where, table, (*MACHINE, *LOAD, *SERVER, *SIDES))
    found = {key: levels for key, levels in table.items() if key not in SIDES}
    for side in SIDES:
        inner = table_in(where, table, side)
        check_keys(f"{where}: {side}", inner, on_both_sides)
        found |= {f"{side}.{key}": levels for key, levels in inner.items()}
    for name in on_both_sides:
        if f"both.{name}" in found and (name in found or f"server.{name}" in found):
            raise UserError(f"{where}: key 'both.{name}': {name!r} varies on one side as well; leave one of them out")
    return found


def _check_loop(where: str, wanted: Settings, *, has_depth: bool) -> None:
    """An open loop needs a rate and knows no depth, a closed loop has no rate: half would not run, half mislead."""
    rates = [
        key
        for key, rate in (("rate", wanted.rate), ("rate-per-connection", wanted.rate_per_connection))
        if rate is not None
    ]
    if wanted.arrivals == "closed" and rates:
        raise UserError(
            f"{where}: {rates[0]!r} needs arrivals = 'constant' or 'poisson'; a closed loop has no rate of its own"
        )
    if wanted.arrivals != "closed" and not rates:
        raise UserError(
            f"{where}: arrivals = {wanted.arrivals!r} needs a 'rate' (messages per second in all) "
            "or a 'rate-per-connection'"
        )
    if wanted.look_every_s > 0 and wanted.round_s > 0:
        raise UserError(f"{where}: 'look-every' and 'round': leave one of them out; a look would make the rounds late")
    if wanted.write_due == "joined" and wanted.write_mode == "split":
        raise UserError(f"{where}: 'write-due' = 'joined' and 'write-mode' = 'split': leave one of them out")
    if len(rates) > 1:
        raise UserError(f"{where}: 'rate' and 'rate-per-connection' say the same thing twice; leave one of them out")
    if wanted.arrivals != "closed" and wanted.round_s > 0:
        raise UserError(f"{where}: 'round' is for a closed loop; an open loop sends when the schedule says")
    if wanted.arrivals != "closed" and has_depth:
        raise UserError(f"{where}: 'depth' is for a closed loop; an open loop sends when the schedule says")


def _loop_words(key: str, *, is_open: bool) -> str:
    if is_open:
        return "an open loop"
    return f"a closed loop{' with one request in flight' if key == 'depth' else ''}"


def _check_client(where: str, wanted: Settings) -> None:
    """A client contestant is a closed loop, with one request in flight or so many messages of a chat, or for `echo` the
    load program of others, an open loop (protocol/client.md): what only the generator can do is an error here and not a
    failure in the middle of a run."""
    if wanted.client == GENERATOR:
        return
    is_open = wanted.workload == "echo" and wanted.arrivals != "closed"
    only_generator: dict[str, tuple[object, object]] = {
        "arrivals": (wanted.arrivals, "constant" if is_open else "closed"),
        "round": (duration_words(wanted.round_s), "0s"),
        "look-every": (duration_words(wanted.look_every_s), "0s"),
        "generator-threads": (_threads_asked(wanted), 1),
        "client-hosts": (wanted.client_hosts, 1),
        "requests-per-connection": (wanted.requests_per_connection, None),
        "slow-readers": (wanted.slow_readers, 0),
        "slow-requests": (wanted.slow_requests, 0),
        "start": (wanted.start, "together"),
    }
    if is_open:
        if wanted.connect_rate == "burst":
            raise UserError(f"{where}: key 'connect-rate': client = {wanted.client!r} needs connections a second")
    else:
        only_generator["connect-rate"] = (wanted.connect_rate, "burst")
        only_generator["write-due"] = (wanted.write_due, "each")
    if wanted.workload == "chat":
        only_generator["audience"] = (str(wanted.server.get("audience", "others")), "others")
    else:
        only_generator["depth"] = (wanted.depth, 1)
    for key, (asked, possible) in only_generator.items():
        if asked != possible:
            raise UserError(
                f"{where}: key {key!r}: {asked!r} is what only {GENERATOR} can do; with client = {wanted.client!r}, "
                f"{_loop_words(key, is_open=is_open)}, it is {possible!r}"
            )


def _check_processes(key: str, wanted: Settings) -> None:
    """What several processes can make together (trial/client_processes.py)."""
    if wanted.client_processes == 1:
        return
    if wanted.workload != "rpc" or wanted.arrivals != "closed":
        raise UserError(f"{key}: several processes make a closed loop of 'rpc', and nothing else")
    if wanted.client_processes > wanted.connections:
        raise UserError(f"{key}: each process needs a connection, and there are {wanted.connections}")


def _check_slow_requests(where: str, wanted: Settings) -> None:
    if not wanted.slow_requests:
        return
    key = f"{where}: key 'slow-requests'"
    if wanted.workload != "rpc":
        raise UserError(f"{key}: a request of 'rpc' can ask for a time, {wanted.workload!r} cannot")
    if not 0 < wanted.slow_request_time_s <= MOST_SERVICE_TIME_S:
        raise UserError(f"{key}: what do they ask for? (slow-request-time, at most {MOST_SERVICE_TIME_S} s)")


def _check_load(where: str, wanted: Settings) -> None:
    """What the generator would refuse in the middle of a run (loadgen/plan.cpp, contradiction)."""
    least = 29 if wanted.workload in ("echo", "lines") else 28  # protocol/WIRE.md, Stamps
    if wanted.size < least:
        raise UserError(
            f"{where}: key 'size': {wanted.size} bytes; a message of {wanted.workload!r} has at least {least}"
        )
    if wanted.service_time_s > 0 and wanted.workload != "rpc":
        raise UserError(f"{where}: key 'service-time': a request of 'rpc' can ask for one, {wanted.workload!r} cannot")
    if wanted.service_time_s > MOST_SERVICE_TIME_S:
        asked = duration_words(wanted.service_time_s)
        raise UserError(f"{where}: key 'service-time': {asked} is above {MOST_SERVICE_TIME_S} s")
    _check_slow_requests(where, wanted)
    if wanted.requests_per_connection is not None:
        key = f"{where}: key 'requests-per-connection'"
        if wanted.workload == "chat":
            raise UserError(f"{key}: is for requests that are answered; those of 'chat' go to every client")
        if wanted.depth > wanted.requests_per_connection:
            raise UserError(f"{key}: {wanted.requests_per_connection}; a depth of {wanted.depth} needs as many")
    if wanted.start == "at-once":
        _check_start(f"{where}: key 'start'", wanted)
    if wanted.slow_readers > 0 and wanted.workload != "chat":
        raise UserError(f"{where}: key 'slow-readers': only in 'chat' do clients receive what others send")
    if wanted.slow_readers and wanted.connections - wanted.slow_readers < check_connections(wanted.workload):
        raise UserError(
            f"{where}: key 'slow-readers': {wanted.slow_readers} of {wanted.connections} leave no client to send "
            f"and receive"
        )
    most, threads = most_generator_threads(wanted), _threads_asked(wanted)
    if wanted.client_hosts == 1 and threads > most:
        needs = "thread needs" if threads == 1 else "threads need"
        raise UserError(
            f"{where}: key 'generator-threads': {threads} {needs} more connections than "
            f"{wanted.connections}{' (two each, where a witness times a chat)' if most < wanted.connections else ''}"
        )


def _check_start(key: str, wanted: Settings) -> None:
    """What a load cannot be that begins while others still connect (loadgen/plan.cpp, start_contradiction)."""
    if wanted.workload != "chat":
        raise UserError(f"{key}: only in 'chat' do connected clients affect those that connect")
    if wanted.arrivals != "closed" or wanted.round_s > 0:
        raise UserError(f"{key}: 'at-once' is for a closed loop without rounds; a schedule begins for all together")
    if wanted.slow_readers > 0:
        raise UserError(f"{key}: 'at-once' and 'slow-readers': leave one of them out")


def _check_hosts(where: str, wanted: Settings) -> None:
    """What cannot be parted (loadgen/plan.cpp, share_contradiction)."""
    if wanted.client_hosts == 1:
        return
    key = f"{where}: key 'client-hosts': {wanted.client_hosts}"
    if _threads_asked(wanted) > most_generator_threads(wanted):
        many = "two" if is_witnessed(wanted) else "one"
        raise UserError(f"{key}: every thread of every host needs {many} of the {wanted.connections} connections")


def _threads_asked(wanted: Settings) -> int:
    """Return how many threads of the generator a cell cannot do without: "cores" may become one."""
    return wanted.generator_threads if isinstance(wanted.generator_threads, int) else 1


def _check_link(where: str, wanted: Settings, scenario: Scenario) -> None:
    """What a link has not would not be kept there. Where the link is a factor, such a key is that of the links which
    have it; one that varies would measure the others several times under several names."""
    asked = {
        "link-rate": wanted.link_rate is not None,
        "link-delay": wanted.link_delay_s > 0,
        "link-loss": wanted.link_loss > 0,
    }
    chosen = [LINKS[str(one)] for one in scenario.factors.get("link", (wanted.link,))]
    for key in ("link-delay", "link-loss"):
        varies = key in scenario.factors and not wanted.is_impaired
        if varies or (asked[key] and not any(one.impaired for one in chosen)):
            raise UserError(f'{where}: key {key!r}: {_the_link(wanted)} has none; write link = "wan" beside it')
    if asked["link-rate"] and not any(one.apart for one in chosen):
        raise UserError(f"{where}: key 'link-rate': the loopback has no rate; write link = \"lan\" beside it")
    if wanted.is_impaired and not any(asked.values()):
        raise UserError(
            f"{where}: key 'link': a wan without 'link-delay', 'link-loss' and 'link-rate' is none; write them beside "
            'it, or link = "lan"'
        )


def _check_placement(where: str, wanted: Settings) -> None:
    """A relay that waits for a core makes its link late (docs/adr/shared-cores.md)."""
    if wanted.shares_cores and wanted.is_impaired:
        raise UserError(
            f"{where}: key 'placement': server and load would share their cores with the relay of the wan; write "
            'placement = "apart", or another link'
        )


def _the_link(wanted: Settings) -> str:
    return f"{'a' if wanted.is_apart else 'the'} {wanted.link}"


def convert(where: str, values: Mapping[str, object], kind: type[T]) -> T:
    """msgspec checks the types; its message is turned round so that the key stands first."""
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        message, _, key = str(error).partition(" - at `$.")
        shown = key.rstrip("`").removesuffix("_s").replace("_", "-")
        raise UserError(f"{where}: {f'key {shown!r}: ' if shown else ''}{message}") from error
