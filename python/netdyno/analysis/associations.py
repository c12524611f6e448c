"""What goes along with a difference in rank: the counters that tell two contestants apart beyond chance.

The counters are compared as the metric is: within blocks, and corrected over all counters of all paragraphs of a
scenario, for they are one answer. What passes is associated with the result; its cause
it need not be (docs/adr/equal-work.md). Pure functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from netdyno.analysis import answers
from netdyno.analysis.findings import Difference, Standing, TracedCalls, Why, Work
from netdyno.model.base import Name
from netdyno.model.levels import level_key
from netdyno.model.metrics import COUNTERS, METRICS, Counted
from netdyno.statistics import stats
from netdyno.statistics.stats import Comparison, Samples

SYSTEM = "cpu-system"
"""The CPU time in the kernel, which is told with the whole and not tested by itself."""

Figures = Mapping[str, Mapping[str, Samples]]
"""By counter and contestant."""


class _Pair(NamedTuple):
    """The lower in rank, the higher, and the comparison of their metrics, the first divided by the second."""

    worse: Name
    better: Name
    result: Comparison


class _Tested(NamedTuple):
    """One counter of one pair. `relative`: the effect is a ratio; else a difference, for some value is 0."""

    pair: _Pair
    counter: Name
    relative: bool
    worse: float
    better: float
    comparison: Comparison


def whys(
    ranked: Sequence[Counted],
    standings: Sequence[Standing],
    families: Mapping[str, Sequence[Comparison]],
    metric: str,
    work: Sequence[Work] = (),
    level: float = stats.LEVEL,
) -> tuple[Why, ...]:
    """Each contestant that is proven to differ from the first of its kind by the metric, then for each that is from
    the one right above it. `families`: the comparisons of each axis. What is ranked on an axis is not tested a second
    time here: a counter that is one differs where the ranking says so."""
    figures = _figures(ranked)
    pairs = _pairs(standings, families[metric])
    tested = [one for pair in pairs for name in COUNTERS if (one := _test(pair, name, figures[name])) is not None]
    own = [one for one in tested if one.counter not in families]
    judged = iter(stats.corrected([one.comparison for one in own], level))
    tested = [
        one._replace(comparison=next(judged) if one in own else _of_ranking(one, families[one.counter]))
        for one in tested
    ]
    return tuple(_why(pair, [one for one in tested if one.pair == pair], figures, work) for pair in pairs)


# --- who is compared, and by what --------------------------------------------------------------------------------


def _pairs(standings: Sequence[Standing], family: Sequence[Comparison]) -> list[_Pair]:
    """Each once; those that are ranked apart among themselves."""
    found: dict[tuple[str, str], _Pair] = {}
    for peers in sorted({one.peers for one in standings}):
        names = [one.contestant for one in standings if one.peers == peers]
        to_first = [(name, names[0]) for name in names[1:]]
        for worse, better in [*to_first, *((lower, upper) for upper, lower in pairwise(names))]:
            one = answers.against(worse, better, family)
            if one is not None and one.different:
                found.setdefault((worse, better), _Pair(worse, better, one))
    return list(found.values())


def _figures(ranked: Sequence[Counted]) -> Figures:
    wanted = (*COUNTERS, SYSTEM)
    found: dict[str, dict[str, dict[stats.Cell, float]]] = {name: {} for name in wanted}
    for trial, load in ranked:
        for name in wanted:
            figure = METRICS[name].of(trial, load)
            if figure is not None:
                found[name].setdefault(trial.contestant, {})[trial.block, level_key(trial.levels)] = figure
    return found


def _test(pair: _Pair, name: str, figures: Mapping[str, Samples]) -> _Tested | None:
    """None where the counter was not read in any cell that both share, or counted nothing: it is no hypothesis then.
    Whether ratios or differences are tested does not depend on which of the two is which."""
    mine, theirs = figures.get(pair.worse, {}), figures.get(pair.better, {})
    shared = stats.counted(mine.keys() & theirs.keys())
    if not any(mine[cell] or theirs[cell] for cell in shared):
        return None
    relative = all(mine[cell] > 0 and theirs[cell] > 0 for cell in shared)
    pairs = stats.pairs_of(
        {cell: math.log(mine[cell] / theirs[cell]) if relative else mine[cell] - theirs[cell] for cell in shared}
    )
    comparison = stats.comparison(pair.worse, pair.better, pairs, ratios=relative, axis=name)
    worse, better = (_mean([values[cell] for cell in shared], relative) for values in (mine, theirs))
    return _Tested(pair, name, relative, worse, better, comparison)


def _of_ranking(one: _Tested, family: Sequence[Comparison]) -> Comparison:
    """Return what the ranking on this axis says of the pair; where it compared no such two, that nothing is proven."""
    found = answers.against(one.pair.worse, one.pair.better, family)
    return found or replace(one.comparison, decidable=False, interval=None)


def _mean(values: Sequence[float], relative: bool) -> float:
    """Geometric where the effect is a ratio, so that one mean divided by the other is just it."""
    return statistics.geometric_mean(values) if relative else statistics.fmean(values)


# --- one pair ----------------------------------------------------------------------------------------------------


def _why(pair: _Pair, tested: Sequence[_Tested], figures: Figures, work: Sequence[Work]) -> Why:
    return Why(
        worse=pair.worse,
        better=pair.better,
        result=pair.result,
        differences=tuple(
            Difference(one.counter, one.worse, one.better, one.relative, one.comparison)
            for one in tested
            if one.comparison.different
        ),
        considered=tuple(one.counter for one in tested),
        decidable=any(one.comparison.decidable for one in tested),
        blocks=max((one.comparison.blocks for one in tested), default=0),
        kernel_worse=_in_kernel(pair.worse, figures),
        kernel_better=_in_kernel(pair.better, figures),
        traced=_traced(pair, work),
    )


def _in_kernel(name: str, figures: Figures) -> float | None:
    """How much of the CPU time was the kernel's, over all trials."""
    whole, kernel = (sum(figures[counter].get(name, {}).values()) for counter in ("cpu", SYSTEM))
    return kernel / whole if whole else None


def _traced(pair: _Pair, work: Sequence[Work]) -> TracedCalls | None:
    """What the traces of both say. They are one trial each, so nothing is tested."""
    traced = {one.contestant: one for one in work if one.calls}
    if pair.worse not in traced or pair.better not in traced:
        return None
    mine, theirs = traced[pair.worse].calls, traced[pair.better].calls
    apart = {name: mine.get(name, 0.0) - theirs.get(name, 0.0) for name in (*mine, *theirs)}
    most = max(apart, key=lambda name: abs(apart[name]))
    return TracedCalls(label=traced[pair.worse].label, worse=mine, better=theirs, most=most)
