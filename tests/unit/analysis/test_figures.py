"""Figures are filled with what a run measured: known values come out, and nothing that was not measured does."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np
import pytest
from msgspec.structs import replace

from netdyno.analysis.figures import fill_charts
from netdyno.analysis.found.charts import Chart, ChartPanel, Missing, Spot
from netdyno.analysis.found.exclusions import ExclusionCause
from netdyno.analysis.trials.split import split
from netdyno.kit.statistics import stats
from netdyno.model.base import type_level
from netdyno.model.contestant import About
from netdyno.model.metrics import METRICS
from netdyno.model.run import Run
from netdyno.present.prose import figures
from netdyno.present.report import charts as views
from netdyno.present.report import heat, marks, theme
from tests.support.builders.made_charts import (
    ASIO,
    BARS,
    COROUTINES,
    CURVES,
    FACTORS,
    FOLLY,
    GRID,
    LADDER,
    NAMES,
    PAIRS,
    QT,
    REALTIME,
    REUSEPORT,
    ROOM,
    SNAPSHOT,
    SURFACES,
    TAKING_PART,
    TRUTH,
    grid_truth,
    made,
    mark_invalid,
    skipped,
)

INVALID = Missing("struck_out", ExclusionCause(audits=("connections",)))

filled = partial(made, truth=TRUTH, names=TAKING_PART)


def charts(run: Run) -> tuple[Chart, ...]:
    return fill_charts.build_charts(run.experiment.figures, split(run))


def only(run: Run) -> Chart:
    (chart,) = charts(run)
    return chart


def panel(chart: Chart, title: str) -> ChartPanel:
    (result,) = (candidate for candidate in chart.panels if figures.name_panel(candidate) == title)
    return result


def spot(drawn: ChartPanel, **coordinates: type_level) -> Spot:
    """By some of its coordinates; a factor of both sides is named by its option."""

    def options(factors: Mapping[str, type_level]) -> dict[str, type_level]:
        return {name.rpartition(".")[2]: value for name, value in factors.items()}

    (result,) = (
        candidate for candidate in drawn.spots if coordinates.items() <= options(candidate.coordinates).items()
    )
    return result


def test_bars_have_the_geometric_mean_of_each_cell_with_its_interval_and_its_blocks() -> None:
    chart = only(filled(PAIRS + BARS))
    assert [figures.name_panel(drawn) for drawn in chart.panels] == [ASIO, COROUTINES, QT, SNAPSHOT]
    assert (chart.along, chart.across) == (("netdyno-load", "asio-callbacks", "qt-signals"), ("off", "on"))
    stalled = spot(panel(chart, ASIO), client="asio-callbacks", nodelay="off").value
    whole = spot(panel(chart, QT), client="qt-signals", nodelay="on").value
    assert stalled is not None
    assert whole is not None
    assert [stalled.value, whole.value] == pytest.approx([1600, 20_000 * 0.4 * 1.2])
    assert stalled.points == pytest.approx([1600 * factor for factor in FACTORS])
    assert stalled.interval is not None
    logs = np.log(np.array(FACTORS))
    expected = stats.mean_interval(stats.pairs_of({(block, ""): log for block, log in enumerate(logs)}))
    assert expected is not None
    assert stalled.interval.low == pytest.approx(1600 * math.exp(expected.low))
    assert stalled.interval.high == pytest.approx(1600 * math.exp(expected.high))
    assert 1390 < stalled.interval.low < 1600 < stalled.interval.high < 1850


def test_the_published_figures_stand_in_their_panel() -> None:
    chart = only(filled(PAIRS + BARS))
    assert [reference.value for reference in panel(chart, ASIO).published] == [9128.15, 7455.03]
    assert panel(chart, QT).published == ()


def test_what_was_published_without_a_panel_stands_in_all_of_them() -> None:
    chart = only(filled(PAIRS + BARS.replace(f'at = {{ contestant = "{ASIO}", ', "at = { ")))
    assert [[reference.value for reference in drawn.published] for drawn in chart.panels] == [[9128.15, 7455.03]] * 4
    assert [drawn.published[0].at["contestant"] for drawn in chart.panels] == [ASIO, COROUTINES, QT, SNAPSHOT]
    assert chart.elsewhere == 0


@pytest.mark.parametrize(("blocks", "interval"), [(1, False), (4, False), (5, True)])
def test_fewer_than_five_blocks_have_points_and_no_interval_and_the_figure_says_so(blocks: int, interval: bool) -> None:
    chart = only(filled(PAIRS + BARS, blocks=blocks))
    assert chart.blocks == blocks
    assert all(cell.value and len(cell.value.points) == blocks for cell in chart.spots)
    assert all((cell.value is not None and cell.value.interval is not None) is interval for cell in chart.spots)
    note = views.make_view(chart, theme.assign_styles(NAMES), "f1").note
    assert ("no interval" in note) is not interval
    assert ("One block: no interval." in note) is (blocks == 1)


def test_a_surface_hatches_what_was_invalid_but_has_its_share_of_connects() -> None:
    speed, connected = charts(filled(ROOM + SURFACES))
    for chart in (speed, connected):
        assert (len(chart.along), len(chart.across), len(chart.spots)) == (10, 5, 100)
    lost = spot(panel(speed, SNAPSHOT), connections=400, backlog=10)
    assert (lost.value, lost.missing, lost.trials, lost.planned) == (None, INVALID, 0, 6)
    assert figures.explain_missing(lost) == "invalid (connections)"
    counted = spot(panel(connected, SNAPSHOT), connections=400, backlog=10)
    assert counted.value is not None
    assert counted.value.value == pytest.approx(0.16 + 0.84 * 60 / 400)
    assert (counted.missing, counted.excluded, counted.trials) == (None, 6, 6)
    assert figures.list_gaps(speed) == tuple(
        f"{name}: 10 of 50 cells invalid (connections)" for name in (ASIO, SNAPSHOT)
    )
    assert figures.list_gaps(connected) == ()


def test_a_surface_is_one_scale_over_its_panels_and_rings_the_nearest_cell() -> None:
    chart, _ = charts(filled(ROOM + SURFACES))
    scale = heat.ColourScale(chart)
    assert scale.legend()[::2] == ("8.00k/s", "64.0k/s")
    left, right = (heat.tabulate_surface(chart, drawn, scale) for drawn in chart.panels)
    assert [row.label for row in left.rows] == ["300", "202", "106", "42", "10"]
    assert (left.rows[0].cells[0].step, left.rows[0].cells[-1].step) == (0, theme.HEAT_STEPS - 1)
    assert right.rows[0].cells[-1].step == round(23 * (24_000 - 7500) / (60_000 - 7500))  # beyond the cliff
    cells = {
        (row.label, label): cell for row in right.rows for label, cell in zip(right.columns, row.cells, strict=True)
    }
    ringed = {place: cell for place, cell in cells.items() if cell.published}
    assert {place: cell.published for place, cell in ringed.items()} == {
        ("300", "325"): "36.0k",
        ("10", "400"): "9.00k",
    }
    assert ringed["10", "400"].step is None
    assert right.published[1] == "9.00k/s at 390 connections and backlog 12 (ringed: the nearest that was run here)"
    assert left.published == ()


def test_a_cell_is_hatched_from_the_first_excluded_trial() -> None:
    run = filled(ROOM + SURFACES)
    levels = {"connections": 50, "backlog": 300}
    first = next(trial for trial in run.trials if (trial.contestant, trial.levels) == (ASIO, levels))
    _, chart = charts(
        replace(
            run, trials=tuple(mark_invalid(trial, "connections") if trial is first else trial for trial in run.trials)
        )
    )
    surface = heat.tabulate_surface(chart, panel(chart, ASIO), heat.ColourScale(chart))
    assert surface.rows[0].label == "300"
    assert [cell.has_excluded for cell in surface.rows[0].cells[:2]] == [True, False]


def test_a_ladder_has_the_least_first_and_names_loss_and_what_is_missing() -> None:
    run = filled(REALTIME + LADDER)
    run = replace(
        run,
        trials=tuple(skipped(trial, "no such library") if trial.contestant == FOLLY else trial for trial in run.trials),
    )
    chart = only(run)
    assert [figures.name_panel(drawn) for drawn in chart.panels] == ["100 clients", "1000 clients"]
    many = panel(chart, "1000 clients")
    lossy = spot(many, contestant=REUSEPORT)
    assert lossy.lost == pytest.approx(0.125)
    assert lossy.above
    assert spot(panel(chart, "100 clients"), contestant=REUSEPORT).above is False
    assert spot(many, contestant=ASIO).lost is None
    assert figures.list_gaps(chart) == (f"{FOLLY}: skipped (no such library)",)
    view = views.make_view(chart, theme.assign_styles(NAMES), "f1")
    assert "Only messages that arrived have a response time" in view.note
    first, second = view.panels
    rungs = [name for name in first.svg.split(">") if name.partition("</text")[0] in NAMES]
    assert [rung.partition("<")[0] for rung in rungs] == [ASIO, COROUTINES, QT, SNAPSHOT, REUSEPORT]
    assert "12.5% lost !" in second.svg
    assert FOLLY in second.svg  # for the source has a figure of it
    assert "1.00 s (udp-reuseport, 12.5% lost !)" in second.alt


def test_curves_have_each_line_and_what_stands_below() -> None:
    chart = only(filled(GRID + CURVES))
    assert [figures.name_panel(drawn) for drawn in chart.panels][:2] == ["threads 1", "threads 2"]
    assert (len(chart.panels), chart.across) == (7, (ASIO, FOLLY))
    cell = spot(panel(chart, "threads 4"), connections=1000, contestant=ASIO)
    truth = grid_truth("", ASIO, cell.coordinates)
    values = [estimate.value for estimate in cell.estimates if estimate]
    assert values == pytest.approx([truth["p50"], truth["cpu"], truth["memory"]], rel=1e-4)


def test_a_smaller_grid_is_drawn_as_far_as_it_was_run() -> None:
    run = filled(ROOM + SURFACES)
    kept = tuple(
        trial
        for trial in run.trials
        if trial.levels["connections"] in (50, 300) and trial.levels["backlog"] in (10, 300)
    )
    chart, _ = charts(replace(run, trials=kept))
    assert (chart.along, chart.across, len(chart.spots)) == ((50, 300), (10, 300), 8)
    surface = heat.tabulate_surface(chart, chart.panels[1], heat.ColourScale(chart))
    assert [cell.published for row in surface.rows for cell in row.cells] == ["", "", "", ""]
    assert "36.0k/s at 325 connections and backlog 300 (beyond what was run here)" in surface.published
    table = views.make_view(chart, theme.assign_styles(NAMES), "f1").table
    assert next(row for row in table.rows if row[-1] == "not run")[1:3] == ("backlog 300", "325 connections")


def test_a_server_that_is_unsafe_is_drawn_and_marked_wherever_it_is_named() -> None:
    run = filled(GRID.replace("3, 4, 6, 8, 12]", "3]") + CURVES)
    assert run.experiment.scenarios[0].factors["threads"] == (1, 2, 3)
    unsafe = About(kind="server", name=FOLLY, unsafe="frames mix")
    chart = only(replace(run, about=(unsafe, *run.about)))
    assert (chart.unsafe, only(run).unsafe) == ((FOLLY,), ())
    styles = theme.assign_styles(NAMES)
    dashes = {cell.contestant: marks.choose_style(chart, cell, styles)[1] for cell in chart.spots}
    assert dashes == {ASIO: 0, FOLLY: 1}
    view = views.make_view(chart, styles, "f1")
    assert [key.text for key in view.keys] == [ASIO, f"{FOLLY}, UNSAFE"]
    assert f"{FOLLY} is UNSAFE, and in no ranking." in view.note
    assert {cell for row in view.table.rows for cell in row if cell.startswith(FOLLY)} == {f"{FOLLY}, UNSAFE"}
    assert "UNSAFE" not in str(views.make_view(only(run), styles, "f1"))


@pytest.mark.parametrize("tables", [PAIRS + BARS, ROOM + SURFACES, REALTIME + LADDER, GRID + CURVES])
def test_a_run_without_any_trial_of_a_figure_draws_nothing_and_does_not_fail(tables: str) -> None:
    run = filled(tables)
    nothing = replace(run, trials=())
    failed = replace(run, trials=tuple(skipped(trial, "no cores") for trial in run.trials))
    for chart in (*charts(nothing), *charts(failed)):
        assert all(cell.value is None for cell in chart.spots)
        assert views.make_view(chart, theme.assign_styles(NAMES), "f1").table.headings[-1] == "trials"


def test_published_figures_of_panels_that_were_not_run_are_counted() -> None:
    run = filled(PAIRS + BARS)
    without = replace(run, trials=tuple(trial for trial in run.trials if trial.contestant != ASIO))
    view = views.make_view(only(without), theme.assign_styles(NAMES), "f1")
    assert "2 published figures for what was not run here: not drawn." in view.note


def test_the_table_has_every_value_with_interval_published_figure_and_trials() -> None:
    view = views.make_view(only(filled(PAIRS + BARS)), theme.assign_styles(NAMES), "f1")
    assert view.table.headings == (
        *("contestant", "client", "both.nodelay", "throughput", "published (their machine)", "trials"),
    )
    assert len(view.table.rows) == 24
    stalled = next(row for row in view.table.rows if row[:2] == (ASIO, ASIO) and "off" in row[2])
    assert stalled[3].startswith("1.60k/s [")
    assert stalled[4:] == ("9.13k/s", "6 of 6")


def test_a_figure_of_a_metric_that_none_recorded_says_so() -> None:
    run = filled(PAIRS + BARS.replace('"throughput"', '"achieved"').replace("9128.15", "1").replace("7455.03", "1"))
    chart = only(run)
    assert {cell.missing for cell in chart.spots} == {Missing(None, None)}
    assert {figures.explain_missing(cell) for cell in chart.spots} == {"no such figure"}


def test_the_mean_is_geometric_but_of_shares_and_where_a_block_has_0() -> None:
    def middle(metric: str, *points: float) -> float:
        estimate = fill_charts.estimate(METRICS[metric], dict(enumerate(points)))
        assert estimate is not None
        return estimate.value

    assert middle("throughput", 100.0, 400.0) == pytest.approx(200)
    assert middle("switches", 0.0, 4.0) == pytest.approx(2)
    assert middle("lost", 0.1, 0.4) == pytest.approx(0.25)
    assert fill_charts.estimate(METRICS["p50"], {}) is None
