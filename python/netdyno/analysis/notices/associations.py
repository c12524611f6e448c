"""The counters that correlate with a difference in rank: they differ between two contestants beyond chance.

The counters are compared as the metric is: within blocks, and corrected over all counters of all paragraphs of a
scenario, for they are one answer. A counter that passes is associated with the result; it need not be its cause
(docs/adr/equal-work.md). Pure functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from netdyno.analysis.found.notices import Difference, TracedCalls, Why, Work
from netdyno.analysis.found.ranking import Standing
from netdyno.analysis.ranking import answers
from netdyno.kit.statistics import stats
from netdyno.kit.statistics.stats import Comparison, Samples
from netdyno.model.base import Name
from netdyno.model.levels import level_key
from netdyno.model.metrics import COUNTERS, METRICS, TrialWithLoad

SYSTEM = "cpu-system"
"""The CPU time in the kernel: shown as a part of the whole, not tested by itself."""

Figures = Mapping[str, Mapping[str, Samples]]
"""The figures by counter and contestant."""


class _Pair(NamedTuple):
    """The lower in rank, the higher, and the comparison of their metrics, the lower divided by the higher."""

    worse: Name
    better: Name
    result: Comparison


def explain_differences(
    ranked: Sequence[TrialWithLoad],
    standings: Sequence[Standing],
    families: Mapping[str, Sequence[Comparison]],
    metric: str,
    work: Sequence[Work] = (),
    significance: float = stats.SIGNIFICANCE,
) -> tuple[Why, ...]:
    """Return the counters that go with each proven difference of the metric: of a contestant from the first of its
    kind, then from the one right above it. `families`: the comparisons of each axis. A counter that is an axis is not
    tested a second time: it differs where the ranking says so."""
    figures = _collect_figures(ranked)
    pairs = _list_pairs(standings, families[metric])
    tested = [[test for name in COUNTERS if (test := _test(pair, name, figures[name])) is not None] for pair in pairs]
    beyond_axes = [test.comparison for tests in tested for test in tests if test.counter not in families]
    judged = iter(stats.corrected(beyond_axes, significance))

    def judge_difference(test: Difference) -> Difference:
        family = families.get(test.counter)
        return replace(test, comparison=next(judged) if family is None else _read_ranking(test.comparison, family))

    return tuple(
        _explain(pair, list(map(judge_difference, tests)), figures, work)
        for pair, tests in zip(pairs, tested, strict=True)
    )


# --- the pairs and their counters --------------------------------------------------------------------------------


def _list_pairs(standings: Sequence[Standing], family: Sequence[Comparison]) -> list[_Pair]:
    """Return each pair once; contestants that are ranked apart are paired among themselves."""
    pairs: dict[tuple[str, str], _Pair] = {}
    for peers in sorted({standing.peers for standing in standings}):
        names = [standing.contestant for standing in standings if standing.peers == peers]
        to_first = [(name, names[0]) for name in names[1:]]
        for worse, better in [*to_first, *((lower, upper) for upper, lower in pairwise(names))]:
            comparison = answers.find_comparison(worse, better, family)
            if comparison is not None and comparison.different:
                pairs.setdefault((worse, better), _Pair(worse, better, comparison))
    return list(pairs.values())


def _collect_figures(ranked: Sequence[TrialWithLoad]) -> Figures:
    counters = (*COUNTERS, SYSTEM)
    figures: dict[str, dict[str, dict[stats.BlockLevel, float]]] = {name: {} for name in counters}
    for trial, load in ranked:
        for name in counters:
            figure = METRICS[name].value(trial, load)
            if figure is not None:
                figures[name].setdefault(trial.contestant, {})[trial.block, level_key(trial.levels)] = figure
    return figures


def _test(pair: _Pair, name: str, figures: Mapping[str, Samples]) -> Difference | None:
    """Compare a counter over a pair; None where no shared cell has it, or it counted nothing: it is no hypothesis then.
    Whether ratios or differences are tested does not depend on the order of the two."""
    of_worse, of_better = figures.get(pair.worse, {}), figures.get(pair.better, {})
    shared = stats.counted(of_worse.keys() & of_better.keys())
    if not any(of_worse[cell] or of_better[cell] for cell in shared):
        return None
    relative = all(of_worse[cell] > 0 and of_better[cell] > 0 for cell in shared)
    pairs = stats.pairs_of(
        {
            cell: math.log(of_worse[cell] / of_better[cell]) if relative else of_worse[cell] - of_better[cell]
            for cell in shared
        }
    )
    comparison = stats.comparison(pair.worse, pair.better, pairs, ratios=relative, axis=name)
    worse, better = (_mean([values[cell] for cell in shared], relative) for values in (of_worse, of_better))
    return Difference(name, worse, better, relative, comparison)


def _read_ranking(own: Comparison, family: Sequence[Comparison]) -> Comparison:
    """Return the ranking's comparison of the two on this axis; where it has none, one that proves nothing."""
    comparison = answers.find_comparison(own.a, own.b, family)
    return comparison or replace(own, decidable=False, interval=None)


def _mean(values: Sequence[float], relative: bool) -> float:
    """Return the mean; geometric where the effect is a ratio, so that the ratio of the means is the effect."""
    return statistics.geometric_mean(values) if relative else statistics.fmean(values)


# --- one pair ----------------------------------------------------------------------------------------------------


def _explain(pair: _Pair, tested: Sequence[Difference], figures: Figures, work: Sequence[Work]) -> Why:
    return Why(
        worse=pair.worse,
        better=pair.better,
        result=pair.result,
        differences=tuple(test for test in tested if test.comparison.different),
        considered=tuple(test.counter for test in tested),
        decidable=any(test.comparison.decidable for test in tested),
        blocks=max((test.comparison.blocks for test in tested), default=0),
        kernel_worse=_compute_kernel_share(pair.worse, figures),
        kernel_better=_compute_kernel_share(pair.better, figures),
        traced=_compare_traced(pair, work),
    )


def _compute_kernel_share(name: str, figures: Figures) -> float | None:
    """Return the kernel's share of the CPU time, over all trials."""
    whole, kernel = (sum(figures[counter].get(name, {}).values()) for counter in ("cpu", SYSTEM))
    return kernel / whole if whole else None


def _compare_traced(pair: _Pair, work: Sequence[Work]) -> TracedCalls | None:
    """Return the traced calls of both. They are one trial each, so nothing is tested."""
    traced = {item.contestant: item for item in work if item.calls}
    if pair.worse not in traced or pair.better not in traced:
        return None
    worse, better = traced[pair.worse].calls, traced[pair.better].calls
    differences = {name: worse.get(name, 0.0) - better.get(name, 0.0) for name in (*worse, *better)}
    most = max(differences, key=lambda name: abs(differences[name]))
    return TracedCalls(label=traced[pair.worse].label, worse=worse, better=better, most=most)
