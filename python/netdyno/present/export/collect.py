"""An export of a run and of its findings. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from netdyno.analysis.found.cells import CellFigures
from netdyno.analysis.found.run import Analysis, ScenarioFindings
from netdyno.kit.statistics.stats import Interval
from netdyno.model import trial
from netdyno.model.contestant import About
from netdyno.model.levels import level_key
from netdyno.model.metrics import METRICS
from netdyno.present import findings_json
from netdyno.present.export.entries import (
    VERSION,
    CellEntry,
    ContestantEntry,
    Export,
    FigureEntry,
    MetricEntry,
    Note,
    TrialEntry,
)
from netdyno.present.prose import aa, associations, canary, caveats, retries, stopping


def collect(analysis: Analysis) -> Export:
    cells = tuple(_convert_cell(findings, cell) for findings in analysis.scenarios for cell in findings.cells)
    trials = tuple(map(_convert_trial, analysis.trials))
    used = {name for cell in cells for name in cell.figures} | {name for trial in trials for name in trial.figures}
    return Export(
        version=VERSION,
        findings=findings_json.convert_analysis(analysis),
        environment=dict(analysis.environment),
        metrics={
            name: MetricEntry(title=metric.title, unit=metric.unit.name, better=metric.better)
            for name, metric in METRICS.items()
            if name in used
        },
        contestants=tuple(map(_convert_contestant, analysis.about)),
        cells=cells,
        trials=trials,
        notes=tuple(_collect_notes(analysis)),
    )


def _convert_contestant(about: About) -> ContestantEntry:
    return ContestantEntry(
        kind=about.kind,
        name=about.name,
        model=about.model,
        language=about.language,
        lines=about.code.lines if about.code else None,
    )


def _convert_cell(findings: ScenarioFindings, cell: CellFigures) -> CellEntry:
    return CellEntry(
        question=findings.scenario.name,
        contestant=cell.contestant,
        level=cell.level,
        levels=next(dict(level.values) for level in findings.levels if level.key == cell.level),
        trials=cell.trials,
        figures={
            name: make_figure(estimate.value, estimate.interval)
            for name, estimate in cell.values.items()
            if math.isfinite(estimate.value)
        },
    )


def make_figure(value: float, interval: Interval | None) -> FigureEntry:
    """Return a figure with the finite ends of its interval."""
    ends = (None, None) if interval is None else (interval.low, interval.high)
    low, high = (None if end is None or not math.isfinite(end) else end for end in ends)
    return FigureEntry(value=value, low=low, high=high)


def _convert_trial(measured: trial.Trial) -> TrialEntry:
    load = measured.load
    values = {name: metric.value(measured, load) for name, metric in METRICS.items()} if load is not None else {}
    return TrialEntry(
        question=measured.scenario,
        contestant=measured.contestant,
        level=level_key(measured.levels),
        levels=dict(measured.levels),
        block=measured.block,
        position=measured.position,
        attempt=measured.attempt,
        twin=measured.twin,
        status=measured.status,
        reason=measured.reason,
        started_at=measured.started_at,
        seconds=measured.seconds,
        failed=tuple(audit.name for audit in measured.audits if not audit.passed),
        figures={name: value for name, value in values.items() if value is not None and math.isfinite(value)},
    )


def _collect_notes(analysis: Analysis) -> Iterator[Note]:
    for findings in analysis.scenarios:
        name = findings.scenario.name
        yield from (Note(kind="caveat", question=name, text=text) for text in caveats.list_caveats(findings))
        yield from (
            Note(kind="why", question=name, text=associations.explain_pair(why, findings.scenario))
            for why in findings.whys
        )
        if findings.ending is not None:
            yield Note(kind="blocks", question=name, text=stopping.explain_end(findings.ending))
    texts = {
        "control": aa.describe_control(analysis.control),
        "machine": canary.summarise_drift(analysis.canary),
        "made_again": retries.describe_retries(analysis.retried),
    }
    yield from (Note(kind=kind, question=None, text=text) for kind, text in texts.items() if text)
