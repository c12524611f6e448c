"""The command lines of one trial: a cell in, argument lists out. Pure, but for the place of the build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import structs

from netdyno.kit.paths import ENTRY, build_dir, certificate_path
from netdyno.kit.units import format_duration
from netdyno.model import burst, own_requests, transports
from netdyno.model.base import type_level
from netdyno.model.contestant import GENERATOR, OF_FRAMEWORKS, Contestant
from netdyno.model.options import Settings, count_check_connections, most_generator_threads
from netdyno.model.own_requests import AT_FILE
from netdyno.model.server_options import added_options, all_options
from netdyno.model.trial import Trial
from netdyno.model.values import CORES
from netdyno.question.contestants.building import PRESETS, find_program

PORTS_OF_AN_ADDRESS = 25_000
ADDRESSES_OF_LEAVING = 8
"""The source addresses of clients that leave. A port that one has left can be used again after a second, and once half
of an address's ports are taken, each connect searches all of them (docs/measurements/answers.md)."""
USERS_BUILD = Path("build/release")
"""The build directory in commands for a user."""
BACKEND_BY_HAND = "127.0.0.1:7001"
"""The address of a backend that a user starts to repeat a trial."""
FIRST_CONNECTIONS = 4
FIRST_DURATION_S = 0.3
"""The load of the first requests to a server of the user's own: enough to see whether replies have one length."""
CHECK_DURATION_S = 0.02
"""The window of the closing check: it only shows whether a fresh connection still gets true answers."""


def build_server_command(
    contestant: Contestant,
    settings: Settings,
    address: str = transports.LOOPBACK_ADDRESS,
    *,
    cores: int,
    backend: str = "",
) -> list[str]:
    """Return the command of the server on a free port of an address, over the contestant's transport, with the options
    of the cell, so many cores and the URL of its backend."""
    listen = build_listen_url(contestant, address)
    added = added_options(contestant, settings, cores=cores)
    command = _format_server(choose_program(contestant, settings), listen, settings, added, build_dir())
    return [*command, "--backend", backend] if backend else command


def choose_program(contestant: Contestant, settings: Settings) -> Sequence[str]:
    """Return the words that start a contestant's program, in the build of the cell."""
    level = settings.other_build
    return (str(find_program(Path(contestant.command[0]), level)),) if level else contestant.command


def build_listen_url(contestant: Contestant, address: str) -> str:
    """Return the URL at which a contestant must listen on an address; of a running server, its own."""
    if contestant.own is not None and contestant.own.address:
        return contestant.own.address
    return transports.find_transport(contestant).to_url(address)


def may_reconnect(contestant: Contestant, settings: Settings) -> bool:
    """Whether the server may close a connection after a reply, as HTTP allows: one of the user's own, or a framework.
    Contestants keep their connections (protocol/WIRE.md)."""
    return contestant.has_stand_in and settings.speaks_http and not settings.are_own


def build_user_commands(trial: Trial, endpoint: str, settings: Settings, seed: int) -> tuple[list[str], list[str]]:
    """Return the commands of the same server and load for a user, through the entry ./netdyno. One process replaces
    several hosts or processes."""
    settings = structs.replace(settings, client_hosts=1, client_processes=1)
    if settings.client == GENERATOR:
        cores = trial.load.plan.threads if trial.load else 1
        reconnects = trial.load is not None and trial.load.plan.reconnects
        load = build_load_command((ENTRY, "load"), endpoint, settings, seed, cores=cores, reconnects=reconnects)
    else:
        load = build_client_command((ENTRY, "client", settings.client), endpoint, settings, seed)
    preset = ("env", f"NETDYNO_PRESET={PRESETS[settings.other_build]}") if settings.other_build else ()
    serve = (*preset, ENTRY, "serve", trial.contestant)
    server = _format_server(serve, endpoint, settings, trial.added, USERS_BUILD)
    scheme = "postgresql" if settings.asks_postgresql else "tcp"
    return [*server, *(("--backend", f"{scheme}://{BACKEND_BY_HAND}") if settings.has_backend else ())], load


def build_load_command(
    generator: Sequence[str],
    endpoint: str,
    settings: Settings,
    seed: int,
    *,
    cores: int = 1,
    reconnects: bool = False,
) -> list[str]:
    """Return the command of the generator with the load of the cell and so many cores; the caller adds its output
    files. `reconnects`: `may_reconnect`."""
    if settings.messages is not None:
        return _build_write_only_command(generator, endpoint, settings)
    requested = settings.generator_threads
    threads = min(cores, most_generator_threads(settings)) if requested == CORES else requested
    return [
        *_format_common_options(generator, endpoint, settings),
        *_format_given("--audience", settings.server.get("audience")),
        *("--arrivals", settings.arrivals, *_format_pace(settings)),
        *_format_given("--requests-per-connection", settings.requests_per_connection),
        *(("--reconnect",) if reconnects else ()),
        *_format_given("--busy-connections", settings.busy_connections),
        *_format_given("--slow-readers", settings.slow_readers or None),
        *_format_start(settings),
        *_format_sources(endpoint, settings, leave=settings.clients_leave or reconnects),
        *("--connect-rate", _format_number(settings.connect_rate), "--threads", str(threads)),
        *_format_share(settings),
        *_format_load(endpoint, settings, seed),
    ]


def _build_write_only_command(generator: Sequence[str], endpoint: str, settings: Settings) -> list[str]:
    """Return the command of clients that write and never read, which has no window and no answers."""
    return [
        *(*generator, *_format_target(endpoint, settings)),
        *_format_messages(settings),
        *("-c", str(settings.connections), "--messages", str(settings.messages)),
        *("--every", format_duration(settings.every_s), "--nodelay", settings.nodelay),
        *("--connect-timeout", format_duration(settings.connect_timeout_s)),
    ]


def build_client_command(client: Sequence[str], endpoint: str, settings: Settings, seed: int) -> list[str]:
    """Return the command of a client contestant with the load of the cell: the generator's options of a closed loop,
    of a chat also depth and start, or an open loop for a foreign load program (protocol/client.md)."""
    depth = ("--depth", str(settings.depth)) if settings.depth > 1 else ()
    open_loop: tuple[str, ...] = ()
    if settings.arrivals != "closed":
        open_loop = (
            *_format_rate(settings),
            "--connect-rate",
            _format_number(settings.connect_rate),
            *_format_due(settings),
        )
    return [
        *_format_common_options(client, endpoint, settings),
        *open_loop,
        *_format_load(endpoint, settings, seed),
        *depth,
        *_format_start(settings),
    ]


def check_command(
    generator: Sequence[str], endpoint: str, settings: Settings, *, reconnects: bool = False, once: bool = False
) -> list[str]:
    """Return the closing check: the fewest fresh connections that the workload allows, and one verified message at a
    time; with `once` no second message."""
    window = ("--count", "1") if once else ("--warmup", "0ms", "--duration", format_duration(CHECK_DURATION_S))
    connections = count_check_connections(settings.workload)
    return [*_build_small_command(generator, endpoint, settings, connections, reconnects=reconnects), *window]


def _build_small_command(
    generator: Sequence[str], endpoint: str, settings: Settings, connections: int, *, reconnects: bool
) -> list[str]:
    """Return the command of one request at a time over each of a few connections, without its window."""
    return [
        *_format_common_options(generator, endpoint, settings),
        *_format_given("--audience", settings.server.get("audience")),
        *("-c", str(connections), "--arrivals", "closed"),
        *(("--reconnect",) if reconnects else ()),
    ]


def count_first_connections(settings: Settings) -> int:
    """Return over how many connections the first requests go."""
    return max(count_check_connections(settings.workload), min(settings.connections, FIRST_CONNECTIONS))


def build_first_command(
    generator: Sequence[str], endpoint: str, settings: Settings, patience_s: float, *, reconnects: bool
) -> list[str]:
    """Return the first requests to a server of the user's own, over a few connections."""
    patient = structs.replace(settings, timeout_s=patience_s)
    connections = count_first_connections(settings)
    return [
        *_build_small_command(generator, endpoint, patient, connections, reconnects=reconnects),
        *("--connect-timeout", format_duration(patience_s)),
        *("--warmup", "0ms", "--duration", format_duration(FIRST_DURATION_S)),
    ]


def build_closed_command(
    generator: Sequence[str], endpoint: str, settings: Settings, patience_s: float, *, reconnects: bool
) -> list[str]:
    """Return the same requests over all connections of a cell that send, as fast as they are answered."""
    closed = close_loop(
        structs.replace(settings, connect_rate="burst", connect_timeout_s=patience_s, timeout_s=patience_s),
        FIRST_DURATION_S,
    )
    return build_load_command(generator, endpoint, closed, seed=1, reconnects=reconnects)


def close_loop(settings: Settings, duration_s: float) -> Settings:
    """Return the settings of the same requests over all connections that send, as fast as they are answered."""
    return structs.replace(
        settings,
        arrivals="closed",
        rate=None,
        rate_per_connection=None,
        burst_rate=None,
        connections=settings.speakers,
        busy_connections=None,
        warmup_s=0.0,
        duration_s=duration_s,
    )


def _format_server(
    program: Sequence[str], endpoint: str, settings: Settings, added: Mapping[str, type_level], build: Path
) -> list[str]:
    options = all_options(settings.server, added)
    for of_harness in ("build", "backend"):  # say which program, and which one it asks, by its URL
        options.pop(of_harness, None)
    # On the command line it is the file with certificate and key.
    if options.pop("tls", "off") == "on":
        options["tls"] = str(certificate_path(build))
    arguments = (argument for name, value in options.items() for argument in (f"--{name}", str(value)))
    return [*program, "--listen", endpoint, "--workload", settings.workload, *arguments]


def _format_common_options(program: Sequence[str], endpoint: str, settings: Settings) -> list[str]:
    encrypted = ("--insecure",) if settings.is_encrypted or is_encrypted(endpoint) else ()
    return [
        *(*program, *_format_target(endpoint, settings), *encrypted),
        *_format_messages(settings),
        *("--timeout", format_duration(settings.timeout_s)),
    ]


def find_target(contestant: Contestant, endpoint: str) -> str:
    """Return the endpoint that the load connects to: of a server of the user's own, with TLS and a file's name where it
    has them."""
    own = contestant.own
    if own is None:
        return endpoint
    port = endpoint.rpartition(":")[2]
    scheme = "tls" if own.tls else "tcp"
    target = f"{scheme}://{endpoint.partition('://')[2]}"
    return f"{target}{AT_FILE}{own.unix_socket.replace('{port}', port)}" if own.unix_socket else target


def adapt_to_server(settings: Settings, contestant: Contestant) -> Settings:
    """Return the settings with what a server of the user's own needs. An idle connection holds a worker that serves one
    after the other, so the server that closes each after a reply gets none in an open loop."""
    own = contestant.own
    if own is not None and own.closes and settings.arrivals != "closed" and settings.busy_connections is None:
        settings = structs.replace(settings, connect_rate="when-due")
    # The name in the server's address, which it may serve others by.
    if own is None or not own.host or not settings.path:
        return settings
    if any(header.lower().startswith("host:") for header in settings.header):
        return settings
    return structs.replace(settings, header=(*settings.header, f"Host: {own.host}"))


def _format_target(endpoint: str, settings: Settings) -> tuple[str, ...]:
    """Return the URL that the load goes to, and the file where that is not its port."""
    encrypted = settings.is_encrypted or is_encrypted(endpoint)
    scheme, _, place = endpoint.partition("://")
    place, _, file = place.partition(AT_FILE)
    if settings.path:
        scheme = "https" if encrypted else "http"
    elif encrypted and scheme == "tcp":
        scheme = "tls"
    return (f"{scheme}://{place}", *(("--unix-socket", file) if file else ()))


def _format_messages(settings: Settings) -> tuple[str, ...]:
    """Return the options that say what is sent."""
    if settings.are_own:
        return tuple(own_requests.list_options(settings))
    return ("--workload", settings.workload, "--size", str(settings.size))


def is_encrypted(endpoint: str) -> bool:
    """Whether a server of the user's own speaks TLS."""
    return endpoint.startswith("tls://")


def _format_load(endpoint: str, settings: Settings, seed: int) -> list[str]:
    """Return the options of the load that the generator and a client contestant share, where they apply: only some
    workloads have a service time, and transports of messages have no options of a stream."""
    transport = transports.of_url(endpoint)
    carries_messages = transport is not None and transport.messages
    stream = () if carries_messages else ("--nodelay", settings.nodelay, "--write-mode", settings.write_mode)
    service = ("--service-time", format_duration(settings.service_time_s)) if settings.service_time_s > 0 else ()
    if settings.slow_requests > 0:
        slow_time = format_duration(settings.slow_request_time_s)
        service = (*service, "--slow-requests", f"{settings.slow_requests:.9g}", "--slow-request-time", slow_time)
    if settings.workload in OF_FRAMEWORKS and not settings.are_own:
        service = (*service, "--service-kind", str(settings.server.get("service-kind", "wait")))
    if settings.chunks is not None:
        service = (*service, "--chunks", str(settings.chunks), "--every", format_duration(settings.every_s))
    return [
        *("-c", str(settings.connections)),
        *(*stream, *service),
        *("--connect-timeout", format_duration(settings.connect_timeout_s)),
        *("--warmup", format_duration(settings.warmup_s)),
        *(("--duration", format_duration(settings.duration_s)) if settings.burst_rate is None else ()),
        *("--seed", str(seed)),
    ]


def _format_pace(settings: Settings) -> tuple[str, ...]:
    """Return the pace of the generator: a rate, or one request for each reply."""
    # Spinning would take the core on which the server is to run, or its backend.
    spin = ("--spin", "off") if settings.shares_cores or settings.has_backend else ()
    polls = ("--look-every", format_duration(settings.look_every_s)) if settings.look_every_s > 0 else ()
    if settings.arrivals != "closed":
        return *_format_rate(settings), *spin, *polls, *_format_due(settings)
    rounds = ("--round", format_duration(settings.round_s), *spin) if settings.round_s > 0 else ()
    return "--depth", str(settings.depth), *rounds, *polls, *_format_due(settings)


def _format_due(settings: Settings) -> tuple[str, ...]:
    return ("--write-due", settings.write_due) if settings.write_due != "each" else ()


def _format_rate(settings: Settings) -> tuple[str, str]:
    """Return the rate of an open loop, or its rates where they are the window."""
    if settings.burst_rate is not None:
        rates = (settings.rate or 0, settings.burst_rate, settings.rate or 0)
        lengths = map(format_duration, burst.divide(settings.duration_s))
        return "--rate", ",".join(map("/".join, zip(map(_format_number, rates), lengths, strict=True)))
    if settings.rate is not None:
        return "--rate", _format_number(settings.rate)
    assert settings.rate_per_connection is not None, "a scenario with an open loop has a rate (question/scenarios.py)"
    return "--rate", f"{_format_number(settings.rate_per_connection)}/conn"


def _format_share(settings: Settings) -> tuple[str, ...]:
    """Return the first share; measure/cluster/remote_load.py counts on from it for the other hosts."""
    return ("--share", f"1/{settings.client_hosts}") if settings.client_hosts > 1 else ()


def _format_sources(endpoint: str, settings: Settings, *, leave: bool) -> tuple[str, ...]:
    """Return further source addresses on the loopback: each has some 28,000 ports to connect from (ip_local_port_range,
    ip(7)). `leave`: clients leave, and connect again."""
    needed = max(-(-settings.connections // PORTS_OF_AN_ADDRESS), ADDRESSES_OF_LEAVING if leave else 1)
    if needed == 1 or not endpoint.startswith("tcp://127."):
        return ()
    return ("--source-ips", ",".join(f"127.0.0.{number}" for number in range(1, needed + 1)))


def _format_given(option: str, value: object) -> tuple[str, ...]:
    """Return an option with its value; nothing for None."""
    return (option, str(value)) if value is not None else ()


def _format_start(settings: Settings) -> tuple[str, ...]:
    return ("--start", settings.start) if settings.start != "together" else ()


def _format_number(value: float | str) -> str:
    """Format a rate without a needless fraction: 20000, not 20000.0."""
    return value if isinstance(value, str) else f"{value:.12g}"
