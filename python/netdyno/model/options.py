"""The options an experiment may set or vary, with the values each takes: those of the load and those of the server.
What a file says becomes a value here: a duration is seconds from here on.

A factor is named by its option. Three options both sides have (`nodelay`, `write-mode`, `service-time`): as in the rest
of a scenario the plain name is the load's, `server.<name>` is the server's, `both.<name>` moves the two together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from netdyno.base.errors import UserError, did_you_mean
from netdyno.base.units import duration_words
from netdyno.model.base import type_level
from netdyno.model.experiment import Conditions, Scenario
from netdyno.model.values import DURATION, THREADS, Kind, Option, declared, read_duration, whole, word


def _server(name: str, takes: Kind, text: str) -> Option:
    return Option(takes, text, "server", name, name)


SERVER: Mapping[str, Option] = {
    option.name: option
    for option in (
        _server("threads", THREADS, "Threads of the server."),
        _server("backlog", whole(1), "Of listen(2)."),
        _server("nodelay", word("on", "off"), "TCP_NODELAY of the server's connections."),
        _server("read-buffer", whole(1), "Bytes per read."),
        _server("write-mode", word("gathered", "split"), "How the server writes header and body."),
        _server("audience", word("others", "all"), "Of chat: who receives a message."),
        _server("deliveries", word("joined", "single"), "Of chat: a call for all that waits for a reader, or each."),
        _server("service-time", DURATION, "Of rpc and http: how long the server works for a request."),
        _server("service-kind", word("wait", "cpu"), "Whether that is a wait or burns CPU: wait or cpu."),
        _server("max-frame", whole(1), "Bytes of the largest frame that is taken."),
        _server("outbox-limit", whole(1), "Bytes that may wait for a slow reader before it is closed."),
        _server("application-tick", word("on", "off"), "A 10 ms timer in the main loop; its lag is measured."),
        _server("peers", whole(1), "Without connections: clients that may be known at a time."),
        _server("peer-timeout", DURATION, "Without connections: how long a client may be silent."),
        _server("socket-buffer", whole(1), "Without connections: bytes of the sockets' buffers."),
        _server("io-threads", whole(1), "Over zmq+tcp: threads of libzmq that read and write."),
        _server("hwm", whole(1), "Over zmq+tcp: messages that may wait for one client."),
    )
}
"""Options of servers, under the names the programs use. Every server has most of them; transports.py says which exist
on one kind of transport only, a manifest which it has beside those."""

SCENARIO = declared(Scenario)
"""All options of a scenario but those of its server, by name."""


def _of(*places: str) -> Mapping[str, Option]:
    return {name: option for name, option in SCENARIO.items() if option.place in places}


LOAD, LINK, OWN, SHARED = _of("load"), _of("link"), _of("own", "load"), _of("shared", "link", "cores")
"""Those of the load, as netdyno-load understands them, and `client`, the program that makes it; those of what lies
between load and server; what only a scenario can say; and what a file may say once for all scenarios."""

MACHINE = _of("link", "cores")
"""Those of what both programs run on, which neither of them is told."""

SIDES = ("server", "both")
"""The tables inside `factors` for options that the load has as well."""


def whose(factor: str) -> tuple[str | None, str | None]:
    """The load's option and the server's that a factor sets; None where it leaves that side alone, as a factor of the
    link or the cores leaves both. Pure. Raises KeyError for what is no factor."""
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
    """The option of the load, the machine or the server that a factor sets (`server.x` takes what `x` takes)."""
    option = name.rpartition(".")[2]
    return MACHINE.get(option) or LOAD.get(option) or SERVER[option]


def read_value(where: str, option: Option, value: object) -> Any:
    """The value that an option has where a file says this. Raises UserError naming `where`, the option and what it
    takes."""
    try:
        return option.takes.read(value)
    except ValueError as error:
        raise UserError(f"{where}: key {option.name!r}: {error}") from error


def read_level(where: str, name: str, value: object) -> type_level:
    """The same for a level of a factor and for an option of the server, which stay as they are written: the one is a
    name in tables, plans and stored trials, the other a word for the server's command line. `settings` and
    `service_time_in_all_s` say what they are worth."""
    found: type_level = read_value(where, replace(option_of(name), name=name), value)
    return value if isinstance(value, str) else found


def check_stored(where: str, scenario: Scenario) -> None:
    """Raise UserError where a stored scenario has an option of its server, or a text that becomes a word of a command
    line, that none has which was read from TOML."""
    for name, value in (*scenario.server.items(), *scenario.where_possible.items()):
        if name not in SERVER:
            raise UserError(f"{where}: a server has no option {name!r}{did_you_mean(name, SERVER)}")
        read_value(where, SERVER[name], value)
    if scenario.link_rate is not None:
        read_value(where, LINK["link-rate"], scenario.link_rate)
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
    """The conditions of one cell: the scenario's own with the cell's levels in place. The warm-up is the whole one,
    that of the connections included."""

    @property
    def link_words(self) -> str:
        """The link as reports name it: "loopback", "lan at 1gbit", "wan with 20ms each way, 1% lost"."""
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
        """The server's own part and that which a request asks for (protocol/WIRE.md); a slow request asks for more."""
        return self.service_time_s + self._server_service_time_s

    @property
    def longest_service_time_s(self) -> float:
        """The same of the slowest requests."""
        slow_s = self.slow_request_time_s if self.slow_requests else 0.0
        return max(self.service_time_s, slow_s) + self._server_service_time_s

    @property
    def _server_service_time_s(self) -> float:
        of_server = self.server.get("service-time")
        return read_duration(of_server) if of_server is not None else 0.0


def settings(scenario: Scenario, levels: Mapping[str, type_level], least_warmup_s: float = 0.0) -> Settings:
    """Put the levels of one cell into a scenario, whose warm-up is at least so long."""
    fields: dict[str, Any] = {name: getattr(scenario, name) for name in Conditions.__struct_fields__}
    server = dict(scenario.server)
    for factor, level in levels.items():
        of_load, of_server = whose(factor)
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


def most_generator_threads(wanted: Settings) -> int:
    """Of each host. A connection each, and two where a witness times a chat."""
    speakers = wanted.connections - wanted.slow_readers
    return speakers // wanted.client_hosts // (2 if is_witnessed(wanted) else 1)


def is_witnessed(wanted: Settings) -> bool:
    """Whether a chat is timed by those who hear others."""
    return wanted.workload == "chat" and wanted.server.get("audience", "others") == "others"


MOST_THREADS = 1024
"""The most that a server takes as `--threads` (lib/server/options.cpp)."""


def check_connections(workload: str) -> int:
    """How many connections the closing check opens: as few as the workload allows. Two in `chat`, where a sender alone
    in the room would be answered by nobody."""
    return 2 if workload == "chat" else 1
