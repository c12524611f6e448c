"""What a right generator must read. Pure functions; times in nanoseconds, shares from 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

AD_CRITICAL = 3.857
"""Of A² at the 1% level, where the distribution is wholly known ("case 0"; D'Agostino & Stephens, Goodness-of-Fit
Techniques, 1986, table 4.2). It is as good as independent of the sample's size from 5 on."""


def stall_percentile(stall_ns: float, window_ns: float, quantile: float, share: float = 1.0) -> float:
    """The response time at a quantile when everything, or this share of the messages, stood still once: S - (1-q)T.
    Messages come evenly and are answered at once otherwise. 0 where the stall is too short to reach the quantile."""
    return max(0.0, stall_ns - (1 - quantile) * window_ns / share)


def anderson_darling(uniform: NDArray[np.float64]) -> float:
    """A² of values that should be uniform in (0, 1) (Anderson & Darling 1954)."""
    values = np.sort(uniform)
    if not len(values):
        raise ValueError("no values to test")
    ranks = 2 * np.arange(1, len(values) + 1) - 1
    return float(-len(values) - np.mean(ranks * (np.log(values) + np.log1p(-values[::-1]))))


def exponential_gaps(arrivals_ns: Sequence[int], rate_hz: float) -> float:
    """A² of the gaps between arrivals against the exponential distribution of that rate: its form and its mean."""
    gaps = np.diff(np.asarray(arrivals_ns, dtype=np.float64))
    # Two that were read by one look at the clock have no gap; 1 ns is what the clock can tell.
    uniform = -np.expm1(-np.maximum(gaps, 1.0) * rate_hz / 1e9)
    return anderson_darling(np.clip(uniform, None, 1 - 2**-53))


def off_the_grid(arrivals_ns: Sequence[int], rate_hz: float, quantile: float) -> float:
    """How far arrivals lie from a grid of equal gaps at a quantile, in gaps. The rate is that of the grid, so a drift
    shows; where the grid begins is the arrivals' median."""
    arrivals = np.asarray(arrivals_ns, dtype=np.float64)
    late = arrivals * rate_hz / 1e9 - np.arange(len(arrivals))
    return float(np.quantile(np.abs(late - np.median(late)), quantile))
