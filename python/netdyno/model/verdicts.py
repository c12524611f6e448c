"""The verdict on a claim: numbers and names. The terminal table and the report use the same words for it, from
present/prose/claims.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from netdyno.kit.statistics.stats import Interval
from netdyno.model.base import Name, Quoted
from netdyno.model.claim import Cells, Claim, ThresholdSide

ClaimVerdict = Literal["confirmed", "refuted", "undecided", "not_testable"]
ComparisonOutcome = Literal["holds", "fails", "open"]
Open = Literal["no_figures", "zero", "few_blocks", "unproven", "near", "bound", "need"]
"""The reason why a comparison is open: no block has all that it compares, a figure of 0 has no ratio, too few blocks,
it fails but not beyond chance among all comparisons of the claim, its interval has the threshold in it, it is a bound
that does not reach the threshold from its side, or the machine lacks what this verdict needs."""
Limit = Literal["at_least", "at_most"]
"""The meaning of an effect where figures behind it are bounds."""
SettledVerdict = Literal["confirm", "refute"]


# --- comparisons -----------------------------------------------------------------------------------------------------


class ClaimComparison(msgspec.Struct, frozen=True):
    """A comparison that a test needs: `a` against `b`, or `a` by itself where `b` is None. The threshold is a ratio;
    for shares a difference; without `b` in the metric's unit. `needed`: the claim needs it to hold; else it is enough
    that it does not fail. `over`: the cells by which the metrics of `a` and `b` are first divided; with `subtracts`
    they are subtracted instead, and the threshold is a difference in the metric's unit. `least_published`: the
    published effect nearest to the threshold."""

    metric: Name
    a: Cells
    b: Cells | None
    side: ThresholdSide
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
        """The cells of both sides, with those by which a side is divided."""
        return (*self.cells, *(self.over or ()))


class ComparisonResult(msgspec.Struct, frozen=True):
    """The result of a comparison. The effect is a ratio, a difference of shares, or for a bound the metric itself."""

    step: ClaimComparison
    paired_by: tuple[Name, ...]
    """The coordinates in which the cells of both sides are the same."""
    effect: float
    interval: Interval | None
    figures: tuple[float, ...]
    """The metric on each side; empty where there is no effect."""
    losses: tuple[float | None, ...]
    """For each side the largest share of its messages that a trial behind a latency lost; None where none can be."""
    pairs: int
    blocks: int
    p: float
    """The p-value of "the effect is the threshold itself"."""
    p_corrected: float
    """The p-value corrected for all comparisons of the claim; this refutes."""
    outcome: ComparisonOutcome
    why_open: Open | None = None
    """The reason why it is open; None where it is not."""
    blocks_to_decide: int | None = None
    """The number of blocks that would decide it, if the effect and its spread stay as they are; None where unknown."""
    limit: Limit | None = None
    """Whether the true effect is at least, or at most, the measured one; None where it is that one."""
    is_short_of_published: bool = False
    """Whether it fails because its interval lies short of every published effect, though the threshold is in it."""

    @property
    def needed(self) -> bool:
        return self.step.needed


# --- what a claim needs and the run did not have ---------------------------------------------------------------------


class TooFewCores(msgspec.Struct, frozen=True):
    """Too few cores for the server alone or in all; `cores` is None where it was not recorded. `to`: the only verdict
    that needs them; None where both do."""

    needed: int
    cores: int | None
    of_server: bool = False
    to: SettledVerdict | None = None


class OnlyOne(msgspec.Struct, frozen=True):
    """A single host or platform, where the claim needs a second, for one verdict only or for both."""

    need: Name
    to: SettledVerdict | None = None


class SeveralHosts(msgspec.Struct, frozen=True):
    """Several hosts, where the claim is about one, for one verdict only or for both."""

    to: SettledVerdict | None = None


class Refused(msgspec.Struct, frozen=True):
    """Contestants that the claim names and that may be in no claim, each with its nature."""

    contestants: Mapping[Name, Name]


class SingleLevel(msgspec.Struct, frozen=True):
    """A single level of the coordinate along which a test compares."""

    along: Name


class NotPlanned(msgspec.Struct, frozen=True):
    """No trial of a contestant, or, where that is None, of any contestant, in these cells."""

    contestant: Name | None
    cells: Cells


class Skipped(msgspec.Struct, frozen=True):
    contestant: Name
    reason: Quoted


class GeneratorAtLimit(msgspec.Struct, frozen=True):
    """A generator at its limit beside a contestant, or, where that is None, beside any: the figures are bounds, and
    these do not decide."""

    contestant: Name | None


class NotCounted(msgspec.Struct, frozen=True):
    """Uncounted code of a server, or code that it shares with others; `reason` is None where nothing is known of it."""

    name: Name
    reason: Quoted | None


class NotOffered(msgspec.Struct, frozen=True):
    """Cells of an open loop at whose rate the generator was at its limit: their figures are those of the generator."""

    cells: tuple[Cells, ...]


Lacking = (
    TooFewCores
    | OnlyOne
    | SeveralHosts
    | Refused
    | SingleLevel
    | NotPlanned
    | Skipped
    | GeneratorAtLimit
    | NotOffered
    | NotCounted
)


# --- claims ----------------------------------------------------------------------------------------------------------


class SideCount(msgspec.Struct, frozen=True):
    """The counted figure of one side of a claim, over all its trials together; None where it was not recorded."""

    cells: Cells
    trials: int
    figure: float | None


class CountsOfSides(msgspec.Struct, frozen=True):
    """A metric of each side of a claim: where a test compares along a coordinate, of its ends."""

    metric: Name
    sides: tuple[SideCount, ...]


class JudgedClaim(msgspec.Struct, frozen=True):
    """A claim with its verdict. `lacking`: why it cannot be tested, None where it can. `losses`: latencies leave lost
    messages out, so by contestant the largest share that a trial behind a latency here lost, over a transport that may
    lose some."""

    claim: Claim
    verdict: ClaimVerdict
    lacking: Lacking | None
    checks: tuple[ComparisonResult, ...]
    counts: CountsOfSides | None
    losses: Mapping[Name, float]
    scenarios: Mapping[Name, Name]
    """The label of a scenario among the others of the run, by its name; empty where there are no others."""
    left_out: NotOffered | None = None
    """The cells that the claim covers but that are not used to judge it."""
    system: Quoted = ""
    """The operating system of this run, where the claim names those of the source."""
    by_script: JudgedClaim | None = None
    """The verdict as the source ran its own program, by its load or its build; None where the claim has no such
    tests."""

    @property
    def decisive(self) -> ComparisonResult | None:
        """The comparison on which the verdict depends most: one that failed, else one that is open, else the one that
        holds with the largest p."""
        order = {"fails": 0, "open": 1, "holds": 2}
        needed = [check for check in self.checks if check.needed or check.outcome == "fails"]
        return min(needed, key=lambda check: (order[check.outcome], -check.p), default=None)

    @property
    def open_checks(self) -> tuple[ComparisonResult, ...]:
        """The open comparisons that would have to hold for the claim to be confirmed."""
        return tuple(check for check in self.checks if check.needed and check.outcome == "open")
