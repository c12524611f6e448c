"""The looks of every question while it is measured, and the rule by which its looks end it. Pure functions of numbers.

Nothing of a look is stored: each follows again from the blocks that it had."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec
import numpy as np

from netdyno.kit.statistics import exact, stats
from netdyno.kit.statistics.block_counts import ADVICE_LOOKS, FEWEST_BLOCKS, FIRST_LOOK, FLIP_LOOKS, GATE_LOOKS, LOOKS
from netdyno.kit.statistics.stats import Interval, Pairs

Spending = Literal["equally", "less and less", "not"]
"""How the looks share the chance to err. `less and less`: the first takes half, and the n-th after it 1/n(n+1) of the
rest, of which the sum is 1 however many there are. `not`: a look has no such chance."""


class Looks(msgspec.Struct, frozen=True):
    """The looks of a question: the numbers of blocks after which they come (`counts`; `ends` more come when a time is
    over), how they share the chance to err, and how many must decide it before it has ended (`enough`, `in_succession`
    or at any time).

    Looks that see where an interval lies share the chance: by the union bound, any of them misses the truth with at
    most that chance, however they depend on each other and whatever ends the blocks. So one that decides is enough.

    * `GATE` and `FLIP` compare the same two sides at each look, so the intervals of all looks hold together, and their
      intersection (`hold`) decides (docs/adr/gate.md).
    * `ADVICE` takes the intervals of its last look alone. They have a spread pooled over the contestants that are left,
      which were others at an earlier look, and a report ranks by them (docs/adr/gate.md).
    * `FAULTS` are counted, and what one look has shown stays shown.
    * `FURTHER`: a whole chance for a look taken because the first left something open would call equals different in
      more than 6% of runs (docs/adr/statistics.md).
    * `PRECISION` sees widths only, and cannot wait for a difference. But an interval is narrow by luck more often than
      not when it first is, so several in succession must be (docs/adr/adaptive-precision.md).
    * `count_trials`: a look is a trial at a rate, which a busy machine may spoil, so the most frequent outcome decides
      (docs/adr/capacity.md)."""

    counts: Sequence[int] = ()
    ends: int = 0
    spending: Spending = "equally"
    enough: int = 1
    in_succession: bool = True

    def divide_significance(self, significance: float, number: int = 0) -> float:
        """Return the share of the significance that the look of this number has, counted from 0."""
        if self.spending == "less and less":
            return significance / 2 / max(1, number * (number + 1))
        return significance if self.spending == "not" else significance / (len(self.counts) + self.ends)

    def list_taken(self, blocks: int) -> Sequence[int]:
        """Return the counts of the looks so far."""
        return self.counts[: bisect_right(self.counts, blocks)]

    def has_ended(self, decisions: Iterable[bool]) -> bool:
        """Whether the question has ended, given whether each look so far decides it; the last one comes first."""
        deciding = 0
        for decides in decisions:
            if self.in_succession and not decides:
                return False
            deciding += decides
            if deciding >= self.enough:
                return True
        return False

    def take(self, pairs: Pairs, significance: float) -> Iterator[Interval]:
        """Yield the interval of the mean at each look so far. All of them hold the truth with the chance 1 -
        significance."""
        blocks = np.unique(pairs.blocks)
        for number, count in enumerate(self.list_taken(len(blocks))):
            share = self.divide_significance(significance, number)
            interval = stats.mean_interval(up_to(pairs, int(blocks[count - 1])), share)
            if interval is not None:
                yield interval

    def hold(self, pairs: Pairs, significance: float) -> Interval | None:
        """Return the intersection of the intervals of all looks; None before the first. Where they contradict each
        other (with the chance `significance`, or because the measured value has changed), the last one alone."""
        intersection: Interval | None = None
        for interval in self.take(pairs, significance):
            before = intersection or interval
            both = Interval(max(before.low, interval.low), min(before.high, interval.high))
            intersection = both if both.low <= both.high else interval
        return intersection


GATE, FLIP, ADVICE = Looks(GATE_LOOKS), Looks(FLIP_LOOKS), Looks(ADVICE_LOOKS, ends=1)
FURTHER = Looks(ends=2)
FAULTS = Looks(range(FEWEST_BLOCKS, sys.maxsize), spending="less and less", in_succession=False)
PRECISION = Looks(range(FIRST_LOOK, sys.maxsize), spending="not", enough=LOOKS)


def count_trials(needed: int) -> Looks:
    """Return the looks at a rate of which so many must have the same outcome."""
    return Looks(spending="not", enough=needed, in_succession=False)


def up_to(pairs: Pairs, block: int) -> Pairs:
    """Return the pairs as they were after a block."""
    seen = pairs.blocks <= block
    return Pairs(pairs.blocks[seen], pairs.levels[seen], pairs.log_ratios[seen])


def is_more_often(events: Sequence[bool], other_events: Sequence[bool], significance: float) -> bool:
    """Whether an event met one side so much more often than the other that luck alone causes this, at any look, with at
    most the chance `significance`, by Fisher's exact test. Both have an entry for each place; a look comes after
    each."""
    taken = FAULTS.list_taken(min(len(events), len(other_events)))
    return FAULTS.has_ended(
        exact.compute_chance(sum(events[:count]), count, sum(other_events[:count]), count)
        <= FAULTS.divide_significance(significance, number)
        for number, count in enumerate(taken)
    )
