"""The capacity of one block in which each rate was measured once, and the bend of its curve of latency."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

ThresholdDirection = Literal["", "at least", "below"]


class RateResult(msgspec.Struct, frozen=True):
    """One rate of a block: whether the objective held, and the figure of its first latency, None where it has none."""

    rate_hz: float
    held: bool
    latency_ns: float | None = None


class Capacity(msgspec.Struct, frozen=True):
    """A capacity in messages per second. With a `bound`, it lies beyond the rates that were tried, and `rate_hz` is the
    highest or the lowest of them."""

    rate_hz: float
    bound: ThresholdDirection = ""


def capacity(measured: Sequence[RateResult], limit_ns: float | None) -> Capacity:
    """Return the boundary that separates the rates where the objective held from those where it failed with the fewest
    exceptions; of several, the lowest. So a single failure far below, or a single success far above, moves nothing. The
    latency interpolates, on logarithmic scales, where its limit was crossed between the two rates at the boundary.
    `measured` must not be empty."""
    rates = sorted(measured, key=lambda measurement: measurement.rate_hz)
    holds = min(range(len(rates) + 1), key=lambda count: _count_exceptions(rates, count))
    if holds == 0:
        return Capacity(rates[0].rate_hz, "below")
    if holds == len(rates):
        return Capacity(rates[-1].rate_hz, "at least")
    return Capacity(_interpolate_crossing(rates[holds - 1], rates[holds], limit_ns))


def _count_exceptions(rates: Sequence[RateResult], count: int) -> int:
    """Count the outcomes that contradict "the first `count` rates hold and the rest fail"."""
    return sum(not measurement.held for measurement in rates[:count]) + sum(
        measurement.held for measurement in rates[count:]
    )


def _interpolate_crossing(below: RateResult, above: RateResult, limit_ns: float | None) -> float:
    """Return the rate at which the latency crosses the limit; the lower rate where it does not cross it between the
    two, as in an overload that the latency hides."""
    low, high = below.latency_ns, above.latency_ns
    if limit_ns is None or low is None or high is None or not 0 < low < limit_ns <= high:
        return below.rate_hz
    share = math.log(limit_ns / low) / math.log(high / low)
    return below.rate_hz * math.exp(share * math.log(above.rate_hz / below.rate_hz))


LEAST_POINTS = 4
LEAST_BEND = 0.1
"""A share of the unit square: a curve that stays closer to its chord has no knee."""


def knee(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the rate at the knee of (rate, latency), in rising order of rates: the point farthest below the chord from
    the first to the last, with the rate and the logarithm of the latency each scaled to 0..1 (Kneedle of Satopaa et al.
    2011, ICDCSW, for a rising convex curve, without smoothing). None where the curve is too short or hardly bends."""
    if len(points) < LEAST_POINTS:
        return None
    rates = [rate for rate, _ in points]
    logs = [math.log(latency) for _, latency in points]
    width, height = rates[-1] - rates[0], max(logs) - min(logs)
    if width <= 0 or height <= 0:
        return None
    below = [(rate - rates[0]) / width - (value - min(logs)) / height for rate, value in zip(rates, logs, strict=True)]
    most = max(range(len(points)), key=lambda number: below[number])
    return rates[most] if below[most] >= LEAST_BEND else None
