"""The options that every server takes (the program contract): values mean what they mean in lib/server/options.cpp.

Most starts of a server in the tests end here, so this imports nothing that takes time: no re, no argparse."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    Reader = Callable[[str], Any]

KIB = 1 << 10
GIB = 1 << 30


class UsageError(Exception):
    """What cannot be meant; the text names the option."""


class Options:
    """Parsed once, never changed. Sizes are bytes, durations nanoseconds; `service_kind` is the effect of that name."""

    program: str
    listen: tuple[str, int]
    workload: str
    threads: int
    backlog: int
    nodelay: bool
    read_buffer: int
    split: bool
    to_all: bool
    service_time: int
    service_kind: str
    max_frame: int
    outbox_limit: int

    def __init__(self, program: str, values: dict[str, object]) -> None:
        self.__dict__ = {"program": program, **values}


def options_or_exit(command_line: Sequence[str]) -> Options:
    """Ends the program on --help (exit 0) and on what cannot be meant (exit 2, one line on stderr). A server is called
    as its folder."""
    program = os.path.basename(os.path.dirname(os.path.abspath(command_line[0])))  # noqa: PTH119, PTH120, PTH100
    arguments = command_line[1:]
    if "--help" in arguments or "-h" in arguments:
        print(_help(program))
        sys.exit(0)
    try:
        return parse(program, arguments)
    except UsageError as error:
        _refuse(program, str(error))


def parse(program: str, arguments: Sequence[str]) -> Options:
    """Raises UsageError."""
    given: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        name, has_value, value = rest.pop(0).partition("=")
        if name not in _KNOWN:
            raise UsageError(f"unknown argument: {name}")
        if not has_value and not rest:
            raise UsageError(f"{name}: a value is missing")
        if name in given:
            raise UsageError(f"{name}: given twice")
        given[name] = value if has_value else rest.pop(0)
    values = {key: _read(name, read, given.get(name, default)) for name, (key, read, default, *_) in _KNOWN.items()}
    if values["threads"] != 1:
        raise UsageError(f"--threads: {program} runs on exactly one thread")
    return Options(program, values)


def _read(name: str, read: Reader, text: str) -> object:
    try:
        return read(text)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error


def _refuse(program: str, why: str) -> NoReturn:
    """One line that does nothing to a terminal, whatever was in an argument."""
    print(
        f"{program}: {''.join(c if c.isprintable() else '?' for c in why)} (--help lists the options)", file=sys.stderr
    )
    sys.exit(2)


def _help(program: str) -> str:
    lines = [f"{program}: netdyno contestant: see protocol/WIRE.md for what it speaks"]
    for name, (_, _, default, kind, text) in _KNOWN.items():
        lines.append(f"  {name + ' ' + kind:<38} {text} [{default}]")
    return "\n".join(lines)


# --- values -------------------------------------------------------------------------------------------------------


def _choice(**values: object) -> Reader:
    def read(text: str) -> object:
        if text not in values:
            raise UsageError(f"{text!r} is none of {'|'.join(values)}")
        return values[text]

    return read


def _whole(low: int, high: int) -> Reader:
    def read(text: str) -> int:
        if not _is_digits(text.removeprefix("-")):
            raise UsageError(f"{text!r} is no whole number")
        if not low <= int(text) <= high:
            raise UsageError(f"{text} is not in [{low} - {high}]")
        return int(text)

    return read


_SIZES = {"KiB": KIB, "MiB": 1 << 20, "GiB": GIB, "B": 1}


def _bytes(low: int, high: int) -> Reader:
    """ "16384", "16KiB", "1MiB", "1GiB" (powers of 1024; "16k" and "16KB" are refused as ambiguous)."""

    def read(text: str) -> int:
        number, size = _unit(text, _SIZES)
        if not _is_digits(number):
            raise UsageError(f"{text!r} is no size; want e.g. 512, 16KiB, 1MiB")
        if not low <= int(number) * (size or 1) <= high:
            raise UsageError(f"{text!r} is out of range")
        return int(number) * (size or 1)

    return read


_DURATIONS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}
_LONGEST = 9e18
_NO_DURATION = float("inf")


def _duration(text: str) -> int:
    """ "250us", "5ms", "1.5s", "2m", "0". A bare number other than 0 has no unit and is refused."""
    number, size = _unit(text, _DURATIONS)
    value = float(number) * (size or 1) if _is_digits(number.replace(".", "", 1)) else _NO_DURATION
    if value > _LONGEST or (size is None and value):
        raise UsageError(f"{text!r} is no duration; want e.g. 250us, 5ms, 1s")
    return round(value)


def _unit(text: str, units: dict[str, int]) -> tuple[str, int | None]:
    """The number before the first unit that the text ends in, and that unit's size."""
    for unit, size in units.items():
        if text.endswith(unit):
            return text[: -len(unit)], size
    return text, None


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 30


def _url(text: str) -> tuple[str, int]:
    """tcp://host:port; an IPv6 host stands in brackets (RFC 3986, 3.2.2)."""
    transport, _, place = text.partition("://")
    host, _, port = place.partition("?")[0].rpartition(":")
    address = host[1:-1] if host.startswith("[") and host.endswith("]") else ""
    good = (":" in address and _is_name(address.replace(":", "").replace("%", ""))) or _is_name(host)
    if not transport or not good or not _is_digits(port) or int(port) > 65535:
        raise UsageError(f"{text!r} is no URL; want e.g. tcp://127.0.0.1:7000")
    if transport != "tcp":
        raise UsageError(f"transport {transport!r} is not spoken here")
    return address or host, int(port)


def _is_name(text: str) -> bool:
    rest = text.replace(".", "").replace("-", "").replace("_", "")
    return text.isascii() and (rest.isalnum() or (not rest and bool(text)))


# name: key, reader, default, type, help
_KNOWN: dict[str, tuple[str, Reader, str, str, str]] = {
    "--listen": ("listen", _url, "tcp://127.0.0.1:0", "URL", "where to listen; port 0 picks a free one"),
    "--workload": (
        "workload",
        _choice(**{name: name for name in ("echo", "lines", "rpc", "chat", "http")}),
        "echo",
        "echo|lines|rpc|chat|http",
        "application protocol",
    ),
    "--threads": ("threads", _whole(1, 1024), "1", "INT", "threads that serve"),
    "--backlog": ("backlog", _whole(1, 65535), "4096", "INT", "listen(2) backlog"),
    "--nodelay": ("nodelay", _choice(on=True, off=False), "on", "on|off", "TCP_NODELAY"),
    "--read-buffer": ("read_buffer", _bytes(1, GIB), "16KiB", "BYTES", "bytes asked for in one read"),
    "--write-mode": (
        "split",
        _choice(gathered=False, split=True),
        "gathered",
        "gathered|split",
        "header and body in one write or two",
    ),
    "--audience": ("to_all", _choice(others=False, all=True), "others", "others|all", "who gets a chat message"),
    "--service-time": ("service_time", _duration, "0", "DUR", "service time of a request of rpc or http"),
    "--service-kind": ("service_kind", _choice(wait="wait", cpu="burn"), "wait", "wait|cpu", "how it is spent"),
    "--max-frame": ("max_frame", _bytes(1, GIB), "1MiB", "BYTES", "longest message accepted"),
    "--outbox-limit": ("outbox_limit", _bytes(1, 1 << 40), "4MiB", "BYTES", "bytes that may wait for a slow reader"),
}
