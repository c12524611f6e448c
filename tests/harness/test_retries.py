"""Trials that the machine disturbs are retried in their block: how often, and for which contestants."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from netdyno.analysis.found.notices import Retries
from netdyno.analysis.notices import retries
from netdyno.measure.run import next_cells, runner, schedule
from netdyno.measure.trial.context import TrialContext
from netdyno.model import outcomes
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.load_result import Audit
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.present.prose import retries as retries_words
from netdyno.question.plan import Cell
from netdyno.store import read, schema
from tests.support.builders.made_blocks import NAMES, Silent, asked, execute, trials_with

pytestmark = pytest.mark.usefixtures("trial_by_trial", "steady_canary")

STEAL = Audit(name="steal", passed=False, detail="the hypervisor gave others 300 ms")


def of_run(run: Run) -> Retries:
    return retries.summarise_retries(run.all_trials, run.experiment.seed)


def disturbs(monkeypatch: pytest.MonkeyPatch, is_disturbed: object, seconds: float = 1.0, by: Audit = STEAL) -> None:
    """Replace the programs: a trial is disturbed where the function says so of its cell."""
    assert callable(is_disturbed)
    made = trials_with({"echo": 0.01, "chat": 0.3})

    def run_trial(cell: Cell, scenario: Scenario, contestant: Contestant, context: TrialContext) -> Trial:
        trial = replace(made(cell, scenario, contestant, context), seconds=seconds)
        if not is_disturbed(cell):
            return trial
        return replace(trial, status="struck_out", reason=f"{by.name}: taken", audits=(by,), load=None)

    monkeypatch.setattr(runner, "run_trial", run_trial)


def fixed(*names: str, blocks: int = 2, **fields: object) -> Experiment:
    return asked(*names).with_each(precision=None, blocks=blocks, **fields)


def stored(outcome: runner.RunOutcome) -> Run:
    return read.load(outcome.folder / schema.FILE_NAME)


def test_what_is_disturbed_is_retried_in_its_block(
    tmp_path: Path, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disturbs(monkeypatch, lambda cell: cell.contestant == NAMES[0] and cell.block == 1 and cell.attempt < 3)
    outcome = execute(fixed("echo"), tmp_path, fake_build)
    run = stored(outcome)
    tries = [(trial.contestant, trial.attempt) for trial in run.trials if trial.block == 1]
    assert sorted(tries) == sorted([(NAMES[0], 1), (NAMES[1], 1), (NAMES[0], 2), (NAMES[0], 3)])
    counts = {"valid": 4, "struck_out": 0, "faulty": 0, "failed": 0, "skipped": 0, "made_again": 2}
    assert outcomes.counts(run) == counts
    assert read.summary(outcome.folder / schema.FILE_NAME)["trials"] == counts
    totals = of_run(outcomes.judge_run(run))
    assert (totals.tries, totals.cells, totals.given_up) == (2, 1, 0), "of four cells one was disturbed"
    assert totals.by_contestant == {NAMES[0]: (2, 2), NAMES[1]: (0, 2)}
    assert totals.causes == {"steal": 2}


BEHIND = Audit(name="achieved_rate", passed=False, detail="asked 1,000,000/s")


def test_what_the_generator_cannot_offer_is_requested_no_more_after_three_blocks(
    tmp_path: Path, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block that the machine disturbed does not count as one of them, and one that could be offered ends it."""
    made = trials_with({"echo": 0.01, "chat": 0.01})

    def run_trial(cell: Cell, scenario: Scenario, contestant: Contestant, context: TrialContext) -> Trial:
        trial = made(cell, scenario, contestant, context)
        assert trial.load is not None
        open_loop = replace(trial.load, plan=replace(trial.load.plan, arrivals="constant", rate_hz=1e6))
        trial = replace(trial, load=open_loop)
        if cell.contestant == NAMES[1] or (cell.scenario == "chat" and cell.block == 2):
            return trial
        audits = (BEHIND, STEAL) if cell.block == 1 and cell.attempt < 50 else (BEHIND,)
        return replace(trial, status="struck_out", reason="achieved_rate: asked 1,000,000/s", audits=audits)

    monkeypatch.setattr(runner, "run_trial", run_trial)
    outcome = execute(fixed("echo", "chat", blocks=6), tmp_path, fake_build)
    run = stored(outcome)
    tried = {
        (scenario, name): [
            trial.block
            for trial in run.trials
            if trial.attempt == 1
            and (trial.scenario, trial.contestant) == (scenario, name)
            and trial.status != "skipped"
        ]
        for scenario in ("echo", "chat")
        for name in NAMES
    }
    everything = [1, 2, 3, 4, 5, 6]
    assert tried == {
        ("echo", NAMES[0]): [1, 2, 3, 4],
        ("echo", NAMES[1]): everything,
        ("chat", NAMES[0]): everything,
        ("chat", NAMES[1]): everything,
    }
    reasons = {trial.reason for trial in run.trials if trial.status == "skipped"}
    assert reasons == {"the generator could not offer the rate in any of 3 blocks"}
    judged = [trial for trial in outcomes.judge_run(run).trials if trial.scenario == "echo" and trial.attempt == 1]
    assert {trial.status for trial in judged if trial.contestant == NAMES[1]} == {"censored"}
    cells = read.load_cells(outcome.folder / schema.FILE_NAME)
    last = next(cell for cell in reversed(cells) if (cell.scenario, cell.contestant) == ("echo", NAMES[0]))
    assert schedule.Schedule(run, cells, Silent().progress).find_stop_reason(last)
    search = replace(run, experiment=run.experiment.with_each(objective="p99<5ms"))
    assert not schedule.Schedule(search, cells, Silent().progress).find_stop_reason(last)


def test_it_is_given_up_after_a_stated_number_of_tries(
    tmp_path: Path, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disturbs(monkeypatch, lambda cell: cell.contestant == NAMES[0] and cell.block == 1)
    run = stored(execute(fixed("echo"), tmp_path, fake_build))
    assert max(trial.attempt for trial in run.trials) == 1 + schedule.RETRIES_PER_CELL * len(NAMES)
    assert {trial.contestant for trial in run.trials if trial.block == 2} == set(NAMES)  # and the run goes on
    totals = of_run(outcomes.judge_run(run))
    assert totals.given_up == 1
    assert "1 cell stayed empty" in retries_words.describe_retries(totals)


def test_in_a_large_block_a_cell_is_tried_so_often_and_no_more(
    tmp_path: Path, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight cells have room for 48 more tries; the one that is always disturbed has 40 in all."""
    disturbs(monkeypatch, lambda cell: cell.contestant == NAMES[0] and cell.levels["connections"] == 1)
    run = stored(execute(fixed("echo", blocks=1, factors={"connections": (1, 2, 3, 4)}), tmp_path, fake_build))
    assert max(trial.attempt for trial in run.trials) == next_cells.MOST_TRIES == 40


def test_what_fails_while_no_other_is_seen_is_tried_a_few_times_only(
    tmp_path: Path, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a trial fails by itself and would fail forty times, so the room in its block does not matter."""
    unfit = Audit(name="observation", passed=False, detail="read 1.6 s apart")
    disturbs(monkeypatch, lambda cell: cell.contestant == NAMES[0] and cell.levels["connections"] == 1, by=unfit)
    run = stored(execute(fixed("echo", blocks=1, factors={"connections": (1, 2, 3, 4)}), tmp_path, fake_build))
    assert max(trial.attempt for trial in run.trials) == next_cells.TRIES_ALONE == 8


def test_where_foreign_load_is_counted_nothing_is_retried(
    tmp_path: Path, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disturbs(monkeypatch, lambda _: False)
    assert {trial.attempt for trial in stored(execute(fixed("echo"), tmp_path, fake_build)).trials} == {1}


def test_the_planned_blocks_end_at_the_limit_of_time(
    tmp_path: Path, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every trial is disturbed and takes ten seconds: before the report, a hundred seconds are nine tries."""
    disturbs(monkeypatch, lambda _: True, seconds=10.0)
    limited = replace(fixed("echo", most_blocks=60), time_budget_s=50.0, time_limit_s=100.0)
    run = stored(execute(limited, tmp_path, fake_build))
    assert len(run.trials) == 9
    assert run.finished_at is not None


def test_time_that_is_left_goes_to_the_widest_interval(
    tmp_path: Path, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disturbs(monkeypatch, lambda _: False)
    timed = replace(fixed("echo", "chat", blocks=6, most_blocks=60), time_budget_s=60.0, time_limit_s=100.0)
    run = stored(execute(timed, tmp_path, fake_build))
    blocks = {name: len({trial.block for trial in run.trials if trial.scenario == name}) for name in ("echo", "chat")}
    assert blocks["echo"] == 6
    assert blocks["chat"] > 15
    assert sum(trial.seconds for trial in run.trials) <= 60.0


def test_a_block_is_expected_to_take_what_its_cells_took_with_all_their_tries(
    tmp_path: Path, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each cell is tried twice, so a block takes 40 s: after the ninth there is time for half of another."""
    disturbs(monkeypatch, lambda cell: cell.attempt == 1, seconds=10.0)
    timed = replace(fixed("echo", blocks=6, most_blocks=60), time_budget_s=390.0, time_limit_s=1000.0)
    run = stored(execute(timed, tmp_path, fake_build))
    assert len({trial.block for trial in run.trials}) == 9


def test_an_interrupted_round_goes_on_where_it_was(
    tmp_path: Path, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disturbs(monkeypatch, lambda cell: cell.attempt < 3)
    outcome = execute(fixed("echo", blocks=1), tmp_path, fake_build)
    run = stored(outcome)
    assert [trial.attempt for trial in run.all_trials if trial.contestant == NAMES[0]] == [1, 2, 3]
    cells = read.load_cells(outcome.folder / schema.FILE_NAME)
    first = [trial for trial in run.trials if trial.attempt == 1]
    partly = replace(run, trials=(*first, *[trial for trial in run.trials if trial.attempt == 2][:1]))
    waiting = schedule.Schedule(partly, cells, Silent().progress)
    assert next(waiting.groups(lambda _cells, _experiment: None))[0].attempt in (2, 3)


def even(tries: dict[str, int], blocks: int = 12) -> Run:
    """Return a run with one trial of each contestant in every block, after so many tries."""
    scenario = Scenario(name="echo", workload="echo")
    trials = []
    made = trials_with({"echo": 0.01})
    for block in range(1, blocks + 1):
        for position, (name, count) in enumerate(tries.items()):
            cell = Cell(block=block, position=position, scenario="echo", contestant=name, levels={})
            good = made(cell, scenario, _named(name), None)  # type: ignore[arg-type]
            bad = replace(good, status="struck_out", audits=(STEAL,))
            trials += [replace(bad, attempt=number) for number in range(1, count)] + [replace(good, attempt=count)]
    experiment = Experiment(name="made", question="?", scenarios=(scenario,))
    return Run(run_id="x", experiment=experiment, started_at="", finished_at="", environment={}, trials=tuple(trials))


def _named(name: str) -> Contestant:
    class NamedContestant:
        def __init__(self) -> None:
            self.name = name

    return NamedContestant()  # type: ignore[return-value]


def test_a_bias_between_contestants_is_found_and_stated() -> None:
    totals = of_run(outcomes.judge_run(even({"a": 1, "b": 1, "c": 4})))
    assert totals.p is not None
    assert totals.p < retries_words.UNEVEN
    assert "NOT disturbed equally" in retries_words.describe_retries(totals)
    assert "c most" in retries_words.describe_retries(totals)


def test_what_meets_all_alike_is_stated_too() -> None:
    totals = of_run(outcomes.judge_run(even({"a": 2, "b": 2, "c": 2})))
    assert totals.p == 1.0
    assert "No contestant is proven to be disturbed more than others (p = 1)." in retries_words.describe_retries(totals)
    assert of_run(outcomes.judge_run(even({"a": 1, "b": 1}))).p is None
