"""The answer to one question: ranks on each axis, the verdict, and why blocks ended.

Frozen data without words; units are in the names."""

from __future__ import annotations

from typing import Literal

import msgspec

from netdyno.analysis.found.cells import BoundDirection, Estimate
from netdyno.analysis.found.exclusions import Fault
from netdyno.kit.statistics.stats import Better, Comparison
from netdyno.model.base import Name
from netdyno.model.trial import Status

RankingVerdict = Literal[
    "winner", "equal", "undecided", "not_enough_blocks", "unopposed", "no_data", "not_ranked", "flip"
]
"""`equal`: none is proven best, and some are shown to be as good as the best, within the margin. `undecided`: none is
shown to be. `not_ranked`: its clients never read, so no figure is a server's. `flip`: the question is where the winner
changes; there is no ranking over all levels."""


class Censored(msgspec.Struct, frozen=True):
    """A level at which a contestant kept the generator at its limit, with the share of a core that its busiest thread
    used in the median: every figure there is a bound, for every contestant."""

    level: Name
    """The level's key."""
    contestant: Name
    share: float


class ErrorBar(msgspec.Struct, frozen=True):
    """The generator's own part in the response times of a level, in nanoseconds, the median over its trials: how late
    it sends, and how late it reads (None where the kernel gave no stamp, 0 where the kernel's stamp ends the times).
    `shortest_ns` (in an export `of`) is the shortest response time of any contestant there at the same percentile."""

    level: Name
    percentile: Literal["p50", "p99"]
    send_ns: float
    receive_ns: float | None
    shortest_ns: float = msgspec.field(name="of")

    @property
    def share(self) -> float:
        return (self.send_ns + (self.receive_ns or 0.0)) / self.shortest_ns if self.shortest_ns else 0.0


class Score(msgspec.Struct, frozen=True):
    """A contestant on one axis: its own figure at the heaviest level (None where it has none there), and its rank among
    its kind over all levels (None where it shares no block with the others). `over_loads` is the geometric mean over
    the levels of `Axis.loads`, of its blocks at each; None without these."""

    contestant: Name
    value: Estimate | None
    trials: int
    """The number of trials behind the value."""
    rank: int | None
    shared: bool
    over_loads: float | None = None

    @property
    def shown(self) -> float | None:
        """The figure of the same loads as the rank and the ratios, where all contestants share these."""
        return self.over_loads if self.over_loads is not None else self.value.value if self.value else None


class Axis(msgspec.Struct, frozen=True):
    """One axis of an answer: a metric (model/metrics.py) with the scores of all contestants, in the order of the
    ranking by the scenario's own metric, and the comparisons behind the ranks. `bound`: the figures are bounds in this
    direction. `loads`: the keys of the levels that the shown figures are over, several at which all have a figure on
    every axis; empty: they are at the heaviest."""

    metric: Name
    better: Better
    scores: tuple[Score, ...]
    comparisons: tuple[Comparison, ...]
    bound: BoundDirection = ""
    loads: tuple[Name, ...] = ()

    def score(self, contestant: str) -> Score | None:
        return next((score for score in self.scores if score.contestant == contestant), None)


class AxisRatio(msgspec.Struct, frozen=True):
    """A proven difference on an axis, as a ratio of its metric."""

    metric: Name
    ratio: float


class TradeOff(msgspec.Struct, frozen=True):
    """A contestant compared with the recommended one: the axes on which it is proven worse, and those on which it is
    proven better, each with the largest difference first."""

    contestant: Name
    worse: tuple[AxisRatio, ...]
    better: tuple[AxisRatio, ...]


class Decision(msgspec.Struct, frozen=True):
    """The verdict on a scenario. It holds for the `eligible` contestants (in an export `among`), the best first. None
    is proven better than any of the `front`, its leader first; the `undecided` there have too few blocks for a verdict.
    `recommended` (`taken`) are those to take; `trade_offs` (`beside`) compares the rest with the first of these, or of
    the front where none is recommended.

    For a front of several: those `near` are shown to be within the margin of the best. `within`: the factor by which
    none of those near, or where there is none, none of the front, is further behind the best. `by`: the axes that chose
    among those near. `blocks_to_settle`: how many more blocks would settle what is open between the leader and some
    rivals (`open`, the leader first), if means and spreads stay as they are, and `seconds_to_settle` how long these
    take; None where nothing is open, or it cannot be said."""

    verdict: RankingVerdict
    eligible: tuple[Name, ...] = msgspec.field(default=(), name="among")
    front: tuple[Name, ...] = ()
    undecided: tuple[Name, ...] = ()
    recommended: tuple[Name, ...] = msgspec.field(default=(), name="taken")
    trade_offs: tuple[TradeOff, ...] = msgspec.field(default=(), name="beside")
    near: tuple[Name, ...] = ()
    within: float | None = None
    by: tuple[Name, ...] = ()
    open: tuple[Name, ...] = ()
    blocks_to_settle: int | None = None
    seconds_to_settle: float | None = None

    @property
    def tied(self) -> tuple[Name, ...]:
        """The front without those that have too few blocks to be compared with its leader."""
        return tuple(name for name in self.front if name not in self.undecided)


class OverLoads(msgspec.Struct, frozen=True):
    """The geometric means of a contestant's own metric and of the leader's over the loads and blocks that the two
    share: their ratio is the one of the ranking."""

    own: float
    leader: float


class Standing(msgspec.Struct, frozen=True):
    """One line of a ranking. `rank`: 1 plus the number proven better; None: it shares no block with the others, or no
    other could use as many cores. `shared`: others have the same rank. `relative` is the metric divided by the
    leader's. `lossy`: it lost more than the bound in some trial, `faults`: it did something wrong; a contestant with
    either is ranked after those without, with a leader of its own kind (docs/adr/loss.md, docs/adr/audit-kinds.md).
    `group` (in an export `ground`) is the place of its group in `Ground.together`: each group has a ranking of its own
    (docs/adr/same-cores.md). `loss` is its largest share of lost messages at any level, None over a stream. `value` is
    its own figure at the heaviest level, NaN where it has none there."""

    rank: int | None
    shared: bool
    contestant: Name
    value: float
    relative: Estimate | None
    against_leader: Comparison | None
    missing: int
    """Excluded trials of this contestant in this scenario."""
    loss: float | None = None
    lossy: bool = False
    faults: tuple[Fault, ...] = ()
    bound: BoundDirection = ""
    """The direction where the value is only a bound."""
    group: int = msgspec.field(default=0, name="ground")
    over_loads: OverLoads | None = None
    """None where there is one load, or nothing shared."""

    @property
    def peers(self) -> tuple[int, int]:
        """The key of a ranking: contestants with the same one are ranked together."""
        return self.group, self.kind

    @property
    def kind(self) -> int:
        """Its kind on its ground: 0 without fault, 1 with loss, 2 with faults."""
        return 2 if self.faults else 1 if self.lossy else 0


class Pair(msgspec.Struct, frozen=True):
    """One server with one client, over all other levels and blocks. `figure` is the geometric mean of the metric over
    the valid trials; `statuses` are those of the trials that do not count, each once."""

    contestant: Name
    client: Name
    valid: int
    trials: int
    figure: float | None
    statuses: tuple[Status, ...]
    lost: float | None
    """The largest share of its messages that a valid trial lost; None over a stream."""


EndReason = Literal["precise", "alone", "unfinished", "blocks", "time"]
"""Why blocks ended: narrow enough, nothing to compare with, interrupted, the most allowed, no time for another."""


class EndOfBlocks(msgspec.Struct, frozen=True):
    """The end of the blocks of a scenario that asks for a precision (stopping.py). `requested` (in an export
    `asked`) and `widest` are half widths of the 95% interval of a ratio, relative to its middle. `widest` is that of
    the comparison `pair` (in an export `of`); None where nothing is compared."""

    why: EndReason
    blocks: int
    requested: float = msgspec.field(name="asked")
    widest: float | None
    pair: tuple[Name, Name] = msgspec.field(name="of")
    time_budget_s: float | None


class Within(msgspec.Struct, frozen=True):
    """The contestants of a language on a ground that no other of it is proven better than, out of `total` (in an export
    `of`)."""

    language: Name
    unbeaten: tuple[Name, ...]
    total: int = msgspec.field(name="of")
    group: int = msgspec.field(default=0, name="ground")
