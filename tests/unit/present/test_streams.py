"""Replies that are streams: what servers are ranked by, and what the report has of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.model.load_result import Chunks
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.present.prose.loads import describe_load
from netdyno.present.report import theme
from netdyno.present.report.panels import draw_performance
from tests.support.builders.made_load import MS, distribution
from tests.support.builders.made_run import EPOLL, LOCK, made_run
from tests.support.undrawn import page_without_panels

LATE_MS = {EPOLL: 1, LOCK: 40}
"""All others are 5 ms late."""


def stream(trial: Trial) -> Trial:
    if trial.load is None or trial.scenario != "http":
        return trial
    late_ns = distribution(1000, LATE_MS.get(trial.contestant, 5) * MS + trial.block * 1000)
    chunks = Chunks(per_stream=5, every_s=0.2, completed=5 * trial.load.requests.completed, early=0, late_ns=late_ns)
    return replace(trial, load=replace(trial.load, chunks=chunks))


def made_streams() -> Run:
    run = made_run()
    scenarios = tuple(
        replace(scenario, workload="web", chunks=5, every_s=0.2, metric="chunk-lag-p99", then_by=("memory",))
        if scenario.name == "http"
        else scenario
        for scenario in run.experiment.scenarios
    )
    return replace(run, experiment=replace(run.experiment, scenarios=scenarios), trials=tuple(map(stream, run.trials)))


def test_servers_are_ranked_by_how_late_their_chunks_are() -> None:
    findings = next(part for part in analyse(made_streams()).scenarios if part.scenario.name == "http")
    assert [axis.metric for axis in findings.axes] == ["chunk-lag-p99", "memory"]
    assert (findings.standings[0].contestant, findings.standings[-1].contestant) == (EPOLL, LOCK)
    (cell,) = [cell for cell in findings.cells if (cell.contestant, cell.level) == (LOCK, "connections=10")]
    assert 40 * MS <= cell.value("chunk-lag-p50") <= cell.value("chunk-lag-p99") < 41 * MS
    user_and_kernel_ns = cell.value("cpu-user") + cell.value("cpu-system")
    assert 5 * cell.value("chunk-cpu") == pytest.approx(user_and_kernel_ns)


def test_the_load_is_described_with_its_streams() -> None:
    findings = next(part for part in analyse(made_streams()).scenarios if part.scenario.name == "http")
    assert describe_load(findings.scenario).endswith(", streams of 5 chunks 200ms apart")


def test_the_report_draws_how_late_they_are_and_has_their_columns() -> None:
    analysis = analyse(made_streams())
    findings = next(part for part in analysis.scenarios if part.scenario.name == "http")
    panels = draw_performance(findings, theme.assign_styles([cell.contestant for cell in findings.cells]), "s1")
    assert [panel.title for panel in panels] == [
        "Median lateness of the chunks of streams",
        "99th-percentile lateness of the chunks of streams",
    ]
    assert all(f"{LOCK} 40." in panel.alt and ">late by (log scale)</text>" in panel.svg for panel in panels)
    columns = ("chunks late p50", "chunks late p99", "CPU per chunk")
    page, plain = (page_without_panels(whole) for whole in (analysis, analyse(made_run())))
    assert [column for column in columns if f">{column}<" in page] == list(columns)
    assert not any(f">{column}<" in plain for column in columns)
