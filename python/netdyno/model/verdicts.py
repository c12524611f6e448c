"""What came of a claim: numbers and names. The terminal table and the report say the same: both word this by
present/prose/claims.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from netdyno.model.base import Name, Quoted
from netdyno.model.claim import Cells, Claim, Side
from netdyno.statistics.stats import Interval

ClaimVerdict = Literal["confirmed", "refuted", "undecided", "not_testable"]
Outcome = Literal["holds", "fails", "open"]
Open = Literal["no_figures", "zero", "few_blocks", "unproven", "near", "bound", "need"]
"""Why a comparison is open: no block has all that it compares, a figure of 0 has no ratio, too few blocks, it fails but
not beyond chance among all comparisons of the claim, its interval has the threshold in it, it is a bound that does not
reach the threshold from its side, or the machine lacks what a verdict of this kind needs."""
Limit = Literal["at_least", "at_most"]
"""What an effect is where figures behind it are bounds."""
Verdict = Literal["confirm", "refute"]


# --- comparisons -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A comparison that a test asks for: `a` against `b`, or by itself where `b` is None. The threshold is a ratio; of
    shares a difference; without `b` in the metric's unit. `needed`: the claim needs it to hold; else it is enough that
    it does not fail. `over`: what the metric of `a` and that of `b` are first divided by; with `subtracts` it is taken
    off instead, and the threshold is a difference in the metric's unit. `least_published`: the published effect nearest
    to the threshold."""

    metric: Name
    a: Cells
    b: Cells | None
    side: Side
    threshold: float
    needed: bool = True
    over: tuple[Cells, Cells] | None = None
    subtracts: bool = False
    least_published: float | None = None

    @property
    def cells(self) -> tuple[Cells, ...]:
        return (self.a,) if self.b is None else (self.a, self.b)

    @property
    def all_cells(self) -> tuple[Cells, ...]:
        """With those that a side is divided by."""
        return (*self.cells, *(self.over or ()))


@dataclass(frozen=True)
class Check:
    """What came of one of them. The effect is a ratio, a difference of shares, or for a bound the metric itself."""

    step: Step
    paired_by: tuple[Name, ...]
    """The coordinates in which the cells of both sides are the same."""
    effect: float
    interval: Interval | None
    figures: tuple[float, ...]
    """The metric on each side; empty where there is no effect."""
    losses: tuple[float | None, ...]
    """Of each side the largest share of its messages that a trial behind a latency lost; None where none can be."""
    pairs: int
    blocks: int
    p: float
    """That the effect is the threshold itself."""
    p_corrected: float
    """Corrected for all comparisons of the claim; this refutes."""
    outcome: Outcome
    why_open: Open | None = None
    """None where it is not."""
    blocks_to_decide: int | None = None
    """How many would end that, if the effect and its spread stay what they are; None where they say nothing of it."""
    limit: Limit | None = None
    """The true effect is at least, or at most, the one that was measured; None where it is that one."""
    is_short_of_published: bool = False
    """It fails because its interval lies short of every published effect, though the threshold is in it."""

    @property
    def needed(self) -> bool:
        return self.step.needed


# --- what a claim needs and the run did not have ---------------------------------------------------------------------


@dataclass(frozen=True)
class TooFewCores:
    """For the server alone or in all; `cores` is None where it was not recorded. `to`: the only verdict that they are
    needed for; None where they are for both."""

    needed: int
    cores: int | None
    of_server: bool = False
    to: Verdict | None = None


@dataclass(frozen=True)
class OnlyOne:
    """Host or platform of which the claim needs a second, for one verdict only or for both."""

    need: Name
    to: Verdict | None = None


@dataclass(frozen=True)
class Refused:
    """Contestants that the claim names and that are in none, each with what it is."""

    contestants: Mapping[Name, Name]


@dataclass(frozen=True)
class SingleLevel:
    """Of a coordinate that a test goes along."""

    along: Name


@dataclass(frozen=True)
class NotPlanned:
    """No such trial of a contestant, or where that is None of any."""

    contestant: Name | None


@dataclass(frozen=True)
class Skipped:
    contestant: Name
    reason: Quoted


@dataclass(frozen=True)
class GeneratorAtLimit:
    """Beside a contestant, or where that is None beside any: the figures are bounds, and these do not decide."""

    contestant: Name | None


@dataclass(frozen=True)
class NotCounted:
    """The code of a server or of what it shares with others; `reason` is None where nothing is known of it at all."""

    name: Name
    reason: Quoted | None


@dataclass(frozen=True)
class NotOffered:
    """Cells of an open loop at whose rate the generator was at its limit: what was measured there is its own."""

    cells: tuple[Cells, ...]


Lacking = (
    TooFewCores | OnlyOne | Refused | SingleLevel | NotPlanned | Skipped | GeneratorAtLimit | NotOffered | NotCounted
)


# --- claims ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SideCount:
    """What was counted on one side of a claim, over all its trials together; None where it was not recorded."""

    cells: Cells
    trials: int
    figure: float | None


@dataclass(frozen=True)
class CountedBeside:
    """A metric of each side of a claim: where a test goes along something, of its ends."""

    metric: Name
    sides: tuple[SideCount, ...]


@dataclass(frozen=True)
class Judged:
    """`lacking`: why it cannot be tested, None where it can. `losses`: latencies leave lost messages out, so by
    contestant the largest share that a trial behind a latency here lost, over a transport that may lose some."""

    claim: Claim
    verdict: ClaimVerdict
    lacking: Lacking | None
    checks: tuple[Check, ...]
    beside: CountedBeside | None
    losses: Mapping[Name, float]
    scenarios: Mapping[Name, Name]
    """By the name of a scenario what it is called beside the others of the run; empty where there are no others."""
    left_out: NotOffered | None = None
    """What the claim is about as well, and is not judged by."""
    system: Quoted = ""
    """The operating system of this run, where the claim says on which the source measured."""

    @property
    def decisive(self) -> Check | None:
        """The comparison that the verdict hangs on most: one that failed, else one that is open, else the one that
        holds with the largest p."""
        order = {"fails": 0, "open": 1, "holds": 2}
        needed = [one for one in self.checks if one.needed or one.outcome == "fails"]
        return min(needed, key=lambda one: (order[one.outcome], -one.p), default=None)

    @property
    def open_checks(self) -> tuple[Check, ...]:
        """Those that would have to hold for it to be confirmed."""
        return tuple(one for one in self.checks if one.needed and one.outcome == "open")
