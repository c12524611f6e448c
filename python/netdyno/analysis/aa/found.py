"""What the A/A control finds, as frozen data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from netdyno.model.base import Name
from netdyno.model.experiment import MOST_AA_SHARE
from netdyno.statistics.false_difference_rate import Rate
from netdyno.statistics.stats import Comparison

ALARM = 0.01
"""How often a harness without a fault is said to have one. Not 5%: every run asks, and nobody heeds an alarm that cries
in each twentieth."""


WhyNone = Literal["share", "blocks", "unfinished", "time"]
"""It had no share of the time, there were too few blocks, the run ended before its first, or its time was too short."""


@dataclass(frozen=True)
class AA:
    """A contestant at one load against its twin: `comparison` is what a ranking would have said of the two, but for `p`
    and `single`, which are of its own blocks alone."""

    scenario: Name
    level: Name
    """The level's label."""
    contestant: Name
    comparison: Comparison


@dataclass(frozen=True)
class Control:
    """All A/A comparisons of a run; `none` says why there are none, and `blocks` how many it could have had."""

    share: float
    level: float
    comparisons: tuple[AA, ...]
    none: WhyNone | None
    blocks: int

    @property
    def different(self) -> Rate:
        """False differences as a ranking would have had them, of the comparisons with blocks enough."""
        return Rate(sum(one.different for one in self._able), len(self._able))

    @property
    def single(self) -> Rate:
        """The same for each comparison by itself, without correction: how many 95% intervals leave out 1."""
        return Rate(sum(one.p <= self.level for one in self._able), len(self._able))

    @property
    def _able(self) -> list[Comparison]:
        return [one.comparison for one in self.comparisons if one.comparison.decidable]

    @property
    def largest(self) -> AA | None:
        """The one whose two names are furthest apart; None where no pair was measured."""
        measured = [one for one in self.comparisons if one.comparison.pairs]
        return max(measured, key=lambda one: abs(math.log(one.comparison.ratio)), default=None)

    @property
    def is_the_question(self) -> bool:
        """Whether everything was run twice: then nothing else was asked."""
        return self.share >= MOST_AA_SHARE

    @property
    def fails(self) -> bool:
        """Whether differences are proven to be found more often than the level says where there are none. Asked of the
        single tests, too: the correction would hide a test that is twice as ready as it says."""
        return self.by_chance <= ALARM

    @property
    def by_chance(self) -> float:
        """In which share of such runs a harness without a fault would look as bad as this."""
        return min(rate.chance_of_more(self.level) for rate in (self.single, self.different))
