"""The times of TLS handshakes in a report: a column where there were some, and the figure of experiments/tls.toml."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.figures.fill_charts import build_charts
from netdyno.analysis.trials.split import split
from netdyno.kit.paths import ROOT
from netdyno.kit.quantities import DASH
from netdyno.model.levels import combinations
from netdyno.model.load_result import Tls
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.question import experiment
from tests.support.builders.made_claims import made_trial
from tests.support.builders.made_load import MS, distribution
from tests.support.builders.made_run import EPOLL, LOCK, made_run, with_only
from tests.support.undrawn import page_without_panels

HEADING = "TLS handshake p50"


def encrypted(trial: Trial, handshake_ms: int) -> Trial:
    """The same trial over TLS, each of whose handshakes took as long."""
    assert trial.load is not None
    tls = Tls(
        verified=False,
        reuse=False,
        protocol="TLSv1.3",
        cipher="TLS_AES_256_GCM_SHA384",
        resumed=0,
        handshake_ns=distribution(10, handshake_ms * MS),
    )
    return replace(trial, load=replace(trial.load, tls=tls))


def column(run: Run, scenario: str) -> list[tuple[str, str]]:
    """Return what the column says of each contestant; nothing where there is none."""
    table = page_without_panels(analyse(run)).partition(f'aria-label="All figures of {scenario}"')[2]
    table = table.partition("</table>")[0]
    headings = _list_cells(table.partition("</thead>")[0])
    assert "throughput" in headings
    if HEADING not in headings:
        return []
    rows = [_list_cells(row) for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)]
    return [(row[1], row[headings.index(HEADING)]) for row in rows[1:]]


def _list_cells(row: str) -> list[str]:
    return [_text(cell) for cell in re.findall(r"<t[dh][ >].*?</t[dh]>", row, re.DOTALL)]


def _text(cell: str) -> str:
    return re.sub(r"<[^>]*>", "", cell).strip()


def test_a_column_has_the_handshakes_and_there_is_none_without() -> None:
    run = with_only(made_run(), "chat")
    assert column(run, "chat") == []
    times = {EPOLL: 2, LOCK: 3}
    trials = (
        encrypted(trial, times[trial.contestant]) if trial.contestant in times and trial.load is not None else trial
        for trial in run.trials
    )
    cells = dict(column(replace(run, trials=tuple(trials)), "chat"))
    assert (cells[EPOLL], cells[LOCK]) == ("2.00 ms", "3.00 ms")
    assert {text for name, text in cells.items() if name not in times} == {DASH}


def test_the_experiment_of_tls_draws_them() -> None:
    parsed = experiment.load(ROOT / "experiments" / "tls.toml")
    scenario = parsed.scenarios[-1]
    plain = [
        made_trial(scenario, block, name, levels, {})
        for block in range(1, 4)
        for levels in combinations(scenario)
        for name in scenario.contestants
    ]
    trials = [
        encrypted(trial, 2 + scenario.contestants.index(trial.contestant)) if trial.levels["tls"] == "on" else trial
        for trial in plain
    ]
    run = Run(
        run_id="made",
        experiment=parsed,
        started_at="2025-01-01T12:00:00Z",
        finished_at=None,
        environment={"cores_allowed": 2},
        trials=tuple(trials),
    )
    (chart,) = build_charts(run.experiment.figures, split(run))
    (panel,) = chart.panels
    drawn = {spot.contestant: spot.value.value / MS for spot in panel.spots if spot.value}
    assert drawn == pytest.approx({name: 2 + number for number, name in enumerate(scenario.contestants)}, rel=0.01)
