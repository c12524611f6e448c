"""Options and their values: the form of a value in a file, on the command line, and in the arguments of a program.

An option is declared once, beside the field that has its value (model/experiment.py) or, for servers, in a list
(model/options.py). Name, key of the file, flag, unit and default follow from the field."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_type_hints

import msgspec
from msgspec.structs import replace

from netdyno.kit.errors import did_you_mean
from netdyno.kit.units import format_duration, parse_bytes, parse_duration, parse_rate
from netdyno.model.base import MOST


class ValueKind(msgspec.Struct, frozen=True):
    """The kind of values of an option. `read` converts the value in a file, or raises ValueError with the accepted
    values; `text` formats a value for programs and the command line. The command line reads `typed`, within its bounds,
    and calls it `metavar`; of a list, an option that may be repeated. `words`: the only values, if these are words."""

    read: Callable[[object], Any]
    text: Callable[[Any], str] = str
    typed: type[int | float | str | list[str]] = str
    least: float | None = None
    most: float | None = None
    metavar: str | None = None
    words: tuple[str, ...] = ()


OptionPlace = Literal[
    "own", "requests", "load", "link", "cores", "shared", "server", "own server", "experiment", "search"
]
"""The place of an option in a file: in a scenario as its own, its requests', the load's, the link's or the cores', in a
scenario or once for all of them (also link and cores), in the table `server`, beside the scenarios, or nowhere: only
the command line of one's own servers, or of a search, has it."""


class Option(msgspec.Struct, frozen=True):
    """One option. `name` is its key in a file and, behind two dashes, its flag; `field` is the field of a scenario, an
    experiment or a search that has the value; its name ends with the unit, if any."""

    takes: ValueKind
    help: str
    place: OptionPlace
    name: str = ""
    field: str = ""
    default: Any = None
    short: str = ""


def declared(kind: type[msgspec.Struct]) -> Mapping[str, Option]:
    """Return the options that the fields of a struct declare, by name."""
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    options = {}
    for field, hint in get_type_hints(kind, include_extras=True).items():
        for option in (option for option in getattr(hint, "__metadata__", ()) if isinstance(option, Option)):
            name = option.name or re.sub("_(s|hz)$", "", field).replace("_", "-")
            default = fields[field].default
            default = None if default is msgspec.NODEFAULT else default
            options[name] = replace(option, name=name, field=field, default=default)
    return options


def list_flags(options: Mapping[str, Option], values: Mapping[str, Any]) -> list[str]:
    """Return the flags of a command line that say these values of fields; none for a default. Pure."""
    flags: list[str] = []
    for option in options.values():
        value = values.get(option.field, option.default)
        if value == option.default:
            continue
        texts = value if isinstance(value, tuple) else (option.takes.text(value),)
        flags += [f"--{option.name}"] if value is True else [f"--{option.name}={text}" for text in texts]
    return flags


# --- what options take ------------------------------------------------------------------------------------------------


def whole(least: int, most: int = MOST) -> ValueKind:
    """Return the kind of whole numbers between two bounds, both included."""

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{value!r} is not a whole number of at least {least}")
        if value > most:
            raise ValueError(f"{value} is above {most}")
        return value

    return ValueKind(read, typed=int, least=least)


CORES = "cores"
"""The value for as many threads as the program has cores."""


def _count_or(word: str) -> ValueKind:
    """Return the kind of whole numbers above 0, or one word instead of a number."""

    def read(value: object) -> int | str:
        if value == word:
            return word
        try:
            return int(whole(1).read(int(value) if isinstance(value, str) and value.isdecimal() else value))
        except ValueError as error:
            raise ValueError(f"{error}, nor {word!r}") from error

    return ValueKind(read, metavar=f"N|{word}")


ALL = "all"
"""The value for all cores that the server's side of the machine has."""
SERVER_CORES = _count_or(ALL)
THREADS = _count_or(CORES)


NO_LIMIT = "none"


def _read_cpu_quota(value: object) -> float | None:
    """Return cores' worth of CPU time, a number or a text with one; None for "none"."""
    if value == NO_LIMIT:
        return None
    try:
        cores = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except ValueError:
        cores = math.nan
    if not 0.01 <= cores <= 1024:  # the kernel's least is 1 ms of a period of 100 ms
        raise ValueError(f"{value!r} is not a number of cores from 0.01 to 1024, such as '0.5', nor {NO_LIMIT!r}")
    return cores


def _read_memory_limit(value: object) -> int | None:
    """Return the bytes of a text with a unit; None for "none"."""
    if value == NO_LIMIT:
        return None
    size = parse_bytes(value) if isinstance(value, str) else 0
    if not 1 << 20 <= size <= MOST:
        raise ValueError(f"{value!r} is not a size of at least 1MiB, such as '64MiB', nor {NO_LIMIT!r}")
    return size


def _format_limit(value: float | None) -> str:
    return NO_LIMIT if value is None else f"{value:.10g}"


CPU_QUOTA = ValueKind(_read_cpu_quota, _format_limit, metavar=f"CORES|{NO_LIMIT}")
MEMORY_LIMIT = ValueKind(_read_memory_limit, _format_limit, metavar=f"SIZE|{NO_LIMIT}")


def word(*valid: str) -> ValueKind:
    """Return the kind of one of these words."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in valid:
            raise ValueError(f"{value!r} is not valid{did_you_mean(str(value), valid)}")
        return value

    return ValueKind(read, words=valid)


def words(*valid: str) -> ValueKind:
    """Return the kind of a list of these words, each once."""
    word_kind = word(*valid)

    def read(value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or len({str(text) for text in value}) != len(value):
            raise ValueError(f"{value!r} is not a list of words, each once, such as [{valid[0]!r}]")
        return tuple(word_kind.read(text) for text in value)

    return ValueKind(read, words=valid)


def _make_number_reader(description: str, least: float, most: float) -> Callable[[object], float]:
    """Return a reader of numbers between two bounds, both included."""

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise ValueError(f"{value!r} is not {description}")
        return float(value)

    return read


def _format_number(value: float | str) -> str:
    """Format a number without a needless fraction: 20000, not 20000.0."""
    return value if isinstance(value, str) else f"{value:.10g}"


def share(least: float, most: float = 1) -> ValueKind:
    """Return the kind of numbers between two bounds, both included."""
    read = _make_number_reader(f"a number from {least} to {most}", least, most)
    return ValueKind(read, _format_number, float, least, most)


_read_share = _make_number_reader("a share from 0 to below 1", 0, math.nextafter(1, 0))
SHARE = ValueKind(_read_share, _format_number, float, metavar="SHARE")
"""A share from 0 to below 1."""


def read_duration(value: object) -> float:
    """Return the seconds of a text such as "250ms"."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a duration: write a text with a unit, such as '250ms'")
    seconds = parse_duration(value)
    if seconds > MOST:
        raise ValueError(f"{value} is above {MOST:.0e} s")
    return seconds


def duration(most_s: float = math.inf, *, above_0: bool = False) -> ValueKind:
    """Return the kind of durations, in seconds, up to a bound."""

    def read(value: object) -> float:
        seconds = read_duration(value)
        if seconds > most_s:
            raise ValueError(f"{value} is above {most_s} s")
        if above_0 and seconds <= 0:
            raise ValueError(f"{value!r} is not above 0")
        return seconds

    return ValueKind(read, format_duration, metavar="DUR")


DURATION, TIME = duration(), duration(above_0=True)
"""Durations from 0, and above 0."""
MOST_OF_LOAD_S = 86_400
"""The longest time of a load, a day (loadgen/plan/plan.cpp)."""
LOAD_DURATION, LOAD_TIME = duration(MOST_OF_LOAD_S), duration(MOST_OF_LOAD_S, above_0=True)


NUMBER = ValueKind(_make_number_reader("a rate: a number per second", -MOST, MOST), _format_number, float)


LEAST_RATE, MOST_RATE = 1e-3, 1e7
"""The bounds of a rate in netdyno-load (loadgen/plan/plan.cpp)."""


def _read_rate(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not LEAST_RATE <= value <= MOST_RATE:
        raise ValueError(f"{value!r} is not a rate: a number per second, {LEAST_RATE:g} to {MOST_RATE:g}")
    return value


RATE = ValueKind(_read_rate, _format_number, float)


def _read_connect_rate(value: object) -> float | str:
    return str(value) if value in ("burst", "connections", "when-due") else _read_rate(value)


CONNECT_RATE = ValueKind(_read_connect_rate, _format_number)


def _read_bit_rate(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a rate: write a text with a unit, such as '100mbit'")
    parse_rate(value)
    return value


BIT_RATE = ValueKind(_read_bit_rate)


def text_kind(
    description: str, pattern: str = "(?s:.*)", metavar: str | None = None, *, digits: bool = False
) -> ValueKind:
    """Return the kind of texts of a pattern. `digits`: a whole number stands for its digits."""

    def read(value: object) -> str:
        text = str(value) if digits and isinstance(value, int) and not isinstance(value, bool) else value
        if not isinstance(text, str) or not re.fullmatch(pattern, text):
            raise ValueError(f"{value!r} is not {description}")
        return text

    return ValueKind(read, metavar=metavar)


NAME = text_kind("a name", "(?s:.+)")
TEXT = text_kind("a text")
PATH = text_kind("a path, such as /health", "/[!-~]*")


def _read_environment(value: object) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value]
    for text in listed:
        if not isinstance(text, str) or not re.match(r"[A-Za-z_]\w*=", text, re.ASCII) or "\0" in text:
            raise ValueError(f"{text!r} is no variable: write NAME=VALUE")
    return tuple(listed)


ENVIRONMENT = ValueKind(_read_environment, typed=list, metavar="NAME=VALUE")


def _read_names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{value!r} is not a list of names, such as ['asio-*']")
    if not value:
        raise ValueError('names no contestant; write ["*"] for all')
    return tuple(value)


NAMES = ValueKind(_read_names)

_SHARE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)(%)?")


def _read_precision(value: object) -> float:
    precision = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        precision = float(value)
    elif isinstance(value, str) and (match := _SHARE.fullmatch(value)):
        precision = float(match[1]) / (100 if match[2] else 1)
    if not 0 < precision <= 1:
        raise ValueError(f"{value!r} is no precision: write a share above 0, such as 0.05 or '5%'")
    return precision


PRECISION = ValueKind(_read_precision, metavar="SHARE")
"""A share above 0 and up to 1: a number, or a text with one or with a percentage."""
