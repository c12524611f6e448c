"""A place in a ranking and a ratio, as terminal and report show them."""

from __future__ import annotations

from collections.abc import Iterator

from netdyno.analysis.found.ranking import Axis, Score, Standing
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.analysis.ranking.answers import find_comparison
from netdyno.kit import quantities
from netdyno.kit.statistics.stats import Interval, winner
from netdyno.model.metrics import METRICS


def rank(findings: ScenarioFindings, standing: Standing) -> str:
    """The rank: "2", "2=" where others share it, a dash where the pairs could not have proven any rank."""
    if standing.rank is None or not any(comparison.decidable for comparison in findings.comparisons):
        return quantities.DASH
    return f"{standing.rank}=" if standing.shared else str(standing.rank)


def compare_with_first(standing: Standing) -> str:
    """The change against the leader, with a star where a difference is proven: a shared rank may hide that."""
    comparison = standing.against_leader
    return f"{quantities.percent_change(comparison.ratio)}{'*' if comparison.different else ' '}" if comparison else ""


def format_change_interval(interval: Interval | None) -> str:
    """An interval of a ratio as changes: "+8% to +15%"."""
    if interval is None:
        return "no interval"
    return f"{quantities.percent_change(interval.low)} to {quantities.percent_change(interval.high)}"


def describe_loads(findings: ScenarioFindings) -> str:
    """Say which loads the figures and ranks of a table are over; nothing where there is one load."""
    if len(findings.levels) < 2:
        return ""
    is_ranked = any(comparison.decidable for axis in findings.axes for comparison in axis.comparisons)
    over = findings.axes[0].loads if findings.axes else ()
    ranks = f", ranks over {findings.ranked_levels} loads" if is_ranked else ""
    if not over:
        return f"figures at {findings.heaviest.label}{ranks}"
    if len(over) == findings.ranked_levels:
        return f"figures{' and ranks' if is_ranked else ''} over {len(over)} loads (geometric means)"
    labels = quantities.listed([level.label for level in findings.levels if level.key in over])
    return f"figures over {labels} (geometric means){ranks}"


def explain_ranks(findings: ScenarioFindings) -> tuple[str, ...]:
    """Explain ranks that the figures beside them contradict, one sentence for each axis that has some: that of the two
    figures that are furthest apart."""
    return tuple(
        _explain_rank(findings, axis, *max(pairs, key=lambda pair: abs(_read_value(pair[0]) - _read_value(pair[1]))))
        for axis in findings.axes
        if (pairs := list(_find_contradictions(findings, axis)))
    )


def _read_value(score: Score) -> float:
    assert score.shown is not None
    return score.shown


def _find_contradictions(findings: ScenarioFindings, axis: Axis) -> Iterator[tuple[Score, Score]]:
    """Yield each two that are ranked together, the better rank first, where the other has the better figure."""
    peers = {standing.contestant: standing.peers for standing in findings.standings}
    ranked = [(score, score.rank) for score in axis.scores if score.rank is not None and score.shown is not None]
    speak = METRICS[axis.metric].speak
    for above, upper in ranked:
        for below, lower in ranked:
            values = _read_value(above), _read_value(below)
            is_better = values[1] > values[0] if axis.better == "higher" else values[1] < values[0]
            are_peers = peers.get(above.contestant) == peers.get(below.contestant)
            if upper < lower and are_peers and is_better and speak(values[0]) != speak(values[1]):
                yield above, below


def _explain_rank(findings: ScenarioFindings, axis: Axis, above: Score, below: Score) -> str:
    metric = METRICS[axis.metric]
    shown = [f"{score.contestant} ({metric.speak(_read_value(score))})" for score in (below, above)]
    loads = f" over {findings.ranked_levels} loads" if findings.ranked_levels > 1 else ""
    text = f"In {metric.short}, {shown[0]} is ranked below {shown[1]}: ranks compare within blocks{loads}"
    comparison = find_comparison(below.contestant, above.contestant, axis.comparisons)
    if comparison is not None:
        interval = f" (95% interval {format_change_interval(comparison.interval)})" if comparison.interval else ""
        change = quantities.percent_change(comparison.ratio)
        text += f", where {below.contestant} is at {change} against {above.contestant}{interval}"
    if comparison is not None and comparison.different:
        return f"{text}."
    return f"{text}; {_name_proven_better(axis, below.contestant)} is proven better than {below.contestant}."


def _name_proven_better(axis: Axis, contestant: str) -> str:
    compared = [comparison for comparison in axis.comparisons if contestant in (comparison.a, comparison.b)]
    winners = [winner(comparison, axis.better) for comparison in compared]
    return next(name for name in winners if name is not None and name != contestant)
