"""From comparisons to a verdict: the leader, the contestants to take, and the cost of the rest. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import msgspec
from msgspec.structs import replace

from netdyno.analysis.found.ranking import Axis, AxisRatio, Decision, Standing, TradeOff
from netdyno.kit.statistics import looks, stats
from netdyno.kit.statistics.stats import Better, Comparison, Interval
from netdyno.model.experiment import Scenario
from netdyno.model.metrics import METRICS


def read_direction(scenario: Scenario) -> Better:
    return METRICS[scenario.metric].better


def find_comparison(first: str, second: str, family: Sequence[Comparison]) -> Comparison | None:
    """Return the comparison of two, turned so that `first` is `a`; None where they share no cell."""
    for comparison in family:
        if (comparison.a, comparison.b) == (first, second):
            return comparison if comparison.pairs else None
        if (comparison.b, comparison.a) == (first, second):
            return _turn(comparison) if comparison.pairs else None
    return None


def _turn(comparison: Comparison) -> Comparison:
    interval = comparison.interval and Interval(1 / comparison.interval.high, 1 / comparison.interval.low)
    return replace(comparison, a=comparison.b, b=comparison.a, ratio=1 / comparison.ratio, interval=interval)


class Basis(msgspec.Struct, frozen=True):
    """The data behind an answer. `family` are the comparisons of the scenario's own metric, made at this
    `significance`; `block_s`: the seconds that one block takes, None where that is not known."""

    scenario: Scenario
    standings: Sequence[Standing]
    family: Sequence[Comparison]
    axes: Sequence[Axis]
    significance: float
    block_s: float | None = None

    @property
    def margin(self) -> float:
        """The smallest ratio that matters."""
        return 1 + self.scenario.margin


def decide_each(basis: Basis) -> tuple[Decision, ...]:
    """Return the verdicts on one scenario, one on each ground; there is always one. A ground on which some contestant
    has no fault comes before one on which all have."""
    by_ground: dict[int, list[Standing]] = {}
    for standing in basis.standings:
        by_ground.setdefault(standing.group, []).append(standing)
    groups = sorted(by_ground.values(), key=lambda group: min(standing.kind for standing in group)) or [[]]
    return tuple(decide(replace(basis, standings=group)) for group in groups)


def decide(basis: Basis) -> Decision:
    """Return the verdict on the contestants of one ground: on those without a fault, or on all where each has one."""
    if not basis.standings:
        return Decision("no_data")
    best = min(standing.kind for standing in basis.standings)
    standings = [standing for standing in basis.standings if standing.kind == best]
    eligible = tuple(standing.contestant for standing in standings)
    if len(standings) == 1:
        return Decision("unopposed", eligible, front=eligible)
    if standings[0].rank is None:
        return Decision("not_enough_blocks", eligible)
    front = tuple(standing.contestant for standing in standings if standing.rank == standings[0].rank)
    if len(front) == 1:
        trade_offs = find_trade_offs(basis.axes, eligible, front, basis.margin)
        return Decision("winner", eligible, front, recommended=front, trade_offs=trade_offs)
    front = _put_leader_first(front, basis.family)
    undecided = tuple(name for name in front[1:] if _is_undecided(front[0], name, basis.family))
    if len(undecided) == len(front) - 1:
        return Decision("not_enough_blocks", eligible, front, undecided)
    return _judge_tie(basis, Decision("undecided", eligible, front, undecided))


def _put_leader_first(front: tuple[str, ...], family: Sequence[Comparison]) -> tuple[str, ...]:
    """Return the front led by the first contestant with enough blocks to be compared with a rival: one with few blocks
    is no leader, and must not leave the rest without an answer."""
    for name in front:
        if not all(_is_undecided(name, rival, family) for rival in front if rival != name):
            return (name, *(rival for rival in front if rival != name))
    return front


def _is_undecided(first: str, second: str, family: Sequence[Comparison]) -> bool:
    comparison = find_comparison(first, second, family)
    return comparison is None or not (comparison.decidable or comparison.different)


def _judge_tie(basis: Basis, tie: Decision) -> Decision:
    """Return the verdict on a front of several, none proven better than another. A contestant that is shown to be
    within the margin of the best is as good as the best, and among these the other axes decide. Where none is shown to
    be, they do not decide: a price says nothing of what it buys."""
    direction = read_direction(basis.scenario)
    rivals = len(tie.eligible) - len(tie.undecided) - 1
    bounds = {
        name: compute_deficit_bound(name, tie.tied, basis.family, direction, basis.significance, rivals)
        for name in tie.tied
    }
    near = tuple(name for name, bound in bounds.items() if bound <= basis.margin)
    bounded = replace(tie, near=near, within=max(bounds[name] for name in near or tie.tied))
    more = {} if near == tie.tied else _count_blocks_needed(basis, tie)
    needed = max(more.values(), default=0) or None
    bounded = replace(
        bounded,
        open=(tie.tied[0], *(name for name, count in more.items() if count)) if needed else (),
        blocks_to_settle=needed,
        seconds_to_settle=needed * basis.block_s if needed is not None and basis.block_s is not None else None,
    )
    if not near:
        return replace(bounded, trade_offs=find_trade_offs(basis.axes, tie.eligible, tie.front[:1], basis.margin))
    recommended, deciding = _prefer(basis.axes, near, basis.margin)
    trade_offs = find_trade_offs(basis.axes, tie.eligible, recommended, basis.margin)
    return replace(bounded, verdict="equal", recommended=recommended, by=deciding, trade_offs=trade_offs)


def compute_deficit_bound(
    name: str,
    contestants: Collection[str],
    family: Sequence[Comparison],
    direction: Better,
    significance: float,
    rival_count: int | None = None,
) -> float:
    """Return the factor by which none of the others is better than this contestant: all such factors of a family hold
    together with the chance 1 - significance ("multiple comparisons with the best"). Infinite where a pair has too few
    blocks. `rival_count`: for how many rivals they hold; all others by default."""
    rivals = [rival for rival in contestants if rival != name]
    share = rival_count or len(rivals)
    most = max(
        (_compute_lead_bound(rival, name, family, direction, significance, share) for rival in rivals), default=0.0
    )
    return math.exp(max(0.0, most)) if most < stats.MOST_LOG else math.inf


def _compute_lead_bound(
    first: str, second: str, family: Sequence[Comparison], direction: Better, significance: float, rivals: int
) -> float:
    """Return the most by which the first may be better than the second, on the log scale."""
    comparison = (
        find_comparison(first, second, family) if direction == "higher" else find_comparison(second, first, family)
    )
    return math.inf if comparison is None else stats.most_above(comparison, significance, rivals)


def _count_blocks_needed(basis: Basis, decision: Decision) -> dict[str, int]:
    """Return how many more blocks would prove or bound the difference of the front's first from each rival; empty where
    no number of blocks would for some, or the comparisons do not tell."""
    first, *rivals = decision.tied
    margin, rival_count = math.log(basis.margin), len(decision.eligible) - 1
    more: dict[str, int] = {}
    for rival in rivals:
        if (comparison := find_comparison(first, rival, basis.family)) is None:
            continue
        needed = stats.blocks_to_settle(
            comparison, margin, looks.FURTHER.divide_significance(basis.significance), rival_count
        )
        if needed is None:
            return {}
        more[rival] = max(0, needed - comparison.blocks)
    return more


def _prefer(axes: Sequence[Axis], near: Sequence[str], margin: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the contestants left when each axis in turn removes those that another is proven better than by the
    margin, and the axes that removed any."""
    left, deciding = tuple(near), list[str]()
    for axis in axes:
        kept = tuple(name for name in left if not any(judge_lead(axis, rival, name, margin) for rival in left))
        if kept and kept != left:
            left, deciding = kept, [*deciding, axis.metric]
    return left, tuple(deciding)


def judge_lead(axis: Axis, first: str, second: str, margin: float) -> bool | None:
    """Return whether the first is proven better than the second on an axis by the margin, and by the least change of
    the metric that matters; None where neither is."""
    comparison = find_comparison(first, second, axis.comparisons)
    least = max(margin, METRICS[axis.metric].least_ratio)
    if comparison is None or not comparison.different or 1 / least < comparison.ratio < least:
        return None
    if not _is_large_enough(axis, first, second):
        return None
    return (comparison.ratio > 1) == (axis.better == "higher")


def _is_large_enough(axis: Axis, first: str, second: str) -> bool:
    """Return whether the figures of two differ by the least amount of the metric that matters."""
    least = METRICS[axis.metric].least_amount
    values = [score.shown for name in (first, second) if (score := axis.score(name)) and score.shown is not None]
    return least == 0 or (len(values) == 2 and abs(values[0] - values[1]) >= least)


def find_trade_offs(
    axes: Sequence[Axis], eligible: Sequence[str], recommended: Sequence[str], margin: float
) -> tuple[TradeOff, ...]:
    """Compare every other contestant of the answer with the first of those recommended, where a difference beyond the
    margin is proven."""
    trade_offs = (
        TradeOff(
            contestant=name,
            worse=_list_proven(axes, name, recommended[0], margin, better=False),
            better=_list_proven(axes, name, recommended[0], margin, better=True),
        )
        for name in eligible
        if name not in recommended
    )
    return tuple(trade_off for trade_off in trade_offs if trade_off.worse or trade_off.better)


def _list_proven(axes: Sequence[Axis], name: str, chosen: str, margin: float, *, better: bool) -> tuple[AxisRatio, ...]:
    """Return the axes on which a contestant is proven better (or worse) than the chosen one, the largest first."""
    ratios = [
        AxisRatio(axis.metric, comparison.ratio)
        for axis in axes
        if (comparison := find_comparison(name, chosen, axis.comparisons)) is not None
        if judge_lead(axis, name, chosen, margin) is better
    ]
    return tuple(sorted(ratios, key=lambda ratio: -abs(math.log(ratio.ratio))))
