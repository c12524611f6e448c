"""A load with a burst: what the table, the caveats and the report say of it, and the picture of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.present.prose import bursts, notices
from netdyno.present.prose.caveats import list_caveats
from netdyno.present.prose.loads import describe_load
from netdyno.present.report import theme
from netdyno.present.report.bursts import draw_bursts
from tests.support.builders.made_bursts import BURST_RATE, add_burst
from tests.support.builders.made_run import EPOLL, LOCK, made_run
from tests.support.undrawn import page_without_panels, undrawn

SLOW, QUIET = 900, 10
INTERVALS_AFTER = {EPOLL: 3, LOCK: 20}
"""The intervals of 100 ms after the burst in which answers are slow."""


def burst(trial: Trial) -> Trial:
    if trial.load is None or trial.scenario != "rpc-open":
        return trial
    count = len(trial.load.timeseries.p99_ns)
    slow = INTERVALS_AFTER.get(trial.contestant, 5)
    p99_ms = [SLOW if 5 <= number < 8 + slow else QUIET for number in range(count)]
    # The burst of a window of 2 s is that from 500 ms to 750 ms, in which 300 were answered, 100 of them too late.
    load = add_burst(trial.load, p99_ms, completed=300, late=100)
    due = replace(load.requests, due=load.requests.sent)
    errors = (load.requests.sent // 5, *load.timeseries.errors[1:])
    return replace(trial, load=replace(load, requests=due, timeseries=replace(load.timeseries, errors=errors)))


def made_burst() -> Run:
    run = made_run()
    scenarios = tuple(
        replace(scenario, burst_rate=BURST_RATE) if scenario.name == "rpc-open" else scenario
        for scenario in run.experiment.scenarios
    )
    trials = tuple(map(burst, run.trials))
    return replace(run, experiment=replace(run.experiment, scenarios=scenarios), trials=trials)


@pytest.fixture(scope="module")
def findings() -> ScenarioFindings:
    return next(part for part in analyse(made_burst()).scenarios if part.scenario.name == "rpc-open")


def test_each_server_is_named_with_what_it_answered_and_when_the_burst_was_over(findings: ScenarioFindings) -> None:
    level = findings.levels[0]
    sentences = dict(text.split(": ", 1) for text in bursts.describe_contestants(findings))
    assert sentences[f"{EPOLL} ({level.label})"] == (
        "it answered 800/s in time in the burst, and 20% of its messages had no answer in time; its p99 had "
        "recovered 450 ms after the burst."
    )
    assert sentences[f"{LOCK} ({level.label})"].endswith(
        "its p99 had not recovered when the window ended, 1.25 s after the burst."
    )
    assert set(bursts.describe_contestants(findings)) <= set(list_caveats(findings))


def test_a_load_without_a_burst_has_no_such_sentence() -> None:
    assert not any(map(bursts.describe_contestants, analyse(made_run()).scenarios))


def test_the_load_is_described_with_its_burst(findings: ScenarioFindings) -> None:
    assert "in a burst 2.00k/s" in describe_load(findings.scenario)


def test_what_a_burst_leaves_behind_is_no_overload_by_the_rate(findings: ScenarioFindings) -> None:
    def keep_half(part: ScenarioFindings) -> ScenarioFindings:
        half = [{**cell.values, "kept": replace(cell.values["kept"], value=0.5)} for cell in part.cells]
        cells = tuple(replace(cell, values=values) for cell, values in zip(part.cells, half, strict=True))
        return replace(part, cells=cells)

    steady = replace(findings, scenario=replace(findings.scenario, burst_rate=None))
    assert notices.describe_overload(keep_half(steady))
    assert not notices.describe_overload(keep_half(findings))


def test_the_picture_has_the_window_of_each_level_and_its_words(findings: ScenarioFindings) -> None:
    styles = theme.assign_styles([standing.contestant for standing in findings.standings])
    with undrawn():
        panels = draw_bursts(findings, styles, "s1")
    assert [panel.title for panel in panels] == [f"Through the burst, at {level.label}" for level in findings.levels]
    assert all(f"{EPOLL} " in panel.alt and "450 ms after the burst" in panel.alt for panel in panels)


def test_the_picture_shows_the_burst_the_offered_rate_and_each_server(findings: ScenarioFindings) -> None:
    styles = theme.assign_styles([standing.contestant for standing in findings.standings])
    one_level = replace(findings, levels=findings.levels[:1])
    (panel,) = draw_bursts(one_level, styles, "s1")
    for text in ("offered", "burst", "answered per second", "p99 (log scale)", "seconds"):
        assert f">{text}</text>" in panel.svg
    assert all(style.variable in panel.svg for style in styles.values())


def test_other_loads_have_no_such_picture() -> None:
    plain = analyse(made_run()).scenarios[0]
    assert draw_bursts(plain, theme.assign_styles([cell.contestant for cell in plain.cells]), "s1") == []


def test_the_report_has_columns_of_it_where_there_was_a_burst() -> None:
    assert ["recovery after it" in page_without_panels(analyse(run)) for run in (made_burst(), made_run())] == [
        True,
        False,
    ]
