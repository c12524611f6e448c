"""An interval that holds however often it is looked at: the looks come after fixed numbers of blocks, and each takes an
equal share of the chance to err. Pure functions of numbers.

By the union bound, the chance that any look misses the truth is at most the level, however the looks depend on each
other and whatever ends them. docs/adr/gate.md says why."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from netdyno.statistics import stats
from netdyno.statistics.block_counts import GATE_LOOKS
from netdyno.statistics.precision import up_to
from netdyno.statistics.stats import Interval, Pairs


def looks(pairs: Pairs, level: float, counts: Sequence[int] = GATE_LOOKS) -> Iterator[Interval]:
    """Yield the interval of the mean at each look so far. All hold the truth with the chance 1 - level."""
    blocks = np.unique(pairs.blocks)
    for count in counts:
        if count > len(blocks):
            return
        interval = stats.mean_interval(up_to(pairs, int(blocks[count - 1])), level / len(counts))
        if interval is not None:
            yield interval


def more_often(more: int, fewer: int, level: float) -> bool:
    """Whether one event has happened so much more often than another that luck alone causes this, at any time, with at
    most the chance `level`. By Ville's inequality: the likelihood ratio of "any share" to "half" is a martingale where
    the share is half."""
    both = more + fewer
    return more > fewer and 2**both >= math.comb(both, more) * (both + 1) / level


def held(pairs: Pairs, level: float, counts: Sequence[int] = GATE_LOOKS) -> Interval | None:
    """Return the intersection of the intervals of all looks, for all hold together; None before the first. Where they
    contradict each other (with the chance `level`, or because the measured value has changed), the last one alone."""
    intersection: Interval | None = None
    for interval in looks(pairs, level, counts):
        both = (
            interval
            if intersection is None
            else Interval(max(intersection.low, interval.low), min(intersection.high, interval.high))
        )
        intersection = both if both.low <= both.high else interval
    return intersection
