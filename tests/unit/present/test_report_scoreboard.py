"""The content of a report's scoreboard and tables of counters, from runs with known effects."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit.statistics.stats import Interval
from netdyno.model.metrics import METRICS
from netdyno.present import templates
from netdyno.present.report import associations, machine, scoreboard, theme, views
from netdyno.present.report.scale import MARGIN, RatioScale
from netdyno.present.report.scoreboard import Scoreboard
from tests.support.builders.analysed import analysed, findings_of
from tests.support.builders.made_capacity import experiment_run
from tests.support.builders.made_run import (
    CALLBACKS,
    EPOLL,
    LOCK,
    REUSEPORT,
    SCENARIOS,
    SNAPSHOT,
    UDP,
    made_run,
    messages_run,
    troubled_run,
)


def board(findings: ScenarioFindings) -> Scoreboard:
    view = scoreboard.make_view(findings)
    assert view is not None
    return view


# --- scoreboard --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [scenario.name for scenario in SCENARIOS])
def test_each_cell_is_the_own_figure_of_its_axis_with_its_rank(name: str) -> None:
    findings = findings_of(analysed(made_run()), name)
    view = board(findings)
    rows = {row.contestant: row for group in view.groups for row in group.rows}
    assert list(rows) == [standing.contestant for standing in findings.standings]
    for number, axis in enumerate(findings.axes):
        for score in axis.scores:
            cell = rows[score.contestant].cells[number]
            assert score.shown is not None
            assert cell.figure == METRICS[axis.metric].speak(score.shown)
            assert cell.rank == f"{score.rank}{'=' if score.shared else ''}"
            assert cell.best == (score.rank == 1 and any((rival.rank or 0) > 1 for rival in axis.scores))


def test_the_columns_are_the_axes_with_the_own_metric_first() -> None:
    findings = analysed(made_run()).scenarios
    assert [column.short for column in board(findings[0]).columns] == ["throughput", "p50", "p99", "CPU", "memory"]
    assert [column.short for column in board(findings[2]).columns] == ["p99", "rate kept", "p50", "CPU", "memory"]


def test_where_the_generator_was_at_its_limit_rates_and_times_are_bounds_for_everybody() -> None:
    findings = findings_of(analysed(troubled_run()), "http")
    assert findings.censored
    for group in board(findings).groups:
        for row in group.rows:
            assert [cell.bound for cell in row.cells] == ["at least", "at most", "at most", "", ""]
            assert [cell.sign for cell in row.cells] == ["≥", "≤", "≤", "", ""]


def test_a_server_that_did_something_wrong_stands_apart_with_what_it_did() -> None:
    view = board(findings_of(analysed(troubled_run()), "echo"))
    reasons = {row.contestant: group.reason for group in view.groups for row in group.rows}
    assert [reasons.pop(name) for name in (LOCK, SNAPSHOT)] == [
        (
            "Ranked separately: ended by itself in 2 of 18 trials: signal SIGSEGV and gave wrong or lost replies "
            "in 1 of 18 "
            "trials: corrupt 7"
        ),
        "Ranked separately: gave wrong or lost replies in 1 of 18 trials: 3 of 212000 replies corrupt",
    ]
    assert set(reasons.values()) == {""}
    assert [len(group.rows) for group in view.groups] == [3, 1, 1]


def test_a_server_that_has_no_valid_trial_is_named_with_its_fault_and_without_figures() -> None:
    view = board(findings_of(analysed(troubled_run()), "rpc-open"))
    assert [row.contestant for row in view.groups[0].rows] == [EPOLL]
    assert {group.reason for group in view.groups[1:]} == {
        "No valid trial: ended by itself in 18 of 18 trials: signal SIGSEGV"
    }
    assert all(row.cells == () for group in view.groups[1:] for row in group.rows)
    assert CALLBACKS in [row.contestant for group in view.groups for row in group.rows]


def test_the_share_lost_stands_beside_the_metric_that_it_flatters() -> None:
    view = board(analysed(messages_run()).scenarios[0])
    assert [column.short for column in view.columns][:2] == ["mean", "lost"]
    lost = {row.contestant: row.cells[1] for group in view.groups for row in group.rows}
    assert not lost[UDP].warns
    assert lost[REUSEPORT].warns
    assert lost[REUSEPORT].figure.endswith(" !")
    assert [(group.lossy, group.reason) for group in view.groups] == [
        (False, ""),
        (True, "Ranked separately: more than 0.1% lost"),
    ]


def test_without_blocks_enough_there_are_figures_and_no_ranks() -> None:
    run = made_run(blocks=3)
    for findings in analyse(run).scenarios:
        view = board(findings)
        cells = [cell for group in view.groups for row in group.rows for cell in row.cells]
        assert not any(cell.rank or cell.best for cell in cells)
        assert "rank" not in view.note


def test_a_capacity_stands_alone() -> None:
    findings = analysed(experiment_run()).scenarios[0]
    view = board(findings)
    assert [column.short for column in view.columns] == ["capacity"]
    assert all(len(row.cells) == 1 for group in view.groups for row in group.rows)


# --- what correlates ---------------------------------------------------------------------------------------------


def test_a_table_of_counters_has_a_line_for_each_difference_with_a_bar_as_long_as_its_logarithm() -> None:
    findings = findings_of(analysed(made_run()), "echo")
    view = associations.make_view(findings)
    assert view is not None
    assert [(pair.worse, pair.better) for pair in view.pairs] == [(why.worse, why.better) for why in findings.whys]
    scales = []
    for pair, why in zip(view.pairs, findings.whys, strict=True):
        assert len(pair.lines) == len(why.differences)
        for line, difference in zip(pair.lines, why.differences, strict=True):
            bar = line.bar
            assert bar is not None
            assert bar.low is not None
            assert bar.high is not None
            end = bar.start + bar.width if difference.comparison.ratio > 1 else bar.start
            assert bar.low <= end + 0.01
            assert end <= bar.high + 0.01
            assert min(abs(bar.start - view.same_at), abs(bar.start + bar.width - view.same_at)) < 0.02
            scales.append(bar.width / abs(math.log(difference.comparison.ratio)))
            assert line.counter
    assert scales == pytest.approx([scales[0]] * len(scales), rel=0.02)


def test_the_scale_reaches_to_the_ends_of_every_interval() -> None:
    findings = findings_of(analysed(made_run()), "echo")
    why = next(candidate for candidate in findings.whys if candidate.differences)
    difference = why.differences[0]
    wide = replace(
        difference.comparison, interval=Interval(difference.comparison.ratio / 50, difference.comparison.ratio * 50)
    )
    view = associations.make_view(
        replace(findings, whys=(replace(why, differences=(replace(difference, comparison=wide),)),))
    )
    assert view is not None
    bar = view.pairs[0].lines[0].bar
    assert bar is not None
    assert (bar.low, bar.high) == (100 * MARGIN, 100 * (1 - MARGIN))


def test_a_scale_of_ratios_ends_where_an_interval_is_open() -> None:
    scale = RatioScale([0.5, 2.0, math.inf, 0.0])
    assert 0 < scale.to_percent(0.5) < scale.to_percent(1.0) == 50 < scale.to_percent(2.0) < 100
    assert (scale.to_percent(0.0), scale.to_percent(math.inf)) == (0, 100)
    assert RatioScale([]).to_percent(1.0) == pytest.approx(50, abs=0.1)


def test_large_ratios_are_as_far_apart_as_they_are() -> None:
    scale = RatioScale([7.0, 1_540.0, 19_000.0])
    places = [scale.to_percent(ratio) for ratio in (1.0, 7.0, 1_540.0, 19_000.0)]
    assert places == sorted(places)
    assert len(set(places)) == 4
    assert places[-1] < 100
    assert {"100", "10,000"} & {tick.label for tick in scale.ticks()}


# --- details -----------------------------------------------------------------------------------------------------


def test_every_comparison_of_every_axis_stands_in_the_details() -> None:
    findings = findings_of(analysed(made_run()), "echo")
    table = views.present_scenario(findings, theme.assign_styles(analysed(made_run()).contestants), 1).comparisons
    assert len(table.rows) == sum(len(axis.comparisons) for axis in findings.axes)
    assert [row[0] for row in table.rows][:: len(table.rows) // 5] == ["throughput", "p50", "p99", "CPU", "memory"]
    apart = [comparison.different for axis in findings.axes for comparison in axis.comparisons]
    assert [row[-1] for row in table.rows].count("yes") == sum(apart)


def test_retried_trials_are_reported_by_contestant_and_by_cause() -> None:
    retried = machine.make_retries_view(analysed(troubled_run()).retried)
    assert retried is not None
    assert {row[0]: row[1] for row in retried.by_contestant.rows if row[0] in (EPOLL, CALLBACKS)} == {
        EPOLL: "3",
        CALLBACKS: "4",
    }
    assert retried.by_cause is not None
    assert retried.by_cause.rows == (("steal", "16"),)
    assert retried.slices_by_program is None
    assert machine.make_retries_view(analysed(made_run()).retried) is None


def test_each_audit_is_reported_with_what_follows_from_it() -> None:
    rows = {row[0]: row[1:] for row in views.tabulate_audits(analysed(troubled_run()).audits).rows}
    assert rows["died"] == ("server", "a fault: ranked separately", "0", "74")
    assert rows["steal"][:2] == ("machine", "retried")
    assert rows["generator"][:2] == ("instrument", "figures are bounds, for every contestant")


def test_a_name_stands_out_where_it_is_a_word_and_no_word_breaks_at_its_hyphen() -> None:
    assert templates.mark_up("Take a: a is", "a") == "Take <strong>a</strong>: a is"
    assert templates.mark_up("go-net, then go.", "go") == '<span class="whole">go-net</span>, then <strong>go</strong>.'
    assert templates.mark_up("Take b", "a") == "Take b"
    assert templates.mark_up("run a --most-blocks 5") == 'run a <span class="whole">--most-blocks</span> 5'
    assert templates.mark_up("a < b-c") == 'a &lt; <span class="whole">b-c</span>'
    assert templates.mark_up("Take my app (2), or", "my app (2)") == "Take <strong>my app (2)</strong>, or"
