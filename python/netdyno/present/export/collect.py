"""An export of a run and of its findings. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import cast

from netdyno.analysis.findings import Analysis, CellFigures, Cost, Estimate, Lag, ScenarioFindings, Tail
from netdyno.model import trial
from netdyno.model.contestant import About
from netdyno.model.levels import level_key
from netdyno.model.metrics import METRICS
from netdyno.present import findings_json
from netdyno.present.export.schema import VERSION, Cell, Contestant, Export, Figure, Findings, Metric, Note, Trial
from netdyno.present.prose import aa, associations, canary, made_again, stopping, verdict

Figures = dict[str, Figure | None]


def _lower_is_better(title: str, unit: str) -> Metric:
    return Metric(title=title, unit=unit, better="lower")


OF_CELLS: Mapping[str, Metric] = {
    "p99.9": _lower_is_better("99.9th-percentile response time", "ns"),
    "service-p50": _lower_is_better("median service time", "ns"),
    "service-p90": _lower_is_better("90th-percentile service time", "ns"),
    "service-p99": _lower_is_better("99th-percentile service time", "ns"),
    "service-p99.9": _lower_is_better("99.9th-percentile service time", "ns"),
    "send-lag-p50": _lower_is_better("how late the generator sends, median", "ns"),
    "send-lag-p99": _lower_is_better("how late the generator sends, 99th percentile", "ns"),
    "send-lag-max": _lower_is_better("how late the generator sends, at most", "ns"),
    "receive-lag-p50": _lower_is_better("how late the generator reads, median", "ns"),
    "receive-lag-p99": _lower_is_better("how late the generator reads, 99th percentile", "ns"),
    "receive-lag-max": _lower_is_better("how late the generator reads, at most", "ns"),
    "tick-lag-p99": _lower_is_better("how late the event loop of a client is, 99th percentile", "ns"),
    "server-tick-lag-p99": _lower_is_better("how late the main loop of the server is, 99th percentile", "ns"),
    "late": _lower_is_better("share of messages sent that came late", "share"),
    "duplicated": _lower_is_better("share of messages received that came twice", "share"),
    "reordered": _lower_is_better("share of messages received out of order", "share"),
    "connection-memory": _lower_is_better("peak memory of the server per connection", "bytes"),
    "generator-cores": _lower_is_better("cores that the generator used", "cores"),
    "generator-cpu": _lower_is_better("CPU of the generator per message", "ns/message"),
    "generator-memory": _lower_is_better("peak memory of the generator", "bytes"),
}
"""The metrics that only cells have; the catalogue (model/metrics.py) has the others."""


def collect(analysis: Analysis) -> Export:
    cells = tuple(_convert_cell(findings, cell) for findings in analysis.scenarios for cell in findings.cells)
    trials = tuple(map(_convert_trial, analysis.trials))
    used = {name for cell in cells for name in cell.figures} | {name for trial in trials for name in trial.figures}
    return Export(
        version=VERSION,
        findings=cast(Findings, findings_json.make_document(analysis)),
        environment=dict(analysis.environment),
        metrics={
            name: Metric(title=metric.title, unit=metric.unit.name, better=metric.better)
            for name, metric in METRICS.items()
            if name in used
        }
        | {name: metric for name, metric in OF_CELLS.items() if name in used},
        contestants=tuple(map(_convert_contestant, analysis.about)),
        cells=cells,
        trials=trials,
        notes=tuple(_collect_notes(analysis)),
    )


def _convert_contestant(about: About) -> Contestant:
    return Contestant(
        kind=about.kind,
        name=about.name,
        model=about.model,
        language=about.language,
        lines=about.code.lines if about.code else None,
    )


def _convert_cell(findings: ScenarioFindings, cell: CellFigures) -> Cell:
    """Collect the figures of a cell, named as the metrics of trials where these exist."""
    figures = {
        **_collect_load(findings, cell),
        **_collect_percentiles("", cell.response_ns),
        **_collect_percentiles("service-", cell.service_ns),
        **_collect_lag("send-lag", cell.send_lag),
        **_collect_lag("receive-lag", cell.receive_lag),
        **(_collect_cost(cell.cost) if cell.cost else {}),
    }
    return Cell(
        question=findings.scenario.name,
        contestant=cell.contestant,
        level=cell.level,
        trials=cell.trials,
        figures={
            name: figure for name, figure in figures.items() if figure is not None and math.isfinite(figure.value)
        },
    )


def _collect_load(findings: ScenarioFindings, cell: CellFigures) -> Figures:
    loss = cell.loss
    return {
        "throughput": _make_figure(cell.throughput),
        "kept": _make_figure(cell.kept if findings.scenario.arrivals != "closed" else None),
        "mean": _make_figure(cell.mean_ns),
        "connection-spread": _make_figure(cell.connection_spread),
        "lost": _make_figure(loss.lost if loss else None),
        "late": _make_exact_figure(loss.late if loss else None),
        "duplicated": _make_exact_figure(loss.duplicated if loss else None),
        "reordered": _make_exact_figure(loss.reordered if loss else None),
        "generator-cores": _make_figure(cell.generator_cores),
        "generator-cpu": _make_figure(cell.generator_cpu_us, 1e3),
        "generator-memory": _make_exact_figure(cell.generator_rss_bytes),
        "tick-lag-p99": _make_exact_figure(cell.tick_lag_p99_ns),
        "server-tick-lag-p99": _make_exact_figure(cell.server_tick_lag_p99_ns),
    }


def _collect_percentiles(prefix: str, tail: Tail) -> Figures:
    percentiles = {"p50": tail.p50, "p90": tail.p90, "p99": tail.p99, "p99.9": tail.p999}
    return {f"{prefix}{name}": _make_figure(estimate) for name, estimate in percentiles.items()}


def _collect_lag(prefix: str, lag: Lag | None) -> Figures:
    lags = {"p50": lag.p50_ns, "p99": lag.p99_ns, "max": lag.max_ns} if lag else {}
    return {f"{prefix}-{name}": _make_exact_figure(value) for name, value in lags.items()}


def _collect_cost(cost: Cost) -> Figures:
    """Collect the costs: in `Cost`, times are microseconds, and involuntary switches per message."""
    return {
        "memory": _make_figure(cost.rss_peak_bytes),
        "connection-memory": _make_figure(cost.connection_bytes),
        "threads": _make_exact_figure(cost.threads),
        "cpu": _make_figure(cost.cpu_us, 1e3),
        "cpu-user": _make_figure(cost.cpu_user_us, 1e3),
        "cpu-system": _make_figure(cost.cpu_system_us, 1e3),
        "run-queue": _make_figure(cost.run_queue_wait_us, 1e3),
        "voluntary": _make_figure(cost.voluntary_switches),
        "involuntary": _make_figure(cost.involuntary_switches, 1e3),
    }


def _make_exact_figure(value: float | None) -> Figure | None:
    return None if value is None else Figure(value=value)


def _make_figure(estimate: Estimate | None, times: float = 1.0) -> Figure | None:
    if estimate is None:
        return None
    interval = estimate.interval
    ends = (None, None) if interval is None else (interval.low, interval.high)
    low, high = (None if end is None or not math.isfinite(end) else times * end for end in ends)
    return Figure(value=times * estimate.value, low=low, high=high)


def _convert_trial(measured: trial.Trial) -> Trial:
    load = measured.load
    values = {name: metric.of(measured, load) for name, metric in METRICS.items()} if load is not None else {}
    return Trial(
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
        yield from (Note(kind="caveat", question=name, text=text) for text in verdict.list_caveats(findings))
        yield from (
            Note(kind="why", question=name, text=associations.explain_pair(why, findings.scenario))
            for why in findings.whys
        )
        if findings.ending is not None:
            yield Note(kind="blocks", question=name, text=stopping.explain_end(findings.ending))
    texts = {
        "control": aa.describe_control(analysis.control),
        "machine": canary.summarise_drift(analysis.canary),
        "made_again": made_again.describe_retries(analysis.made_again),
    }
    yield from (Note(kind=kind, question=None, text=text) for kind, text in texts.items() if text)
