"""The findings of a run for programs (protocol/findings.md). Pure; numbers and names, and no sentence that the table
does not have too."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from netdyno.analysis.found.cells import BoundDirection
from netdyno.analysis.found.flips import FlipFound
from netdyno.analysis.found.notices import Company
from netdyno.analysis.found.ranking import Axis, Score
from netdyno.analysis.found.run import Analysis, ScenarioFindings
from netdyno.kit.statistics.flips import Crossing, LevelContrast
from netdyno.kit.statistics.stats import Interval
from netdyno.model.metrics import METRICS
from netdyno.model.verdicts import ComparisonResult, JudgedClaim
from netdyno.present.export import entries
from netdyno.present.plain import make_plain
from netdyno.present.prose import caveats, claims, exclusions, flips, verdict
from netdyno.present.prose import company as company_words

VERSION = 1
Entry = TypeVar("Entry", bound=msgspec.Struct)


def make_document(analysis: Analysis) -> dict[str, Any]:
    """Return the whole document. What was not measured is null, and never a number."""
    document: dict[str, Any] = make_plain(convert_analysis(analysis))
    return document


def convert_analysis(analysis: Analysis) -> entries.Findings:
    control = analysis.control
    return _fill(
        entries.Findings,
        analysis,
        version=VERSION,
        blocks=analysis.blocks_measured,
        scenarios=tuple(map(_convert_scenario, analysis.scenarios)),
        claims=tuple(map(_convert_claim, analysis.claims)),
        control=entries.ControlEntry(
            comparisons=control.different.total,
            different=control.different.count,
            different_uncorrected=control.single.count,
            pairs=control.comparisons,
        ),
        canary=analysis.canary.ranges if analysis.canary else None,
        flips=tuple(map(convert_flip, analysis.flips)),
        excluded=tuple(replace(note, reason=exclusions.describe_reason(note)) for note in analysis.excluded),
    )


def _fill(kind: type[Entry], finding: object, **computed: object) -> Entry:
    """Fill an entry: a field has the computed value of its name, or else that of the finding's attribute."""
    names = kind.__struct_fields__
    return kind(**{name: computed[name] if name in computed else getattr(finding, name) for name in names})


def _convert_claim(claim: JudgedClaim) -> entries.ClaimEntry:
    return entries.ClaimEntry(
        id=claim.claim.id,
        text=claim.claim.text,
        verdict=claim.verdict,
        reason=claims.explain_no_verdict(claim),
        checks=tuple(map(_convert_check, claim.checks)),
        by_script=_convert_by_script(claim.by_script) if claim.by_script is not None else None,
    )


def _convert_by_script(claim: JudgedClaim) -> entries.ScriptVerdict:
    reason, checks = claims.explain_no_verdict(claim), tuple(map(_convert_check, claim.checks))
    return entries.ScriptVerdict(verdict=claim.verdict, reason=reason, checks=checks)


def convert_flip(comparison: FlipFound) -> entries.FlipEntry:
    """Return the part of the document that `netdyno flips` prints."""
    pursuit = comparison.pursuit
    return _fill(
        entries.FlipEntry,
        comparison,
        unit="s" if comparison.durations else None,
        verdict=comparison.flips.verdict,
        sentence=flips.describe_flip(comparison),
        crossings=tuple(_convert_crossing(comparison, crossing) for crossing in comparison.flips.crossings),
        levels=tuple(_convert_level(comparison, point) for point in comparison.flips.points),
        requested_within=pursuit.within if pursuit else None,
        narrow=pursuit.narrow if pursuit else None,
    )


def _convert_crossing(comparison: FlipFound, crossing: Crossing) -> entries.CrossingEntry:
    sides = (comparison.second, comparison.first) if crossing.rising else (comparison.first, comparison.second)
    proven_at = (crossing.before, crossing.after)
    return _fill(entries.CrossingEntry, crossing, below=sides[0], above=sides[1], proven_at=proven_at)


def _convert_level(comparison: FlipFound, point: LevelContrast) -> entries.FlipLevelEntry:
    interval = point.interval
    return _fill(
        entries.FlipLevelEntry,
        point,
        ratio=math.exp(point.mean),
        interval=interval and Interval(math.exp(interval.low), math.exp(interval.high)),
        better={1: comparison.first, -1: comparison.second, 0: None}[point.side],
        needed=comparison.pursuit.needed.get(point.place) if comparison.pursuit else None,
    )


def convert_company(company: Company | None) -> entries.CompanyEntry | None:
    """Return the programs that ran beside the measurement; None where the machine was the run's own."""
    return _fill(entries.CompanyEntry, company, label=company_words.label(company)) if company else None


def _convert_scenario(findings: ScenarioFindings) -> entries.QuestionEntry:
    scenario, answer = findings.scenario, verdict.answer(findings)
    heaviest = findings.heaviest.key if findings.levels and findings.cells else None
    return _fill(
        entries.QuestionEntry,
        findings,
        name=scenario.name,
        workload=scenario.workload,
        arrivals=scenario.arrivals,
        metric=scenario.metric,
        headline=answer.headline,
        sentence=answer.sentence,
        company=convert_company(findings.company),
        figures_at=heaviest,
        standings=tuple(
            _fill(
                entries.StandingEntry,
                standing,
                bytes_per_connection=_find_connection_bytes(findings, standing.contestant, heaviest),
            )
            for standing in findings.standings
        ),
        axes=tuple(_convert_axis(axis, findings) for axis in findings.axes) or (_convert_capacity_axis(findings),),
        error_bars=tuple(_fill(entries.ErrorBarEntry, bar) for bar in findings.error_bars),
        caveats=caveats.list_caveats(findings),
    )


def _convert_check(check: ComparisonResult) -> entries.CheckEntry:
    step = check.step
    return _fill(entries.CheckEntry, check, metric=step.metric, side=step.side, threshold=step.threshold)


def _find_connection_bytes(findings: ScenarioFindings, contestant: str, level: str | None) -> float | None:
    cell = None if level is None else findings.cell(contestant, level)
    estimate = cell.values.get("connection-memory") if cell else None
    return estimate.value if estimate else None


def _convert_axis(axis: Axis, findings: ScenarioFindings) -> entries.AxisEntry:
    return _fill(
        entries.AxisEntry,
        axis,
        unit=METRICS[axis.metric].unit.name,
        bound=axis.bound or None,
        figure=METRICS[axis.metric].how_of_cells,
        scores=tuple(_convert_score(score, axis.bound, findings) for score in axis.scores),
    )


def _convert_capacity_axis(findings: ScenarioFindings) -> entries.AxisEntry:
    """Convert the only axis of a capacity, which comes from trials at several rates. It is a bound only for servers
    that kept the objective at every rate, or at none."""
    return _fill(
        entries.AxisEntry,
        findings,
        metric=findings.scenario.metric,
        unit=METRICS[findings.scenario.metric].unit.name,
        bound=None,
        figure="geometric mean over blocks",
        loads=(),
        scores=tuple(
            _fill(
                entries.ScoreEntry, standing, bound=standing.bound or None, interval=None, trials=None, over_loads=None
            )
            for standing in findings.standings
        ),
    )


def _convert_score(score: Score, bound: BoundDirection, findings: ScenarioFindings) -> entries.ScoreEntry:
    estimate = score.value
    return _fill(
        entries.ScoreEntry,
        score,
        value=estimate.value if estimate else None,
        bound=bound or None,
        interval=estimate.interval if estimate else None,
        group=findings.ground.group_of(score.contestant),
    )
