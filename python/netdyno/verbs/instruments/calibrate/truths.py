"""The readings of a right generator. Pure functions; times in nanoseconds, shares from 0 to 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from netdyno.kit.statistics.stats import Floats

AD_CRITICAL = 3.857
"""A² at the 1% level, where the distribution is wholly known ("case 0"; D'Agostino & Stephens, Goodness-of-Fit
Techniques, 1986, table 4.2). It is as good as independent of the sample's size from 5 on."""


def stall_percentile(stall_ns: float, window_ns: float, quantile: float, share: float = 1.0) -> float:
    """The response time at a quantile when everything, or this share of the messages, stood still once: S - (1-q)T.
    Messages come evenly and are answered at once otherwise. 0 where the stall is too short to reach the quantile."""
    return max(0.0, stall_ns - (1 - quantile) * window_ns / share)


def shift_past_pauses(due_ns: Floats, pauses_ns: Sequence[tuple[float, float]]) -> Floats:
    """The earliest moments of events that are due at these, on a core where nothing ran during the pauses."""
    if not pauses_ns:
        return due_ns
    begins, ends = np.array(sorted(pauses_ns)).T
    last = np.searchsorted(begins, due_ns, side="right") - 1
    return np.where(last >= 0, np.maximum(due_ns, ends[last]), due_ns)


def simulate_readings(
    due_ns: Floats,
    delays_ns: Floats,
    generator: Sequence[tuple[float, float]],
    server: Sequence[tuple[float, float]],
) -> Floats:
    """The response times that a faultless client reads, of messages that are due at these moments and answered after
    these delays, on a machine that held up the client's core and the server's. A message goes out late where it is due
    in a pause of the client's core, it is read late in one of the server's, and its answer in one of the client's; late
    answers are in the delays already, which are the server's actual ones."""
    reached = shift_past_pauses(shift_past_pauses(due_ns, generator), server)
    return shift_past_pauses(reached + delays_ns, generator) - due_ns


def select_rank(values: Floats, share: float) -> float:
    """The value at that rank, as of a histogram; NaN where there is none."""
    return float(np.quantile(values, share, method="inverted_cdf")) if len(values) else math.nan


def anderson_darling(uniform: Floats) -> float:
    """A² of values that should be uniform in (0, 1) (Anderson & Darling 1954)."""
    values = np.sort(uniform)
    if not len(values):
        raise ValueError("no values to test")
    ranks = 2 * np.arange(1, len(values) + 1) - 1
    return float(-len(values) - np.mean(ranks * (np.log(values) + np.log1p(-values[::-1]))))


def compare_with_exponential(arrivals_ns: Sequence[int], rate_hz: float) -> float:
    """A² of the gaps between arrivals against the exponential distribution of that rate: its form and its mean."""
    gaps = np.diff(np.asarray(arrivals_ns, dtype=np.float64))
    # Two arrivals with one reading of the clock have no gap; 1 ns is the clock's resolution.
    uniform = -np.expm1(-np.maximum(gaps, 1.0) * rate_hz / 1e9)
    return anderson_darling(np.clip(uniform, None, 1 - 2**-53))


def measure_off_grid(
    arrivals_ns: Sequence[int],
    rate_hz: float,
    share: float,
    generator: Sequence[tuple[float, float]] = (),
    server: Sequence[tuple[float, float]] = (),
) -> float:
    """The distance of arrivals, at a quantile and in gaps, from where a faultless client has them: on a grid of equal
    gaps, except those that are due in a pause of either core. The grid has the given rate, so a drift shows; its start
    is the arrivals' median."""
    arrivals = np.asarray(arrivals_ns, dtype=np.float64)
    gap_ns = 1e9 / rate_hz
    steps = np.arange(len(arrivals)) * gap_ns
    due = steps + np.median(arrivals - steps)
    expected = shift_past_pauses(shift_past_pauses(due, generator), server)
    return float(np.quantile(np.abs(arrivals - expected), share)) / gap_ns
