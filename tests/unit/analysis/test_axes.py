"""Figures are measured figures: each contestant's own, and compared in shared blocks alone."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.analysis.ranking import answers, axes
from netdyno.kit import quantities
from netdyno.model.base import type_level
from netdyno.model.experiment import ALSO_COUNTS, Experiment, Scenario
from netdyno.model.levels import level_key
from netdyno.model.metrics import METRICS
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.present.export import tables
from netdyno.present.prose.verdict import answer
from netdyno.present.report import scoreboard, views
from tests.support.builders.analysed import analysed, exported, findings_of
from tests.support.builders.made_claims import made_trial
from tests.support.builders.made_run import CALLBACKS, EPOLL, LOCK, made_run, paired_run

LOADS = (10, 100)
ECHO = Scenario(name="echo", workload="echo", factors={"connections": LOADS})
Filled = dict[tuple[str, int, int], float]
"""Throughput by contestant, block and connections."""


def run_of(filled: Filled) -> Run:
    trials: list[Trial] = []
    for (name, block, connections), rate in filled.items():
        levels: dict[str, type_level] = {"connections": connections}
        trial = made_trial(ECHO, block, name, levels, {"throughput": rate})
        trials.append(replace(trial, position=len(trials)))
    experiment = Experiment(name="made", question="?", scenarios=(ECHO,))
    return replace(paired_run(), experiment=experiment, trials=tuple(trials), about=())


def findings(run: Run) -> ScenarioFindings:
    return analyse(run).scenarios[0]


def test_two_that_share_no_block_are_printed_as_measured_and_not_ranked() -> None:
    """Least squares over cells that no two share made 205k/s and 11.5k/s of two servers at 100k/s."""
    filled: Filled = {(EPOLL, block, 10): 100_000.0 for block in (1, 2, 3)}
    result = findings(run_of(filled | {(LOCK, 4, 10): 100_000.0}))
    assert {standing.contestant: standing.value for standing in result.standings} == {
        EPOLL: pytest.approx(100_000, rel=1e-3),
        LOCK: pytest.approx(100_000, rel=1e-3),
    }
    assert [standing.rank for standing in result.standings] == [None, None]
    assert result.verdict == "not_enough_blocks"
    assert "share a block" in answer(result).sentence
    assert not result.comparisons


def test_sparse_data_that_hang_together_do_not_carry_a_figure_over() -> None:
    """Blocks differ fourfold, and each contestant has the other's slow ones missing."""
    drift = {1: 1.0, 2: 4.0, 3: 1.0, 4: 4.0, 5: 1.0, 6: 4.0}
    filled = {(EPOLL, block, 10): 1000 * drift[block] for block in (1, 2, 3, 4)}
    filled |= {(CALLBACKS, block, 10): 1100 * drift[block] for block in (3, 4, 5, 6)}
    filled |= {(LOCK, block, 10): 900 * drift[block] for block in (1, 3, 5)}
    for standing in findings(run_of(filled)).standings:
        own = [rate for (name, _, _), rate in filled.items() if name == standing.contestant]
        assert min(own) * 0.999 <= standing.value <= max(own) * 1.001


def assert_measured(run: Run, result: ScenarioFindings) -> None:
    """Every figure lies among those of the trials that it stands for; histograms have steps of 0.1%."""
    for axis in result.axes:
        read = METRICS[axis.metric].value
        for score in axis.scores:
            valid = [
                (trial, trial.load)
                for trial in run.trials
                if (trial.scenario, trial.contestant) == (result.scenario.name, score.contestant)
                and trial.load is not None
                and trial.status == "valid"
            ]
            mine = [counted for counted in valid if level_key(counted[0].levels) == result.heaviest.key]
            assert (score.value is not None) == bool(mine)
            assert score.trials == len(mine)
            figures = [figure for trial, load in mine if (figure := read(trial, load)) is not None]
            if score.value is not None:
                assert min(figures) * 0.999 <= score.value.value <= max(figures) * 1.001
            at_loads = [counted for counted in valid if level_key(counted[0].levels) in axis.loads]
            figures = [figure for trial, load in at_loads if (figure := read(trial, load)) is not None]
            assert (score.over_loads is not None) == bool(figures)
            if score.over_loads is not None:
                assert min(figures) * 0.999 <= score.over_loads <= max(figures) * 1.001


def test_merged_percentiles_costs_and_means_lie_among_those_of_their_trials() -> None:
    for result in analysed(made_run()).scenarios:
        assert_measured(made_run(), result)


rates = st.dictionaries(
    st.tuples(st.sampled_from((EPOLL, CALLBACKS, LOCK)), st.integers(1, 6), st.sampled_from(LOADS)),
    st.floats(1e3, 1e6).map(lambda rate: float(round(rate))),
    min_size=1,
    max_size=24,
)


@settings(max_examples=25, deadline=None)
@given(rates)
def test_no_figure_lies_outside_the_range_of_the_trials_that_it_stands_for(filled: Filled) -> None:
    run = run_of(filled)
    result = findings(run)
    assert_measured(run, result)
    for standing in result.standings:
        own = result.axes[0].score(standing.contestant)
        assert own is not None
        assert math.isnan(standing.value) == (own.value is None)


@settings(max_examples=25, deadline=None)
@given(rates)
def test_a_comparison_is_of_shared_blocks_and_none_without_one_has_a_rank(filled: Filled) -> None:
    result = findings(run_of(filled))
    blocks = {name: {block for contestant, block, _ in filled if contestant == name} for name, _, _ in filled}
    for axis in result.axes:
        for comparison in axis.comparisons:
            assert 0 < comparison.blocks <= len(blocks[comparison.a] & blocks[comparison.b])
        compared = {name for comparison in axis.comparisons for name in (comparison.a, comparison.b)}
        ranked = {score.contestant for score in axis.scores if score.rank is not None}
        assert ranked <= compared or len(axis.scores) == 1


def rows_of(result: ScenarioFindings) -> dict[str, views.Rank]:
    scale = views._fit_scale(result.standings)
    return {standing.contestant: views._make_rank(result, standing, scale) for standing in result.standings}


def test_a_figure_beside_a_ratio_is_of_the_same_loads() -> None:
    """26.5k/s at the heaviest load beside 30.5k/s read as -13%, and the ratio over both loads said -2%."""
    rates = {(EPOLL, 10): 20_000.0, (EPOLL, 100): 30_500.0, (LOCK, 10): 22_000.0, (LOCK, 100): 26_500.0}
    run = run_of({(name, block, load): rate for (name, load), rate in rates.items() for block in range(1, 7)})
    result = findings(run)
    rows = rows_of(result)
    assert [row.value for row in (rows[EPOLL], rows[LOCK])] == ["24.7k/s", "24.1k/s"]
    assert rows[LOCK].change == f"{quantities.MINUS}2.2%*"
    assert (rows[EPOLL].leader, rows[LOCK].leader) == ("", "")
    board = scoreboard.make_view(result)
    assert board is not None
    assert [row.cells[0].figure for group in board.groups for row in group.rows] == ["24.7k/s", "24.1k/s"]
    assert board.note == "Figures and ranks over 2 loads (geometric means)."
    sentence = answer(result).sentence
    assert "the highest throughput over 2 loads (closed loop)" in sentence
    assert f"Figures at {result.heaviest.label}, ranks and ratios over 2 loads:" in tables.format_markdown(
        exported(run)
    )


def test_a_load_that_one_of_two_lacks_is_in_neither_figure() -> None:
    rates = {(EPOLL, 10): 20_000.0, (EPOLL, 100): 30_500.0, (LOCK, 10): 18_000.0}
    result = findings(
        run_of({(name, block, load): rate for (name, load), rate in rates.items() for block in range(1, 7)})
    )
    rows = rows_of(result)
    assert (rows[LOCK].value, rows[LOCK].change) == ("18.0k/s", f"{quantities.MINUS}10%*")
    assert rows[LOCK].leader == f"where both were measured, {EPOLL} has 20.0k/s"


def test_an_answer_has_every_axis() -> None:
    findings_by_name = {result.scenario.name: result for result in analysed(made_run()).scenarios}
    assert [axis.metric for axis in findings_by_name["echo"].axes] == ["throughput", "p50", "p99", "cpu", "memory"]
    assert [axis.metric for axis in findings_by_name["rpc-open"].axes] == ["p99", "kept", "p50", "cpu", "memory"]
    assert findings_by_name["echo"].comparisons == findings_by_name["echo"].axes[0].comparisons


def test_what_the_others_cost_is_in_the_answer() -> None:
    http = findings_of(analysed(made_run()), "http")
    assert http.verdict == "equal"
    assert f" Worse than {http.standings[0].contestant} over 3 loads: " in answer(http).sentence
    assert f"{LOCK} in p99 (+" in answer(http).sentence
    assert "throughput (\N{MINUS SIGN}" in answer(http).sentence


def test_what_the_others_cost_is_against_the_winner() -> None:
    echo = findings_of(analysed(made_run()), "echo")
    assert echo.verdict == "winner"
    assert f" Worse than {echo.decision.recommended[0]} over 3 loads: " in answer(echo).sentence


def test_a_difference_of_a_few_per_cent_in_a_small_matter_is_no_reason() -> None:
    http = findings_of(analysed(made_run()), "http")
    assert all(
        answers.judge_lead(axis, comparison.a, comparison.b, 1.05) is None
        for axis in http.axes
        for comparison in axis.comparisons
        if 1 / 1.05 < comparison.ratio < 1.05
    )


def test_a_capacity_stands_alone() -> None:
    assert axes.list_names(replace(ECHO, metric="capacity", arrivals="poisson")) == ()


@pytest.mark.parametrize(("axis", "bound"), [("p50", ""), ("p99", "at most"), ("mean", "at most"), ("throughput", "")])
def test_a_mean_is_a_bound_where_a_percentile_is_and_other_percentiles_are_none(axis: str, bound: str) -> None:
    assert axes._find_bound(axis, saturated=False, limited={"p99"}) == bound


@pytest.mark.parametrize(
    ("axis", "bound"), [("throughput", "at least"), ("recovery", "at most"), ("p99", "at most"), ("memory", "")]
)
def test_beside_a_limited_generator_an_axis_is_a_bound(axis: str, bound: str) -> None:
    assert axes._find_bound(axis, saturated=True, limited=()) == bound


def test_what_servers_are_ranked_by_has_figures_of_cells_and_a_heading() -> None:
    for name in ALSO_COUNTS:
        assert (METRICS[name].of_cells, bool(METRICS[name].short)) == (True, True), name


def test_in_an_open_loop_the_service_time_of_a_cell_is_not_its_response_time() -> None:
    """They are computed once where they are the same: the made-up service takes 97% of the response, or all of it."""
    cells_by_scenario = {result.scenario.name: result.cells for result in analysed(made_run()).scenarios}
    assert all(cell.values["service-p99"] == cell.values["p99"] for cell in cells_by_scenario["echo"])
    assert all(cell.value("service-p50") < cell.value("p50") for cell in cells_by_scenario["rpc-open"])
