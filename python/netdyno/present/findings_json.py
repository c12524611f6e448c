"""The findings of a run for programs (protocol/findings.md). Pure; numbers and names, and no sentence that the table
does not have too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from netdyno.analysis.found.cells import Bound, Estimate
from netdyno.analysis.found.flips import FlipFound
from netdyno.analysis.found.gate import Found as GateFound
from netdyno.analysis.found.notices import Company, MadeAgain
from netdyno.analysis.found.ranking import Axis, Score
from netdyno.analysis.found.run import Analysis, ScenarioFindings
from netdyno.analysis.found.set_aside import Fault
from netdyno.analysis.ranking import axes
from netdyno.model.levels import level_label
from netdyno.model.metrics import METRICS
from netdyno.model.verdicts import Check
from netdyno.present.plain import make_plain
from netdyno.present.prose import claims, flips, set_aside, verdict
from netdyno.present.prose import company as company_words
from netdyno.statistics.flips import Crossing, Point
from netdyno.statistics.stats import Interval

VERSION = 1
AS_FOUND = (
    "decision",
    "elsewhere",
    "drift",
    "loss_bound",
    "pairs",
    "capacity",
    "work",
    "whys",
    "ending",
    "unsafe",
    "unranked",
    "absent",
    "constant",
    "ground",
    "added_options",
    "threads_each",
    "sampled_threads",
    "uneven_threads",
    "alone",
    "instruments",
)
"""The fields of a question that keep the name and form of the analysis."""


def make_document(analysis: Analysis) -> dict[str, object]:
    """Return the whole document. What was not measured is null, and never a number."""
    return clear_non_finite(_convert_analysis(analysis))


def clear_non_finite(values: Mapping[str, object]) -> dict[str, Any]:
    """Return the values with null for each float that is not finite (such as the cost per message of a trial without
    replies), as JSON has no such numbers."""
    return {name: _replace_non_finite(value) for name, value in values.items()}


def _replace_non_finite(value: object) -> object:
    if isinstance(value, Mapping):
        return clear_non_finite(value)
    if isinstance(value, list | tuple):
        return [_replace_non_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _convert_analysis(analysis: Analysis) -> dict[str, object]:
    control = analysis.control
    return {
        "version": VERSION,
        "run_id": analysis.run_id,
        "experiment": analysis.experiment,
        "question": analysis.question,
        "started_at": analysis.started_at,
        "finished_at": analysis.finished_at,
        "blocks": analysis.blocks_measured,
        "trials": {
            "valid": analysis.counts.valid,
            "struck_out": analysis.counts.struck_out,
            "faulty": analysis.counts.faulty,
            "failed": analysis.counts.failed,
            "skipped": analysis.counts.skipped,
            "made_again": analysis.counts.made_again,
        },
        "made_again": _convert_retries(analysis.made_again),
        "questions": [_convert_question(findings) for findings in analysis.scenarios],
        "claims": [
            {
                "id": claim.claim.id,
                "text": claim.claim.text,
                "verdict": claim.verdict,
                "reason": claims.explain_no_verdict(claim),
            }
            | {"checks": [_convert_check(check) for check in claim.checks]}
            for claim in analysis.claims
        ],
        "aa": {
            "comparisons": control.different.of,
            "different": control.different.count,
            "different_uncorrected": control.single.count,
            "each": make_plain(control.comparisons),
        },
        "charts": make_plain(analysis.charts),
        "machine": make_plain(analysis.machine),
        "canary": make_plain(analysis.canary.ranges) if analysis.canary else None,
        "audits": make_plain(analysis.audits),
        "gate": _convert_gate(analysis.gate) if analysis.gate else None,
        "flips": [convert_flip(comparison) for comparison in analysis.flips],
        "set_aside": [
            {
                "block": note.block,
                "question": note.scenario,
                "contestant": note.contestant,
                "level": note.level,
                "status": note.status,
                "cause": set_aside.describe_cause(note.cause),
                "reason": set_aside.describe_reason(note),
            }
            for note in analysis.set_aside
        ],
    }


def convert_gate(result: GateFound) -> dict[str, object]:
    """The part of the document that a gate prints."""
    return clear_non_finite(_convert_gate(result))


def convert_flip(comparison: FlipFound) -> dict[str, object]:
    """The part of the document that `netdyno flips` prints."""
    return clear_non_finite(
        {
            "question": comparison.question,
            "metric": comparison.metric,
            "factor": comparison.factor,
            "unit": "s" if comparison.durations else None,
            "first": comparison.first,
            "second": comparison.second,
            "fixed": comparison.fixed,
            "verdict": comparison.flips.verdict,
            "sentence": flips.describe_flip(comparison),
            "crossings": [_convert_crossing(comparison, crossing) for crossing in comparison.flips.crossings],
            "levels": [_convert_level(comparison, point) for point in comparison.flips.points],
            "asked_within": comparison.pursuit.within if comparison.pursuit else None,
            "narrow": comparison.pursuit.narrow if comparison.pursuit else None,
            "bounded": comparison.bounded,
            "uneven": comparison.uneven,
        }
    )


def _convert_crossing(comparison: FlipFound, crossing: Crossing) -> dict[str, object]:
    sides = (comparison.second, comparison.first) if crossing.rising else (comparison.first, comparison.second)
    return {
        "below": sides[0],
        "above": sides[1],
        "at": crossing.at,
        "interval": _convert_interval(crossing.interval),
        "told_at": [crossing.before, crossing.after],
    }


def _convert_level(comparison: FlipFound, point: Point) -> dict[str, object]:
    interval = point.interval
    return {
        "at": point.at,
        "ratio": math.exp(point.mean),
        "interval": _convert_interval(interval and Interval(math.exp(interval.low), math.exp(interval.high))),
        "better": {1: comparison.first, -1: comparison.second, 0: None}[point.side],
        "blocks": point.blocks,
        "needed": comparison.pursuit.needed.get(point.at) if comparison.pursuit else None,
    }


def _convert_gate(result: GateFound) -> dict[str, object]:
    return {
        "decision": result.decision,
        "lines": [
            {
                "question": line.scenario,
                "metric": line.metric,
                "outcome": line.outcome,
                "margin": line.margin,
                "blocks": line.blocks,
                "before": line.before,
                "after": line.after,
                "ratio": line.ratio,
                "interval": _convert_interval(line.interval),
                "faults": _convert_faults(line.faults),
            }
            for line in result.lines
        ],
        "faults": [
            {"question": fault.scenario, "before": fault.before, "after": fault.after, "of": fault.of}
            for fault in result.faults
        ],
    }


def _convert_faults(faults: Sequence[Fault]) -> list[dict[str, object]]:
    return [{"kind": fault.kind, "trials": fault.trials, "of": fault.of, "detail": fault.detail} for fault in faults]


def convert_company(neighbourhood: Company | None) -> dict[str, object] | None:
    """The programs that ran beside the measurement; None where the machine was the run's own."""
    if neighbourhood is None:
        return None
    return {
        "label": company_words.label(neighbourhood),
        "trials": neighbourhood.trials,
        "of": neighbourhood.of,
        "neighbours": make_plain(neighbourhood.neighbours),
    }


def _convert_retries(retries: MadeAgain) -> dict[str, object]:
    return {
        "tries": retries.tries,
        "cells": retries.cells,
        "given_up": retries.given_up,
        "causes": dict(retries.causes),
        "by_contestant": {
            name: {"tries": tries, "cells": cells} for name, (tries, cells) in retries.by_contestant.items()
        },
        "p_even": retries.p,
        "slices_again": dict(retries.slices_again),
        "slices_by_contestant": {
            name: {"again": again, "slices": slices} for name, (again, slices) in retries.slices_by_contestant.items()
        },
        "slices_p_even": retries.slices_p,
    }


def _convert_question(findings: ScenarioFindings) -> dict[str, object]:
    scenario, answer = findings.scenario, verdict.answer(findings)
    heaviest = findings.heaviest if findings.levels and findings.cells else None
    return {
        "name": scenario.name,
        "workload": scenario.workload,
        "arrivals": scenario.arrivals,
        "metric": scenario.metric,
        "verdict": findings.verdict,
        "headline": answer.headline,
        "sentence": answer.sentence,
        "company": convert_company(findings.company),
        "levels": [{"key": level.key, "label": level_label(scenario, level.values)} for level in findings.levels],
        "figures_at": heaviest.key if heaviest else None,
        "contestants": [
            {
                "name": standing.contestant,
                "rank": standing.rank,
                "shared": standing.shared,
                "ground": standing.ground,
                "lossy": standing.lossy,
                "lost": standing.loss,
                "bytes_per_connection": _find_connection_bytes(findings, standing.contestant),
            }
            for standing in findings.standings
        ],
        "axes": [_convert_axis(axis, findings) for axis in findings.axes] or [_convert_capacity_axis(findings)],
        "faulty": [
            {
                "name": faulty.contestant,
                "faults": _convert_faults(faulty.faults),
            }
            for faulty in findings.faulty
        ],
        "censored": [
            {"level": cell.level, "contestant": cell.contestant, "generator_share": cell.share}
            for cell in findings.censored
        ],
        "error_bars": [
            {
                "level": bar.level,
                "percentile": bar.percentile,
                "send_ns": bar.send_ns,
                "receive_ns": bar.receive_ns,
                "share": bar.share,
            }
            for bar in findings.error_bars
        ],
        "unsteady": [
            {"name": entry.contestant, "trials": entry.moved, "of": entry.trials} for entry in findings.unsteady
        ],
        "within": [
            {"language": entry.language, "unbeaten": entry.unbeaten, "of": entry.of, "ground": entry.ground}
            for entry in findings.within
        ],
        "warmups": [{"contestant": entry.contestant, "each": make_plain(entry.warmups)} for entry in findings.warmups],
        "caveats": list(verdict.list_caveats(findings)),
        **{name: make_plain(getattr(findings, name)) for name in AS_FOUND},
    }


def _convert_check(check: Check) -> dict[str, object]:
    return {
        "metric": check.step.metric,
        "side": check.step.side,
        "threshold": check.step.threshold,
        "needed": check.needed,
        "effect": check.effect,
        "interval": _convert_interval(check.interval),
        "figures": list(check.figures),
        "blocks": check.blocks,
        "outcome": check.outcome,
        "blocks_to_decide": check.blocks_to_decide,
        "limit": check.limit,
        "is_short_of_published": check.is_short_of_published,
    }


def _find_connection_bytes(findings: ScenarioFindings, contestant: str) -> float | None:
    cell = findings.cell(contestant, findings.heaviest.key) if findings.levels and findings.cells else None
    estimate = cell.values.get("connection-memory") if cell else None
    return estimate.value if estimate else None


def _convert_axis(axis: Axis, findings: ScenarioFindings) -> dict[str, object]:
    return {
        "metric": axis.metric,
        "unit": METRICS[axis.metric].unit.name,
        "better": axis.better,
        "bound": axis.bound or None,
        "figure": "merged" if axis.metric in axes.LATENCIES else "mean",
        "scores": [_convert_score(score, axis.bound, findings) for score in axis.scores],
        "comparisons": [make_plain(comparison) for comparison in axis.comparisons],
    }


def _convert_capacity_axis(findings: ScenarioFindings) -> dict[str, object]:
    """Convert the only axis of a capacity, which comes from trials at several rates. It is a bound only for servers
    that kept the objective at every rate, or at none."""
    return {
        "metric": findings.scenario.metric,
        "unit": METRICS[findings.scenario.metric].unit.name,
        "better": findings.better,
        "bound": None,
        "figure": "geometric mean over blocks",
        "scores": [
            {
                "contestant": standing.contestant,
                "value": standing.value,
                "bound": standing.bound or None,
                "interval": None,
                "trials": None,
                "rank": standing.rank,
                "shared": standing.shared,
                "ground": standing.ground,
            }
            for standing in findings.standings
        ],
        "comparisons": [make_plain(comparison) for comparison in findings.comparisons],
    }


def _convert_score(score: Score, bound: Bound, findings: ScenarioFindings) -> dict[str, object]:
    value: Estimate | None = score.value
    return {
        "contestant": score.contestant,
        "value": value.value if value else None,
        "bound": bound or None,
        "interval": _convert_interval(value.interval if value else None),
        "trials": score.trials,
        "rank": score.rank,
        "shared": score.shared,
        "ground": findings.ground.group_of(score.contestant),
    }


def _convert_interval(interval: Interval | None) -> list[float] | None:
    """The two ends; an end that is not finite becomes null in the document."""
    return None if interval is None else [interval.low, interval.high]
