"""From when on a series stays what it is: how long a JIT changes what a message costs. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

TOLERANCE = 1.15
"""The factor by which what has settled may still differ from its median, either way."""
LEAST = 6
"""So many values in succession must agree. A compiler at work makes plateaus of up to three (docs/adr/warm-up.md)."""


def settled_from(values: Sequence[float]) -> int | None:
    """The number of the first value from which on all are about the median of the last ones; None while too few agree.
    Each is taken as the median of itself and its neighbours, so that a single one that is off decides nothing."""
    if len(values) < LEAST:
        return None
    level = statistics.median(values[-LEAST:])
    first = len(values)
    while first > 0 and level / TOLERANCE <= _smoothed(values, first - 1) <= level * TOLERANCE:
        first -= 1
    return first if len(values) - first >= LEAST else None


def _smoothed(values: Sequence[float], at: int) -> float:
    return statistics.median(values[max(0, at - 1) : at + 2])
