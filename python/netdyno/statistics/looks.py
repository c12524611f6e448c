"""An interval that holds however often it is looked at: after numbers of blocks that are fixed beforehand, each of
which takes an equal share of the chance to err. Pure functions of numbers.

By the union bound, the chance that some look misses the truth is at most the level, whatever looks have to do with each
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
    """The interval of the mean at each look that there has been. All hold the truth with the chance 1 - level."""
    blocks = np.unique(pairs.blocks)
    for count in counts:
        if count > len(blocks):
            return
        found = stats.mean_interval(up_to(pairs, int(blocks[count - 1])), level / len(counts))
        if found is not None:
            yield found


def more_often(more: int, fewer: int, level: float) -> bool:
    """Whether one thing has happened so much more often than another that luck alone brings that about at any time with
    the chance `level` at most. By Ville's inequality: the likelihood ratio of "any share" to "half" is a martingale
    where it is half."""
    both = more + fewer
    return more > fewer and 2**both >= math.comb(both, more) * (both + 1) / level


def held(pairs: Pairs, level: float, counts: Sequence[int] = GATE_LOOKS) -> Interval | None:
    """What all looks leave, for all of them hold together; None before the first. Where they contradict each other, as
    happens with the chance `level` and where what is measured has changed in between, the last look alone."""
    left: Interval | None = None
    for found in looks(pairs, level, counts):
        both = found if left is None else Interval(max(left.low, found.low), min(left.high, found.high))
        left = both if both.low <= both.high else found
    return left
