"""The command lines of one trial. Pure: a cell in, argument lists out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import structs

from netdyno.base.units import format_duration
from netdyno.model import transports
from netdyno.model.base import type_level
from netdyno.model.contestant import GENERATOR, Contestant
from netdyno.model.options import Settings, check_connections, most_generator_threads
from netdyno.model.server_options import added_options, all_options
from netdyno.model.trial import Trial
from netdyno.model.values import CORES

PORTS_OF_AN_ADDRESS = 25_000
CHECK_DURATION_S = 0.02
"""Window of the closing check: it only asks whether a fresh connection still gets true answers."""


def server_command(
    contestant: Contestant, settings: Settings, address: str = transports.LOOPBACK_ADDRESS, *, cores: int
) -> list[str]:
    """The server on a free port of an address, over the contestant's transport, with the options of the cell. It has so
    many cores."""
    listen = listens_at(contestant, address)
    return _server(contestant.command, listen, settings, added_options(contestant, settings, cores=cores))


def listens_at(contestant: Contestant, address: str) -> str:
    """The URL at which a contestant is told to listen on an address; of one that stands already, where it was found."""
    if contestant.own is not None and contestant.own.address:
        return contestant.own.address
    return transports.of(contestant).at(address)


def by_hand(trial: Trial, endpoint: str, settings: Settings, seed: int) -> tuple[list[str], list[str]]:
    """The same server and load as a user would start them: through the one entry. What several hosts or
    processes made, one does."""
    settings = structs.replace(settings, client_hosts=1, client_processes=1)
    if settings.client == GENERATOR:
        cores = trial.load.plan.threads if trial.load else 1
        load = load_command(("./netdyno", "load"), endpoint, settings, seed, cores=cores)
    else:
        load = client_command(("./netdyno", "client", settings.client), endpoint, settings, seed)
    return _server(("./netdyno", "serve", trial.contestant), endpoint, settings, trial.added), load


def load_command(
    generator: Sequence[str], endpoint: str, settings: Settings, seed: int, *, cores: int = 1
) -> list[str]:
    """The generator with the load of the cell; the files it writes to are the caller's to add. It has so many cores."""
    asked = settings.generator_threads
    threads = min(cores, most_generator_threads(settings)) if asked == CORES else asked
    return [
        *_common(generator, endpoint, settings),
        *_audience(settings),
        *("--arrivals", settings.arrivals, *_pace(settings)),
        *_anew(settings),
        *_slow(settings),
        *_start(settings),
        *_sources(endpoint, settings),
        *("--connect-rate", _number(settings.connect_rate), "--threads", str(threads)),
        *_shared(settings),
        *_load(endpoint, settings, seed),
    ]


def client_command(client: Sequence[str], endpoint: str, settings: Settings, seed: int) -> list[str]:
    """A client contestant with the load of the cell: of the generator's options those that a closed loop has, and a
    depth where there is one, or an open loop of the load program of others (protocol/client.md)."""
    depth = ("--depth", str(settings.depth)) if settings.depth > 1 else ()
    open_loop: tuple[str, ...] = ()
    if settings.arrivals != "closed":
        open_loop = (*_rate(settings), "--connect-rate", _number(settings.connect_rate), *_due(settings))
    return [*_common(client, endpoint, settings), *open_loop, *_load(endpoint, settings, seed), *depth]


def check_command(generator: Sequence[str], endpoint: str, settings: Settings) -> list[str]:
    """The closing check: as few fresh connections as the workload allows, one verified message after the other."""
    return [
        *_common(generator, endpoint, settings),
        *_audience(settings),
        *("-c", str(check_connections(settings.workload)), "--arrivals", "closed"),
        *("--warmup", "0ms", "--duration", format_duration(CHECK_DURATION_S)),
    ]


def _server(program: Sequence[str], endpoint: str, settings: Settings, added: Mapping[str, type_level]) -> list[str]:
    options = all_options(settings.server, added)
    arguments = (argument for name, value in options.items() for argument in (f"--{name}", str(value)))
    return [*program, "--listen", endpoint, "--workload", settings.workload, *arguments]


def _common(program: Sequence[str], endpoint: str, settings: Settings) -> list[str]:
    return [
        *program,
        endpoint,
        *("--workload", settings.workload, "--size", str(settings.size)),
        *("--timeout", format_duration(settings.timeout_s)),
    ]


def _load(endpoint: str, settings: Settings, seed: int) -> list[str]:
    """What the generator and a client contestant are both told about the load. Only what says something there: a
    service time is known for one workload alone, and transports that carry messages know nothing of a stream."""
    transport = transports.of_url(endpoint)
    of_messages = transport is not None and transport.messages
    stream = () if of_messages else ("--nodelay", settings.nodelay, "--write-mode", settings.write_mode)
    service = ("--service-time", format_duration(settings.service_time_s)) if settings.service_time_s > 0 else ()
    if settings.slow_requests > 0:
        slow_time = format_duration(settings.slow_request_time_s)
        service = (*service, "--slow-requests", f"{settings.slow_requests:.9g}", "--slow-request-time", slow_time)
    return [
        *("-c", str(settings.connections)),
        *(*stream, *service),
        *("--connect-timeout", format_duration(settings.connect_timeout_s)),
        *("--warmup", format_duration(settings.warmup_s), "--duration", format_duration(settings.duration_s)),
        *("--seed", str(seed)),
    ]


def _pace(settings: Settings) -> tuple[str, ...]:
    """How fast the generator sends: at a rate, or as often as it is answered."""
    # A lookout would take the core on which the server is to run.
    spin = ("--spin", "off") if settings.shares_cores else ()
    looks = ("--look-every", format_duration(settings.look_every_s)) if settings.look_every_s > 0 else ()
    if settings.arrivals != "closed":
        return *_rate(settings), *spin, *looks, *_due(settings)
    rounds = ("--round", format_duration(settings.round_s), *spin) if settings.round_s > 0 else ()
    return "--depth", str(settings.depth), *rounds, *looks, *_due(settings)


def _due(settings: Settings) -> tuple[str, ...]:
    return ("--write-due", settings.write_due) if settings.write_due != "each" else ()


def _rate(settings: Settings) -> tuple[str, str]:
    """Return the rate of an open loop."""
    if settings.rate is not None:
        return "--rate", _number(settings.rate)
    assert settings.rate_per_connection is not None, "a scenario with an open loop has a rate (experiment/scenarios.py)"
    return "--rate", f"{_number(settings.rate_per_connection)}/conn"


def _shared(settings: Settings) -> tuple[str, ...]:
    """The first part; whoever has the others made counts on from there (cluster/loads.py)."""
    return ("--share", f"1/{settings.client_hosts}") if settings.client_hosts > 1 else ()


def _anew(settings: Settings) -> tuple[str, ...]:
    most = settings.requests_per_connection
    return ("--requests-per-connection", str(most)) if most is not None else ()


def _sources(endpoint: str, settings: Settings) -> tuple[str, ...]:
    """An address has some 28,000 ports to connect from (ip_local_port_range, ip(7)); the loopback has more
    addresses."""
    needed = -(-settings.connections // PORTS_OF_AN_ADDRESS)
    if needed == 1 or not endpoint.startswith("tcp://127."):
        return ()
    return ("--source-ips", ",".join(f"127.0.0.{number}" for number in range(1, needed + 1)))


def _slow(settings: Settings) -> tuple[str, ...]:
    return ("--slow-readers", str(settings.slow_readers)) if settings.slow_readers else ()


def _start(settings: Settings) -> tuple[str, ...]:
    return ("--start", settings.start) if settings.start != "together" else ()


def _audience(settings: Settings) -> tuple[str, ...]:
    audience = settings.server.get("audience")
    return ("--audience", str(audience)) if audience is not None else ()


def _number(value: float | str) -> str:
    """A rate without a needless fraction: 20000, not 20000.0."""
    return value if isinstance(value, str) else f"{value:.12g}"
