"""A place in a ranking and a ratio, as terminal and report show them."""

from __future__ import annotations

from netdyno.analysis.found.ranking import Standing
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.base import quantities
from netdyno.statistics.stats import Interval


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
