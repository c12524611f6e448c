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


def _lower(title: str, unit: str) -> Metric:
    return Metric(title=title, unit=unit, better="lower")


OF_CELLS: Mapping[str, Metric] = {
    "p99.9": _lower("99.9th-percentile response time", "ns"),
    "service-p50": _lower("median service time", "ns"),
    "service-p90": _lower("90th-percentile service time", "ns"),
    "service-p99": _lower("99th-percentile service time", "ns"),
    "service-p99.9": _lower("99.9th-percentile service time", "ns"),
    "send-lag-p50": _lower("how late the generator sends, median", "ns"),
    "send-lag-p99": _lower("how late the generator sends, 99th percentile", "ns"),
    "send-lag-max": _lower("how late the generator sends, at most", "ns"),
    "receive-lag-p50": _lower("how late the generator reads, median", "ns"),
    "receive-lag-p99": _lower("how late the generator reads, 99th percentile", "ns"),
    "receive-lag-max": _lower("how late the generator reads, at most", "ns"),
    "tick-lag-p99": _lower("how late the event loop of a client is, 99th percentile", "ns"),
    "server-tick-lag-p99": _lower("how late the main loop of the server is, 99th percentile", "ns"),
    "late": _lower("share of messages sent that came late", "share"),
    "duplicated": _lower("share of messages received that came twice", "share"),
    "reordered": _lower("share of messages received out of order", "share"),
    "connection-memory": _lower("peak memory of the server per connection", "bytes"),
    "generator-cores": _lower("cores that the generator used", "cores"),
    "generator-cpu": _lower("CPU of the generator per message", "ns/message"),
    "generator-memory": _lower("peak memory of the generator", "bytes"),
}
"""What only cells have; the catalogue (model/metrics.py) has the others."""


def collect(analysis: Analysis) -> Export:
    cells = tuple(_cell(one, cell) for one in analysis.scenarios for cell in one.cells)
    trials = tuple(map(_trial, analysis.trials))
    used = {name for cell in cells for name in cell.figures} | {name for one in trials for name in one.figures}
    return Export(
        version=VERSION,
        findings=cast(Findings, findings_json.document(analysis)),
        environment=dict(analysis.environment),
        metrics={
            name: Metric(title=one.title, unit=one.unit.name, better=one.better)
            for name, one in METRICS.items()
            if name in used
        }
        | {name: metric for name, metric in OF_CELLS.items() if name in used},
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
    """Named as the same metrics of trials are, where there are such."""
    figures = {
        **_of_load(one, cell),
        **_of_percentiles("", cell.response_ns),
        **_of_percentiles("service-", cell.service_ns),
        **_of_lag("send-lag", cell.send_lag),
        **_of_lag("receive-lag", cell.receive_lag),
        **(_of_cost(cell.cost) if cell.cost else {}),
    }
    return Cell(
        question=one.scenario.name,
        contestant=cell.contestant,
        level=cell.level,
        trials=cell.trials,
        figures={name: each for name, each in figures.items() if each is not None and math.isfinite(each.value)},
    )


def _of_load(one: ScenarioFindings, cell: CellFigures) -> Figures:
    lost = cell.loss
    return {
        "throughput": _figure(cell.throughput),
        "kept": _figure(cell.kept if one.scenario.arrivals != "closed" else None),
        "mean": _figure(cell.mean_ns),
        "connection-spread": _figure(cell.connection_spread),
        "lost": _figure(lost.lost if lost else None),
        "late": _exactly(lost.late if lost else None),
        "duplicated": _exactly(lost.duplicated if lost else None),
        "reordered": _exactly(lost.reordered if lost else None),
        "generator-cores": _figure(cell.generator_cores),
        "generator-cpu": _figure(cell.generator_cpu_us, 1e3),
        "generator-memory": _exactly(cell.generator_rss_bytes),
        "tick-lag-p99": _exactly(cell.tick_lag_p99_ns),
        "server-tick-lag-p99": _exactly(cell.server_tick_lag_p99_ns),
    }


def _of_percentiles(which: str, tail: Tail) -> Figures:
    told = {"p50": tail.p50, "p90": tail.p90, "p99": tail.p99, "p99.9": tail.p999}
    return {f"{which}{name}": _figure(each) for name, each in told.items()}


def _of_lag(which: str, lag: Lag | None) -> Figures:
    told = {"p50": lag.p50_ns, "p99": lag.p99_ns, "max": lag.max_ns} if lag else {}
    return {f"{which}-{name}": _exactly(each) for name, each in told.items()}


def _of_cost(cost: Cost) -> Figures:
    """Times there are microseconds, and involuntary switches per message."""
    return {
        "memory": _figure(cost.rss_peak_bytes),
        "connection-memory": _figure(cost.connection_bytes),
        "threads": _exactly(cost.threads),
        "cpu": _figure(cost.cpu_us, 1e3),
        "cpu-user": _figure(cost.cpu_user_us, 1e3),
        "cpu-system": _figure(cost.cpu_system_us, 1e3),
        "run-queue": _figure(cost.run_queue_wait_us, 1e3),
        "voluntary": _figure(cost.voluntary_switches),
        "involuntary": _figure(cost.involuntary_switches, 1e3),
    }


def _exactly(value: float | None) -> Figure | None:
    return None if value is None else Figure(value=value)


def _figure(estimate: Estimate | None, times: float = 1.0) -> Figure | None:
    if estimate is None:
        return None
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
        "made_again": made_again.sentence(analysis.made_again),
    }
    yield from (Note(kind=kind, question=None, text=text) for kind, text in texts.items() if text)
