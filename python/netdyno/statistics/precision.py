"""When a comparison has enough blocks: where its interval is narrow, and has been for a while. Pure functions of
numbers.

The rule sees how wide an interval is and never where it lies, so that it cannot wait for a difference to appear. Two
habits keep what it stops at honest; docs/adr/adaptive-precision.md has the simulations (bench/adaptive_precision.py).

* An interval is narrow at LOOKS looks in succession. The first narrow one is narrow by luck more often than not: it
  holds the truth in 90% of the runs and not in 95%.
* Unless a difference is beyond doubt, the interval must be narrow for "no difference" too: as wide as it would be
  about a mean of 0. That depends on the sizes of what the blocks say and not on their signs, so a run of equal signs,
  which the test takes for a difference, cannot end the blocks."""

from __future__ import annotations

import math

import numpy as np

from netdyno.statistics import stats
from netdyno.statistics.block_counts import EARLIEST_END, LOOKS
from netdyno.statistics.stats import Floats, Pairs

CLEAR = 2.0
"""From so many half widths away from "no difference" on, a difference is beyond doubt (p < 0.002 at ten blocks)."""


def half_width(pairs: Pairs) -> float:
    """Half of the 95% interval of the ratio, relative to its middle: 0.05 where it goes from the middle divided by 1.05
    to the middle times 1.05. Infinite where there is no interval."""
    interval = stats.mean_interval(pairs)
    return math.inf if interval is None else math.expm1((interval.high - interval.low) / 2)


def is_clear(pairs: Pairs, half_width: float) -> bool:
    """Whether a difference is beyond doubt, beside the half width that `half_width` gives."""
    return math.isfinite(half_width) and abs(stats.log_ratio(pairs)) > CLEAR * math.log1p(half_width)


def settled(pairs: Pairs, asked: float) -> bool:
    """Whether the interval was no wider than `asked` (as `half_width` has it) at each of the last looks, of which one
    follows each block of the comparison."""
    blocks = np.unique(pairs.blocks)
    if len(blocks) < EARLIEST_END:
        return False
    return all(is_narrow(up_to(pairs, int(block)), asked) for block in blocks[: -LOOKS - 1 : -1])


def up_to(pairs: Pairs, block: int) -> Pairs:
    """The pairs as they were after a block."""
    seen = pairs.blocks <= block
    return Pairs(pairs.blocks[seen], pairs.levels[seen], pairs.log_ratios[seen])


def is_narrow(pairs: Pairs, asked: float) -> bool:
    """One look: whether the interval is no wider than `asked`, with the caution that this module is about."""
    interval = stats.mean_interval(pairs)
    if interval is None:
        return False
    means = stats.block_means(pairs)
    half = np.array((interval.high - interval.low) / 2)
    about_none = half_about_none(len(means), np.array(float(np.sum(means**2))))
    return bool(are_narrow(np.array(stats.log_ratio(pairs)), half, about_none, asked))


def half_about_none(blocks: int, squares: Floats) -> Floats:
    """Half of the interval, on the log scale, that blocks of these sizes would have if their mean were 0. `squares` is
    the sum of the squares of what the blocks say."""
    return np.asarray(stats.student(blocks - 1) * np.sqrt(squares / (blocks * (blocks - 1))))


def are_narrow(means: Floats, halves: Floats, about_none: Floats, asked: float) -> Floats:
    """The look itself, for any number of comparisons: mean log ratios, half widths of their intervals on the log scale,
    and what these would be about a mean of 0."""
    cautious = np.where(np.abs(means) < CLEAR * halves, np.maximum(halves, about_none), halves)
    return np.asarray(cautious <= math.log1p(asked))
