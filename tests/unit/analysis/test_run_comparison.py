"""Two runs side by side: what differs between them is printed first, and blocks are not paired."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from rich.console import Console

from netdyno.analysis.analysis import analyse
from netdyno.analysis.compare.run_comparison import compare_runs, estimate_interval
from netdyno.analysis.found.compare import Both, ChangedQuestion
from netdyno.kit import quantities
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.question.plan import Cell
from netdyno.store import write
from netdyno.verbs import cli, compare
from tests.support.builders.made_run import EPOLL, LOCK, made_run, unsafe_run


def faster(factor: float, name: str = EPOLL) -> Callable[[Trial], Trial]:
    def change(trial: Trial) -> Trial:
        if trial.contestant != name or trial.load is None:
            return trial
        requests = replace(trial.load.requests, per_second=trial.load.requests.per_second * factor)
        return replace(trial, load=replace(trial.load, requests=requests))

    return change


def changed(run: Run, change: Callable[[Trial], Trial], **fields: object) -> Run:
    return replace(run, trials=tuple(map(change, run.trials)), **fields)


def cell(run: Run, other_run: Run, contestant: str, level: str) -> Both:
    cells = compare_runs(run, other_run).cells
    (result,) = [
        compared
        for compared in cells
        if (compared.scenario, compared.contestant) == ("echo", contestant) and level in compared.level
    ]
    return result


def test_the_ratio_is_that_of_the_geometric_means_and_the_second_stands_above() -> None:
    run = made_run()
    compared = cell(run, changed(run, faster(3.0)), EPOLL, "100 connections")
    assert compared.ratio == pytest.approx(3.0)
    assert compared.second / compared.first == pytest.approx(3.0)
    assert (compared.first_trials, compared.second_trials, compared.apart) == (6, 6, True)
    same = cell(run, changed(run, faster(3.0)), LOCK, "100 connections")
    assert same.ratio == pytest.approx(1.0)
    assert not same.apart


def test_a_figure_is_the_one_of_the_cell_in_every_report() -> None:
    """Also a percentile, which is no mean of the trials' percentiles."""
    run = made_run()
    shown = {
        (findings.scenario.name, figures.contestant, level.label): figures.value(findings.scenario.metric)
        for findings in analyse(run).scenarios
        for figures in findings.cells
        for level in findings.levels
        if level.key == figures.level
    }
    cells = compare_runs(run, run).cells
    assert {compared.metric for compared in cells} >= {"throughput", "p99"}
    assert len(cells) > 20
    for compared in cells:
        figure = shown[compared.scenario, compared.contestant, compared.level]
        assert compared.first == compared.second == figure


def test_the_drift_of_the_machine_is_in_the_interval() -> None:
    """Within a run the blocks drift by far more than servers differ; between runs nothing takes that out."""
    run = made_run()
    compared = cell(run, changed(run, faster(1.12)), EPOLL, "100 connections")
    assert compared.interval is not None
    assert compared.interval.low < 1 < 1.12 < compared.interval.high
    assert compared.interval.high / compared.interval.low > 1.3


def test_an_unpaired_interval_holds_the_truth_in_19_of_20_runs_though_sides_differ_in_number_and_noise() -> None:
    random = np.random.default_rng(5)
    held, runs = 0, 400
    for _ in range(runs):
        first, second = random.normal(0, 0.05, 6), random.normal(0.1, 0.2, 9)
        interval = estimate_interval([float(value) for value in first], [float(value) for value in second])
        assert interval is not None
        held += interval.low <= math.exp(0.1) <= interval.high
    error = math.sqrt(0.95 * 0.05 / runs)
    assert 0.95 - 3 * error <= held / runs <= 0.99


def test_below_five_blocks_on_a_side_there_is_no_interval() -> None:
    enough = [0.1] * FEWEST_BLOCKS
    assert estimate_interval(enough, enough[1:]) is None
    assert estimate_interval(enough, enough) is not None


def test_cells_of_one_run_only_are_counted_and_not_compared() -> None:
    run = made_run()
    fewer = replace(run, trials=tuple(trial for trial in run.trials if trial.contestant != LOCK))
    comparison = compare_runs(run, fewer)
    assert LOCK not in {compared.contestant for compared in comparison.cells}
    assert comparison.alone == len({(compared.scenario, compared.level) for compared in comparison.cells})


def test_a_server_that_is_unsafe_is_in_no_comparison() -> None:
    assert EPOLL not in {compared.contestant for compared in compare_runs(unsafe_run(), unsafe_run()).cells}


def test_another_metric_is_another_cell_and_another_load_is_stated() -> None:
    run = made_run()
    first, *rest = run.experiment.scenarios
    expected: tuple[tuple[dict[str, str | float], str], ...] = (
        ({"metric": "p99"}, "metric was throughput and is p99"),
        ({"duration_s": 9.0}, "duration was 2s and is 9s"),
        ({"link_delay_s": 0.02}, "link-delay was 0s and is 20ms"),
        ({"rate": 100.0}, "rate was nothing and is 100"),
    )
    for fields, words in expected:
        scenarios = (replace(first, **fields), *rest)
        altered = replace(run, experiment=replace(run.experiment, scenarios=scenarios))
        comparison = compare_runs(run, altered)
        assert f"asked: echo: {words}" in text(run, altered)
        apart = [difference for difference in comparison.questions if isinstance(difference, ChangedQuestion)]
        assert ("echo", next(iter(fields))) in {(difference.scenario, difference.change.key) for difference in apart}
        assert ("echo" in {compared.scenario for compared in comparison.cells}) == ("metric" not in fields)


def test_another_question_contestant_or_level_is_never_the_same() -> None:
    run = made_run()
    experiment = run.experiment
    first, *rest = experiment.scenarios
    assert "asked: the same" in text(run, run)
    name, levels = next(iter(first.factors.items()))
    experiments = {
        "experiment was": replace(experiment, name="another"),
        f"only other has the scenario web (workload {first.workload})": replace(
            experiment, scenarios=(*experiment.scenarios, replace(first, name="web"))
        ),
        f"only {run.run_id} has the scenario echo (workload {first.workload})": replace(
            experiment, scenarios=(replace(first, name="web"), *rest)
        ),
        f"echo: contestants had {LOCK} and has nothing else": replace(
            experiment,
            scenarios=(replace(first, contestants=tuple(name for name in first.contestants if name != LOCK)), *rest),
        ),
        f"echo: levels of {name} had {levels[-1]} and has nothing else": replace(
            experiment, scenarios=(replace(first, factors={name: levels[:-1]}), *rest)
        ),
    }
    for words, changed_experiment in experiments.items():
        output = text(run, replace(run, run_id="other", experiment=changed_experiment))
        assert f"asked: {words}" in output
        assert "asked: the same" not in output


def text(first: Run, second: Run) -> str:
    out = io.StringIO()
    Console(file=out, width=100).print(compare.render(compare_runs(first, second)))
    return re.sub(r"\s+", " ", out.getvalue())


def test_differences_are_reported_before_any_figure() -> None:
    run = made_run()
    second = changed(run, faster(3.0), environment=run.environment | {"compiler": "clang 14"}, run_id="other")
    output = text(run, second)
    assert "environment: compiler was g++ 12.2.0 -O2 -march=native and is clang 14" in output
    assert output.index("environment: compiler") < output.index("95% interval") < output.index("are not paired")
    assert f"{quantities.TIMES}3.00*" in output
    assert "environment: the same in both runs" in text(run, run)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A results folder with two runs, the second of which has another contestant only."""
    run = made_run()
    for name, keep in (("one", EPOLL), ("two", LOCK)):
        (tmp_path / name).mkdir()
        mine = [trial for trial in run.trials if trial.contestant == keep and trial.scenario == "echo"]
        trials = [replace(trial, position=number) for number, trial in enumerate(mine)]
        cells = [
            Cell(block=trial.block, position=trial.position, scenario="echo", contestant=keep, levels=trial.levels)
            for trial in trials
        ]
        with write.Store.create(tmp_path / name, replace(run, run_id=name), [], cells) as store:
            for trial in trials:
                store.add(trial)
    return tmp_path


def test_json_is_one_object_with_everything_in_it(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "one", "one", "--json", "--results", str(stored)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed.keys() == {"first", "second", "environment", "asked", "cells", "alone", "note"}
    assert {(compared["contestant"], compared["ratio"]) for compared in printed["cells"]} == {(EPOLL, 1.0)}
    assert len(printed["cells"]) == 3
    assert "not paired" in printed["note"]


def test_runs_without_a_cell_in_common_end_with_1(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "one", "two", "--results", str(stored)]) == 1
    assert "No cell has valid trials in both runs." in capsys.readouterr().out
