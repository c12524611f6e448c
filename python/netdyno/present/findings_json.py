"""The findings of a run for programs (protocol/findings.md). Pure; numbers and names, no sentence but those that the
reader of the table gets too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from netdyno.analysis import axes
from netdyno.analysis.company import Company
from netdyno.analysis.findings import Analysis, Axis, Bound, Estimate, MadeAgain, ScenarioFindings, Score
from netdyno.analysis.flips.found import FlipFound
from netdyno.analysis.gate.found import Found as GateFound
from netdyno.analysis.server_faults import Fault
from netdyno.model.levels import level_label
from netdyno.model.metrics import METRICS
from netdyno.model.verdicts import Check
from netdyno.present.plain import plain
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
    "warmups",
    "alone",
    "instruments",
)
"""Of a question, what stands there under the name that the analysis has for it, field by field."""


def document(analysis: Analysis) -> dict[str, object]:
    """The whole of it. What was not measured is null, and never a number."""
    return measured(_document(analysis))


def measured(found: Mapping[str, object]) -> dict[str, Any]:
    """The same without a number that is none (the cost per message of a trial in which none came back): JSON has no
    word for it but null."""
    return {name: _measured(each) for name, each in found.items()}


def _measured(value: object) -> object:
    if isinstance(value, Mapping):
        return measured(value)
    if isinstance(value, list | tuple):
        return [_measured(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _document(analysis: Analysis) -> dict[str, object]:
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
        "made_again": _made_again(analysis.made_again),
        "questions": [_question(one) for one in analysis.scenarios],
        "claims": [
            {"id": one.claim.id, "text": one.claim.text, "verdict": one.verdict, "reason": claims.reason(one)}
            | {"checks": [_check(each) for each in one.checks]}
            for one in analysis.claims
        ],
        "aa": {
            "comparisons": control.different.of,
            "different": control.different.count,
            "different_uncorrected": control.single.count,
            "each": plain(control.comparisons),
        },
        "charts": plain(analysis.charts),
        "machine": plain(analysis.machine),
        "canary": plain(analysis.canary.ranges) if analysis.canary else None,
        "audits": plain(analysis.audits),
        "gate": _gate(analysis.gate) if analysis.gate else None,
        "flips": [flip(one) for one in analysis.flips],
        "set_aside": [
            {
                "block": note.block,
                "question": note.scenario,
                "contestant": note.contestant,
                "level": note.level,
                "status": note.status,
                "cause": set_aside.cause(note.cause),
                "reason": set_aside.reason(note),
            }
            for note in analysis.set_aside
        ],
    }


def gate(found: GateFound) -> dict[str, object]:
    """The part of it that a gate prints."""
    return measured(_gate(found))


def flip(one: FlipFound) -> dict[str, object]:
    """The part of it that `netdyno flips` prints."""
    return measured(
        {
            "question": one.question,
            "metric": one.metric,
            "factor": one.factor,
            "unit": "s" if one.durations else None,
            "first": one.first,
            "second": one.second,
            "fixed": one.fixed,
            "verdict": one.flips.verdict,
            "sentence": flips.sentence(one),
            "crossings": [_crossing(one, crossing) for crossing in one.flips.crossings],
            "levels": [_level(one, point) for point in one.flips.points],
            "asked_within": one.pursuit.within if one.pursuit else None,
            "narrow": one.pursuit.narrow if one.pursuit else None,
            "bounded": one.bounded,
            "uneven": one.uneven,
        }
    )


def _crossing(one: FlipFound, crossing: Crossing) -> dict[str, object]:
    sides = (one.second, one.first) if crossing.rising else (one.first, one.second)
    return {
        "below": sides[0],
        "above": sides[1],
        "at": crossing.at,
        "interval": _interval(crossing.interval),
        "told_at": [crossing.before, crossing.after],
    }


def _level(one: FlipFound, point: Point) -> dict[str, object]:
    interval = point.interval
    return {
        "at": point.at,
        "ratio": math.exp(point.mean),
        "interval": _interval(interval and Interval(math.exp(interval.low), math.exp(interval.high))),
        "better": {1: one.first, -1: one.second, 0: None}[point.side],
        "blocks": point.blocks,
        "needed": one.pursuit.needed.get(point.at) if one.pursuit else None,
    }


def _gate(found: GateFound) -> dict[str, object]:
    return {
        "decision": found.decision,
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
                "interval": _interval(line.interval),
                "faults": _faults(line.faults),
            }
            for line in found.lines
        ],
        "faults": [
            {"question": one.scenario, "before": one.before, "after": one.after, "of": one.of} for one in found.faults
        ],
    }


def _faults(faults: Sequence[Fault]) -> list[dict[str, object]]:
    return [{"kind": one.kind, "trials": one.trials, "of": one.of, "detail": one.detail} for one in faults]


def company(found: Company | None) -> dict[str, object] | None:
    """Beside whom figures were measured; None where the machine was the run's own."""
    if found is None:
        return None
    return {
        "label": company_words.label(found),
        "trials": found.trials,
        "of": found.of,
        "neighbours": plain(found.neighbours),
    }


def _made_again(found: MadeAgain) -> dict[str, object]:
    return {
        "tries": found.tries,
        "cells": found.cells,
        "given_up": found.given_up,
        "causes": dict(found.causes),
        "by_contestant": {name: {"tries": n, "cells": cells} for name, (n, cells) in found.by_contestant.items()},
        "p_even": found.p,
        "slices_again": dict(found.slices_again),
        "slices_by_contestant": {
            name: {"again": again, "slices": slices} for name, (again, slices) in found.slices_by_contestant.items()
        },
        "slices_p_even": found.slices_p,
    }


def _question(one: ScenarioFindings) -> dict[str, object]:
    scenario, answer = one.scenario, verdict.answer(one)
    heaviest = one.heaviest if one.levels and one.cells else None
    return {
        "name": scenario.name,
        "workload": scenario.workload,
        "arrivals": scenario.arrivals,
        "metric": scenario.metric,
        "verdict": one.verdict,
        "headline": answer.headline,
        "sentence": answer.sentence,
        "company": company(one.company),
        "levels": [{"key": level.key, "label": level_label(scenario, level.values)} for level in one.levels],
        "figures_at": heaviest.key if heaviest else None,
        "contestants": [
            {
                "name": standing.contestant,
                "rank": standing.rank,
                "shared": standing.shared,
                "ground": standing.ground,
                "lossy": standing.lossy,
                "lost": standing.loss,
                "bytes_per_connection": _connection_bytes(one, standing.contestant),
            }
            for standing in one.standings
        ],
        "axes": [_axis(axis, one) for axis in one.axes] or [_own_axis(one)],
        "faulty": [
            {
                "name": faulty.contestant,
                "faults": _faults(faulty.faults),
            }
            for faulty in one.faulty
        ],
        "censored": [
            {"level": cell.level, "contestant": cell.contestant, "generator_share": cell.share} for cell in one.censored
        ],
        "error_bars": [
            {
                "level": bar.level,
                "percentile": bar.percentile,
                "send_ns": bar.send_ns,
                "receive_ns": bar.receive_ns,
                "share": bar.share,
            }
            for bar in one.error_bars
        ],
        "unsteady": [{"name": each.contestant, "trials": each.moved, "of": each.trials} for each in one.unsteady],
        "within": [
            {"language": each.language, "unbeaten": each.unbeaten, "of": each.of, "ground": each.ground}
            for each in one.within
        ],
        "caveats": list(verdict.caveats(one)),
        **{name: plain(getattr(one, name)) for name in AS_FOUND},
    }


def _check(one: Check) -> dict[str, object]:
    return {
        "metric": one.step.metric,
        "side": one.step.side,
        "threshold": one.step.threshold,
        "needed": one.needed,
        "effect": one.effect,
        "interval": _interval(one.interval),
        "figures": list(one.figures),
        "blocks": one.blocks,
        "outcome": one.outcome,
        "blocks_to_decide": one.blocks_to_decide,
        "limit": one.limit,
        "is_short_of_published": one.is_short_of_published,
    }


def _connection_bytes(one: ScenarioFindings, contestant: str) -> float | None:
    cell = one.cell(contestant, one.heaviest.key) if one.levels and one.cells else None
    each = cell.cost.connection_bytes if cell and cell.cost else None
    return each.value if each else None


def _axis(axis: Axis, one: ScenarioFindings) -> dict[str, object]:
    return {
        "metric": axis.metric,
        "unit": METRICS[axis.metric].unit.name,
        "better": axis.better,
        "bound": axis.bound or None,
        "figure": "merged" if axis.metric in axes.LATENCIES else "mean",
        "scores": [_score(score, axis.bound, one) for score in axis.scores],
        "comparisons": [plain(one) for one in axis.comparisons],
    }


def _own_axis(one: ScenarioFindings) -> dict[str, object]:
    """Of a capacity, which is found from trials at several rates and stands alone: it is a bound of those alone who
    kept the objective at every rate, or at none."""
    return {
        "metric": one.scenario.metric,
        "unit": METRICS[one.scenario.metric].unit.name,
        "better": one.better,
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
            for standing in one.standings
        ],
        "comparisons": [plain(each) for each in one.comparisons],
    }


def _score(score: Score, bound: Bound, one: ScenarioFindings) -> dict[str, object]:
    value: Estimate | None = score.value
    return {
        "contestant": score.contestant,
        "value": value.value if value else None,
        "bound": bound or None,
        "interval": _interval(value.interval if value else None),
        "trials": score.trials,
        "rank": score.rank,
        "shared": score.shared,
        "ground": one.ground.group_of(score.contestant),
    }


def _interval(found: Interval | None) -> list[float] | None:
    """Open on a side whose end is not finite."""
    return None if found is None else [found.low, found.high]
