"""Durations as people write them and the programs take them ("250ms", lib/cli/units.hpp); in the harness, seconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|ms|s|m)")


def parse_duration(text: str) -> float:
    """Return the seconds of a duration such as "250ms" or "1.5s". Raises ValueError with the accepted form."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration: write a number and a unit, such as '250ms', '1s' or '2m'")
    return float(match[1]) * _SECONDS[match[2]]


_BYTES = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SIZE = re.compile(r"(\d+)(B|KiB|MiB|GiB)?")


def parse_bytes(text: str) -> int:
    """Return the bytes of a size such as "512", "16KiB" or "1MiB". Raises ValueError with the accepted form."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no size; want e.g. 512, 16KiB, 1MiB")
    return int(match[1]) * _BYTES[match[2] or ""]


_BITS_HZ = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_RATE = re.compile(r"([1-9]\d*)(bit|kbit|mbit|gbit)")


def parse_rate(text: str) -> int:
    """Return the bits per second of the rate of a link such as "1gbit", in the decimal units of tc(8). Raises
    ValueError with the accepted form."""
    match = _RATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a rate: write a whole number and a unit, such as '10mbit' or '1gbit'")
    return int(match[1]) * _BITS_HZ[match[2]]


def format_duration(seconds: float) -> str:
    """Format a duration as the programs take it: whole units only, the largest that loses nothing down to 1 ns."""
    nanoseconds = round(seconds * 1e9)
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if nanoseconds % size == 0:
            return f"{nanoseconds // size}{unit}"
    return f"{nanoseconds}ns"


def duration_words(seconds: float) -> str:
    """Format a duration as people write it: in the largest unit that it fills, such as "1.5s", and "0s" for none."""
    unit = next((unit for unit in ("m", "s", "ms", "us") if seconds >= _SECONDS[unit] * (1 - 1e-9)), "ns")
    if unit == "m" and seconds % 60:
        unit = "s"
    return f"{seconds / _SECONDS[unit]:.9g}{unit}" if seconds else "0s"


def format_clock(seconds: float) -> str:
    """Format a span for people: 4:05 or 1:02:33."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


def clock_after(begins: datetime, seconds: float) -> str:
    """Format the time of day after a span from the beginning: 14:05, with the day where that is another one."""
    then = begins + timedelta(seconds=seconds)
    return f"{then:%H:%M}" if then.date() == begins.date() else f"{then:%A %H:%M}"


def utc_now() -> str:
    """Return the current time in its stored form: ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
