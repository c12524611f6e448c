"""What other load generators say of the same stall, read from what they print (they have no other output).

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

from netdyno.base.errors import UserError, check_keys, did_you_mean
from netdyno.base.units import parse_duration
from netdyno.instruments.calibrate import truths
from netdyno.instruments.calibrate.cases import RATE_BOUND, STALL_S, STALLED_PERCENTILES
from netdyno.instruments.calibrate.scores import QUANTILES, Score, within

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
"""Not a timeout (2 s) alone: both go on waiting for that answer. wrk then leaves it out of its percentiles, which the
scores show."""
_UNIT_NS = {"us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}


class Said(msgspec.Struct, frozen=True):
    """The figures of one run of another generator. The window is that of its percentiles."""

    percentiles_ns: Mapping[str, float]
    window_s: float
    rate_hz: float
    mean_ns: float


class Other(msgspec.Struct, frozen=True):
    """Another generator, scored over the stall."""

    name: str
    scores: tuple[Score, ...]


def parse(text: str, where: str) -> Said:
    """The figures of wrk's or wrk2's output. Raises UserError that names `where` and what is missing, or why they are
    not those of the stall alone."""
    requests, rate = _REQUESTS.search(text), _RATE.search(text)
    if requests is None or rate is None:
        raise UserError(f"{where}: not the output of wrk or wrk2: no line of requests and their rate")
    failed = _FAILED.search(text)
    if failed is not None:
        raise UserError(f"{where}: the stall is not all that happened: {failed[0].strip()}")
    found = _distribution(text)
    if not found:
        raise UserError(f"{where}: no latency distribution; call the generator with --latency")
    recorded = _recorded(text, where, int(requests["count"]))
    mean = _MEAN.search(text)
    if mean is None:
        raise UserError(f"{where}: no line of the mean latency")
    rate_hz = float(rate["rate"])
    return Said(found, recorded / rate_hz, rate_hz, _ns(mean))


def _recorded(text: str, where: str, counted: int) -> int:
    """Of how many requests the percentiles are: of all that are counted, or of those that wrk2 did not forget."""
    told = _RECORDED.search(text)
    if told is None and _LEFT_OUT in text:
        raise UserError(f"{where}: it forgot its first seconds, and no 'Total count' says how many requests it kept")
    recorded = counted if told is None else int(told["count"])
    if not recorded:
        raise UserError(
            f"{where}: the percentiles are of no request (wrk2 forgets its first 10 s when they are over: "
            "want a run that ends before, or some seconds after)"
        )
    return recorded


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
    """Against the formula over the window of the percentiles, and the rate that it was asked for. What so short a stall
    does not reach has no score; UserError where it reaches none."""
    scores = []
    for percentile in STALLED_PERCENTILES:
        truth = truths.stall_percentile(stall_s * 1e9, said.window_s * 1e9, QUANTILES[percentile])
        if percentile in said.percentiles_ns and truth > 0:
            scores.append(within(f"stall: {percentile}", truth, said.percentiles_ns[percentile]))
    if not scores:
        raise UserError(f"--other {name}: no percentile shows a stall of {stall_s:g} s in {said.window_s:.3g} s")
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
