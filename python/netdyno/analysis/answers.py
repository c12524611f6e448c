"""From comparisons to a verdict: who leads, whom to take, and what the others cost. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from netdyno.analysis.findings import Axis, AxisRatio, Beside, Decision, Standing
from netdyno.model.experiment import Scenario
from netdyno.model.metrics import METRICS
from netdyno.statistics import stats
from netdyno.statistics.stats import Better, Comparison, Interval

WORTH_TELLING = 1.05
"""A proven difference of less changes nobody's choice."""


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
    """What an answer stands on. `family` are the comparisons of the scenario's own metric."""

    scenario: Scenario
    standings: Sequence[Standing]
    family: Sequence[Comparison]
    axes: Sequence[Axis]


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
    front = tuple(front_runners(standings, basis.family, better(basis.scenario)))
    if len(front) == 1:
        return Decision("winner", among, front, taken=front, beside=beside(basis.axes, among, front))
    undecided = tuple(name for name in front[1:] if _undecided_between(front[0], name, basis.family))
    tied = tuple(name for name in front if name not in undecided)
    if len(tied) == 1:
        return Decision("not_enough_blocks", among, front, undecided)
    taken = _undominated(basis.axes, tied)
    return Decision("tie", among, front, undecided, taken, beside(basis.axes, among, taken))


def _undecided_between(first: str, second: str, family: Sequence[Comparison]) -> bool:
    one = against(first, second, family)
    return one is None or not (one.decidable or one.different)


def front_runners(standings: Sequence[Standing], family: Sequence[Comparison], direction: Better) -> list[str]:
    """The winner alone, or those who tie for first: nobody is proven better than any of them."""
    names = [one.contestant for one in standings if one.rank is not None]
    if sum(one.rank == standings[0].rank for one in standings) == 1:
        return names[:1]
    unbeaten = stats.unbeaten(names, family, direction)
    if len(unbeaten) > 1:
        return unbeaten
    # Someone beat every rival of the leader, but not the leader's own narrow lead over one of them: that is a tie too.
    apart = {frozenset((one.a, one.b)) for one in family if one.different}
    return [names[0], *(name for name in names[1:] if frozenset((names[0], name)) not in apart)]


def _undominated(axes: Sequence[Axis], tied: Sequence[str]) -> tuple[str, ...]:
    """Of those that tie, the ones that nobody beats on some other axis without being beaten on another."""

    def dominates(one: str, other: str) -> bool:
        sides = [leads for axis in axes if (leads := lead(axis, one, other)) is not None]
        return bool(sides) and all(sides)

    return tuple(name for name in tied if not any(dominates(other, name) for other in tied if other != name))


def lead(axis: Axis, one: str, other: str) -> bool | None:
    """Whether the first is proven better than the other on an axis by what is worth telling; None where neither is."""
    found = against(one, other, axis.comparisons)
    if found is None or not found.different or 1 / WORTH_TELLING < found.ratio < WORTH_TELLING:
        return None
    return (found.ratio > 1) == (axis.better == "higher")


def beside(axes: Sequence[Axis], among: Sequence[str], taken: Sequence[str]) -> tuple[Beside, ...]:
    """Everybody else of the answer beside the first of those that are taken, where anything tells the two apart."""
    others = (
        Beside(
            contestant=name,
            worse=_proven(axes, name, taken[0], better=False),
            better=_proven(axes, name, taken[0], better=True),
        )
        for name in among
        if name not in taken
    )
    return tuple(one for one in others if one.worse or one.better)


def _proven(axes: Sequence[Axis], name: str, chosen: str, *, better: bool) -> tuple[AxisRatio, ...]:
    """The axes on which a contestant is proven better (or worse) than the one that is taken, the largest first."""
    found = [
        AxisRatio(axis.metric, one.ratio)
        for axis in axes
        if (one := against(name, chosen, axis.comparisons)) is not None
        if lead(axis, name, chosen) is better
    ]
    return tuple(sorted(found, key=lambda one: -abs(math.log(one.ratio))))
