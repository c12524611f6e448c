"""One `[[scenario]]` of an experiment file, parsed into frozen values (docs/experiments.md), and checked for what would
fail in the middle of a run. A key or value that is not understood is an error that names the file, the key and the
nearest valid key."""

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
    SERVER,
    SHARED,
    SIDES,
    Settings,
    count_check_connections,
    is_witnessed,
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
ASKS_BACKEND = ("rpc", "http")
"""The workloads whose requests can ask a backend."""
ASKS_FOR_TIME = ("rpc", *OF_FRAMEWORKS)
"""The workloads whose requests can ask for a service time."""

HAS_FRAMES = ("rpc", "chat")
"""The workloads whose messages are a length and a body, which a server can read one by one."""

READING_LOADS = (
    "arrivals",
    "depth",
    "round_s",
    "look_every_s",
    "rate",
    "rate_per_connection",
    "burst_rate",
    "write_mode",
    "write_due",
    "client_hosts",
    "requests_per_connection",
    "busy_connections",
    "slow_readers",
    "connect_rate",
    "start",
)
"""The conditions of a load with answers to wait for, which clients that read nothing do not have."""

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
    check_capacity(scenario, where)
    check_combinations(where, count_combinations(scenario))
    for levels in combinations(scenario):
        cell_settings = settings(scenario, levels)
        _check_loop(where, cell_settings, has_depth=has_depth or "depth" in scenario.factors)
        _check_burst(where, cell_settings, scenario)
        _check_first_answer(where, cell_settings, scenario)
        _check_hosts(where, cell_settings)
        _check_load(where, cell_settings)
        _check_requests(where, cell_settings)
        _check_client(where, cell_settings)
        _check_processes(f"{where}: key 'client-processes': {cell_settings.client_processes}", cell_settings)
        _check_link(where, cell_settings, scenario)
        _check_placement(where, cell_settings)


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


def _check_loop(where: str, settings: Settings, *, has_depth: bool) -> None:
    """Check that an open loop has a rate and no depth, and a closed loop no rate: else it would not run, or mislead."""
    rates = [
        key
        for key, rate in (("rate", settings.rate), ("rate-per-connection", settings.rate_per_connection))
        if rate is not None
    ]
    if settings.arrivals == "closed" and rates:
        raise UserError(
            f"{where}: {rates[0]!r} needs arrivals = 'constant' or 'poisson'; a closed loop has no rate of its own"
        )
    if settings.arrivals != "closed" and not rates:
        raise UserError(
            f"{where}: arrivals = {settings.arrivals!r} needs a 'rate' (messages per second in all) "
            "or a 'rate-per-connection'"
        )
    if settings.look_every_s > 0 and settings.round_s > 0:
        raise UserError(f"{where}: 'look-every' and 'round': leave one of them out; a look would make the rounds late")
    if settings.write_due == "joined" and settings.write_mode == "split":
        raise UserError(f"{where}: 'write-due' = 'joined' and 'write-mode' = 'split': leave one of them out")
    if len(rates) > 1:
        raise UserError(f"{where}: 'rate' and 'rate-per-connection' say the same thing twice; leave one of them out")
    if settings.arrivals != "closed" and settings.round_s > 0:
        raise UserError(f"{where}: 'round' is for a closed loop; an open loop sends when the schedule says")
    if settings.arrivals != "closed" and has_depth:
        raise UserError(f"{where}: 'depth' is for a closed loop; an open loop sends when the schedule says")


def _check_burst(where: str, settings: Settings, scenario: Scenario) -> None:
    """Check that a burst lies within a window of one known rate (model/burst.py)."""
    if settings.burst_rate is None:
        if scenario.metric == "recovery":
            raise UserError(f"{where}: key 'metric': 'recovery' is the time after a burst; add a 'burst-rate'")
        return
    key = f"{where}: key 'burst-rate'"
    if settings.rate is None:
        raise UserError(f"{key}: a burst interrupts a load at one 'rate'; write that, and arrivals = 'poisson'")
    if scenario.metric == CAPACITY:
        raise UserError(f"{key}: the metric 'capacity' needs windows of one rate; leave it out")
    if scenario.rate_share is not None:
        raise UserError(f"{key}: 'rate-share' lowers only the other rate; leave one of them out")
    if settings.client_hosts > 1:
        raise UserError(f"{key}: one host makes the load of a burst; leave 'client-hosts' out")


def _check_first_answer(where: str, settings: Settings, scenario: Scenario) -> None:
    """Check that the first client of a server can have an answer."""
    if scenario.measures_start and settings.workload == "chat":
        raise UserError(f"{where}: key 'metric': a start ends with an answer, and one client of a chat gets none")


def _check_requests(where: str, settings: Settings) -> None:
    if fault := own_requests.check(settings, ""):
        raise UserError(f"{where}: {fault}")
    if settings.path and not settings.speaks_http:
        raise UserError(f"{where}: key 'path': is for the workloads http and web, and not {settings.workload!r}")
    if settings.path and settings.service_time_s > 0:
        raise UserError(f"{where}: key 'service-time': a request of your own ('path') asks for none")
    if (settings.send is not None) != (settings.workload == own_requests.BYTES):
        raise UserError(f"{where}: key 'send': goes with workload = {own_requests.BYTES!r}")


def _describe_loop(key: str, *, is_open: bool) -> str:
    if is_open:
        return "an open loop"
    return f"a closed loop{' with one request in flight' if key == 'depth' else ''}"


def _check_client(where: str, settings: Settings) -> None:
    """Check that a client contestant can make the load. It is a closed loop, with one request in flight or `depth`
    messages of a chat, or for `echo` an external load program, an open loop (protocol/client.md). What only the
    generator can do is an error here and not a failure in the middle of a run."""
    if settings.client == GENERATOR:
        return
    is_open = settings.workload == "echo" and settings.arrivals != "closed"
    only_generator: dict[str, tuple[object, object]] = {
        "arrivals": (settings.arrivals, "constant" if is_open else "closed"),
        "round": (duration_words(settings.round_s), "0s"),
        "look-every": (duration_words(settings.look_every_s), "0s"),
        "burst-rate": (settings.burst_rate, None),
        "generator-threads": (_count_threads(settings), 1),
        "client-hosts": (settings.client_hosts, 1),
        "requests-per-connection": (settings.requests_per_connection, None),
        "busy-connections": (settings.busy_connections, None),
        "slow-readers": (settings.slow_readers, 0),
        "slow-requests": (settings.slow_requests, 0),
        "chunks": (settings.chunks, None),
        "path": (settings.path, ()),
        "send": (settings.send, None),
    }
    if is_open:
        if isinstance(settings.connect_rate, str):
            raise UserError(f"{where}: key 'connect-rate': client = {settings.client!r} needs connections a second")
    else:
        only_generator["connect-rate"] = (settings.connect_rate, "burst")
        only_generator["write-due"] = (settings.write_due, "each")
    if settings.workload == "chat":
        only_generator["audience"] = (str(settings.server.get("audience", "others")), "others")
    else:
        only_generator["depth"] = (settings.depth, 1)
    for key, (requested, possible) in only_generator.items():
        if requested != possible:
            raise UserError(
                f"{where}: key {key!r}: only {GENERATOR} supports {requested!r}; "
                f"with client = {settings.client!r}, {_describe_loop(key, is_open=is_open)}, it is {possible!r}"
            )


def _check_processes(key: str, settings: Settings) -> None:
    """Check that several processes can make the load together (measure/trial/client_processes.py)."""
    if settings.client_processes == 1:
        return
    if settings.workload != "rpc" or settings.arrivals != "closed":
        raise UserError(f"{key}: several processes make a closed loop of 'rpc', and nothing else")
    if settings.client_processes > settings.connections:
        raise UserError(f"{key}: each process needs a connection, and there are {settings.connections}")


def _check_slow_requests(where: str, settings: Settings) -> None:
    if not settings.slow_requests:
        return
    key = f"{where}: key 'slow-requests'"
    if settings.workload not in ASKS_FOR_TIME:
        raise UserError(f"{key}: a request of 'rpc', 'web' or 'grpc' can ask for a time, {settings.workload!r} cannot")
    if not 0 < settings.slow_request_time_s <= MOST_SERVICE_TIME_S:
        raise UserError(f"{key}: needs 'slow-request-time', at most {MOST_SERVICE_TIME_S} s")


LEAST_CHUNK, CHUNK_OVERHEAD = 32, 128
"""Bytes of a chunk's data, a stamp and a number, and what it counts beside them (protocol/WIRE.md, Web)."""


def _check_stream(where: str, settings: Settings) -> None:
    """Check that replies can be streams (loadgen/plan/plan.cpp, stream_contradiction)."""
    if settings.chunks is None:
        return
    key = f"{where}: key 'chunks'"
    if settings.workload != "web" or settings.are_own:
        raise UserError(f"{key}: replies of 'web' can be streams, and none of your own requests")
    if not LEAST_CHUNK <= settings.size <= (1 << 20) // settings.chunks - CHUNK_OVERHEAD:
        raise UserError(
            f"{key}: 'size' is that of a chunk: at least {LEAST_CHUNK} bytes, and all of a stream, each with "
            f"{CHUNK_OVERHEAD} more, at most 1 MiB"
        )
    if not 0 < settings.every_s <= MOST_SERVICE_TIME_S:
        raise UserError(f"{key}: 'every' is at most {MOST_SERVICE_TIME_S} s, and more than 0")
    if settings.service_time_s or settings.slow_requests or settings.depth > 1 or settings.client_hosts > 1:
        raise UserError(f"{key}: leave 'service-time', 'slow-requests', 'depth' and 'client-hosts' out")


def _check_load(where: str, settings: Settings) -> None:
    """Check for all that the generator would refuse in the middle of a run (loadgen/plan/plan.cpp, contradiction)."""
    least = 29 if settings.workload in ("echo", "lines") else 28  # protocol/WIRE.md, Stamps
    if settings.size < least:
        raise UserError(
            f"{where}: key 'size': {settings.size} bytes; a message of {settings.workload!r} has at least {least}"
        )
    if settings.service_time_s > 0 and settings.workload not in ASKS_FOR_TIME:
        raise UserError(
            f"{where}: key 'service-time': a request of 'rpc', 'web' or 'grpc' can ask for one, "
            f"{settings.workload!r} cannot"
        )
    if settings.workload in OF_FRAMEWORKS and "service-time" in settings.server:
        raise UserError(
            f"{where}: server: key 'service-time': in {settings.workload!r} each request asks for it; write it outside"
        )
    if settings.service_time_s > MOST_SERVICE_TIME_S:
        requested = duration_words(settings.service_time_s)
        raise UserError(f"{where}: key 'service-time': {requested} is above {MOST_SERVICE_TIME_S} s")
    _check_slow_requests(where, settings)
    _check_stream(where, settings)
    if settings.server.get("read-mode") == "apart" and (settings.workload not in HAS_FRAMES or settings.is_encrypted):
        raise UserError(f"{where}: server: key 'read-mode': 'apart' is for rpc and chat, without TLS")
    if settings.has_backend:
        _check_backend(f"{where}: key 'service-kind': 'backend'", settings)
    elif "backend" in settings.server:
        raise UserError(f"{where}: server: key 'backend': is for service kind 'backend'")
    if settings.requests_per_connection is not None:
        key = f"{where}: key 'requests-per-connection'"
        if settings.workload == "chat":
            raise UserError(f"{key}: is for requests that are answered; those of 'chat' go to every client")
        if settings.depth > settings.requests_per_connection:
            raise UserError(f"{key}: {settings.requests_per_connection}; a depth of {settings.depth} needs as many")
    if settings.connect_rate == "when-due":
        _check_connects(f"{where}: key 'connect-rate': 'when-due'", settings)
    if settings.busy_connections is not None:
        _check_busy(f"{where}: key 'busy-connections': {settings.busy_connections}", settings)
    _check_write_only(where, settings)
    if settings.start == "at-once":
        _check_start(f"{where}: key 'start'", settings)
    if settings.slow_readers > 0 and settings.workload != "chat":
        raise UserError(f"{where}: key 'slow-readers': only in 'chat' do clients receive what others send")
    if settings.slow_readers and settings.connections - settings.slow_readers < count_check_connections(
        settings.workload
    ):
        raise UserError(
            f"{where}: key 'slow-readers': {settings.slow_readers} of {settings.connections} leave no client to send "
            f"and receive"
        )
    most, threads = most_generator_threads(settings), _count_threads(settings)
    if settings.client_hosts == 1 and threads > most:
        needs = "thread needs" if threads == 1 else "threads need"
        raise UserError(
            f"{where}: key 'generator-threads': {threads} {needs} more connections that send than "
            f"{settings.speakers}"
            f"{' (two each, where a witness times a chat)' if most < settings.speakers else ''}"
        )


def _check_backend(key: str, settings: Settings) -> None:
    """Check that requests ask a backend for something."""
    if settings.workload not in ASKS_BACKEND:
        raise UserError(f"{key}: requests of {quantities.listed(ASKS_BACKEND)} ask one, {settings.workload!r} does not")
    if settings.longest_service_time_s == 0:
        raise UserError(f"{key}: a request asks it for its service time; add a 'service-time'")


def _check_connects(key: str, settings: Settings) -> None:
    """Check that connections can be opened for their first message (loadgen/plan/plan.cpp, contradiction)."""
    if settings.arrivals == "closed":
        raise UserError(f"{key}: is for an open loop; in a closed loop the first messages are due at once")
    if settings.requests_per_connection is None and not settings.are_own:
        raise UserError(f"{key}: goes with 'requests-per-connection', or with requests to your own server")
    if settings.busy_connections is not None:
        raise UserError(f"{key}: idle connections are opened before; leave 'busy-connections' out")


def _check_busy(key: str, settings: Settings) -> None:
    """Check that the other connections can stay idle (loadgen/plan/plan.cpp, busy_contradiction)."""
    if settings.workload == "chat":
        raise UserError(f"{key}: in 'chat' every connection receives what others send, so none is idle")
    if settings.requests_per_connection is not None:
        raise UserError(f"{key}: idle connections stay open; leave 'requests-per-connection' out")
    if settings.busy_connections is not None and settings.busy_connections > settings.connections:
        raise UserError(f"{key}: more than the {quantities.plural(settings.connections, 'connection')}")


def _check_start(key: str, settings: Settings) -> None:
    """Check a load that begins while others still connect (loadgen/plan/plan.cpp, start_contradiction)."""
    if settings.workload != "chat":
        raise UserError(f"{key}: only in 'chat' do connected clients affect those that connect")
    if settings.arrivals != "closed" or settings.round_s > 0:
        raise UserError(f"{key}: 'at-once' is for a closed loop without rounds; a schedule begins for all together")
    if settings.slow_readers > 0:
        raise UserError(f"{key}: 'at-once' and 'slow-readers': leave one of them out")


def _check_write_only(where: str, settings: Settings) -> None:
    """Check clients that write and never read (loadgen/plan/plan.cpp, write_only_contradiction). A server that a client
    can end by leaving is for them alone: elsewhere its end would be a fault."""
    if not settings.is_write_only:
        if settings.server.get("sigpipe") == "ends":
            raise UserError(f"{where}: server: key 'sigpipe': 'ends' is for clients that leave early; write 'messages'")
        return
    key = f"{where}: key 'messages'"
    if settings.workload != "chat":
        raise UserError(f"{key}: is for the workload chat; replies that no client reads are no answers")
    if settings.client != GENERATOR:
        raise UserError(f"{key}: only {GENERATOR} has such clients, {settings.client!r} does not")
    if settings.generator_threads != 1:
        raise UserError(f"{key}: one thread makes the burst; write generator-threads = 1")
    defaults = Settings(workload="chat")
    for name in READING_LOADS:
        if getattr(settings, name) != getattr(defaults, name):
            option = name.removesuffix("_s").replace("_", "-")
            raise UserError(
                f"{key}: these clients read nothing, and leave when they have written; leave {option!r} out"
            )


def _check_hosts(where: str, settings: Settings) -> None:
    """Check that the load can be split over its hosts (loadgen/plan/plan.cpp, share_contradiction)."""
    if settings.client_hosts == 1:
        return
    key = f"{where}: key 'client-hosts': {settings.client_hosts}"
    if _count_threads(settings) > most_generator_threads(settings):
        many = "two" if is_witnessed(settings) else "one"
        raise UserError(
            f"{key}: every thread of every host needs {many} of the {settings.speakers} connections that send"
        )


def _count_threads(settings: Settings) -> int:
    """Return how many threads of the generator a cell cannot do without: "cores" may become one."""
    return settings.generator_threads if isinstance(settings.generator_threads, int) else 1


def _check_link(where: str, settings: Settings, scenario: Scenario) -> None:
    """Check that the link has the properties of its keys. Where the link is a factor, a key applies to the links that
    have the property; varying it would measure the others several times under several names."""
    requested = {
        "link-rate": settings.link_rate is not None,
        "link-delay": settings.link_delay_s > 0,
        "link-loss": settings.link_loss > 0,
    }
    chosen = [LINKS[str(link)] for link in scenario.factors.get("link", (settings.link,))]
    for key in ("link-delay", "link-loss"):
        varies = key in scenario.factors and not settings.is_impaired
        if varies or (requested[key] and not any(link.impaired for link in chosen)):
            raise UserError(f'{where}: key {key!r}: {_link_phrase(settings)} has none; write link = "wan"')
    if requested["link-rate"] and not any(link.apart for link in chosen):
        raise UserError(f"{where}: key 'link-rate': the loopback has no rate; write link = \"lan\"")
    if settings.is_impaired and not any(requested.values()):
        raise UserError(
            f"{where}: key 'link': a wan needs 'link-delay', 'link-loss' or 'link-rate'; add one, or write "
            'link = "lan"'
        )


def _check_placement(where: str, settings: Settings) -> None:
    """Check that a wan's relay shares no cores: while it waits for one, its link is late (docs/adr/shared-cores.md)."""
    if settings.shares_cores and settings.is_impaired:
        raise UserError(
            f"{where}: key 'placement': server and generator would share their cores with the relay of the wan; "
            'write placement = "apart", or another link'
        )


def _link_phrase(settings: Settings) -> str:
    return f"{'a' if settings.is_apart else 'the'} {settings.link}"


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
