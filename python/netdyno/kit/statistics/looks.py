"""The looks of every decision, and what each may spend of the chance to err: they come after fixed numbers of blocks
(block_counts.py), and each takes an equal share. Pure functions of numbers.

By the union bound, the chance that any look misses the truth is at most the level, however the looks depend on each
other and whatever ends them. docs/adr/gate.md says why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from netdyno.kit.statistics import exact, stats
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS, GATE_LOOKS
from netdyno.kit.statistics.precision import up_to
from netdyno.kit.statistics.stats import Interval, Pairs


def divide_level(level: float, counts: Sequence[int], *, at_end: bool = False) -> float:
    """Return the share of one look. `at_end`: the end of the time is one more, which may come between two."""
    return level / (len(counts) + at_end)


def halve_level(level: float) -> float:
    """Return the level of a further look, which is taken because the first left something open: a whole one would call
    equals different in more than 6% of runs (docs/adr/statistics.md)."""
    return level / 2


def take_looks(pairs: Pairs, level: float, counts: Sequence[int] = GATE_LOOKS) -> Iterator[Interval]:
    """Yield the interval of the mean at each look so far. All of them hold the truth with the chance 1 - level."""
    share = divide_level(level, counts)
    blocks = np.unique(pairs.blocks)
    for count in counts:
        if count > len(blocks):
            return
        interval = stats.mean_interval(up_to(pairs, int(blocks[count - 1])), share)
        if interval is not None:
            yield interval


def is_more_often(events: Sequence[bool], other_events: Sequence[bool], level: float) -> bool:
    """Whether an event met one side so much more often than the other that luck alone causes this, at any look, with at
    most the chance `level`, by Fisher's exact test. Both have an entry for each place. The look after FEWEST_BLOCKS
    places takes half of the level, and those after each further one take less and less of the rest: the sum of
    1/n(n+1) is 1."""
    return any(
        exact.compute_chance(sum(events[:count]), count, sum(other_events[:count]), count) <= level / 2 / share
        for count in range(FEWEST_BLOCKS, min(len(events), len(other_events)) + 1)
        for share in [max(1, (count - FEWEST_BLOCKS) * (count - FEWEST_BLOCKS + 1))]
    )


def held(pairs: Pairs, level: float, counts: Sequence[int] = GATE_LOOKS) -> Interval | None:
    """Return the intersection of the intervals of all looks, for all hold together; None before the first. Where they
    contradict each other (with the chance `level`, or because the measured value has changed), the last one alone."""
    intersection: Interval | None = None
    for interval in take_looks(pairs, level, counts):
        before = intersection or interval
        both = Interval(max(before.low, interval.low), min(before.high, interval.high))
        intersection = both if both.low <= both.high else interval
    return intersection
