"""A run that goes after a flip: the levels follow from what is found, each trial is stored before the next, and what is
interrupted goes on as if it had not been."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.flips import FlipFound
from netdyno.kit.errors import UserError
from netdyno.measure.run import resume, runner
from netdyno.measure.trial.context import TrialContext
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.present.prose.flips import describe_flip
from netdyno.question import blocks, experiment
from netdyno.question.plan import Cell
from netdyno.store import read, schema
from tests.support.builders.made_blocks import NAMES, RunTrial, Silent, execute, permit
from tests.support.builders.made_claims import made_trial

pytestmark = pytest.mark.usefixtures("trial_by_trial", "steady_canary")

FIRST, SECOND = NAMES
TOML = f"""
question = "From where on?"
contestants = {list(NAMES)}
blocks = 6
warmup = "0s"
duration = "1s"
aa-share = 0
[[scenario]]
name = "echo"
workload = "echo"
[[flip]]
between = ["{FIRST}", "{SECOND}"]
along = "connections"
from = 1
to = 1000
within = 1.3
"""


def load_experiment(text: str = TOML) -> Experiment:
    return experiment.parse(text, "made", "made.toml")


def crossing_at(root: float, slope: float = 0.3, spread: float = 0.02) -> RunTrial:
    """Replace runner.run_trial: the second is better above `root` connections, the first below."""

    def run_trial(cell: Cell, scenario: Scenario, contestant: Contestant, _context: TrialContext) -> Trial:
        draw = random.Random(f"{cell.block} {cell.contestant} {cell.levels}")
        better = slope * math.log(float(cell.levels["connections"]) / root) if contestant.name == SECOND else 0.0
        figures = {"throughput": 1000 * math.exp(better + draw.gauss(0, spread))}
        trial = made_trial(scenario, cell.block, contestant.name, cell.levels, figures)
        return msgspec.structs.replace(trial, position=cell.position, attempt=cell.attempt)

    return run_trial


def measured(
    monkeypatch: pytest.MonkeyPatch, results: Path, build: Path, trials: RunTrial, text: str = TOML
) -> tuple[Run, Path, FlipFound]:
    monkeypatch.setattr(runner, "run_trial", trials)
    path = execute(load_experiment(text), results, build, trace="never").folder / schema.FILE_NAME
    run = read.load(path)
    (result,) = analyse(run).flips
    return run, path, result


def test_the_levels_close_in_on_a_crossing_that_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_build: Path
) -> None:
    run, _, result = measured(monkeypatch, tmp_path, fake_build, crossing_at(55))
    (crossing,) = result.flips.crossings
    assert crossing.interval.low < 55 < crossing.interval.high
    assert crossing.interval.high / crossing.interval.low <= 1.3
    assert result.pursuit is not None
    assert result.pursuit.narrow
    assert run.finished_at is not None
    levels = run.experiment.scenarios[0].factors["connections"]
    assert levels[:1] + levels[-1:] == (1, 1000)
    assert 32 in levels
    assert list(levels) == sorted(levels, key=float)
    assert f"the winner changes from {FIRST} to {SECOND} between " in describe_flip(result)
    # Each level has as many blocks as its decision took, and none after it.
    blocks = Counter(trial.levels["connections"] for trial in run.trials)
    assert {count for level, count in blocks.items() if level in (1, 1000)} == {12}


def test_where_the_same_one_is_better_throughout_no_flip_is_stated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_build: Path
) -> None:
    run, _, result = measured(monkeypatch, tmp_path, fake_build, crossing_at(0.01))
    assert result.flips.verdict == "none"
    assert run.experiment.scenarios[0].factors["connections"] == (1, 6, 32, 179, 1000)
    assert describe_flip(result) == (
        f"Throughput: no flip between 1 and 1,000 connections: {SECOND} is better than {FIRST} at each of 5 levels"
    )


def test_of_equals_nothing_is_decided_and_the_blocks_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_build: Path
) -> None:
    text = TOML.replace("blocks = 6", "blocks = 6\nmost-blocks = 9")
    run, _, result = measured(monkeypatch, tmp_path, fake_build, crossing_at(1, slope=0.0), text)
    assert result.flips.verdict == "open"
    assert set(Counter(trial.levels["connections"] for trial in run.trials).values()) == {18}
    assert "undecided between 1 and 1,000 connections" in describe_flip(result)


def test_a_run_that_was_killed_goes_on_and_comes_to_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_build: Path
) -> None:
    """Killed within a block whose levels were not planned at the beginning, and again."""
    whole, _, result = measured(monkeypatch, tmp_path / "whole", fake_build, crossing_at(55))
    trials, left = crossing_at(55), [15, 40]

    class Killed(BaseException): ...

    def mortal(cell: Cell, scenario: Scenario, contestant: Contestant, context: TrialContext) -> Trial:
        if left and left[0] == 0:
            left.pop(0)
            raise Killed
        left[:1] = [left[0] - 1] if left else []
        return trials(cell, scenario, contestant, context)

    monkeypatch.setattr(runner, "run_trial", mortal)
    with pytest.raises(Killed):
        execute(load_experiment(), tmp_path / "cut", fake_build, trace="never")
    (path,) = (tmp_path / "cut").glob(f"*/{schema.FILE_NAME}")
    assert len(read.load(path).trials) == 15
    with pytest.raises(Killed):
        resume.resume(path, build=fake_build, display=Silent(), anyway=True, permit=permit)
    assert len(read.load(path).trials) == 55
    resume.resume(path, build=fake_build, display=Silent(), anyway=True, permit=permit)
    run = read.load(path)
    assert run.finished_at is not None
    assert [(trial.block, trial.position, trial.contestant, trial.levels) for trial in run.trials] == [
        (trial.block, trial.position, trial.contestant, trial.levels) for trial in whole.trials
    ]
    assert analyse(run).flips == (result,)


def test_blocks_of_the_command_line_are_all_that_a_level_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_build: Path
) -> None:
    monkeypatch.setattr(runner, "run_trial", crossing_at(55))
    outcome = execute(blocks.apply_overrides(load_experiment(), 2, None, None), tmp_path, fake_build, trace="never")
    run = read.load(outcome.folder / schema.FILE_NAME)
    assert set(Counter(trial.levels["connections"] for trial in run.trials).values()) == {4}
    assert "undecided" in describe_flip(analyse(run).flips[0])


def test_no_block_begins_that_would_end_after_the_budget_of_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_build: Path
) -> None:
    text = TOML.replace("blocks = 6", 'blocks = 6\ntime-budget = "80s"')
    run, _, result = measured(monkeypatch, tmp_path, fake_build, crossing_at(55), text)
    assert sum(trial.seconds for trial in run.trials) <= 80
    assert result.pursuit is not None
    assert result.pursuit.next_levels
    assert "the run ended before" in describe_flip(result)


def test_groups_are_compared_by_the_means_of_their_members(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_build: Path
) -> None:
    text = TOML.replace(
        f'between = ["{FIRST}", "{SECOND}"]', f'between = ["slow", "{SECOND}"]\ngroups = {{ slow = ["{FIRST}"] }}'
    )
    _, _, result = measured(monkeypatch, tmp_path, fake_build, crossing_at(55), text)
    assert (result.first, result.second) == ("slow", SECOND)
    assert "the winner changes from slow to " in describe_flip(result)


def test_a_server_that_takes_no_part_is_reported_before_the_first_trial(tmp_path: Path, fake_build: Path) -> None:
    alone = load_experiment().with_each(contestants=(FIRST,))
    with pytest.raises(UserError, match=f"flip along 'connections' in 'echo': '{SECOND}' takes no part"):
        execute(alone, tmp_path / "results", fake_build)
    assert not (tmp_path / "results").exists()
