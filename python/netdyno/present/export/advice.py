"""The advice for a workload, for programs (docs/advise.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from netdyno.analysis.found.advice import AcrossFactor, Advice, Kept
from netdyno.analysis.ranking.answers import find_comparison
from netdyno.kit.statistics.stats import Interval
from netdyno.model.metrics import METRICS
from netdyno.present.findings_json import convert_company
from netdyno.present.plain import make_plain
from netdyno.present.prose import flips


def make_document(advice: Advice, across: Sequence[AcrossFactor] | None) -> dict[str, Any]:
    """Convert the advice. `beside`: the ratio of the first recommended contestant's metric to each other one's."""
    findings = advice.findings
    first = advice.take[0] if advice.take else None
    rivals = [standing.contestant for standing in findings.standings if standing.contestant != first]
    compared = [
        comparison
        for rival in rivals
        if first and (comparison := find_comparison(first, rival, findings.comparisons)) is not None
    ]
    document: dict[str, Any] = make_plain(
        {
            "take": list(advice.take),
            "metric": findings.scenario.metric,
            "better": findings.better,
            "verdict": findings.verdict,
            "objective": advice.objective,
            "among": advice.outcome,
            "behind": advice.behind,
            "settled": advice.settled,
            "blocks": advice.blocks,
            "company": convert_company(findings.company),
            "beside": [
                {
                    "contestant": comparison.b,
                    "ratio": comparison.ratio,
                    **_convert_interval(comparison.interval),
                    "blocks": comparison.blocks,
                }
                for comparison in compared
            ],
            "kept": [_convert_kept(contestant) for contestant in advice.kept],
            "left_out": advice.left_out,
            "along": None if across is None else [_convert_across(axis) for axis in across],
        }
    )
    return document


def make_empty_document(metric: str, objective: str) -> dict[str, Any]:
    """The document where there is no answer."""
    return {
        "take": [],
        "metric": metric,
        "better": METRICS[metric].better,
        "verdict": None,
        "objective": objective,
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


def _convert_interval(interval: Interval | None) -> dict[str, float | None]:
    return {
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
    }


def _convert_kept(contestant: Kept) -> dict[str, Any]:
    return {
        "contestant": contestant.contestant,
        "blocks": contestant.blocks,
        "outcome": contestant.outcome,
        "terms": [
            {
                "name": term.term.name,
                "limit": term.term.limit,
                "value": term.value,
                **_convert_interval(term.interval),
                "outcome": term.outcome,
            }
            for term in contestant.terms
        ],
    }


def _convert_across(across: AcrossFactor) -> dict[str, Any]:
    return {
        "factor": across.factor,
        "levels": list(across.levels),
        "outcomes": list(across.outcomes),
        "beside": [
            {
                "first": comparison.first,
                "second": comparison.second,
                "verdict": comparison.flips.verdict,
                "sentence": flips.describe_flip(comparison),
            }
            for comparison in across.flips
        ],
    }
