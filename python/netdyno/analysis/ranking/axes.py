"""The axes of an answer: a scenario's own metric and the others that it is judged by. Pure functions of a run."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from netdyno.analysis.found.cells import BoundDirection, CellFigures, LevelInfo, select_heaviest
from netdyno.analysis.found.ranking import Axis, Censored, ErrorBar, Score
from netdyno.kit.statistics import stats
from netdyno.kit.statistics.stats import Better, Comparison, Samples
from netdyno.model.experiment import OWN_AXES, Scenario
from netdyno.model.levels import level_key
from netdyno.model.load_result import LoadResult
from netdyno.model.metrics import METRICS, TrialWithLoad
from netdyno.question.capacity import CAPACITY

SMALL_LAG, SMALL_LAG_IN_ROUNDS = 0.25, 0.5
"""The generator's own part of the shortest response time in a cell; in a round, messages leave one after the other."""

Groups = Sequence[Sequence[str]]
"""The contestants that are ranked together; those of a later group come after those of an earlier one."""
Grounds = Sequence[Groups]
"""The groups of those that could use equally many cores, each with ranks from the first on."""


def list_names(scenario: Scenario) -> tuple[str, ...]:
    """Return the axes: the own metric first, then the others in the order in which they decide
    (docs/adr/statistics.md). A capacity has none: its trials have other rates for each contestant. Starts and
    streams are judged by what the scenario names."""
    if scenario.metric == CAPACITY:
        return ()
    if scenario.metric in OWN_AXES:
        return tuple(dict.fromkeys((scenario.metric, *scenario.then_by)))
    rate = "throughput" if scenario.arrivals == "closed" else "kept"
    return tuple(dict.fromkeys((scenario.metric, *scenario.then_by, rate, "p50", "p99", "cpu", "memory")))


def is_alone(groups: Groups, grounds: Grounds) -> bool:
    """Return whether no other contestant could use as many cores, though others took part: a rank would say nothing."""
    return len(grounds) > 1 and sum(map(len, groups)) == 1


def compare_contestants(
    of_axes: Mapping[str, Mapping[str, Samples]], groups: Groups, significance: float
) -> dict[str, tuple[Comparison, ...]]:
    """Return the comparisons of every two contestants of a group on every axis. Those of the first axis, which the
    question is about, are corrected as one family (and if one is best, as such), and those of all other axes as a
    second. A pair that shares no block is no hypothesis."""
    first, *rest = of_axes
    own_family = _compare_family(of_axes, (first,), groups, significance)[first]
    rival_groups = [
        measured for group in groups if len(measured := [name for name in group if name in of_axes[first]]) > 1
    ]
    for names in rival_groups:
        own_family = stats.compared_with_the_best(
            names, own_family, METRICS[first].better, significance / len(rival_groups)
        )
    families = {first: own_family, **_compare_family(of_axes, rest, groups, significance)}
    return {axis: stats.without_circles(family) for axis, family in families.items()}


def _compare_family(
    of_axes: Mapping[str, Mapping[str, Samples]], family: Sequence[str], groups: Groups, significance: float
) -> dict[str, tuple[Comparison, ...]]:
    raw = [
        comparison
        for axis in family
        for group in groups
        for first, second in itertools.combinations([name for name in group if name in of_axes[axis]], 2)
        if (comparison := stats.compare(first, second, of_axes[axis], axis)).pairs
    ]
    judged = stats.corrected(raw, significance)
    return {axis: tuple(comparison for comparison in judged if comparison.axis == axis) for axis in family}


def order(group: Sequence[str], family: Sequence[Comparison], better: Better) -> tuple[dict[str, int], list[str]]:
    """Return the ranks, the best first, and the contestants without a rank, which share no block with these. Equal
    ranks are ordered by the mean of the log ratios to the others, each over the blocks that the two share. No figure is
    carried over from one to another."""
    joined = _find_largest_component(group, family)
    sides = {
        name: [ratio for comparison in family if (ratio := _log_ratio(name, comparison)) is not None] for name in joined
    }
    means = {name: statistics.fmean(ratios) if ratios else 0.0 for name, ratios in sides.items()}
    sign = -1.0 if better == "higher" else 1.0
    ranks = stats.ranks(joined, family, better)
    best_first = sorted(joined, key=lambda name: (ranks[name], sign * means[name]))
    return {name: ranks[name] for name in best_first}, [name for name in group if name not in joined]


def _log_ratio(name: str, comparison: Comparison) -> float | None:
    if name == comparison.a:
        return math.log(comparison.ratio)
    return -math.log(comparison.ratio) if name == comparison.b else None


def _find_largest_component(group: Sequence[str], family: Iterable[Comparison]) -> list[str]:
    """Return the largest set of names joined by comparisons; the only name of a group is ranked as such."""
    joined = {name: {name} for name in group}
    for comparison in family:
        if comparison.a in joined and comparison.b in joined:
            whole = joined[comparison.a] | joined[comparison.b]
            for name in whole:
                joined[name] = whole
    largest = max(joined.values(), key=len, default=set())
    return [name for name in group if name in largest] if len(largest) > 1 or len(group) == 1 else []


def fill(
    scenario: Scenario,
    families: Mapping[str, Sequence[Comparison]],
    grounds: Grounds,
    of_axes: Mapping[str, Mapping[str, Samples]],
    figures: Sequence[CellFigures],
    levels: Sequence[LevelInfo],
    bars: Sequence[ErrorBar],
    censored: Sequence[Censored],
) -> tuple[Axis, ...]:
    """Return every axis with the scores of all contestants. Their figures are over the levels of the ranks, where all
    contestants share the same ones on every axis, else at the heaviest level."""
    if not figures:
        return ()
    level = select_heaviest(levels, figures)
    by_name = {cell.contestant: cell for cell in figures if cell.level == level.key}
    shared = {frozenset(_find_shared(of_axes[axis].values())) for axis in list_names(scenario) if of_axes[axis]}
    common = shared.pop() if len(shared) == 1 and any(families.values()) else ()
    loads = tuple(level.key for level in levels if level.key in common) if len(common) > 1 else ()
    scores_by_axis = {
        axis: _score_axis(axis, families[axis], grounds, by_name, _average(of_axes[axis], loads))
        for axis in list_names(scenario)
    }
    saturated = bool(censored)
    limited = {bar.percentile for bar in bars}
    return tuple(
        Axis(
            metric=axis,
            better=METRICS[axis].better,
            scores=scores,
            comparisons=tuple(families[axis]),
            bound=_find_bound(axis, saturated, limited),
            loads=loads,
        )
        for axis, scores in scores_by_axis.items()
    )


def _find_shared(of_contestants: Collection[Samples]) -> set[str]:
    """Return the levels at which all contestants with a figure have one."""
    measured = [{level for _, level in samples} for samples in of_contestants if samples]
    return set.intersection(*measured) if measured else set()


def _average(of_contestants: Mapping[str, Samples], loads: Sequence[str]) -> dict[str, float]:
    """Return each contestant's geometric mean over these levels, of its blocks at each; empty without levels."""
    return {
        name: statistics.geometric_mean(
            statistics.geometric_mean(figure for (_, level), figure in samples.items() if level == load)
            for load in loads
        )
        for name, samples in of_contestants.items()
        if samples and loads
    }


def _find_bound(axis: str, saturated: bool, limited: Collection[str]) -> BoundDirection:
    at_limit = METRICS[axis].at_limit
    if at_limit == "at_least" and saturated:
        return "at least"
    is_limited = saturated or axis in limited or (axis == "mean" and limited)
    return "at most" if at_limit == "at_most" and is_limited else ""


def _score_axis(
    axis: str,
    family: Sequence[Comparison],
    grounds: Grounds,
    by_name: Mapping[str, CellFigures],
    over_loads: Mapping[str, float],
) -> tuple[Score, ...]:
    better = METRICS[axis].better
    scores: list[Score] = []
    for groups in grounds:
        before, alone = 0, is_alone(groups, grounds)
        for group in groups:
            ranks, unranked = order(group, family, better)
            sizes = Counter(ranks.values())
            for name in (*ranks, *unranked):
                cell = by_name.get(name)
                rank = ranks.get(name)
                scores.append(
                    Score(
                        contestant=name,
                        value=cell.values.get(axis) if cell else None,
                        trials=cell.trials if cell else 0,
                        rank=None if rank is None or alone else before + rank,
                        shared=rank is not None and sizes[rank] > 1,
                        over_loads=over_loads.get(name),
                    )
                )
            before += len(group)
    return tuple(scores)


# --- the generator's own part ------------------------------------------------------------------------------------


def find_error_bars(scenario: Scenario, ranked: Sequence[TrialWithLoad]) -> tuple[ErrorBar, ...]:
    """Return a bar where the generator's part is not small beside the shortest response time of any contestant at a
    level: decided for all alike."""
    by_level: dict[str, dict[str, list[LoadResult]]] = {}
    for trial, load in ranked:
        if load.client is None and not load.instrument:
            by_level.setdefault(level_key(trial.levels), {}).setdefault(trial.contestant, []).append(load)
    return tuple(
        bar
        for level, by_name in by_level.items()
        for percentile in ("p50", "p99")
        if (bar := _compute_error_bar(scenario, level, percentile, by_name)).share > _choose_small_share(scenario)
    )


def _choose_small_share(scenario: Scenario) -> float:
    in_rounds = scenario.arrivals == "closed" and scenario.scheduled
    return SMALL_LAG_IN_ROUNDS if in_rounds else SMALL_LAG


def _compute_error_bar(
    scenario: Scenario, level: str, percentile: str, by_name: Mapping[str, Sequence[LoadResult]]
) -> ErrorBar:
    def median(figures: Iterable[float]) -> float:
        return statistics.median(figures)

    loads = list(itertools.chain.from_iterable(by_name.values()))
    received = [load.receive_lag_ns for load in loads if load.receive_lag_ns and load.receive_lag_ns.count]
    return ErrorBar(
        level=level,
        percentile="p50" if percentile == "p50" else "p99",
        send_ns=median(getattr(load.send_lag_ns, percentile) for load in loads) if scenario.scheduled else 0.0,
        receive_ns=0.0
        if all(load.latency.clock == "kernel" for load in loads)
        else median(getattr(lag, percentile) for lag in received)
        if received
        else None,
        shortest_ns=min(
            median(getattr(load.latency.response_ns, percentile) for load in contestant_loads)
            for contestant_loads in by_name.values()
        ),
    )
