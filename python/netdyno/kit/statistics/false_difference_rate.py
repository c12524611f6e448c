"""The observed rate of an event, and what it shows about the true rate. Pure functions of two numbers."""

from __future__ import annotations

import math

import msgspec

from netdyno.kit.statistics.stats import SIGNIFICANCE, Interval, import_special


class FalseDifferenceRate(msgspec.Struct, frozen=True):
    """`count` hits in `total` tosses of a coin of unknown chance."""

    count: int
    total: int

    @property
    def share(self) -> float:
        """The observed rate; NaN where there was nothing to count."""
        return self.count / self.total if self.total else math.nan

    def interval(self, significance: float = SIGNIFICANCE) -> Interval:
        """Return the exact interval of the chance, from the tails of the binomial distribution (Clopper and Pearson
        1934, Biometrika 26:404): it covers the truth at least as often as stated, for any number of tosses."""
        inverse = import_special().betaincinv
        missed = self.total - self.count
        low = float(inverse(self.count, missed + 1, significance / 2)) if self.count else 0.0
        high = float(inverse(self.count + 1, missed, 1 - significance / 2)) if missed else 1.0
        return Interval(low, high)

    def chance_of_more(self, chance: float) -> float:
        """Return the chance that a coin of this chance shows at least as many: the upper tail of the binomial
        distribution."""
        if self.count == 0:
            return 1.0
        return float(import_special().betainc(self.count, self.total - self.count + 1, chance))
