"""The audits `stationary` and `stalled`: the figures of a trial kept their level over the window, and never stood
still. Pure functions.

A movement is reported only where it is both proven and large, and only as a note: to exclude a trial for it would be to
exclude it for its value. docs/adr/stationary.md has the reasons for each bound and how many trials of real runs they
affect. A standstill is the server's fault, where the machine was the trial's own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from netdyno.kit import quantities
from netdyno.kit.statistics import stationarity
from netdyno.kit.statistics.stationarity import Movement
from netdyno.kit.statistics.stats import Floats
from netdyno.model.links import LINKS, Link
from netdyno.model.load_result import Audit, LoadResult

THROUGHPUT_SHARE = 0.25
"""The share of its mean by which throughput may drift, step or wander within a window. A step of this size in the
middle of a window moves the trial's mean by half of it, as much as machines move a trial from one block to the next
anyway; and a trial that goes on like that has no mean that a longer window would confirm."""
RESPONSE_SHARE = 0.5
"""The same share for the median response time of an open loop, which near a server's limit moves twice as much as its
load does."""
WHOLE_RESPONSES = 2
"""The fewest response times that an interval of a closed loop holds: shorter ones may be empty between the answers of
connections that are answered together."""

STALL_S = 0.15
"""The least time without any answer that is a standstill: three times the largest pause that a machine can make without
failing its own audits (of_trial.FOREIGN_FLOOR_S), and more than the 40 ms of a delayed ACK (RFC 1122)."""
MISSED = 10
"""The fewest answers that a standstill misses, so that chance in the arrivals cannot explain it: e^-10."""
STALLED_RESPONSES = 4
"""The number of median response times in which connections that are answered together have all had their turn."""
STALLED_ROUNDS = 2


class _Series(msgspec.Struct, frozen=True):
    name: str
    values: Floats
    interval_s: float
    bound: float


def stationary(load: LoadResult) -> Audit:
    """Check that throughput kept its level, and in an open loop without overload the median response time too. A load
    whose rate changes moves both."""
    if load.steps:
        return Audit(name="stationary", passed=True, detail="not judged, because the rate changes within the window")
    judged = [_collect_throughput(load)]
    if load.plan.arrivals != "closed" and not _is_overloaded(load):
        judged.append(_collect_response_times(load))
    tested = [(series, stationarity.movements(series.values)) for series in judged]
    passed = not any(_is_large(series, movement) for series, movements in tested for movement in movements)
    return Audit(
        name="stationary", passed=passed, detail="; ".join(_describe(series, movements) for series, movements in tested)
    )


def stalled(load: LoadResult, link: Link, whole: LoadResult | None = None, overruns_s: Sequence[float] = ()) -> Audit:
    """Check that answers came all the time. Not judged over a link that loses frames, where TCP itself waits a fifth of
    a second and more. `whole` is the load of which this one is a part: then only time in which other parts were
    answered counts. `overruns_s`: where the window is made of slices, the wait for the last answers of each after its
    end."""
    interval_s = load.timeseries.interval_ns / 1e9
    full = load.timeseries.completed[: _count_full_intervals(load)]
    least_s = max(STALL_S, STALLED_RESPONSES * load.latency.response_ns.p50 / 1e9, STALLED_ROUNDS * load.plan.round_s)
    longest = _find_longest_silence(full, itertools.repeat(1) if whole is None else whole.timeseries.completed)
    longest_s = max(longest * interval_s, _find_longest_at_end(load, full, overruns_s))
    detail = f"the longest time without an answer: {quantities.duration(longest_s * 1e9)}, in whole intervals"
    if LINKS[link].impaired or not answered_often(load):
        return Audit(name="stalled", passed=True, detail=f"not judged, because answers are rare: {detail}")
    passed = longest_s < least_s
    return Audit(name="stalled", passed=passed, detail=f"{detail} (limit {quantities.duration(least_s * 1e9)})")


def _find_longest_at_end(load: LoadResult, full: Sequence[int], overruns_s: Sequence[float]) -> float:
    """Return the longest time without an answer, in seconds, at the end of a slice and after it. A wait counts only up
    to the slowest response time."""
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
    answered = [count for count in load.timeseries.completed[: _count_full_intervals(load)] if count]
    missed = STALL_S * 1e9 / load.timeseries.interval_ns * sum(answered) / len(answered) if answered else 0.0
    return missed >= MISSED


def _find_longest_silence(completed: Sequence[int], of_all: Iterable[int]) -> int:
    """Count the successive intervals without an answer, up to one in which no host had any. Later silence of a host may
    come from a server that catches up, with the connections of one host before those of another."""
    runs = itertools.groupby(zip(completed, of_all, strict=False), key=lambda counts: not counts[0])
    silences = (itertools.takewhile(lambda counts: counts[1] > 0, run) for silent, run in runs if silent)
    return max((sum(1 for _ in silence) for silence in silences), default=0)


def _is_large(series: _Series, movement: Movement) -> bool:
    return movement.proven and abs(movement.share) > series.bound


def _collect_throughput(load: LoadResult) -> _Series:
    """Sum completions over intervals that are long enough to show the server and not its single messages."""
    times = load.timeseries
    least_ns = load.plan.round_s * 1e9
    if load.plan.arrivals == "closed":
        least_ns = max(least_ns, WHOLE_RESPONSES * load.latency.response_ns.p50)
    together = max(1, math.ceil(least_ns / times.interval_ns))
    full = times.completed[: _count_full_intervals(load)]
    points = len(full) // together
    values = np.array(full[: points * together], dtype=np.float64).reshape(points, together).sum(axis=1)
    return _Series("throughput", values, together * times.interval_ns / 1e9, THROUGHPUT_SHARE)


def _collect_response_times(load: LoadResult) -> _Series:
    """Collect the medians of intervals with answers: they cannot be combined to medians of longer intervals."""
    times = load.timeseries
    answered = zip(times.completed[: _count_full_intervals(load)], times.p50_ns, strict=False)
    values = np.array([median for completed, median in answered if completed], dtype=np.float64)
    return _Series("median response time", values, times.interval_ns / 1e9, RESPONSE_SHARE)


def _count_full_intervals(load: LoadResult) -> int:
    """Count the intervals that are wholly within the window."""
    return round(load.plan.duration_s * 1e9) // load.timeseries.interval_ns


def _is_overloaded(load: LoadResult) -> bool:
    """Whether more than 1% of the messages that were sent in the window and answered at all were not answered in it.
    The response time then rises as long as the load goes on, and only throughput is measured."""
    answered = load.latency.response_ns.count
    return load.requests.completed < answered - 0.01 * load.requests.sent - 3


def _describe(series: _Series, movements: Sequence[Movement]) -> str:
    points = len(series.values)
    over = f"{series.name} over {quantities.plural(points, 'point')} of {quantities.duration(series.interval_s * 1e9)}"
    if points < stationarity.LEAST_POINTS:
        return f"not judged: {over}, and {stationarity.LEAST_POINTS} are needed"
    if not movements:
        return f"not judged: {over}, which are all 0"
    moved = [movement for movement in movements if _is_large(series, movement)]
    descriptions = [_describe_movement(series, movement) for movement in moved or movements]
    return f"{over}: {', '.join(descriptions)}; bound {series.bound:.0%}"


def _describe_movement(series: _Series, movement: Movement) -> str:
    share = f"{movement.share:.0%}" if movement.kind == "wandering" else f"{movement.share:+.0%}"
    when = f" after {movement.after * series.interval_s:g} s" if movement.kind == "step" else ""
    return f"{movement.kind} {share}{when} ({movement.figures})"
