"""The axes of an answer: what beside its own metric a scenario is judged by. Pure functions of a run."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from netdyno.analysis.findings import Axis, Bound, CellFigures, Censored, ErrorBar, Estimate, LevelInfo, Score, heaviest
from netdyno.experiment.capacity import CAPACITY
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_key
from netdyno.model.load_result import LoadResult
from netdyno.model.metrics import METRICS, Counted
from netdyno.statistics import stats
from netdyno.statistics.stats import Better, Comparison, Samples

LATENCIES = ("p50", "p99", "mean")
SMALL_LAG, SMALL_LAG_IN_ROUNDS = 0.25, 0.5
"""The generator's own part of the shortest response time in a cell; in a round, messages leave one after the other."""

Groups = Sequence[Sequence[str]]
"""Who is ranked with whom, and those of a later group after those of an earlier one."""
Grounds = Sequence[Groups]
"""The groups of those that could use equally many cores, each with ranks from the first on."""


def names(scenario: Scenario) -> tuple[str, ...]:
    """Its own metric first, then the others in the order that they count in (docs/adr/statistics.md). A capacity stands
    alone: its trials have other rates for each contestant."""
    if scenario.metric == CAPACITY:
        return ()
    rate = "throughput" if scenario.arrivals == "closed" else "kept"
    return tuple(dict.fromkeys((scenario.metric, *scenario.then_by, rate, "p50", "p99", "cpu", "memory")))


def is_alone(groups: Groups, grounds: Grounds) -> bool:
    """Whether nobody else could use so many cores, though others took part: its rank would say nothing."""
    return len(grounds) > 1 and sum(map(len, groups)) == 1


def compared(
    of_axes: Mapping[str, Mapping[str, Samples]], groups: Groups, level: float
) -> dict[str, tuple[Comparison, ...]]:
    """Return the comparisons of every two contestants of a group on every axis. Those of the first axis, which the
    question is about, are corrected as one family (and if one is best, as such), and those of all other axes as a
    second. Two that share no block are no hypothesis."""
    first, *others = of_axes
    own = _judged(of_axes, (first,), groups, level)[first]
    rivals = [found for group in groups if len(found := [name for name in group if name in of_axes[first]]) > 1]
    for names in rivals:
        own = stats.compared_with_the_best(names, own, METRICS[first].better, level / len(rivals))
    families = {first: own, **_judged(of_axes, others, groups, level)}
    return {axis: stats.without_circles(family) for axis, family in families.items()}


def _judged(
    of_axes: Mapping[str, Mapping[str, Samples]], family: Sequence[str], groups: Groups, level: float
) -> dict[str, tuple[Comparison, ...]]:
    raw = [
        one
        for axis in family
        for group in groups
        for a, b in itertools.combinations([name for name in group if name in of_axes[axis]], 2)
        if (one := stats.compare(a, b, of_axes[axis], axis)).pairs
    ]
    judged = stats.corrected(raw, level)
    return {axis: tuple(one for one in judged if one.axis == axis) for axis in family}


def order(group: Sequence[str], family: Sequence[Comparison], better: Better) -> tuple[dict[str, int], list[str]]:
    """Return the ranks, the best first, and those that share no block with these, who have none. Of equal ranks the
    better comes first by the mean of the log ratios to the others, each over the blocks that the two share. No figure
    is carried over from one to another."""
    joined = _largest_component(group, family)
    sides = {name: [ratio for one in family if (ratio := _log_ratio(name, one)) is not None] for name in joined}
    means = {name: statistics.fmean(each) if each else 0.0 for name, each in sides.items()}
    sign = -1.0 if better == "higher" else 1.0
    ranks = stats.ranks(joined, family, better)
    best_first = sorted(joined, key=lambda name: (ranks[name], sign * means[name]))
    return {name: ranks[name] for name in best_first}, [name for name in group if name not in joined]


def _log_ratio(name: str, one: Comparison) -> float | None:
    if name == one.a:
        return math.log(one.ratio)
    return -math.log(one.ratio) if name == one.b else None


def _largest_component(group: Sequence[str], family: Iterable[Comparison]) -> list[str]:
    """Those that are joined by comparisons, the most of them; alone, one is ranked as the only one there is."""
    joined = {name: {name} for name in group}
    for one in family:
        if one.a in joined and one.b in joined:
            whole = joined[one.a] | joined[one.b]
            for name in whole:
                joined[name] = whole
    largest = max(joined.values(), key=len, default=set())
    return [name for name in group if name in largest] if len(largest) > 1 or len(group) == 1 else []


def figure(axis: str, cell: CellFigures) -> Estimate | None:
    """A contestant's own figure at a level: percentiles of its merged histogram, sums over sums, means over trials."""
    if axis in ("cpu", "memory"):
        cost = cell.cost
        return None if cost is None else cost.rss_peak_bytes if axis == "memory" else _nanoseconds(cost.cpu_us)
    return {
        "throughput": cell.throughput,
        "kept": cell.kept,
        "p50": cell.response_ns.p50,
        "p99": cell.response_ns.p99,
        "mean": cell.mean_ns,
        "connection-spread": cell.connection_spread,
    }[axis]


def _nanoseconds(microseconds: Estimate) -> Estimate:
    interval = microseconds.interval
    return Estimate(
        1e3 * microseconds.value,
        interval and stats.Interval(1e3 * interval.low, 1e3 * interval.high),
        tuple(1e3 * point for point in microseconds.points),
    )


def fill(
    scenario: Scenario,
    families: Mapping[str, Sequence[Comparison]],
    grounds: Grounds,
    figures: Sequence[CellFigures],
    levels: Sequence[LevelInfo],
    bars: Sequence[ErrorBar],
    censored: Sequence[Censored],
) -> tuple[Axis, ...]:
    """Every axis with everybody's score."""
    if not figures:
        return ()
    level = heaviest(levels, figures)
    by_name = {cell.contestant: cell for cell in figures if cell.level == level.key}
    own = {axis: _of_axis(axis, families[axis], grounds, by_name) for axis in names(scenario)}
    saturated = bool(censored)
    limited = {bar.percentile for bar in bars}
    return tuple(
        Axis(
            metric=axis,
            better=METRICS[axis].better,
            scores=scores,
            comparisons=tuple(families[axis]),
            bound=_bound(axis, saturated, limited),
        )
        for axis, scores in own.items()
    )


def _bound(axis: str, saturated: bool, limited: Collection[str]) -> Bound:
    if saturated and axis in ("throughput", "kept"):
        return "at least"
    return "at most" if axis in LATENCIES and (saturated or axis in limited or (axis == "mean" and limited)) else ""


def _of_axis(
    axis: str, family: Sequence[Comparison], grounds: Grounds, by_name: Mapping[str, CellFigures]
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
                        value=figure(axis, cell) if cell else None,
                        trials=cell.trials if cell else 0,
                        rank=None if rank is None or alone else before + rank,
                        shared=rank is not None and sizes[rank] > 1,
                    )
                )
            before += len(group)
    return tuple(scores)


# --- the generator's own part ------------------------------------------------------------------------------------


def error_bars(scenario: Scenario, ranked: Sequence[Counted]) -> tuple[ErrorBar, ...]:
    """Where it is not small beside the shortest response time of any contestant at a level: decided for all alike."""
    by_level: dict[str, dict[str, list[LoadResult]]] = {}
    for trial, load in ranked:
        if load.client is None and not load.instrument:
            by_level.setdefault(level_key(trial.levels), {}).setdefault(trial.contestant, []).append(load)
    return tuple(
        bar
        for level, by_name in by_level.items()
        for percentile in ("p50", "p99")
        if (bar := _bar(scenario, level, percentile, by_name)).share > _small(scenario)
    )


def _small(scenario: Scenario) -> float:
    in_rounds = scenario.arrivals == "closed" and scenario.scheduled
    return SMALL_LAG_IN_ROUNDS if in_rounds else SMALL_LAG


def _bar(scenario: Scenario, level: str, percentile: str, by_name: Mapping[str, Sequence[LoadResult]]) -> ErrorBar:
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
        of=min(median(getattr(load.latency.response_ns, percentile) for load in of) for of in by_name.values()),
    )
