"""Reads the figures of other load generators over the same stall from their printed output (they have no other).

`wrk --latency` and `wrk2 -R N --latency` (or -L) print a block "Latency Distribution" of percentiles, a line "N
requests in D, B read", a line "Requests/sec: R" and a line "Latency" with the mean and the deviation over all threads
(their print_stats in wrk.c). With -U wrk2 adds a second block, which runs from the actual send; it is not read.

For its first 10 s (CALIBRATE_DELAY_MS in its wrk.h, and 5 ms for each connection of a thread) wrk2 calibrates itself,
and then forgets what it has recorded: its percentiles are of fewer requests than it counts, of its "Total count"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from netdyno.kit.errors import UserError, check_keys, did_you_mean
from netdyno.kit.files import read_given
from netdyno.kit.units import parse_duration
from netdyno.verbs.instruments.calibrate import truths
from netdyno.verbs.instruments.calibrate.cases import STALL_S, STALLED_PERCENTILES
from netdyno.verbs.instruments.calibrate.scores import QUANTILES, CalibrationScore, score_rate, score_time

KINDS = ("wrk", "wrk2")
_PERCENTILE = re.compile(r"^\s*(?P<percent>\d+(?:\.\d+)?)%\s+(?P<value>\d+(?:\.\d+)?)(?P<unit>us|ms|s|m|h)\s*$")
_MEAN = re.compile(r"^\s*Latency\s+(?P<value>\d+(?:\.\d+)?)(?P<unit>us|ms|s|m|h)\s", re.MULTILINE)
_REQUESTS = re.compile(r"^\s*(?P<count>\d+) requests in \d+(?:\.\d+)?(?:us|ms|s|m|h),", re.MULTILINE)
_RATE = re.compile(r"^Requests/sec:\s+(?P<rate>\d+(?:\.\d+)?)\s*$", re.MULTILINE)
_RECORDED = re.compile(r"^#\[Max .*Total count\s*=\s*(?P<count>\d+)\]\s*$", re.MULTILINE)
_LEFT_OUT = "Thread calibration: "
_FAILED = re.compile(
    r"^\s*(?:Socket errors: (?!connect 0, read 0, write 0,)|Non-2xx or 3xx responses: ).*$", re.MULTILINE
)
"""Not a timeout (2 s) alone: both generators go on waiting for that answer. wrk then leaves it out of its percentiles,
which the scores show."""
_UNIT_NS = {"us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}


class ToolFigures(msgspec.Struct, frozen=True):
    """The figures of one run of another generator. The window is that of its percentiles."""

    percentiles_ns: Mapping[str, float]
    window_s: float
    rate_hz: float
    mean_ns: float


class Other(msgspec.Struct, frozen=True):
    """Another generator, scored over the stall."""

    name: str
    scores: tuple[CalibrationScore, ...]


def parse(text: str, where: str) -> ToolFigures:
    """Parse the output of wrk or wrk2. Raises UserError that names `where` and the missing figure, or the reason why
    the figures are not those of the stall alone."""
    requests, rate = _REQUESTS.search(text), _RATE.search(text)
    if requests is None or rate is None:
        raise UserError(f"{where}: not the output of wrk or wrk2: no line of requests and their rate")
    failed = _FAILED.search(text)
    if failed is not None:
        raise UserError(f"{where}: the stall is not all that happened: {failed[0].strip()}")
    percentiles = _read_percentiles(text)
    if not percentiles:
        raise UserError(f"{where}: no latency distribution; call the generator with --latency")
    recorded = _read_recorded(text, where, int(requests["count"]))
    mean = _MEAN.search(text)
    if mean is None:
        raise UserError(f"{where}: no line of the mean latency")
    rate_hz = float(rate["rate"])
    return ToolFigures(percentiles, recorded / rate_hz, rate_hz, _parse_ns(mean))


def _read_recorded(text: str, where: str, counted: int) -> int:
    """Read the number of requests behind the percentiles: all that are counted, or those that wrk2 did not forget."""
    total = _RECORDED.search(text)
    if total is None and _LEFT_OUT in text:
        raise UserError(f"{where}: wrk2 dropped its first seconds, and no 'Total count' says how many requests it kept")
    recorded = counted if total is None else int(total["count"])
    if not recorded:
        raise UserError(
            f"{where}: the percentiles are of no request (wrk2 drops its first 10 s: take a run that ends before, or "
            "some seconds after)"
        )
    return recorded


def _read_percentiles(text: str) -> dict[str, float]:
    """Read the percentiles that follow the heading, up to the first line that is none."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.strip().startswith("Latency Distribution"):
            break
    names = {quantile: name for name, quantile in QUANTILES.items()}
    percentiles: dict[str, float] = {}
    for line in lines:
        match = _PERCENTILE.match(line)
        if match is None:
            break
        name = names.get(round(float(match["percent"]) / 100, 6))
        if name is not None:
            percentiles[name] = _parse_ns(match)
    return percentiles


def _parse_ns(match: re.Match[str]) -> float:
    return float(match["value"]) * _UNIT_NS[match["unit"]]


def score(name: str, figures: ToolFigures, stall_s: float, requested_hz: float | None) -> Other:
    """Score the figures against the formula over the window of the percentiles, and against the requested rate. A
    percentile that so short a stall does not reach has no score; UserError where it reaches none."""
    scores = []
    for percentile in STALLED_PERCENTILES:
        truth = truths.stall_percentile(stall_s * 1e9, figures.window_s * 1e9, QUANTILES[percentile])
        if percentile in figures.percentiles_ns and truth > 0:
            scores.append(score_time(f"stall: {percentile}", truth, figures.percentiles_ns[percentile]))
    if not scores:
        raise UserError(f"--other {name}: no percentile shows a stall of {stall_s:g} s in {figures.window_s:.3g} s")
    if requested_hz is not None:
        scores.append(score_rate("rate: arrived", requested_hz, figures.rate_hz))
    return Other(name, tuple(scores))


def read(option: str) -> Other:
    """Read `--other KIND=FILE[,rate=R][,stall=DUR]`. Raises UserError for an impossible value."""
    kind, equals, rest = option.partition("=")
    if not equals or kind not in KINDS:
        raise UserError(f"--other: unknown generator {kind!r}{did_you_mean(kind, KINDS)}; want e.g. wrk=FILE")
    file, *settings = rest.split(",")
    values = dict(setting.partition("=")[::2] for setting in settings)
    check_keys(f"--other {kind}", values, ("rate", "stall"))
    try:
        stall_s = parse_duration(values["stall"]) if "stall" in values else STALL_S
        requested_hz = float(values["rate"]) if "rate" in values else None
    except ValueError as error:
        raise UserError(f"--other {kind}: {error}") from error
    try:
        text = read_given(Path(file)).decode(errors="replace")
    except OSError as error:
        raise UserError(f"--other {kind}: {file}: {error.strerror}") from error
    return score(kind, parse(text, file), stall_s, requested_hz)
