"""A question about the starts of servers: what they are ranked by, and what the report has of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.model.experiment import STARTS
from netdyno.model.observation import Starting
from netdyno.model.run import Run
from netdyno.model.trial import Trial, Warmup
from netdyno.present.prose.verdict import answer
from netdyno.present.report import theme
from netdyno.present.report.panels import draw_performance
from tests.support.builders.made_run import EPOLL, LOCK, made_run
from tests.support.undrawn import page_without_panels

SOONEST_S = {EPOLL: 0.002, LOCK: 0.4}
"""All others are ready after 50 ms; each has its answer 10 ms later, and used half of that time."""


def start(trial: Trial) -> Trial:
    if trial.server is None or trial.scenario != "echo":
        return trial
    ready_s = SOONEST_S.get(trial.contestant, 0.05) * (1 + trial.block / 100)
    starting = Starting(ready_s=ready_s, first_answer_s=ready_s + 0.01, cpu_s=ready_s / 2)
    warmup = Warmup(seconds=3.0, measured_s=2.0, steady=True) if trial.contestant == LOCK else None
    return replace(trial, starting=starting, warmup=warmup, server=replace(trial.server, rss_ready_bytes=4 << 20))


def made_starts() -> Run:
    run = made_run()
    scenarios = tuple(
        replace(scenario, metric="ready", then_by=STARTS) if scenario.name == "echo" else scenario
        for scenario in run.experiment.scenarios
    )
    return replace(run, experiment=replace(run.experiment, scenarios=scenarios), trials=tuple(map(start, run.trials)))


def test_servers_are_ranked_by_their_start_and_by_nothing_that_the_scenario_does_not_name() -> None:
    findings = next(part for part in analyse(made_starts()).scenarios if part.scenario.name == "echo")
    assert [axis.metric for axis in findings.axes] == list(STARTS)
    assert findings.standings[0].contestant == EPOLL
    assert "the lowest time until the server is ready" in answer(findings).sentence
    (cell,) = [cell for cell in findings.cells if (cell.contestant, cell.level) == (LOCK, "connections=10")]
    assert cell.value("warm-up") == 2e9
    assert cell.value("first-answer") == pytest.approx(cell.value("ready") + 10e6)
    assert cell.value("ready-cpu") == cell.value("ready") / 2
    assert cell.value("ready-memory") == 4 << 20


def test_the_report_has_columns_of_starts_where_they_were_measured() -> None:
    columns = ("until ready", "until the first answer", "CPU until ready", "memory when ready", "warm-up")
    page, plain = (page_without_panels(analyse(run)) for run in (made_starts(), made_run()))
    assert [column for column in columns if f">{column}<" in page] == list(columns)
    assert not any(f">{column}<" in plain for column in columns)


def test_the_picture_shows_how_long_starts_take() -> None:
    findings = next(part for part in analyse(made_starts()).scenarios if part.scenario.name == "echo")
    panels = draw_performance(findings, theme.assign_styles([cell.contestant for cell in findings.cells]), "s1")
    assert [panel.title for panel in panels] == ["Time until the server is ready", "Time until the first answer"]
    assert all(">from the start (log scale)</text>" in panel.svg for panel in panels)
