"""What other load generators say of the same stall, read from what they print (they have no other output).

`wrk --latency` and `wrk2 -R N --latency` (or -L) print a block "Latency Distribution" of percentiles, a line "N
requests in D, B read", a line "Requests/sec: R" and a line "Latency" with the mean and the deviation over all threads
(their print_stats in wrk.c)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from netdyno.calibrate import truths
from netdyno.calibrate.cases import RATE_BOUND, STALL_S, STALLED_PERCENTILES
from netdyno.calibrate.scores import QUANTILES, Score, within
from netdyno.errors import UserError, check_keys, did_you_mean
from netdyno.units import parse_duration

KINDS = ("wrk", "wrk2")
_PERCENTILE = re.compile(r"^\s*(?P<percent>\d+(?:\.\d+)?)%\s+(?P<value>\d+(?:\.\d+)?)(?P<unit>us|ms|s|m|h)\s*$")
_MEAN = re.compile(r"^\s*Latency\s+(?P<value>\d+(?:\.\d+)?)(?P<unit>us|ms|s|m|h)\s", re.MULTILINE)
_REQUESTS = re.compile(r"^\s*\d+ requests in (?P<value>\d+(?:\.\d+)?)(?P<unit>us|ms|s|m|h),", re.MULTILINE)
_RATE = re.compile(r"^Requests/sec:\s+(?P<rate>\d+(?:\.\d+)?)\s*$", re.MULTILINE)
_UNIT_NS = {"us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}


class Said(msgspec.Struct, frozen=True):
    """The figures of one run of another generator."""

    percentiles_ns: Mapping[str, float]
    window_s: float
    rate_hz: float
    mean_ns: float


class Other(msgspec.Struct, frozen=True):
    """Another generator, scored over the stall."""

    name: str
    scores: tuple[Score, ...]


def parse(text: str, where: str) -> Said:
    """The figures of wrk's or wrk2's output. Raises UserError that names `where` and what is missing."""
    requests, rate = _REQUESTS.search(text), _RATE.search(text)
    if requests is None or rate is None:
        raise UserError(f"{where}: not the output of wrk or wrk2: no line of requests and their rate")
    found = _distribution(text)
    if not found:
        raise UserError(f"{where}: no latency distribution; call the generator with --latency")
    mean = _MEAN.search(text)
    if mean is None:
        raise UserError(f"{where}: no line of the mean latency")
    return Said(found, _ns(requests) / 1e9, float(rate["rate"]), _ns(mean))


def _distribution(text: str) -> dict[str, float]:
    """The percentiles that follow the heading, up to the first line that is none."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.strip().startswith("Latency Distribution"):
            break
    wanted = {quantile: name for name, quantile in QUANTILES.items()}
    found: dict[str, float] = {}
    for line in lines:
        match = _PERCENTILE.match(line)
        if match is None:
            break
        name = wanted.get(round(float(match["percent"]) / 100, 6))
        if name is not None:
            found[name] = _ns(match)
    return found


def _ns(match: re.Match[str]) -> float:
    return float(match["value"]) * _UNIT_NS[match["unit"]]


def score(name: str, said: Said, stall_s: float, asked_hz: float | None) -> Other:
    """Against the formula over the window that the generator states, and the rate that it was asked for."""
    scores = [
        within(
            f"stall: {percentile}",
            truths.stall_percentile(stall_s * 1e9, said.window_s * 1e9, QUANTILES[percentile]),
            said.percentiles_ns[percentile],
        )
        for percentile in STALLED_PERCENTILES
        if percentile in said.percentiles_ns
    ]
    if asked_hz is not None:
        scores.append(
            Score(
                name="rate: arrived", unit="hz", rule="within", truth=asked_hz, measured=said.rate_hz, bound=RATE_BOUND
            )
        )
    return Other(name, tuple(scores))


def read(option: str) -> Other:
    """`--other KIND=FILE[,rate=R][,stall=DUR]`. Raises UserError for what cannot be meant."""
    kind, equals, rest = option.partition("=")
    if not equals or kind not in KINDS:
        raise UserError(f"--other: unknown generator {kind!r}{did_you_mean(kind, KINDS)}; want e.g. wrk=FILE")
    file, *settings = rest.split(",")
    said = dict(setting.partition("=")[::2] for setting in settings)
    check_keys(f"--other {kind}", said, ("rate", "stall"))
    try:
        stall_s = parse_duration(said["stall"]) if "stall" in said else STALL_S
        asked_hz = float(said["rate"]) if "rate" in said else None
    except ValueError as error:
        raise UserError(f"--other {kind}: {error}") from error
    try:
        text = Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserError(f"--other {kind}: {file}: {error.strerror}") from error
    return score(kind, parse(text, file), stall_s, asked_hz)
