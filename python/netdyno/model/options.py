"""The options of load and server that an experiment may set or vary, with the values that each takes. The text of a
file becomes a value here: a duration is seconds from here on.

A factor is named by its option. Three options exist on both sides (`nodelay`, `write-mode`, `service-time`): as in the
rest of a scenario the plain name is the load's, `server.<name>` is the server's, `both.<name>` sets the two
together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from netdyno.kit.errors import UserError, did_you_mean
from netdyno.kit.units import duration_words
from netdyno.model import own_requests
from netdyno.model.base import type_level
from netdyno.model.experiment import Conditions, Scenario
from netdyno.model.values import DURATION, THREADS, Option, declared, read_duration, whole, word

BACKEND = "backend"
"""The service kind of a server whose requests wait for another one's replies (protocol/WIRE.md, Backend)."""


POSTGRESQL = "postgresql"
"""The backend that is a real database."""

DEFAULT_POOL = 10
"""The connections to a backend where nothing else is said (lib/server/options.hpp)."""

SERVER: Mapping[str, Option] = {
    name: Option(takes, text, "server", name, name)
    for name, takes, text in (
        ("threads", THREADS, "Threads of the server."),
        ("backlog", whole(1), "Backlog of listen(2)."),
        ("nodelay", word("on", "off"), "TCP_NODELAY of the server's connections."),
        ("read-buffer", whole(1), "Bytes per read."),
        ("write-mode", word("gathered", "split"), "How the server writes header and body."),
        ("audience", word("others", "all"), "chat: who receives a message."),
        ("deliveries", word("joined", "single"), "chat: waiting messages leave in one call, or one each."),
        ("service-time", DURATION, "rpc, http: how long the server works for a request."),
        ("service-kind", word("wait", "cpu", BACKEND), "Whether it waits, burns CPU, or asks a backend."),
        ("max-frame", whole(1), "Bytes of the largest frame that is taken."),
        ("outbox-limit", whole(1), "Bytes that may wait for a slow reader before it is closed."),
        ("application-tick", word("off", "on"), "A 10 ms timer in the main loop; its lag is measured."),
        ("sigpipe", word("ignored", "ends"), "ends: a send to a client that has gone ends the server (unsafe)."),
        ("build", word("release", "debug", "O3"), "C++ servers: -O2 (release), no optimisation (debug), or -O3."),
        ("read-mode", word("joined", "apart"), "rpc, chat: one read for all there is, or header, then body."),
        ("accept", word("reuseport", "exclusive"), "A listener for each thread, or one that all watch."),
        ("busy-poll", DURATION, "How long a loop asks for events before it sleeps."),
        ("backend", word("calibrated", POSTGRESQL), "Service kind backend: exact waits, or a real database."),
        ("pool", whole(1), "Service kind backend: connections to it (default 10)."),
        ("tls", word("off", "on"), "Except chat: whether TLS encrypts all bytes."),
        ("peers", whole(1), "Not over tcp: clients that may be known at a time."),
        ("peer-timeout", DURATION, "Not over tcp: how long a client may be silent."),
        ("socket-buffer", whole(1), "Not over tcp: bytes of the sockets' buffers."),
        ("io-threads", whole(1), "Over zmq+tcp: threads of libzmq that read and write."),
        ("hwm", whole(1), "Over zmq+tcp: messages that may wait for one client."),
    )
}
"""Options of servers, under the names that the programs use; the first of an option's words is its default. Every
server has most of them; transports.py lists those that exist on one kind of transport only, and a manifest those that
one server has in addition."""

SCENARIO = declared(Scenario)
"""All options of a scenario except those of its server, by name."""


def _select(*places: str) -> Mapping[str, Option]:
    return {name: option for name, option in SCENARIO.items() if option.place in places}


REQUESTS, LOAD, LINK = _select("requests"), _select("load"), _select("link")
OWN, SHARED = _select("own", "requests", "load"), _select("shared", "link", "cores")
"""The options of requests and of the load, as netdyno-load understands them, and `client`, the program that makes the
load; those of the link between load and server; those that only a scenario can have; and those that a file may set once
for all scenarios."""

MACHINE = _select("link", "cores")
"""The options of the machine on which both programs run; neither program gets them."""

PROFILED: tuple[Option, ...] = (
    SCENARIO["workload"],
    replace(SCENARIO["connections"], default=20),
    SCENARIO["depth"],
    replace(SCENARIO["size"], default=64),
    replace(SCENARIO["rate"], default=None),
    replace(SCENARIO["warmup"], default=0.2),
    replace(SCENARIO["duration"], default=2.0),
    SERVER["threads"],
    SERVER["service-time"],
    SERVER["service-kind"],
    SERVER["pool"],
    SERVER["tls"],
)
"""The options of the load of a profile, with their own defaults."""

SIDES = ("server", "both")
"""The tables inside `factors` for options that the load has as well."""


def sides_of_factor(factor: str) -> tuple[str | None, str | None]:
    """Return the load's option and the server's option that a factor sets; None for a side that it does not set. A
    factor of the link or the cores sets neither. Pure. Raises KeyError for a name that is no factor."""
    side, _, name = factor.rpartition(".")
    if not side and name in MACHINE:
        return None, None
    if side == "both" and name in LOAD and name in SERVER:
        return name, name
    if side == "server" and name in LOAD and name in SERVER:
        return None, name
    if not side and name in LOAD:
        return name, None
    if not side and name in SERVER:
        return None, name
    raise KeyError(factor)


def option_of(name: str) -> Option:
    """Return the option of the load, the machine or the server that a factor sets (`server.x` takes the values of
    `x`)."""
    option = name.rpartition(".")[2]
    return MACHINE.get(option) or LOAD.get(option) or SERVER[option]


def read_value(where: str, option: Option, value: object) -> Any:
    """Convert the value of an option. Raises UserError naming `where` and the values that it takes."""
    try:
        return option.takes.read(value)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from error


def read_key(where: str, option: Option, value: object) -> Any:
    """Convert the value of an option from a file. Raises UserError naming the option as well."""
    return read_value(f"{where}: key {option.name!r}", option, value)


def read_level(where: str, name: str, value: object) -> type_level:
    """Check a level of a factor or an option of the server, and return it. Texts stay as they are written: a level is a
    name in tables, plans and stored trials, an option a word of the server's command line. `settings` and
    `service_time_in_all_s` convert them."""
    read: type_level = read_key(where, replace(option_of(name), name=name), value)
    return value if isinstance(value, str) else read


def check_stored(where: str, scenario: Scenario) -> None:
    """Raise UserError where a stored scenario has an option of its server, or a text that becomes a word of a command
    line, that no scenario from TOML can have."""
    for name, value in (*scenario.server.items(), *scenario.where_possible.items()):
        if name not in SERVER:
            raise UserError(f"{where}: a server has no option {name!r}{did_you_mean(name, SERVER)}")
        read_key(where, SERVER[name], value)
    if fault := own_requests.check_stored(scenario):
        raise UserError(f"{where}: it has {fault}")
    if scenario.link_rate is not None:
        read_key(where, LINK["link-rate"], scenario.link_rate)
    for factor, levels in scenario.factors.items():
        for level in levels:
            check_levels(where, {factor: level})


def check_levels(where: str, levels: Mapping[str, type_level]) -> None:
    """Raise UserError for a level of a stored cell that no experiment can have."""
    for factor, level in levels.items():
        try:
            read_level(where, factor, level)
        except KeyError as error:
            raise UserError(f"{where}: {factor!r} is no factor") from error


class Settings(Conditions):
    """The conditions of one cell: those of the scenario with the cell's levels in place. The warm-up includes that of
    the connections."""

    def list_changed(self, names: Iterable[str]) -> list[str]:
        """Return those of these options whose value is not their default."""
        return [name for name in names if getattr(self, SCENARIO[name].field) != SCENARIO[name].default]

    @property
    def speaks_http(self) -> bool:
        """As speaks_http of lib/protocol/workload.hpp."""
        return self.workload in ("http", "web")

    @property
    def link_words(self) -> str:
        """The name of the link in reports: "loopback", "lan at 1gbit", "wan with 20ms each way, 1% lost"."""
        rate = f" at {self.link_rate}" if self.link_rate and self.is_apart else ""
        if not self.is_impaired:
            return f"{self.link}{rate}"
        delay = [f"{duration_words(self.link_delay_s)} each way"] if self.link_delay_s > 0 else []
        loss = [f"{self.link_loss * 100:.6g}% lost"] if self.link_loss > 0 else []
        terms = ", ".join([*delay, *loss])
        return f"{self.link}{rate}{f' with {terms}' if terms else ''}"

    @property
    def clients_leave(self) -> bool:
        """Whether a client gives up its place when it has its replies."""
        return self.requests_per_connection is not None

    @property
    def threads_end(self) -> bool:
        """Whether a thread of the server may end within the window, with its client: one that leaves, or one that reads
        too slowly and is closed."""
        return self.clients_leave or self.slow_readers > 0

    @property
    def service_time_in_all_s(self) -> float:
        """The server's own service time plus that of a request, or the length of its stream (protocol/WIRE.md); a slow
        request has more."""
        return self.service_time_s + self._server_service_time_s + self._stream_s

    @property
    def is_encrypted(self) -> bool:
        """Whether load and server speak TLS."""
        return self.server.get("tls") == "on"

    @property
    def has_backend(self) -> bool:
        """Whether the server asks a backend for its service time."""
        return self.server.get("service-kind") == BACKEND

    @property
    def asks_postgresql(self) -> bool:
        """Whether the server's backend is PostgreSQL."""
        return self.has_backend and self.server.get("backend") == POSTGRESQL

    @property
    def other_build(self) -> str:
        """The level of `build` of a server that is not the release's program; empty for that one."""
        build = str(self.server.get("build", "release"))
        return "" if build == "release" else build

    @property
    def pool(self) -> int:
        """The server's connections to its backend."""
        return int(self.server.get("pool", DEFAULT_POOL)) if self.has_backend else 0

    @property
    def longest_service_time_s(self) -> float:
        """The service time in all of the slowest requests."""
        slow_s = self.slow_request_time_s if self.slow_requests else 0.0
        return max(self.service_time_s, slow_s) + self._server_service_time_s + self._stream_s

    @property
    def _stream_s(self) -> float:
        """The time from the first chunk of a stream to its last."""
        return (self.chunks - 1) * self.every_s if self.chunks else 0.0

    @property
    def _server_service_time_s(self) -> float:
        of_server = self.server.get("service-time")
        return read_duration(of_server) if of_server is not None else 0.0


def settings(scenario: Scenario, levels: Mapping[str, type_level], least_warmup_s: float = 0.0) -> Settings:
    """Put the levels of one cell into a scenario. The warm-up is at least `least_warmup_s`."""
    fields: dict[str, Any] = {name: getattr(scenario, name) for name in Conditions.__struct_fields__}
    server = dict(scenario.server)
    for factor, level in levels.items():
        of_load, of_server = sides_of_factor(factor)
        if of_load or not of_server:
            option = option_of(of_load or factor)
            fields[option.field] = option.takes.read(level)
        if of_server:
            server[of_server] = level
    if fields["connect_rate"] == "connections":
        fields["connect_rate"] = float(fields["connections"])
    fields["warmup_s"] += fields["connections"] * scenario.warmup_per_connection_s
    fields["warmup_s"] = max(fields["warmup_s"], least_warmup_s)
    return msgspec.convert(fields | {"server": server}, Settings)


def most_generator_threads(settings: Settings) -> int:
    """Return the most threads of the generator on each host: one per connection, or per two where the timer of a
    chat's messages is another."""
    return settings.speakers // settings.client_hosts // (2 if is_timed_by_others(settings) else 1)


def is_timed_by_others(settings: Settings) -> bool:
    """Whether a chat is timed by clients that receive the messages of others."""
    return settings.workload == "chat" and settings.server.get("audience", "others") == "others"


MOST_THREADS = 1024
"""The most that a server takes as `--threads` (lib/server/options.cpp)."""


def count_check_connections(workload: str) -> int:
    """Return the number of connections of the closing check: as few as the workload allows. Two in `chat`, where a
    sender alone in the room gets no reply."""
    return 2 if workload == "chat" else 1
