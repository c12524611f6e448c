"""When a comparison has enough blocks: where its interval is narrow, and has been for a while. Pure functions of
numbers.

The rule sees how wide an interval is and never where it lies, so that it cannot wait for a difference to appear. Two
habits keep what it stops at honest; docs/adr/adaptive-precision.md has the simulations (bench/adaptive_precision.py).

* An interval is narrow at LOOKS looks in succession. The first narrow one is narrow by luck more often than not: it
  holds the truth in 90% of the runs and not in 95%.
* Unless a difference is beyond doubt, the interval must be narrow for "no difference" too: as wide as the mean would
  vary if the sign of each block were a coin. That does not depend on the signs that came, so a run of equal signs,
  which the test takes for a difference, cannot end the blocks."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from netdyno import stats
from netdyno.blocks import EARLIEST_END, LOOKS
from netdyno.stats import Floats, Pairs

CLEAR = 2.0
"""From so many half widths away from "no difference" on, a difference is beyond doubt (p < 0.002 at ten blocks)."""


def half_width(pairs: Pairs, seed: int = 1) -> float:
    """Half of the 95% interval of the ratio, relative to its middle: 0.05 where it goes from the middle divided by 1.05
    to the middle times 1.05. Infinite where there is no interval."""
    interval = stats.mean_interval(pairs, seed)
    return math.inf if interval is None else math.expm1((interval.high - interval.low) / 2)


def is_clear(pairs: Pairs, half_width: float) -> bool:
    """Whether a difference is beyond doubt, beside the half width that `half_width` gives."""
    return math.isfinite(half_width) and abs(stats.log_ratio(pairs)) > CLEAR * math.log1p(half_width)


def settled(pairs: Pairs, asked: float, seed: int = 1) -> bool:
    """Whether the interval was no wider than `asked` (as `half_width` has it) at each of the last looks, of which one
    follows each block of the comparison."""
    blocks = np.unique(pairs.blocks)
    if len(blocks) < EARLIEST_END:
        return False
    return all(is_narrow(up_to(pairs, int(block)), asked, seed) for block in blocks[: -LOOKS - 1 : -1])


def up_to(pairs: Pairs, block: int) -> Pairs:
    """The pairs as they were after a block."""
    seen = pairs.blocks <= block
    return Pairs(pairs.blocks[seen], pairs.levels[seen], pairs.log_ratios[seen])


def is_narrow(pairs: Pairs, asked: float, seed: int = 1) -> bool:
    """One look: whether the interval is no wider than `asked`, with the caution that this module is about."""
    interval = stats.mean_interval(pairs, seed)
    if interval is None:
        return False
    terms = stats.block_terms(pairs)
    half = np.array((interval.high - interval.low) / 2)
    by_signs = half_by_signs(len(terms), np.array(float(np.sum(terms**2))))
    return bool(are_narrow(np.array(stats.log_ratio(pairs)), half, by_signs, asked))


def half_by_signs(blocks: int, squares: Floats) -> Floats:
    """Half of the interval, on the log scale, that the mean would have if the sign of each block were a coin. `squares`
    is the sum of the squares of what each block adds to the mean."""
    return np.asarray(-NormalDist().inv_cdf(stats.expanded_tail(blocks)) * np.sqrt(squares))


def are_narrow(means: Floats, halves: Floats, by_signs: Floats, asked: float) -> Floats:
    """The look itself, for any number of comparisons: mean log ratios, half widths of their intervals on the log scale,
    and these by signs alone."""
    cautious = np.where(np.abs(means) < CLEAR * halves, np.maximum(halves, by_signs), halves)
    return np.asarray(cautious <= math.log1p(asked))
