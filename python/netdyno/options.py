"""The options an experiment may set or vary, with the values each takes: those of the load and those of the server.

A factor of a scenario is one of these names; the plan needs no other list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from netdyno.errors import UserError, did_you_mean
from netdyno.model import Scenario, type_level
from netdyno.units import parse_duration

Check = Callable[[object], type_level]


def _whole(least: int) -> Check:
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


def _duration(value: object) -> type_level:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a duration: write a text with a unit, such as '250ms'")
    parse_duration(value)
    return value


LOAD: Mapping[str, Check] = {
    "connections": _whole(1),
    "depth": _whole(1),
    "rate": _rate,
    "size": _whole(28),
    "generator-threads": _whole(1),
    "connect-rate": _connect_rate,
}
"""Options of the load, as netdyno-load understands them (`rate` is the total of all connections, per second)."""

SERVER: Mapping[str, Check] = {
    "threads": _whole(1),
    "backlog": _whole(1),
    "nodelay": _word("on", "off"),
    "read-buffer": _whole(1),
    "write-mode": _word("gathered", "split"),
    "audience": _word("others", "all"),
    "service-time": _duration,
    "service-kind": _word("wait", "cpu"),
    "max-frame": _whole(1),
    "outbox-limit": _whole(1),
}
"""Options of every server (DESIGN, "Program contracts"), under the names the programs use."""


def check_value(where: str, name: str, value: object) -> type_level:
    """The value if the option of that name takes it. Raises UserError naming `where`, the option and what it takes."""
    check = LOAD.get(name) or SERVER[name]
    try:
        return check(value)
    except ValueError as error:
        raise UserError(f"{where}: key {name!r}: {error}") from error


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All options of one cell: the scenario's own with the cell's levels in place. `rate` is in messages per second."""

    workload: str
    arrivals: Literal["closed", "constant", "poisson"]
    connections: int
    depth: int
    rate: float | None
    size: int
    generator_threads: int
    connect_rate: float | Literal["burst"]
    server: dict[str, type_level]


def settings(scenario: Scenario, levels: Mapping[str, type_level]) -> Settings:
    """Put the levels of one cell into a scenario."""
    load: dict[str, object] = {name: getattr(scenario, name.replace("-", "_")) for name in LOAD}
    load.update({name: level for name, level in levels.items() if name in LOAD})
    server = scenario.server | {name: level for name, level in levels.items() if name in SERVER}
    fields = {name.replace("-", "_"): value for name, value in load.items()}
    return msgspec.convert(
        fields | {"workload": scenario.workload, "arrivals": scenario.arrivals, "server": server}, Settings
    )
