"""The audits `stationary` and `stalled`: what a trial measured kept its level over the window, and never stood still.
Pure functions.

A movement is named only where it is both proven and large, and is a note: to leave a trial out for it would be to
leave it out for its value. docs/adr/stationary.md has the reasons for each bound and how many trials of real runs they
name. A standstill is the server's fault, where the machine was the trial's own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from netdyno.base import quantities
from netdyno.model.links import LINKS, Link
from netdyno.model.load_result import Audit, LoadResult
from netdyno.statistics import stationarity
from netdyno.statistics.stationarity import Movement
from netdyno.statistics.stats import Floats

THROUGHPUT_SHARE = 0.25
"""How far throughput may drift, step or wander within a window, over its mean. A step of so much in the middle of a
window moves the trial's mean by half of it, which is what machines do to a trial from one block to the next anyway; and
one that goes on like that has no mean that a longer window would confirm."""
RESPONSE_SHARE = 0.5
"""The same for the median response time of an open loop, which near a server's limit moves twice as much as its load
does."""
WHOLE_RESPONSES = 2
"""In a closed loop an interval holds so many response times at least: in shorter ones connections that are answered
together take turns with nothing."""

STALL_S = 0.15
"""How long nothing at all is answered in a standstill. Three times the largest pause that a machine can make without
failing its own audits (audits.FOREIGN_FLOOR_S), and beyond the 40 ms of a delayed ACK (RFC 1122)."""
MISSED = 10
"""So many answers at least are missing then, so that chance in the arrivals is none: e^-10."""
STALLED_RESPONSES = 4
"""In so many median response times connections that are answered together have had their turn."""
STALLED_ROUNDS = 2


class _Series(NamedTuple):
    name: str
    values: Floats
    interval_s: float
    bound: float


def stationary(load: LoadResult) -> Audit:
    """Throughput kept its level, and in an open loop that was not overloaded the median response time did."""
    judged = [_of_throughput(load)]
    if load.plan.arrivals != "closed" and not _overloaded(load):
        judged.append(_of_response(load))
    found = [(series, stationarity.movements(series.values)) for series in judged]
    passed = not any(_strikes_out(series, one) for series, each in found for one in each)
    return Audit(name="stationary", passed=passed, detail="; ".join(_told(series, each) for series, each in found))


def stalled(load: LoadResult, link: Link, among: LoadResult | None = None, overruns_s: Sequence[float] = ()) -> Audit:
    """Answers came all the time. Over a link that loses frames TCP itself waits a fifth of a second and more. `among`
    is the load of which this one is a part, which is held against the others: a time counts in which they were.
    `overruns_s`: where the window is made of slices, how long the last answers of each were waited for after its
    end."""
    interval_s = load.timeseries.interval_ns / 1e9
    full = load.timeseries.completed[: _full(load)]
    least_s = max(STALL_S, STALLED_RESPONSES * load.latency.response_ns.p50 / 1e9, STALLED_ROUNDS * load.plan.round_s)
    longest = _longest_silence(full, itertools.repeat(1) if among is None else among.timeseries.completed)
    longest_s = max(longest * interval_s, _longest_at_an_end(load, full, overruns_s))
    told = f"the longest time without an answer: {quantities.duration(longest_s * 1e9)}, in whole intervals"
    if LINKS[link].impaired or not answered_often(load):
        return Audit(name="stalled", passed=True, detail=f"not judged, because answers are rare: {told}")
    passed = longest_s < least_s
    return Audit(name="stalled", passed=passed, detail=f"{told} (limit {quantities.duration(least_s * 1e9)})")


def _longest_at_an_end(load: LoadResult, full: Sequence[int], overruns_s: Sequence[float]) -> float:
    """Seconds without an answer at the end of a slice and after it. No wait counts that no answer took."""
    if not overruns_s:
        return 0.0
    of_slice = len(full) // len(overruns_s)
    slowest_s = load.latency.response_ns.max / 1e9
    longest_s = 0.0
    for number, overrun_s in enumerate(overruns_s):
        backwards = reversed(full[number * of_slice : (number + 1) * of_slice])
        silent = sum(1 for _ in itertools.takewhile(lambda count: not count, backwards))
        if silent:
            longest_s = max(longest_s, silent * load.timeseries.interval_ns / 1e9 + min(overrun_s, slowest_s))
    return longest_s


def answered_often(load: LoadResult) -> bool:
    """Whether a standstill would miss more answers than chance does."""
    answered = [count for count in load.timeseries.completed[: _full(load)] if count]
    missed = STALL_S * 1e9 / load.timeseries.interval_ns * sum(answered) / len(answered) if answered else 0.0
    return missed >= MISSED


def _longest_silence(completed: Sequence[int], of_all: Iterable[int]) -> int:
    """Intervals on end without an answer, up to one in which nobody had any: what a host misses after that may be the
    way in which a server catches up, with the connections of one host before those of another."""
    runs = itertools.groupby(zip(completed, of_all, strict=False), key=lambda counts: not counts[0])
    silences = (itertools.takewhile(lambda counts: counts[1] > 0, run) for silent, run in runs if silent)
    return max((sum(1 for _ in silence) for silence in silences), default=0)


def _strikes_out(series: _Series, one: Movement) -> bool:
    return one.proven and abs(one.share) > series.bound


def _of_throughput(load: LoadResult) -> _Series:
    """Completions over intervals that are long enough to show the server and not its messages one by one."""
    times = load.timeseries
    least_ns = load.plan.round_s * 1e9
    if load.plan.arrivals == "closed":
        least_ns = max(least_ns, WHOLE_RESPONSES * load.latency.response_ns.p50)
    together = max(1, math.ceil(least_ns / times.interval_ns))
    full = times.completed[: _full(load)]
    points = len(full) // together
    values = np.array(full[: points * together], dtype=np.float64).reshape(points, together).sum(axis=1)
    return _Series("throughput", values, together * times.interval_ns / 1e9, THROUGHPUT_SHARE)


def _of_response(load: LoadResult) -> _Series:
    """The medians of intervals in which anything was answered: they cannot be put together to those of longer ones."""
    times = load.timeseries
    answered = zip(times.completed[: _full(load)], times.p50_ns, strict=False)
    values = np.array([median for completed, median in answered if completed], dtype=np.float64)
    return _Series("median response time", values, times.interval_ns / 1e9, RESPONSE_SHARE)


def _full(load: LoadResult) -> int:
    """The intervals that are wholly within the window."""
    return round(load.plan.duration_s * 1e9) // load.timeseries.interval_ns


def _overloaded(load: LoadResult) -> bool:
    """More than 1% of what was sent in the window, and was answered at all, was not answered in it. The response time
    then rises as long as the load goes on, and what is measured is throughput."""
    answered = load.latency.response_ns.count
    return load.requests.completed < answered - 0.01 * load.requests.sent - 3


def _told(series: _Series, each: Sequence[Movement]) -> str:
    points = len(series.values)
    over = f"{series.name} over {quantities.plural(points, 'point')} of {quantities.duration(series.interval_s * 1e9)}"
    if points < stationarity.LEAST_POINTS:
        return f"not judged: {over}, and {stationarity.LEAST_POINTS} are needed"
    if not each:
        return f"not judged: {over}, which are all 0"
    moved = [one for one in each if _strikes_out(series, one)]
    told = [_movement_told(series, one) for one in moved or each]
    return f"{over}: {', '.join(told)}; bound {series.bound:.0%}"


def _movement_told(series: _Series, one: Movement) -> str:
    share = f"{one.share:.0%}" if one.kind == "wandering" else f"{one.share:+.0%}"
    when = f" after {one.after * series.interval_s:g} s" if one.kind == "step" else ""
    return f"{one.kind} {share}{when} ({one.told})"
