"""The bend of a curve of latency over rate. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
