"""What an option is, and what it takes: how a file and the command line say a value, and how a program is told it.

An option is declared once, beside the field that has its value (model/experiment.py) or, for servers, in a list
(model/options.py). Name, key of the file, flag, unit and default follow from the field."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_type_hints

import msgspec

from netdyno.base.errors import did_you_mean
from netdyno.base.units import format_duration, parse_duration, parse_rate
from netdyno.model.base import MOST


@dataclass(frozen=True)
class Kind:
    """`read` makes the value of what a file has, or raises ValueError with what is taken; `text` says a value as
    programs and the command line take it. The command line reads `typed`, within its bounds, and calls it `metavar`."""

    read: Callable[[object], Any]
    text: Callable[[Any], str] = str
    typed: type[int | float | str] = str
    least: float | None = None
    most: float | None = None
    metavar: str | None = None


Place = Literal["own", "load", "link", "cores", "shared", "server", "experiment", "search"]
"""Where a file has an option: in a scenario as its own, the load's, the link's or the cores', in a scenario or once for
all of them (so are link and cores), in the table `server`, beside the scenarios, or nowhere: in a search by the command
line."""


@dataclass(frozen=True)
class Option:
    """One thing that can be asked for. `name` is its key in a file and, behind two dashes, its flag; `field` is where a
    scenario, an experiment or a search has the value, a unit of which ends its name."""

    takes: Kind
    help: str
    place: Place
    name: str = ""
    field: str = ""
    default: Any = None
    short: str = ""


def declared(kind: type[msgspec.Struct]) -> Mapping[str, Option]:
    """The options that the fields of a struct declare, by name."""
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    found = {}
    for field, hint in get_type_hints(kind, include_extras=True).items():
        for option in (one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Option)):
            name = re.sub("_(s|hz)$", "", field).replace("_", "-")
            default = fields[field].default
            default = None if default is msgspec.NODEFAULT else default
            found[name] = replace(option, name=name, field=field, default=default)
    return found


# --- what options take ------------------------------------------------------------------------------------------------


def whole(least: int, most: int = MOST) -> Kind:
    """Whole numbers between two bounds, both included."""

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{value!r} is not a whole number of at least {least}")
        if value > most:
            raise ValueError(f"{value} is above {most}")
        return value

    return Kind(read, typed=int, least=least)


CORES = "cores"
"""As a number of threads: as many as the program has cores."""


def _threads(value: object) -> int | str:
    if value == CORES:
        return CORES
    try:
        return int(whole(1).read(int(value) if isinstance(value, str) and value.isdecimal() else value))
    except ValueError as error:
        raise ValueError(f"{error}, nor {CORES!r}") from error


def _server_cores(value: object) -> int | str:
    if value == ALL:
        return ALL
    try:
        return int(whole(1).read(int(value) if isinstance(value, str) and value.isdecimal() else value))
    except ValueError as error:
        raise ValueError(f"{error}, nor {ALL!r}") from error


ALL = "all"
"""As a number of cores of a server: all that its side of the machine has."""
SERVER_CORES = Kind(_server_cores, metavar="N|all")
THREADS = Kind(_threads, metavar="N|cores")


def word(*valid: str) -> Kind:
    """One of these words."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in valid:
            raise ValueError(f"{value!r} is not valid{did_you_mean(str(value), valid)}")
        return value

    return Kind(read)


def words(*valid: str) -> Kind:
    """A list of these words, each once."""
    one = word(*valid)

    def read(value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or len({str(each) for each in value}) != len(value):
            raise ValueError(f"{value!r} is not a list of words, each once, such as [{valid[0]!r}]")
        return tuple(one.read(each) for each in value)

    return Kind(read)


def share(least: float, most: float = 1) -> Kind:
    """Numbers between two bounds, both included."""

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise ValueError(f"{value!r} is not a number from {least} to {most}")
        return float(value)

    return Kind(read, _number, float, least, most)


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise ValueError(f"{value!r} is not a share from 0 to below 1")
    return float(value)


def _number(value: float | str) -> str:
    """Without a needless fraction: 20000, not 20000.0."""
    return value if isinstance(value, str) else f"{value:.10g}"


SHARE = Kind(_share, _number, float, metavar="SHARE")
"""From 0 to below 1."""


def read_duration(value: object) -> float:
    """The seconds of a text such as "250ms"."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a duration: write a text with a unit, such as '250ms'")
    seconds = parse_duration(value)
    if seconds > MOST:
        raise ValueError(f"{value} is above {MOST:.0e} s")
    return seconds


def _above_0(value: object) -> float:
    seconds = read_duration(value)
    if seconds <= 0:
        raise ValueError("must be above 0")
    return seconds


def duration(most_s: float = math.inf) -> Kind:
    """Seconds, up to so many."""

    def read(value: object) -> float:
        seconds = read_duration(value)
        if seconds > most_s:
            raise ValueError(f"{value} is above {most_s} s")
        return seconds

    return Kind(read, format_duration, metavar="DUR")


DURATION = duration()
TIME = Kind(_above_0, format_duration, metavar="DUR")
"""A duration above 0."""


def _wait(value: object) -> float:
    seconds = read_duration(value)
    if seconds <= 0:
        raise ValueError(f"{value!r} is no time to wait: it must be above 0")
    return seconds


WAIT = Kind(_wait, format_duration, metavar="DUR")


def _finite(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MOST:
        raise ValueError(f"{value!r} is not a rate: a number per second")
    return float(value)


NUMBER = Kind(_finite, _number, float)


LEAST_RATE, MOST_RATE = 1e-3, 1e7
"""What netdyno-load takes (loadgen/plan.cpp)."""


def _rate(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not LEAST_RATE <= value <= MOST_RATE:
        raise ValueError(f"{value!r} is not a rate: a number per second, {LEAST_RATE:g} to {MOST_RATE:g}")
    return value


RATE = Kind(_rate, _number, float)


def _connect_rate(value: object) -> float | str:
    return str(value) if value in ("burst", "connections") else _rate(value)


CONNECT_RATE = Kind(_connect_rate, _number)


def _bit_rate(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a rate: write a text with a unit, such as '100mbit'")
    parse_rate(value)
    return value


BIT_RATE = Kind(_bit_rate)


def _name(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is not a name")
    return value


NAME = Kind(_name)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a text")
    return value


TEXT = Kind(_text)


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{value!r} is not a list of names, such as ['asio-*']")
    if not value:
        raise ValueError('names no contestant; write ["*"] for all')
    return tuple(value)


NAMES = Kind(_names)

_SHARE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)(%)?")


def _precision(value: object) -> float:
    found = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        found = float(value)
    elif isinstance(value, str) and (match := _SHARE.fullmatch(value)):
        found = float(match[1]) / (100 if match[2] else 1)
    if not 0 < found <= 1:
        raise ValueError(f"{value!r} is no precision: write a share above 0, such as 0.05 or '5%'")
    return found


PRECISION = Kind(_precision, metavar="SHARE")
"""A share above 0 and up to 1: a number, or a text with one or with a percentage."""
