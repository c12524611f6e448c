"""One `[[scenario]]` of an experiment file, parsed into frozen values (docs/experiments.md), and checked for what would
fail in the middle of a run. A key or value that is not understood is an error that names the file, the key and the
nearest valid key.

The generator refuses 29 of these 78 contradictions, too (loadgen/plan/plan.cpp), for those who start it alone. Only 17
of them set a word against a word, so that one table for both sides would be as long; and to ask the generator would
refuse an experiment after minutes of building, in the words of its options. tests/programs/test_load_plan.py holds that
it takes whatever this takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from netdyno.kit import quantities
from netdyno.kit.errors import UserError, check_keys, table_in
from netdyno.kit.units import duration_words
from netdyno.model import own_requests
from netdyno.model.base import type_level
from netdyno.model.contestant import GENERATOR, OF_FRAMEWORKS
from netdyno.model.experiment import Scenario
from netdyno.model.levels import check_combinations, combinations, count_combinations
from netdyno.model.links import LINKS
from netdyno.model.options import (
    LOAD,
    MACHINE,
    OWN,
    REQUESTS,
    SCENARIO,
    SERVER,
    SHARED,
    SIDES,
    Settings,
    count_check_connections,
    is_timed_by_others,
    most_generator_threads,
    read_key,
    read_level,
    settings,
)
from netdyno.model.transports import SOME_TRANSPORTS_OPTIONS
from netdyno.question.capacity import CAPACITY, check_capacity
from netdyno.question.request_files import insert_files

WHERE_POSSIBLE = ("threads", "application-tick", *SOME_TRANSPORTS_OPTIONS)
"""The options that only some servers have, and that a comparison may leave to each. It may not so leave what else a
manifest names: without it the work is another."""
MOST_SERVICE_TIME_S = 10  # protocol/WIRE.md
MOST_RATE_HZ, MOST_RAMP_S = 1e7, 3600
"""The highest rate of all connections, and the longest time in which they are opened (loadgen/plan/)."""
MOST_PATH = 16_000
"""Bytes of a request's path, as servers refuse a longer head (protocol/WIRE.md)."""
ASKS_BACKEND = ("rpc", "http")
"""The workloads whose requests can ask a backend."""
ASKS_FOR_TIME = ("rpc", *OF_FRAMEWORKS)
"""The workloads whose requests can ask for a service time."""

HAS_FRAMES = ("rpc", "chat")
"""The workloads whose messages are a length and a body, which a server can read one by one."""

READING_LOADS = (
    "arrivals",
    "depth",
    "round",
    "look-every",
    "rate",
    "rate-per-connection",
    "burst-rate",
    "write-mode",
    "write-due",
    "client-hosts",
    "requests-per-connection",
    "busy-connections",
    "slow-readers",
    "connect-rate",
    "start",
)
"""The conditions of a load with answers to wait for, which clients that read nothing do not have."""

LEAST_CHUNK, CHUNK_OVERHEAD = 32, 128
"""Bytes of a chunk's data, a stamp and a number, and what it counts beside them (protocol/WIRE.md, Web)."""

Contradictions = Mapping[str, object]
"""Sentences about options that contradict each other, each with whether it holds. The first that holds is reported."""
Rules = Mapping[str, Contradictions]
"""Sentences by what stands before them, which names the key."""

T = TypeVar("T", bound=msgspec.Struct)


# --- keys for all scenarios -----------------------------------------------------------------------------------------


SCENARIO_KEYS = (*OWN, *SHARED, "factors", "server", "where-possible")


def read_shared(where: str, table: Mapping[str, object]) -> dict[str, object]:
    """Read the fields of a scenario that a table has under the keys of SHARED."""
    return {option.field: read_key(where, option, table[key]) for key, option in SHARED.items() if key in table}


# --- one scenario -----------------------------------------------------------------------------------------------------


def parse(table: object, shared: Mapping[str, object], where: str) -> Scenario:
    """Parse one scenario; `shared` are the fields that the file has for all, which the scenario may override. Pure."""
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
            values[OWN[key].field] = read_key(where, OWN[key], value)
    given = {name: values[option.field] for name, option in REQUESTS.items() if option.field in values}
    values |= {REQUESTS[name].field: value for name, value in insert_files(given, f"{where}: key ").items()}
    values["server"] = _read_options(where, table, "server", SERVER)
    values["where_possible"] = _read_options(where, table, "where-possible", WHERE_POSSIBLE)
    values["factors"] = _read_factors(f"{where}: factors", table_in(where, table, "factors"))
    return build(where, values, has_depth="depth" in table)


def build(where: str, values: Mapping[str, object], *, has_depth: bool = False) -> Scenario:
    """Build a scenario from these fields, checked as a whole. `has_depth`: a depth is given. Pure."""
    scenario = convert(where, values, Scenario)
    if scenario.rate_share is not None and (scenario.rate is None or "rate" in scenario.factors):
        raise UserError(f"{where}: key 'rate-share': lowers one 'rate'; add that")
    _check_whole(where, scenario, has_depth=has_depth)
    return scenario


def _check_whole(where: str, scenario: Scenario, *, has_depth: bool) -> None:
    """Check all cells for what netdyno-load would refuse in the middle of a run (loadgen/plan/plan.cpp), and for what
    would mislead."""
    check_capacity(scenario, where)
    check_combinations(where, count_combinations(scenario))
    for levels in combinations(scenario):
        cell = settings(scenario, levels)
        rules = (
            *_list_schedule_rules(cell, scenario, has_depth=has_depth or "depth" in scenario.factors).items(),
            *_list_message_rules(cell).items(),
            *_list_connection_rules(cell).items(),
            *_list_program_rules(cell).items(),
            *_list_link_rules(cell, scenario).items(),
        )
        for key, contradictions in rules:
            for sentence, holds in contradictions.items():
                if holds:
                    raise UserError(f"{where}: {key}{sentence}")


def replace_load(scenario: Scenario, where: str, connections: int | None, rate: float | None) -> Scenario:
    """Return the scenario with this number of connections, and in an open loop this rate, in place of what it has or
    varies; None leaves that. Pure."""
    has_rate = rate is not None and scenario.arrivals != "closed"
    if has_rate and scenario.metric == CAPACITY:
        raise UserError(f"{where}: --rate: its rates are those among which it finds a capacity; leave --rate out")
    fields: dict[str, Any] = {} if connections is None else {"connections": connections}
    fields |= {"rate": rate, "rate_per_connection": None, "rate_share": None} if has_rate else {}
    fields["factors"] = {
        name: levels for name, levels in scenario.factors.items() if name.replace("-", "_") not in fields
    }
    replaced = msgspec.structs.replace(scenario, **fields)
    _check_whole(where, replaced, has_depth=False)
    return replaced


def _read_options(where: str, parent: Mapping[str, object], key: str, known: Iterable[str]) -> dict[str, type_level]:
    """Read a table of server options, each with a valid value."""
    table = table_in(where, parent, key)
    check_keys(f"{where}: {key}", table, known)
    return {name: read_level(f"{where}: {key}", name, value) for name, value in table.items()}


def _read_factors(where: str, table: Mapping[str, object]) -> dict[str, tuple[type_level, ...]]:
    factors: dict[str, tuple[type_level, ...]] = {}
    for key, levels in flatten_factors(where, table).items():
        if not isinstance(levels, list) or not levels:
            raise UserError(f"{where}: key {key!r} must be a list of levels, such as [10, 100]")
        factors[key] = tuple(read_level(where, key, level) for level in levels)
        if len(set(factors[key])) != len(levels):
            raise UserError(f"{where}: key {key!r} names a level twice")
    return factors


def flatten_factors(where: str, table: Mapping[str, object]) -> dict[str, object]:
    """Return the factors by their full names (options.sides_of_factor). Raises UserError for an option that two of them
    would set."""
    on_both_sides = [name for name in LOAD if name in SERVER]
    check_keys(where, table, (*MACHINE, *LOAD, *SERVER, *SIDES))
    factors = {key: levels for key, levels in table.items() if key not in SIDES}
    for side in SIDES:
        inner = table_in(where, table, side)
        check_keys(f"{where}: {side}", inner, on_both_sides)
        factors |= {f"{side}.{key}": levels for key, levels in inner.items()}
    for name in on_both_sides:
        if f"both.{name}" in factors and (name in factors or f"server.{name}" in factors):
            raise UserError(f"{where}: key 'both.{name}': {name!r} varies on one side as well; leave one of them out")
    return factors


def _list_schedule_rules(cell: Settings, scenario: Scenario, *, has_depth: bool) -> Rules:
    """List the rules of a loop, a burst (model/burst.py), the metric and several hosts. An open loop has a rate and no
    depth, and a closed loop no rate: else it would not run, or mislead."""
    is_open = cell.arrivals != "closed"
    rates = [key for key in ("rate", "rate-per-connection") if getattr(cell, SCENARIO[key].field) is not None]
    first_rate = rates[0] if rates else ""
    rules: dict[str, Contradictions] = {}
    rules[""] = {
        f"{first_rate!r} needs arrivals = 'constant' or 'poisson'; a closed loop has no rate of its own": (
            first_rate and not is_open
        ),
        f"arrivals = {cell.arrivals!r} needs a 'rate' (messages per second in all) or a 'rate-per-connection'": (
            is_open and not rates
        ),
        "'look-every' and 'round': leave one of them out; a client that polls so rarely would begin its rounds late": (
            cell.look_every_s > 0 and cell.round_s > 0
        ),
        "'write-due' = 'joined' and 'write-mode' = 'split': leave one of them out": (
            cell.write_due == "joined" and cell.write_mode == "split"
        ),
        "'rate' and 'rate-per-connection' say the same thing twice; leave one of them out": len(rates) > 1,
        f"'rate-per-connection': {cell.speakers} connections that send; at most {MOST_RATE_HZ:.0e} a second in all": (
            (cell.rate_per_connection or 0) * cell.speakers > MOST_RATE_HZ
        ),
        "'round' is for a closed loop; an open loop sends when the schedule says": is_open and cell.round_s > 0,
        "'depth' is for a closed loop; an open loop sends when the schedule says": is_open and has_depth,
    }
    if cell.burst_rate is not None:
        rules["key 'burst-rate': "] = {
            "a burst interrupts a load at one 'rate'; write that, and arrivals = 'poisson'": cell.rate is None,
            "the metric 'capacity' needs windows of one rate; leave it out": scenario.metric == CAPACITY,
            "'rate-share' lowers only the other rate; leave one of them out": scenario.rate_share is not None,
            "one host makes the load of a burst; leave 'client-hosts' out": cell.client_hosts > 1,
        }
    has_no_burst = scenario.metric == "recovery" and cell.burst_rate is None
    has_no_answer = scenario.measures_start and cell.workload == "chat"
    rules["key 'metric': "] = {
        "'recovery' is the time after a burst; add a 'burst-rate'": has_no_burst,
        "a start ends with the first answer, and a single client of a chat gets none": has_no_answer,
    }
    if cell.client_hosts > 1:
        many = "two" if is_timed_by_others(cell) else "one"
        rules[f"key 'client-hosts': {cell.client_hosts}: "] = {
            f"every thread of every host needs {many} of the {cell.speakers} connections that send": (
                _count_threads(cell) > most_generator_threads(cell)
            )
        }
    return rules


def _list_message_rules(cell: Settings) -> Rules:
    """List the rules of a message: its size, its service time, its stream of replies, and what the server has to do."""
    cannot_ask = cell.workload not in ASKS_FOR_TIME
    least_size = 29 if cell.workload in ("echo", "lines") else 28  # protocol/WIRE.md, Stamps
    service_time, most_s = duration_words(cell.service_time_s), MOST_SERVICE_TIME_S
    rules: dict[str, Contradictions] = {}
    rules[""] = {
        f"key 'size': {cell.size} bytes; a message of {cell.workload!r} has at least {least_size}": (
            cell.size < least_size
        ),
        f"key 'size': {cell.size} bytes; the path of a request of 'http' has at most {MOST_PATH}": (
            cell.workload == "http" and cell.size > MOST_PATH
        ),
        f"key 'size': {cell.size} bytes; a reply of {cell.workload!r} has at most 1 MiB": (
            cell.workload in OF_FRAMEWORKS and cell.size > 1 << 20
        ),
        "key 'write-mode': 'split': a message of 'grpc' leaves whole": (
            cell.workload == "grpc" and cell.write_mode == "split"
        ),
        f"key 'service-time': a request of 'rpc', 'web' or 'grpc' can ask for one, {cell.workload!r} cannot": (
            cell.service_time_s > 0 and cannot_ask
        ),
        f"server: key 'service-time': in {cell.workload!r} each request asks for it; write it outside": (
            cell.workload in OF_FRAMEWORKS and "service-time" in cell.server
        ),
        f"key 'service-time': {service_time} is above {most_s} s": cell.service_time_s > most_s,
    }
    if cell.slow_requests:
        rules["key 'slow-requests': "] = {
            f"a request of 'rpc', 'web' or 'grpc' can ask for a time, {cell.workload!r} cannot": cannot_ask,
            f"needs 'slow-request-time', at most {most_s} s": not 0 < cell.slow_request_time_s <= most_s,
        }
    if cell.chunks is not None:
        has_more = cell.service_time_s or cell.slow_requests or cell.depth > 1 or cell.client_hosts > 1
        rules["key 'chunks': "] = {
            "replies of 'web' can be streams, and none of your own requests": cell.workload != "web" or cell.are_own,
            f"'size' is that of a chunk: at least {LEAST_CHUNK} bytes, and all of a stream, each with "
            f"{CHUNK_OVERHEAD} more, at most 1 MiB": (
                not LEAST_CHUNK <= cell.size <= (1 << 20) // cell.chunks - CHUNK_OVERHEAD
            ),
            f"'every' is 1us to {most_s} s": not 1e-6 <= cell.every_s <= most_s,
            "leave 'service-time', 'slow-requests', 'depth' and 'client-hosts' out": has_more,
        }
    has_no_frames = cell.workload not in HAS_FRAMES or cell.is_encrypted
    rules["server: key "] = {
        "'read-mode': 'apart' is for rpc and chat, without TLS": (
            cell.server.get("read-mode") == "apart" and has_no_frames
        ),
        "'backend': is for service kind 'backend'": "backend" in cell.server and not cell.has_backend,
    }
    if cell.has_backend:
        asking = quantities.listed(ASKS_BACKEND)
        rules["key 'service-kind': 'backend': "] = {
            f"requests of {asking} ask one, {cell.workload!r} does not": cell.workload not in ASKS_BACKEND,
            "a request asks it for its service time; add a 'service-time'": cell.longest_service_time_s == 0,
        }
    return rules


def _list_connection_rules(cell: Settings) -> Rules:
    """List the rules of connections: which leave, which send, and which threads have them. A server that a client can
    end by leaving is for clients that write and never read: elsewhere its end would be a fault."""
    is_chat, is_open = cell.workload == "chat", cell.arrivals != "closed"
    rules: dict[str, Contradictions] = {}
    if cell.requests_per_connection is not None:
        least, depth = cell.requests_per_connection, cell.depth
        rules["key 'requests-per-connection': "] = {
            "needs replies, and 'chat' has none: each message goes to every client": is_chat,
            f"{least}; a depth of {depth} needs as many": depth > least,
        }
    if cell.connect_rate == "when-due":
        never_leave = not cell.clients_leave and not cell.are_own
        rules["key 'connect-rate': 'when-due': "] = {
            "is for an open loop; in a closed loop the first messages are due at once": not is_open,
            "goes with 'requests-per-connection', or with requests to your own server": never_leave,
            "idle connections are opened before; leave 'busy-connections' out": cell.busy_connections is not None,
        }
    if not isinstance(cell.connect_rate, str):
        ramp_s = cell.connections / cell.connect_rate
        rules["key 'connect-rate': "] = {
            f"{quantities.plural(cell.connections, 'connection')} at {cell.connect_rate:g} a second take "
            f"{duration_words(ramp_s)}; at most {MOST_RAMP_S} s": ramp_s > MOST_RAMP_S
        }
    if cell.busy_connections is not None:
        all_connections = quantities.plural(cell.connections, "connection")
        rules[f"key 'busy-connections': {cell.busy_connections}: "] = {
            "in 'chat' every connection receives what others send, so none is idle": is_chat,
            "idle connections stay open; leave 'requests-per-connection' out": cell.clients_leave,
            f"more than the {all_connections}": cell.busy_connections > cell.connections,
        }
    if cell.is_write_only:
        extra = cell.list_changed(READING_LOADS)[:1]
        rules["key 'messages': "] = {
            "is for the workload chat; replies that no client reads are no answers": not is_chat,
            f"only {GENERATOR} has such clients, {cell.client!r} does not": cell.client != GENERATOR,
            "one thread makes the burst; write generator-threads = 1": cell.generator_threads != 1,
            f"these clients read nothing, and leave when they have written; leave {''.join(extra)!r} out": extra,
        }
    else:
        rules["server: key 'sigpipe': "] = {
            "'ends' is for clients that leave early; write 'messages'": cell.server.get("sigpipe") == "ends"
        }
    if cell.start == "at-once":
        rules["key 'start': "] = {
            "only in 'chat' do connected clients affect those that connect": not is_chat,
            "'at-once' is for a closed loop without rounds; a schedule begins for all together": (
                is_open or cell.round_s > 0
            ),
            "'at-once' and 'slow-readers': leave one of them out": cell.slow_readers > 0,
        }
    readers, least_left = cell.slow_readers, count_check_connections(cell.workload)
    rules["key 'slow-readers': "] = {
        "only in 'chat' do clients receive what others send": readers > 0 and not is_chat,
        f"{readers} of {cell.connections} leave no client to send and receive": (
            readers > 0 and cell.connections - readers < least_left
        ),
    }
    most, threads = most_generator_threads(cell), _count_threads(cell)
    needs = "thread needs" if threads == 1 else "threads need"
    two_each = " (two each, where a second one times a chat)" if most < cell.speakers else ""
    rules[f"key 'generator-threads': {threads} {needs} "] = {
        f"more connections that send than {cell.speakers}{two_each}": cell.client_hosts == 1 and threads > most
    }
    return rules


def _count_threads(cell: Settings) -> int:
    """Return how many threads of the generator a cell cannot do without: "cores" may become one."""
    return cell.generator_threads if isinstance(cell.generator_threads, int) else 1


def _list_program_rules(cell: Settings) -> Rules:
    """List the rules of requests of one's own, and of the program that makes the load."""
    fault, sends_bytes = own_requests.check(cell, ""), cell.workload == own_requests.BYTES
    rules: dict[str, Contradictions] = {}
    rules[""] = {
        fault: fault,
        f"key 'path': is for the workloads http and web, and not {cell.workload!r}": cell.path and not cell.speaks_http,
        "key 'service-time': a request of your own ('path') asks for none": cell.path and cell.service_time_s > 0,
        f"key 'send': goes with workload = {own_requests.BYTES!r}": (cell.send is not None) != sends_bytes,
    }
    if cell.client != GENERATOR:
        rules["key "] = _list_client_contradictions(cell)
    if cell.client_processes > 1:
        is_other = cell.workload != "rpc" or cell.arrivals != "closed"
        rules[f"key 'client-processes': {cell.client_processes}: "] = {  # measure/trial/client_processes.py
            "several processes make a closed loop of 'rpc', and nothing else": is_other,
            f"each process needs a connection, and there are {cell.connections}": (
                cell.client_processes > cell.connections
            ),
        }
    return rules


def _describe_loop(key: str, *, is_open: bool) -> str:
    if is_open:
        return "an open loop"
    return f"a closed loop{' with one request in flight' if key == 'depth' else ''}"


def _list_client_contradictions(cell: Settings) -> Contradictions:
    """List what a client contestant cannot do. It makes a closed loop, with one request in flight or `depth` messages
    of a chat, or for `echo` an external load program, an open loop (protocol/client.md). What only the generator can do
    is an error here and not a failure in the middle of a run."""
    is_open = cell.workload == "echo" and cell.arrivals != "closed"
    only_generator: dict[str, tuple[object, object]] = {
        "arrivals": (cell.arrivals, "constant" if is_open else "closed"),
        "round": (duration_words(cell.round_s), "0s"),
        "look-every": (duration_words(cell.look_every_s), "0s"),
        "burst-rate": (cell.burst_rate, None),
        "generator-threads": (_count_threads(cell), 1),
        "client-hosts": (cell.client_hosts, 1),
        "requests-per-connection": (cell.requests_per_connection, None),
        "busy-connections": (cell.busy_connections, None),
        "slow-readers": (cell.slow_readers, 0),
        "slow-requests": (cell.slow_requests, 0),
        "chunks": (cell.chunks, None),
        "path": (cell.path, ()),
        "send": (cell.send, None),
    }
    if not is_open:
        only_generator["connect-rate"] = (cell.connect_rate, "burst")
        only_generator["write-due"] = (cell.write_due, "each")
    if cell.workload == "chat":
        only_generator["audience"] = (str(cell.server.get("audience", "others")), "others")
    else:
        only_generator["depth"] = (cell.depth, 1)
    return {
        f"'connect-rate': client = {cell.client!r} needs connections a second": (
            is_open and isinstance(cell.connect_rate, str)
        ),
        **{
            f"{key!r}: only {GENERATOR} supports {requested!r}; with client = {cell.client!r}, "
            f"{_describe_loop(key, is_open=is_open)}, it is {possible!r}": requested != possible
            for key, (requested, possible) in only_generator.items()
        },
    }


def _list_link_rules(cell: Settings, scenario: Scenario) -> Rules:
    """List the rules of the link's keys. Where the link is a factor, a key applies to the links that have the property;
    varying it would measure the others several times under several names. A wan's relay shares no cores: while it waits
    for one, its link is late (docs/adr/shared-cores.md)."""
    requested = {
        "link-rate": cell.link_rate is not None,
        "link-delay": cell.link_delay_s > 0,
        "link-loss": cell.link_loss > 0,
    }
    chosen = [LINKS[str(link)] for link in scenario.factors.get("link", (cell.link,))]
    cannot_impair, is_loopback = not any(link.impaired for link in chosen), not any(link.apart for link in chosen)
    phrase = f"{'a' if cell.is_apart else 'the'} {cell.link}"
    keys: Contradictions = {
        f'{key!r}: {phrase} has none; write link = "wan"': (
            (requested[key] and cannot_impair) or (key in scenario.factors and not cell.is_impaired)
        )
        for key in ("link-delay", "link-loss")
    }
    others: Contradictions = {
        "'link-rate': the loopback has no rate; write link = \"lan\"": requested["link-rate"] and is_loopback,
        "'link': a wan needs 'link-delay', 'link-loss' or 'link-rate'; add one, or write link = \"lan\"": (
            cell.is_impaired and not any(requested.values())
        ),
        "'placement': server and generator would share their cores with the relay of the wan; write placement = "
        '"apart", or another link': cell.shares_cores and cell.is_impaired,
    }
    return {"key ": {**keys, **others}}


def convert(where: str, values: Mapping[str, object], kind: type[T]) -> T:
    """Convert fields with msgspec, which checks the types and knows them by their stored names; its message is
    rearranged so that the key stands first."""
    stored_names = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    try:
        return msgspec.convert({stored_names.get(name, name): value for name, value in values.items()}, kind)
    except msgspec.ValidationError as error:
        message, _, key = str(error).partition(" - at `$.")
        shown = key.rstrip("`").removesuffix("_s").replace("_", "-")
        raise UserError(f"{where}: {f'key {shown!r}: ' if shown else ''}{message}") from error
