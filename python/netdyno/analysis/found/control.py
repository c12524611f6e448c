"""The findings of the A/A control, as frozen data."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from netdyno.kit.statistics.false_difference_rate import FalseDifferenceRate
from netdyno.kit.statistics.stats import Comparison
from netdyno.model.base import Name
from netdyno.model.experiment import MOST_AA_SHARE

ALARM = 0.01
"""The rate of false alarms about a harness without a fault. Not 5%: every run asks, and an alarm in each twentieth is
ignored."""


WhyNone = Literal["share", "blocks", "unfinished", "time"]
"""Why there is none: no share of the time, too few blocks, a run that ended before the first twin, or a time too
short."""


class AA(msgspec.Struct, frozen=True):
    """A contestant at one load against its twin: `comparison` is a ranking's verdict on the two, but for `p` and
    `single`, which are of its own blocks alone."""

    scenario: Name
    level: Name
    """The level's label."""
    contestant: Name
    comparison: Comparison


class Control(msgspec.Struct, frozen=True):
    """All A/A comparisons of a run; `none` says why there are none, and `blocks` how many it could have had."""

    share: float
    significance: float
    comparisons: tuple[AA, ...]
    none: WhyNone | None
    blocks: int

    @property
    def different(self) -> FalseDifferenceRate:
        """The rate of false differences in a ranking, of the comparisons with enough blocks."""
        return FalseDifferenceRate(sum(comparison.different for comparison in self._able), len(self._able))

    @property
    def single(self) -> FalseDifferenceRate:
        """The same for each comparison by itself, without correction: the rate of 95% intervals that leave out 1."""
        return FalseDifferenceRate(sum(comparison.p <= self.significance for comparison in self._able), len(self._able))

    @property
    def _able(self) -> list[Comparison]:
        return [pair.comparison for pair in self.comparisons if pair.comparison.decidable]

    @property
    def largest(self) -> AA | None:
        """The pair with the largest difference; None where no pair was measured."""
        measured = [pair for pair in self.comparisons if pair.comparison.pairs]
        return max(measured, key=lambda pair: abs(math.log(pair.comparison.ratio)), default=None)

    @property
    def is_the_question(self) -> bool:
        """Whether all trials were run twice: the run had no other question then."""
        return self.share >= MOST_AA_SHARE

    @property
    def fails(self) -> bool:
        """Whether false differences are proven to be more frequent than the significance allows. The single tests
        count, too: the correction would hide a test with twice its stated error rate."""
        return self.by_chance <= ALARM

    @property
    def by_chance(self) -> float:
        """The share of such runs in which a harness without a fault would look as bad as this."""
        return min(rate.chance_of_more(self.significance) for rate in (self.single, self.different))
