"""The rule by which a comparison has enough blocks: its interval is narrow, and has been for a while. Pure functions of
numbers.

The rule sees the width of an interval and never its place. Two conditions keep its results honest;
docs/adr/adaptive-precision.md has the simulations (f228f508:bench/adaptive_precision.py).

* The interval must be narrow at several looks in succession (looks.py).
* Unless a difference is beyond doubt, the interval that the same values would have about a mean of 0 must be narrow
  too. It depends on the sizes of the blocks' values and not on their signs, so a run of equal signs, which the test
  takes for a difference, cannot end the blocks."""

from __future__ import annotations

import math

import numpy as np

from netdyno.kit.statistics import looks, stats
from netdyno.kit.statistics.stats import Floats, Pairs

CLEAR = 2.0
"""A difference is beyond doubt from this many half widths away from "no difference" on (p < 0.002 at ten blocks)."""


def half_width(pairs: Pairs) -> float:
    """Return half of the 95% interval of the ratio, relative to its middle: 0.05 where it goes from the middle divided
    by 1.05 to the middle times 1.05. Infinite where there is no interval."""
    interval = stats.mean_interval(pairs)
    return math.inf if interval is None else math.expm1((interval.high - interval.low) / 2)


def is_clear(pairs: Pairs, half_width: float) -> bool:
    """Whether a difference is beyond doubt, given the result of `half_width`."""
    return math.isfinite(half_width) and abs(stats.log_ratio(pairs)) > CLEAR * math.log1p(half_width)


def settled(pairs: Pairs, requested: float) -> bool:
    """Whether the interval was no wider than `requested` (a half width as of `half_width`) at enough looks in
    succession. One look follows each block of the comparison."""
    blocks = np.unique(pairs.blocks)
    return looks.PRECISION.has_ended(
        is_narrow(looks.up_to(pairs, int(blocks[count - 1])), requested)
        for count in reversed(looks.PRECISION.list_taken(len(blocks)))
    )


def is_narrow(pairs: Pairs, requested: float) -> bool:
    """Whether the interval is no wider than `requested` at one look, with the caution that this module describes."""
    interval = stats.mean_interval(pairs)
    if interval is None:
        return False
    half = (interval.high - interval.low) / 2
    if abs(stats.log_ratio(pairs)) < CLEAR * half:
        half = max(half, half_about_none(stats.block_means(pairs)))
    return half <= math.log1p(requested)


def half_about_none(means: Floats) -> float:
    """Return half of the interval, on the log scale, that blocks with values of these sizes would have if their mean
    were 0."""
    blocks = len(means)
    return stats.student(blocks - 1) * math.sqrt(float(np.sum(means**2)) / (blocks * (blocks - 1)))
