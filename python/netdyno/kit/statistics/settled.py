"""The moment from which a series keeps its level: how long a JIT changes the cost of a message. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

TOLERANCE = 1.15
"""The factor by which a settled value may still differ from the median, either way."""
LEAST = 6
"""The number of successive values that must agree. A compiler at work makes plateaus of up to three
(docs/adr/warm-up.md)."""


def settled_from(values: Sequence[float]) -> int | None:
    """Return the index from which all values are about the median of the last ones; None while too few agree. Each
    value is replaced by the median of itself and its neighbours, so that a single outlier decides nothing."""
    if len(values) < LEAST:
        return None
    level = statistics.median(values[-LEAST:])
    first = len(values)
    while first > 0 and level / TOLERANCE <= _smooth(values, first - 1) <= level * TOLERANCE:
        first -= 1
    return first if len(values) - first >= LEAST else None


def _smooth(values: Sequence[float], position: int) -> float:
    return statistics.median(values[max(0, position - 1) : position + 2])
