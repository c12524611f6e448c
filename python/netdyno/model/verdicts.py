"""What came of a claim, as frozen data. The terminal table and the report say the same: both read this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from netdyno.model.claim import Claim
from netdyno.statistics.stats import Interval

ClaimVerdict = Literal["confirmed", "refuted", "undecided", "not_testable"]
Outcome = Literal["holds", "fails", "open"]


@dataclass(frozen=True)
class Check:
    """One comparison that a claim stands on. The effect is a ratio, a difference of shares, or for a bound the metric
    itself; `shown` is it with its interval, `claimed` what it was to be, both in words."""

    what: str
    claimed: str
    effect: float
    interval: Interval | None
    shown: str
    figures: tuple[str, ...]
    """The metric on each side."""
    pairs: int
    blocks: int
    p: float
    """That the effect is the threshold itself."""
    p_corrected: float
    """Corrected for all comparisons of the claim; this refutes."""
    outcome: Outcome
    needed: bool
    """Whether the claim needs it to hold; else it is enough that it does not fail."""
    why_open: str = ""


@dataclass(frozen=True)
class Judged:
    """`reason`: why there is no verdict, or what is missing; empty where there is one."""

    claim: Claim
    verdict: ClaimVerdict
    reason: str
    checks: tuple[Check, ...]
    why: str
    notes: tuple[str, ...]

    @property
    def told(self) -> Check | None:
        """The comparison that the verdict hangs on most: one that failed, else one that is open, else the one that
        holds with the largest p."""
        order = {"fails": 0, "open": 1, "holds": 2}
        needed = [one for one in self.checks if one.needed or one.outcome == "fails"]
        return min(needed, key=lambda one: (order[one.outcome], -one.p), default=None)
