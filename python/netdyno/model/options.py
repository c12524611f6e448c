"""The options an experiment may set or vary, with the values each takes: those of the load and those of the server.
What a file says becomes a value here: a duration is seconds from here on.

A factor is named by its option. Three options both sides have (`nodelay`, `write-mode`, `service-time`): as in the rest
of a scenario the plain name is the load's, `server.<name>` is the server's, `both.<name>` moves the two together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import msgspec

from netdyno.base.errors import UserError, did_you_mean
from netdyno.base.units import duration_words, parse_duration, parse_rate
from netdyno.model.base import type_level
from netdyno.model.experiment import Link, Scenario

Check = Callable[[object], type_level]


def whole(least: int) -> Check:
    """A check for whole numbers of at least so much."""

    def check(value: object) -> type_level:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{value!r} is not a whole number of at least {least}")
        return value

    return check


def _rate(value: object) -> type_level:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ValueError(f"{value!r} is not a rate: a number per second, above 0")
    return value


def _connect_rate(value: object) -> type_level:
    return "burst" if value == "burst" else _rate(value)


def _word(*valid: str) -> Check:
    def check(value: object) -> type_level:
        if not isinstance(value, str) or value not in valid:
            raise ValueError(f"{value!r} is not valid{did_you_mean(str(value), valid)}")
        return value

    return check


def duration(value: object) -> float:
    """The seconds of a text such as "250ms"."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a duration: write a text with a unit, such as '250ms'")
    return parse_duration(value)


def _wait(value: object) -> float:
    seconds = duration(value)
    if seconds <= 0:
        raise ValueError(f"{value!r} is no time to wait: it must be above 0")
    return seconds


def _threads(value: object) -> type_level:
    return CORES if value == CORES else whole(1)(value)


def _name(value: object) -> type_level:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is not a name")
    return value


def _bit_rate(value: object) -> type_level:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a rate: write a text with a unit, such as '100mbit'")
    parse_rate(value)
    return value


def _delay(value: object) -> float:
    seconds = duration(value)
    if seconds > MOST_DELAY_S:
        raise ValueError(f"{value} is above {MOST_DELAY_S} s")
    return seconds


def share(value: object) -> float:
    """A check for shares from 0 to below 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise ValueError(f"{value!r} is not a share from 0 to below 1")
    return float(value)


CORES = "cores"
"""As `threads`: as many as the server has cores, for each model that can have any number (server_options.py)."""

MOST_DELAY_S = 10
"""Each way, of the link wan (link/plan.cpp)."""

LINK: Mapping[str, Check] = {
    "link": _word(*get_args(Link)),
    "link-rate": _bit_rate,
    "link-delay": _delay,
    "link-loss": share,
}
"""Options of what lies between load and server."""

LOAD: Mapping[str, Check] = {
    "client": _name,
    "connections": whole(1),
    "depth": whole(1),
    "round": duration,
    "look-every": duration,
    "rate": _rate,
    "rate-per-connection": _rate,
    "size": whole(28),
    "nodelay": _word("on", "off"),
    "write-mode": _word("gathered", "split"),
    "service-time": duration,
    "generator-threads": whole(1),
    "connect-rate": _connect_rate,
    "connect-timeout": _wait,
}
"""Options of the load, as netdyno-load understands them, and `client`, the program that makes it. `rate` is the total
of all connections, per second; `service-time` is what each request asks for."""

SERVER: Mapping[str, Check] = {
    "threads": _threads,
    "backlog": whole(1),
    "nodelay": _word("on", "off"),
    "read-buffer": whole(1),
    "write-mode": _word("gathered", "split"),
    "audience": _word("others", "all"),
    "service-time": duration,
    "service-kind": _word("wait", "cpu"),
    "max-frame": whole(1),
    "outbox-limit": whole(1),
    "peers": whole(1),
    "peer-timeout": duration,
    "socket-buffer": whole(1),
    "io-threads": whole(1),
    "hwm": whole(1),
}
"""Options of servers, under the names the programs use. Every server has most of them; transports.py says which exist
on one kind of transport only."""


DURATIONS = ("link-delay", "round", "look-every", "service-time", "connect-timeout")
"""Of the load and the link: these are texts with a unit in a file, and seconds in a scenario."""


def field_of(option: str) -> str:
    """Where a scenario has the value of an option of the load or the link."""
    return f"{option.replace('-', '_')}{'_s' if option in DURATIONS else ''}"


SIDES = ("server", "both")
"""The tables inside `factors` for options that the load has as well."""


def whose(factor: str) -> tuple[str | None, str | None]:
    """The load's option and the server's that a factor sets; None where it leaves that side alone, as a factor of the
    link leaves both. Pure. Raises KeyError for what is no factor."""
    side, _, name = factor.rpartition(".")
    if not side and name in LINK:
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


def _check(name: str) -> Check:
    """What the option of that name takes (`server.x` is named whole and takes what `x` takes)."""
    option = name.rpartition(".")[2]
    return LINK.get(option) or LOAD.get(option) or SERVER[option]


def read_value(where: str, name: str, value: object) -> type_level:
    """The value that an option of the load or the link has where a file says this. Raises UserError naming `where`, the
    option and what it takes."""
    try:
        return _check(name)(value)
    except ValueError as error:
        raise UserError(f"{where}: key {name!r}: {error}") from error


def read_level(where: str, name: str, value: object) -> type_level:
    """The same for a level of a factor and for an option of the server, which stay as they are written: the one is a
    name in tables, plans and stored trials, the other a word for the server's command line. `settings` and
    `service_time_in_all_s` say what they are worth."""
    found = read_value(where, name, value)
    return value if isinstance(value, str) else found


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All options of one cell: the scenario's own with the cell's levels in place. Rates are in messages per second;
    the warm-up is the whole one, that of the connections included."""

    workload: str
    warmup_s: float
    duration_s: float
    timeout_s: float
    link: Link
    link_rate: str | None
    link_delay_s: float
    link_loss: float
    arrivals: Literal["closed", "constant", "poisson"]
    client: str
    connections: int
    depth: int
    round_s: float
    look_every_s: float
    rate: float | None
    rate_per_connection: float | None
    size: int
    nodelay: Literal["on", "off"]
    write_mode: Literal["gathered", "split"]
    service_time_s: float
    generator_threads: int
    connect_rate: float | Literal["burst"]
    connect_timeout_s: float
    failed_connects: Literal["strike-out", "count"]
    server: dict[str, type_level]
    where_possible: dict[str, type_level] = {}

    @property
    def link_words(self) -> str:
        """The link as reports name it: "loopback", "lan at 1gbit", "wan with 20ms each way, 1% lost"."""
        rate = f" at {self.link_rate}" if self.link_rate and self.link != "loopback" else ""
        if self.link != "wan":
            return f"{self.link}{rate}"
        delay = [f"{duration_words(self.link_delay_s)} each way"] if self.link_delay_s > 0 else []
        loss = [f"{self.link_loss * 100:.6g}% lost"] if self.link_loss > 0 else []
        terms = ", ".join([*delay, *loss])
        return f"wan{rate}{f' with {terms}' if terms else ''}"

    @property
    def service_time_in_all_s(self) -> float:
        """The server's own part and that which a request asks for (protocol/WIRE.md)."""
        of_server = self.server.get("service-time")
        return self.service_time_s + (duration(of_server) if of_server is not None else 0.0)


def settings(scenario: Scenario, levels: Mapping[str, type_level]) -> Settings:
    """Put the levels of one cell into a scenario."""
    fields: dict[str, Any] = {name: getattr(scenario, name) for name in Settings.__struct_fields__}
    server = dict(scenario.server)
    for factor, level in levels.items():
        of_load, of_server = whose(factor)
        if of_load or not of_server:
            option = of_load or factor
            fields[field_of(option)] = _check(option)(level)
        if of_server:
            server[of_server] = level
    fields["warmup_s"] += fields["connections"] * scenario.warmup_per_connection_s
    return msgspec.convert(fields | {"server": server}, Settings)


MOST_THREADS = 1024
"""The most that a server takes as `--threads` (lib/server/options.cpp)."""


def check_connections(workload: str) -> int:
    """How many connections the closing check opens: as few as the workload allows. Two in `chat`, where a sender alone
    in the room would be answered by nobody."""
    return 2 if workload == "chat" else 1
