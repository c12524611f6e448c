"""An export of a run and of its findings. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from netdyno.analysis.findings import Analysis, CellFigures, Estimate, ScenarioFindings
from netdyno.model import trial
from netdyno.model.contestant import About
from netdyno.model.levels import level_key
from netdyno.model.metrics import METRICS
from netdyno.present import findings_json
from netdyno.present.export.schema import VERSION, Cell, Contestant, Export, Figure, Metric, Note, Trial
from netdyno.present.prose import aa, associations, canary, made_again, stopping, verdict


def collect(analysis: Analysis) -> Export:
    cells = tuple(_cell(one, cell) for one in analysis.scenarios for cell in one.cells)
    trials = tuple(map(_trial, analysis.trials))
    used = {name for cell in cells for name in cell.figures} | {name for one in trials for name in one.figures}
    return Export(
        version=VERSION,
        findings=findings_json.document(analysis),
        environment=dict(analysis.environment),
        metrics={
            name: Metric(title=one.title, unit=one.unit.name, better=one.better)
            for name, one in METRICS.items()
            if name in used
        },
        contestants=tuple(map(_contestant, analysis.about)),
        cells=cells,
        trials=trials,
        notes=tuple(_notes(analysis)),
    )


def _contestant(one: About) -> Contestant:
    return Contestant(
        kind=one.kind,
        name=one.name,
        model=one.model,
        language=one.language,
        lines=one.code.lines if one.code else None,
    )


def _cell(one: ScenarioFindings, cell: CellFigures) -> Cell:
    """Named as the same metrics of trials are; 90th and 99.9th percentiles as well."""
    cost = cell.cost
    estimates: dict[str, Estimate | None] = {
        "throughput": cell.throughput,
        "kept": cell.kept if one.scenario.arrivals != "closed" else None,
        "mean": cell.mean_ns,
        "p50": cell.response_ns.p50,
        "p90": cell.response_ns.p90,
        "p99": cell.response_ns.p99,
        "connection-spread": cell.connection_spread,
        "lost": cell.loss.lost if cell.loss else None,
        "memory": cost.rss_peak_bytes if cost else None,
    }
    in_microseconds = {
        "cpu": cost.cpu_us if cost else None,
        "cpu-user": cost.cpu_user_us if cost else None,
        "cpu-system": cost.cpu_system_us if cost else None,
        "run-queue": cost.run_queue_wait_us if cost else None,
    }
    figures = {name: _figure(value) for name, value in estimates.items() if value is not None}
    figures |= {name: _figure(value, 1e3) for name, value in in_microseconds.items() if value is not None}
    return Cell(
        question=one.scenario.name,
        contestant=cell.contestant,
        level=cell.level,
        trials=cell.trials,
        figures={name: each for name, each in figures.items() if math.isfinite(each.value)},
    )


def _figure(estimate: Estimate, times: float = 1.0) -> Figure:
    interval = estimate.interval
    ends = (None, None) if interval is None else (interval.low, interval.high)
    low, high = (None if end is None or not math.isfinite(end) else times * end for end in ends)
    return Figure(value=times * estimate.value, low=low, high=high)


def _trial(one: trial.Trial) -> Trial:
    load = one.load
    found = {name: metric.of(one, load) for name, metric in METRICS.items()} if load is not None else {}
    return Trial(
        question=one.scenario,
        contestant=one.contestant,
        level=level_key(one.levels),
        levels=dict(one.levels),
        block=one.block,
        position=one.position,
        attempt=one.attempt,
        twin=one.twin,
        status=one.status,
        reason=one.reason,
        started_at=one.started_at,
        seconds=one.seconds,
        failed=tuple(audit.name for audit in one.audits if not audit.passed),
        figures={name: value for name, value in found.items() if value is not None and math.isfinite(value)},
    )


def _notes(analysis: Analysis) -> Iterator[Note]:
    for one in analysis.scenarios:
        name = one.scenario.name
        yield from (Note(kind="caveat", question=name, text=text) for text in verdict.caveats(one))
        yield from (Note(kind="why", question=name, text=associations.paragraph(why, one.scenario)) for why in one.whys)
        if one.ending is not None:
            yield Note(kind="blocks", question=name, text=stopping.sentence(one.ending))
    texts = {
        "control": aa.sentence(analysis.control),
        "machine": canary.drift_line(analysis.canary),
        "made_again": made_again.sentence(analysis.made_again) if analysis.made_again.tries else "",
    }
    yield from (Note(kind=kind, question=None, text=text) for kind, text in texts.items() if text)
