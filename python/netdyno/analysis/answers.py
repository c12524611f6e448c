"""From comparisons to a verdict: who leads, whom to take, and what the others cost. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from netdyno.analysis.findings import Axis, AxisRatio, Beside, Decision, Standing
from netdyno.model.experiment import Scenario
from netdyno.model.metrics import METRICS
from netdyno.statistics import stats
from netdyno.statistics.stats import Better, Comparison, Interval


def better(scenario: Scenario) -> Better:
    return METRICS[scenario.metric].better


def against(first: str, second: str, family: Sequence[Comparison]) -> Comparison | None:
    """The comparison of two, turned so that `first` is `a`; None where they share no cell."""
    for one in family:
        if (one.a, one.b) == (first, second):
            return one if one.pairs else None
        if (one.b, one.a) == (first, second):
            return _turned(one) if one.pairs else None
    return None


def _turned(one: Comparison) -> Comparison:
    interval = one.interval and Interval(1 / one.interval.high, 1 / one.interval.low)
    return replace(one, a=one.b, b=one.a, ratio=1 / one.ratio, interval=interval)


@dataclass(frozen=True)
class Basis:
    """What an answer stands on. `family` are the comparisons of the scenario's own metric, made at the `level`;
    `block_s`: how long one block of it takes, None where that is not known."""

    scenario: Scenario
    standings: Sequence[Standing]
    family: Sequence[Comparison]
    axes: Sequence[Axis]
    level: float
    block_s: float | None = None

    @property
    def margin(self) -> float:
        """The ratio from which on a difference matters."""
        return 1 + self.scenario.margin


def decide_each(basis: Basis) -> tuple[Decision, ...]:
    """The verdicts on one scenario, one on each ground; there is always one. A ground on which somebody did it without
    a fault comes before one on which nobody did."""
    by_ground: dict[int, list[Standing]] = {}
    for one in basis.standings:
        by_ground.setdefault(one.ground, []).append(one)
    groups = sorted(by_ground.values(), key=lambda standings: min(one.kind for one in standings)) or [[]]
    return tuple(decide(replace(basis, standings=standings)) for standings in groups)


def decide(basis: Basis) -> Decision:
    """The verdict on those of one ground: on those that did it without a fault, or on all where nobody did."""
    if not basis.standings:
        return Decision("no_data")
    best = min(one.kind for one in basis.standings)
    standings = [one for one in basis.standings if one.kind == best]
    among = tuple(one.contestant for one in standings)
    if len(standings) == 1:
        return Decision("unopposed", among, front=among)
    if standings[0].rank is None:
        return Decision("not_enough_blocks", among)
    front = tuple(one.contestant for one in standings if one.rank == standings[0].rank)
    if len(front) == 1:
        others = beside(basis.axes, among, front, basis.margin)
        return Decision("winner", among, front, taken=front, beside=others)
    front = _with_a_leader(front, basis.family)
    undecided = tuple(name for name in front[1:] if _undecided_between(front[0], name, basis.family))
    if len(undecided) == len(front) - 1:
        return Decision("not_enough_blocks", among, front, undecided)
    return _bounded(basis, Decision("undecided", among, front, undecided))


def _with_a_leader(front: tuple[str, ...], family: Sequence[Comparison]) -> tuple[str, ...]:
    """Return the front with the first that has blocks enough to be compared with another at its head: a few blocks of
    one make no leader, and no answer about the others void."""
    for name in front:
        if not all(_undecided_between(name, other, family) for other in front if other != name):
            return (name, *(other for other in front if other != name))
    return front


def _undecided_between(first: str, second: str, family: Sequence[Comparison]) -> bool:
    one = against(first, second, family)
    return one is None or not (one.decidable or one.different)


def _bounded(basis: Basis, found: Decision) -> Decision:
    """Return the verdict on several that none is proven better than. Who is shown to be no further from the best than
    what matters is as good as the best, and among these the other axes count. Where none is shown to be, they do not:
    a price says nothing of what it buys."""
    direction = better(basis.scenario)
    rivals = len(found.among) - len(found.undecided) - 1
    bounds = {name: behind(name, found.tied, basis.family, direction, basis.level, rivals) for name in found.tied}
    near = tuple(name for name, bound in bounds.items() if bound <= basis.margin)
    bounded = replace(found, near=near, within=max(bounds[name] for name in near or found.tied))
    needed = None if near == found.tied else _blocks_needed(basis, found)
    bounded = replace(
        bounded,
        blocks_to_settle=needed,
        seconds_to_settle=needed * basis.block_s if needed is not None and basis.block_s is not None else None,
    )
    if not near:
        return replace(bounded, beside=beside(basis.axes, found.among, found.front[:1], basis.margin))
    taken, by = _preferred(basis.axes, near, basis.margin)
    others = beside(basis.axes, found.among, taken, basis.margin)
    return replace(bounded, verdict="equal", taken=taken, by=by, beside=others)


def behind(
    name: str,
    others: Collection[str],
    family: Sequence[Comparison],
    direction: Better,
    level: float,
    among: int | None = None,
) -> float:
    """Return the factor by which none of the others is better than this one: all such factors of a family hold together
    with the chance 1 - level ("multiple comparisons with the best"). Infinite where two have too few blocks for it.
    `among`: how many rivals the best had, where some of them are known not to be it; else as many as are given."""
    rivals = [other for other in others if other != name]
    share = among or len(rivals)
    most = max((_most_better(other, name, family, direction, level, share) for other in rivals), default=0.0)
    return math.exp(max(0.0, most)) if most < stats.MOST_LOG else math.inf


def _most_better(
    one: str, other: str, family: Sequence[Comparison], direction: Better, level: float, rivals: int
) -> float:
    """Return by how much one may be better than the other at most, on the log scale."""
    found = against(one, other, family) if direction == "higher" else against(other, one, family)
    return math.inf if found is None else stats.most_above(found, level, rivals)


def _blocks_needed(basis: Basis, found: Decision) -> int | None:
    """Return how many more blocks would prove or bound what the first of the front is from each of the others; None
    where no number of blocks would, or what there is says nothing of it."""
    first, *others = found.tied
    facing = [one for name in others if (one := against(first, name, basis.family)) is not None]
    margin, rivals = math.log(basis.margin), len(found.among) - 1
    more = [
        None if needed is None else max(0, needed - one.blocks)
        for one in facing
        for needed in [stats.blocks_to_settle(one, margin, basis.level, rivals)]
    ]
    known = [count for count in more if count is not None]
    return max(known) if known and len(known) == len(more) and max(known) > 0 else None


def _preferred(axes: Sequence[Axis], near: Sequence[str], margin: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return who is left when one axis after the other takes away those that another is proven better than by what
    matters, and the axes that took somebody away."""
    left, by = tuple(near), list[str]()
    for axis in axes:
        kept = tuple(name for name in left if not any(lead(axis, other, name, margin) for other in left))
        if kept and kept != left:
            left, by = kept, [*by, axis.metric]
    return left, tuple(by)


def lead(axis: Axis, one: str, other: str, margin: float) -> bool | None:
    """Whether the first is proven better than the other on an axis by what matters; None where neither is."""
    found = against(one, other, axis.comparisons)
    if found is None or not found.different or 1 / margin < found.ratio < margin:
        return None
    return (found.ratio > 1) == (axis.better == "higher")


def beside(axes: Sequence[Axis], among: Sequence[str], taken: Sequence[str], margin: float) -> tuple[Beside, ...]:
    """Everybody else of the answer beside the first of those that are taken, where anything that matters is proven of
    the two."""
    others = (
        Beside(
            contestant=name,
            worse=_proven(axes, name, taken[0], margin, better=False),
            better=_proven(axes, name, taken[0], margin, better=True),
        )
        for name in among
        if name not in taken
    )
    return tuple(one for one in others if one.worse or one.better)


def _proven(axes: Sequence[Axis], name: str, chosen: str, margin: float, *, better: bool) -> tuple[AxisRatio, ...]:
    """The axes on which a contestant is proven better (or worse) than the one that is taken, the largest first."""
    found = [
        AxisRatio(axis.metric, one.ratio)
        for axis in axes
        if (one := against(name, chosen, axis.comparisons)) is not None
        if lead(axis, name, chosen, margin) is better
    ]
    return tuple(sorted(found, key=lambda one: -abs(math.log(one.ratio))))
