"""What a workload's owner is advised, for programs (docs/advise.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from netdyno.analysis.advice.along import Along
from netdyno.analysis.advice.found import Advice, Kept
from netdyno.analysis.answers import against
from netdyno.model.metrics import METRICS
from netdyno.present.findings_json import company, measured
from netdyno.present.prose import flips
from netdyno.statistics.stats import Interval


def document(advice: Advice, along: Sequence[Along] | None) -> dict[str, Any]:
    """`beside`: the first of those to take against each other, as the ratio of their metrics."""
    findings = advice.findings
    first = advice.take[0] if advice.take else None
    others = [one.contestant for one in findings.standings if one.contestant != first]
    compared = [one for other in others if first and (one := against(first, other, findings.comparisons)) is not None]
    return measured(
        {
            "take": list(advice.take),
            "metric": findings.scenario.metric,
            "better": findings.better,
            "verdict": findings.verdict,
            "slo": advice.slo,
            "among": advice.among,
            "behind": advice.behind,
            "settled": advice.settled,
            "blocks": advice.blocks,
            "company": company(findings.company),
            "beside": [
                {"contestant": one.b, "ratio": one.ratio, **_interval(one.interval), "blocks": one.blocks}
                for one in compared
            ],
            "kept": [_kept(one) for one in advice.kept],
            "left_out": [{"contestant": one.contestant, "blocks": one.blocks} for one in advice.left_out],
            "along": None if along is None else [_along(one) for one in along],
        }
    )


def nothing(metric: str, slo: str) -> dict[str, Any]:
    """The same where there is no answer."""
    return {
        "take": [],
        "metric": metric,
        "better": METRICS[metric].better,
        "verdict": None,
        "slo": slo,
        "among": None,
        "behind": None,
        "settled": False,
        "blocks": 0,
        "company": None,
        "beside": [],
        "kept": [],
        "left_out": [],
        "along": None,
    }


def _interval(interval: Interval | None) -> dict[str, float | None]:
    return {
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
    }


def _kept(one: Kept) -> dict[str, Any]:
    return {
        "contestant": one.contestant,
        "blocks": one.blocks,
        "outcome": one.outcome,
        "terms": [
            {
                "name": term.term.name,
                "limit": term.term.limit,
                "value": term.value,
                **_interval(term.interval),
                "outcome": term.outcome,
            }
            for term in one.terms
        ],
    }


def _along(one: Along) -> dict[str, Any]:
    return {
        "factor": one.factor,
        "levels": list(one.levels),
        "outcomes": list(one.outcomes),
        "beside": [
            {
                "first": each.first,
                "second": each.second,
                "verdict": each.flips.verdict,
                "sentence": flips.sentence(each),
            }
            for each in one.beside
        ],
    }
