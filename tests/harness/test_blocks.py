"""A run that goes on until it is precise enough: the number and the content of its blocks, and why they ended."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.ranking import EndOfBlocks
from netdyno.analysis.ranking import stopping
from netdyno.analysis.trials.split import select_part
from netdyno.kit.errors import UserError
from netdyno.kit.statistics import block_counts
from netdyno.measure.run import next_cells, resume, runner
from netdyno.measure.run.progress import Progress
from netdyno.measure.run.schedule import Schedule
from netdyno.measure.trial import first_requests, warm_up
from netdyno.measure.trial.context import TrialContext
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Budget, Experiment, Scenario
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.present import report
from netdyno.present.prose import stopping as stopping_words
from netdyno.question import blocks, experiment, plan
from netdyno.question.plan import Cell
from netdyno.store import read, schema
from tests.support.builders.made_blocks import NAMES, Silent, asked, blocks_of, execute, permit, trials_with
from tests.support.builders.made_claims import claims_run, made_trial
from tests.support.printed import print_in_one_line

pytestmark = pytest.mark.usefixtures("trial_by_trial", "steady_canary")

Spread = Callable[..., None]


@pytest.fixture
def spread(monkeypatch: pytest.MonkeyPatch) -> Spread:
    """Set the noise of each scenario; nothing is started."""

    def set_to(**by_scenario: float) -> None:
        monkeypatch.setattr(runner, "run_trial", trials_with(by_scenario))

    return set_to


def load(outcome: runner.RunOutcome) -> Run:
    return read.load(outcome.folder / schema.FILE_NAME)


def ending(run: Run, scenario: str = "echo") -> EndOfBlocks:
    result = ending_of(run, next(candidate for candidate in run.experiment.scenarios if candidate.name == scenario))
    assert result is not None
    return result


def ending_of(run: Run, scenario: Scenario) -> EndOfBlocks | None:
    finished, budget_s = run.finished_at is not None, run.experiment.time_budget_s
    return stopping.find_ending(select_part(run, scenario), finished=finished, time_budget_s=budget_s)


def test_it_goes_on_until_every_interval_is_narrow_and_no_further(
    tmp_path: Path, fake_build: Path, spread: Spread
) -> None:
    spread(echo=0.08)
    run = load(execute(asked("echo"), tmp_path, fake_build))
    end = ending(run)
    assert block_counts.EARLIEST_END < end.blocks < 50
    assert blocks_of(run, "echo") == list(range(1, end.blocks + 1))
    assert (end.why, run.finished_at is not None) == ("precise", True)
    assert end.widest is not None
    assert end.widest <= 0.05
    earlier = msgspec.structs.replace(run, trials=tuple(trial for trial in run.trials if trial.block < end.blocks))
    assert stopping.needs_more_blocks(select_part(earlier, run.experiment.scenarios[0]))
    assert not stopping.needs_more_blocks(select_part(run, run.experiment.scenarios[0]))


def test_its_blocks_are_those_of_a_fixed_number(tmp_path: Path, fake_build: Path, spread: Spread) -> None:
    """The order of a block depends on the seed and not on the measurements."""
    spread(echo=0.08)
    outcome = execute(asked("echo"), tmp_path, fake_build)
    number = ending(load(outcome)).blocks
    cells = read.load_cells(outcome.folder / schema.FILE_NAME)
    assert cells == plan.plan(asked("echo").with_each(blocks=number))


def test_the_budget_of_blocks_ends_it(tmp_path: Path, fake_build: Path, spread: Spread) -> None:
    spread(echo=0.5)
    run = load(execute(asked("echo", most_blocks=16), tmp_path, fake_build))
    assert (ending(run).why, len(blocks_of(run, "echo"))) == ("blocks", 16)
    assert re.fullmatch(
        rf"limit reached after 16 blocks \(widest interval ±\d\d%, {NAMES[0]} against {NAMES[1]}; requested ±5%\)",
        stopping_words.explain_end(ending(run)),
    )


def test_no_block_begins_that_would_end_after_the_budget_of_time(
    tmp_path: Path, fake_build: Path, spread: Spread
) -> None:
    """A made trial takes 2.6 s, a block 5.2 s, so 10 blocks take 52 s, and 11 more than the 57 s that are not for the
    report."""
    spread(echo=0.5)
    timed = msgspec.structs.replace(asked("echo"), time_budget_s=60.0)
    display = Silent()
    run = load(execute(timed, tmp_path, fake_build, display))
    assert (ending(run).why, len(blocks_of(run, "echo"))) == ("time", 10)
    assert stopping_words.explain_end(ending(run)).startswith(
        "time budget (1:00) used up after 10 blocks (widest interval "
    )
    short = msgspec.structs.replace(timed, time_budget_s=1.0)
    assert len(blocks_of(load(execute(short, tmp_path, fake_build)), "echo")) == 6  # `blocks` are always there


def test_what_was_spent_before_the_first_block_counts(
    tmp_path: Path, fake_build: Path, spread: Spread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """11 s before the first block, for measuring warm-ups, leave 46 s for 8 blocks of 5.2 s."""
    spread(echo=0.5)
    monkeypatch.setattr(runner, "Schedule", lambda run, cells, progress, _: Schedule(run, cells, progress, 11.0))
    timed = msgspec.structs.replace(asked("echo"), time_budget_s=60.0)
    assert len(blocks_of(load(execute(timed, tmp_path, fake_build)), "echo")) == 8


def test_the_time_of_the_first_requests_is_of_the_run(
    tmp_path: Path, fake_build: Path, spread: Spread, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted_s: list[float] = []
    check = first_requests.check

    def check_slowly(*arguments: Any) -> first_requests.FirstReplies:
        time.sleep(0.25)
        return check(*arguments)

    def count(run: Run, cells: Sequence[Cell], progress: Progress, before_s: float) -> Schedule:
        counted_s.append(before_s)
        return Schedule(run, cells, progress, before_s)

    spread(echo=0.05)
    monkeypatch.setattr(first_requests, "check", check_slowly)
    monkeypatch.setattr(runner, "Schedule", count)
    execute(asked("echo"), tmp_path, fake_build)
    assert counted_s[0] >= 0.25


def test_a_server_without_a_right_reply_has_no_warm_up(
    tmp_path: Path, fake_build: Path, spread: Spread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting for the replies of a mute one took a gate a minute."""
    asked_for: list[set[str]] = []

    def select(cells: Sequence[Cell], *_: object) -> tuple[()]:
        asked_for.append({cell.contestant for cell in cells})
        return ()

    spread(echo=0.05)
    failing = {NAMES[0]: UserError("no right reply")}
    replies = first_requests.FirstReplies(asked("echo"), {}, failures=failing)
    monkeypatch.setattr(first_requests, "check", lambda *_: replies)
    monkeypatch.setattr(warm_up, "select_kinds", select)
    execute(asked("echo"), tmp_path, fake_build)
    assert asked_for == [set(NAMES[1:])]


def timed(*names: str, budget_s: float) -> Experiment:
    """An experiment whose blocks go on for this time, in scenarios of 5.2 s a block."""
    open_ended = msgspec.structs.replace(asked(*names), time_budget_s=budget_s)
    return open_ended.with_each(precision=None, most_blocks=200)


def needed(run: Run, scenario: str) -> int | None:
    result = next(result for result in analyse(run).scenarios if result.scenario.name == scenario)
    return result.decision.blocks_to_settle


def test_what_few_more_blocks_would_decide_is_decided_after_the_budget(
    tmp_path: Path, fake_build: Path, spread: Spread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here 28 s are for a further look: five blocks of 5.2 s, and not six."""
    monkeypatch.setattr(next_cells, "SHARE_OF_BUDGET", 0.45)
    for noise, more, last in ((0.05, None, 11), (0.076, 5, 16), (0.078, 6, 11)):
        spread(echo=noise)
        run = load(execute(timed("echo", budget_s=64.0), tmp_path / f"{noise}", fake_build))
        in_budget = tuple(trial for trial in run.trials if trial.block <= 11)
        first = msgspec.structs.replace(run.experiment, looked_again=())
        assert needed(msgspec.structs.replace(run, experiment=first, trials=in_budget), "echo") == more
        assert blocks_of(run, "echo") == list(range(1, last + 1))
        assert run.experiment.looked_again == (("echo",) if last > 11 else ())
        assert run.finished_at is not None


def test_after_a_further_look_less_is_proven_of_the_same_figures(
    tmp_path: Path, fake_build: Path, spread: Spread
) -> None:
    """The level is shared between both looks (docs/adr/statistics.md)."""
    spread(echo=0.05)
    run = load(execute(timed("echo", budget_s=64.0), tmp_path, fake_build))
    again = msgspec.structs.replace(run, experiment=msgspec.structs.replace(run.experiment, looked_again=("echo",)))
    once, twice = (analyse(judged).scenarios[0].comparisons[0].interval for judged in (run, again))
    assert once is not None
    assert twice is not None
    assert twice.low < once.low < once.high < twice.high


def test_a_further_look_has_no_twins_and_its_time_counts_none(
    tmp_path: Path, fake_build: Path, spread: Spread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 28 s five blocks of two trials take 26 s; with a twin each they would take 39 s."""
    monkeypatch.setattr(next_cells, "SHARE_OF_BUDGET", 0.45)
    monkeypatch.setattr(next_cells, "_count_needed", lambda *_: {5})
    spread(echo=0.076)
    experiment = msgspec.structs.replace(timed("echo", budget_s=64.0).with_each(blocks=5), aa_share=0.5)
    run = load(execute(experiment, tmp_path, fake_build))
    last = max(trial.block for trial in run.twins)
    assert blocks_of(run, "echo")[-1] == last + 5


def test_a_further_look_is_the_last_though_one_more_block_would_decide(
    tmp_path: Path, fake_build: Path, spread: Spread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(next_cells, "_count_needed", lambda *_: {1})
    spread(echo=0.076)
    assert blocks_of(load(execute(timed("echo", budget_s=64.0), tmp_path, fake_build)), "echo")[-1] == 12


def test_further_looks_share_a_tenth_of_the_budget(
    tmp_path: Path, fake_build: Path, spread: Spread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 132 s, 127 are for blocks, and then 13 s for two more: one needs one more, another two, and a third none."""
    more: dict[str, set[int]] = {"one": {1, 30}, "two": {2}, "none": set()}
    monkeypatch.setattr(next_cells, "_count_needed", lambda _, scenario: more[scenario.name])
    spread(one=0.05, two=0.05, none=0.05)
    run = load(execute(timed(*more, budget_s=132.0), tmp_path, fake_build))
    in_time = [trial for trial in run.trials if trial.block <= 6 + (127 - 3 * 6 * 5.2) // 5.2]
    further = run.trials[len(in_time) :]
    assert [trial.scenario for trial in further] == ["one", "one"]


def test_an_interrupted_further_look_is_resumed_and_not_taken_twice(
    tmp_path: Path, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = trials_with({"echo": 0.076})

    def interrupted(cell: Cell, scenario: Scenario, contestant: Contestant, context: TrialContext) -> Trial:
        if (cell.block, cell.position) == (12, 1):
            signal.raise_signal(signal.SIGINT)
        return measure(cell, scenario, contestant, context)

    monkeypatch.setattr(next_cells, "_count_needed", lambda *_: {1})
    monkeypatch.setattr(runner, "run_trial", interrupted)
    outcome = execute(timed("echo", budget_s=64.0), tmp_path, fake_build)
    assert (outcome.interrupted, len(load(outcome).trials)) == (130, 23)
    monkeypatch.setattr(runner, "run_trial", measure)
    path = outcome.folder / schema.FILE_NAME
    resume.resume(path, build=fake_build, display=Silent(), anyway=False, permit=permit)
    assert blocks_of(load(outcome), "echo") == list(range(1, 13))


def test_a_scenario_that_is_precise_is_left_out_of_later_blocks(
    tmp_path: Path, fake_build: Path, spread: Spread
) -> None:
    spread(quiet=0.001, rough=0.5)
    run = load(execute(asked("quiet", "rough", most_blocks=18), tmp_path, fake_build))
    assert blocks_of(run, "quiet") == list(range(1, block_counts.EARLIEST_END + 1))
    assert blocks_of(run, "rough") == list(range(1, 19))
    assert (ending(run, "quiet").why, ending(run, "rough").why) == ("precise", "blocks")


def test_one_without_a_precision_has_its_blocks_and_no_more(tmp_path: Path, fake_build: Path, spread: Spread) -> None:
    spread(quiet=0.001, fixed=0.5)
    both = asked("quiet", "fixed")
    fixed = msgspec.structs.replace(both.scenarios[1], precision=None, blocks=9)
    run = load(execute(msgspec.structs.replace(both, scenarios=(both.scenarios[0], fixed)), tmp_path, fake_build))
    assert blocks_of(run, "fixed") == list(range(1, 10))
    # those that are planned come first: six together, three of the other, and then its own
    assert blocks_of(run, "quiet") == [*range(1, 7), *range(10, 10 + block_counts.EARLIEST_END - 6)]
    assert ending_of(run, fixed) is None


def test_with_none_to_compare_with_there_is_nothing_to_wait_for(
    tmp_path: Path, fake_build: Path, spread: Spread
) -> None:
    spread(echo=0.5)
    alone = asked("echo").with_each(contestants=NAMES[:1])
    run = load(execute(alone, tmp_path, fake_build))
    assert len(run.trials) == 6
    assert stopping_words.explain_end(ending(run)) == "nothing to compare, so ended after 6 blocks"


def test_a_further_block_is_planned_on_disk_before_it_begins(
    tmp_path: Path, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = trials_with({"echo": 0.08})
    seen = []

    def looked_up(cell: Cell, scenario: Scenario, contestant: Contestant, context: TrialContext) -> Trial:
        planned = read.load_cells(context.folder / schema.FILE_NAME)
        seen.append(cell in planned and sum(planned_cell.block == cell.block for planned_cell in planned) == 2)
        return measure(cell, scenario, contestant, context)

    monkeypatch.setattr(runner, "run_trial", looked_up)
    execute(asked("echo"), tmp_path, fake_build)
    assert len(seen) > 2 * block_counts.EARLIEST_END
    assert all(seen)


# --- what is said beforehand and meanwhile -----------------------------------------------------------------------


def test_it_says_between_what_it_will_take_and_that_what_is_left_is_at_most(
    tmp_path: Path, fake_build: Path, spread: Spread
) -> None:
    spread(echo=0.05)
    display = Silent()
    run = load(execute(asked("echo"), tmp_path, fake_build, display))
    (begun,) = display.begun
    assert "17 to 60 blocks of 2 trials" in begun
    assert re.search(r"between 0:4\d and 2:\d\d \(minutes:seconds\)", begun)
    assert len(display.left) == len(run.trials)
    assert all(text.startswith("at most ") for text in display.left)
    assert re.fullmatch(r"at most 5:1\d left", display.left[1])  # 119 of 120 trials of 2.6 s, each with its canary


def test_the_last_block_that_may_be_is_sure_to_come(tmp_path: Path, fake_build: Path, spread: Spread) -> None:
    spread(echo=0.5)
    display = Silent()
    execute(asked("echo", most_blocks=16), tmp_path, fake_build, display)
    assert display.left[-3] == "at most 0:08 left"
    assert display.left[-2:] == ["0:05 left", "0:03 left"]


def test_a_run_of_a_fixed_number_is_announced_as_before(tmp_path: Path, fake_build: Path, spread: Spread) -> None:
    spread(echo=0.5)
    display = Silent()
    execute(asked("echo").with_each(precision=None), tmp_path, fake_build, display)
    assert "6 blocks of 2 trials" in display.begun[0]
    assert "takes about 0:1" in display.begun[0]
    assert display.left[0].endswith(" left")
    assert not any("at most" in text for text in display.left)


def test_a_budget_of_time_is_the_most_that_is_announced(tmp_path: Path, fake_build: Path, spread: Spread) -> None:
    spread(echo=0.5)
    display = Silent()
    execute(msgspec.structs.replace(asked("echo"), time_budget_s=60.0), tmp_path, fake_build, display)
    assert "6 to 60 blocks" in display.begun[0]
    assert re.search(r"between 0:1\d and 1:00 ", display.begun[0])
    assert display.left[1] == "at most 0:57 left"


# --- interrupted -------------------------------------------------------------------------------------------------


def as_measured(run: Run) -> list[Trial]:
    """Its trials but for the canary, which is read beside them at another time; each has been judged by it, once."""
    for trial in run.trials:
        assert [audit.name for audit in trial.audits].count("canary") == 1
    return [
        msgspec.structs.replace(
            trial, canary=None, audits=tuple(audit for audit in trial.audits if audit.name != "canary")
        )
        for trial in run.trials
    ]


def test_an_interrupted_run_goes_on_to_the_very_end_that_it_would_have_had(
    tmp_path: Path, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = trials_with({"echo": 0.05})
    monkeypatch.setattr(runner, "run_trial", measure)
    whole = load(execute(asked("echo"), tmp_path / "whole", fake_build))

    def interrupted(cell: Cell, scenario: Scenario, contestant: Contestant, context: TrialContext) -> Trial:
        if (cell.block, cell.position) == (block_counts.EARLIEST_END, 1):
            signal.raise_signal(signal.SIGINT)
        return measure(cell, scenario, contestant, context)

    monkeypatch.setattr(runner, "run_trial", interrupted)
    outcome = execute(asked("echo"), tmp_path / "cut", fake_build)
    cut = load(outcome)
    assert outcome.interrupted == 130
    assert len(cut.trials) == 2 * block_counts.EARLIEST_END - 1
    assert ending(cut).why == "unfinished"
    monkeypatch.setattr(runner, "run_trial", measure)
    display = Silent()
    again = resume.resume(
        outcome.folder / schema.FILE_NAME, build=fake_build, display=display, anyway=False, permit=permit
    )
    assert (again.run_id, again.interrupted) == (outcome.run_id, 0)
    gone_on = load(again)
    assert as_measured(gone_on) == as_measured(whole)
    assert gone_on.finished_at is not None
    assert f"Resuming after {len(cut.trials)} trials of {len(cut.trials) + 1} planned" in display.begun[0]
    assert len(display.left) == len(whole.trials) - len(cut.trials)
    lines = gone_on.environment[resume.RESUMED]
    assert isinstance(lines, list)
    (line,) = lines
    assert line.endswith(f" after {len(cut.trials)} trials")


@pytest.mark.parametrize("block", [2, block_counts.EARLIEST_END])
def test_kill_9_in_a_planned_or_a_further_block_leaves_a_run_that_can_go_on(
    block: int, tmp_path: Path, fake_build: Path, spread: Spread, monkeypatch: pytest.MonkeyPatch
) -> None:
    spread(echo=0.05)
    measure = trials_with({"echo": 0.05})

    def killed(cell: Cell, scenario: Scenario, contestant: Contestant, context: TrialContext) -> Trial:
        if (cell.block, cell.position) == (block, 1):
            os.kill(os.getpid(), signal.SIGKILL)
        return measure(cell, scenario, contestant, context)

    if not (child := os.fork()):  # a process of its own would load all libraries for it
        try:
            monkeypatch.setattr(runner, "run_trial", killed)
            execute(asked("echo"), tmp_path / "results", fake_build)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    (run_id,) = read.run_ids(tmp_path / "results")
    file = tmp_path / "results" / run_id / schema.FILE_NAME
    left = read.load(file)
    assert (len(left.trials), left.finished_at) == (2 * block - 1, None)
    resume.resume(file, build=fake_build, display=Silent(), anyway=False, permit=permit)
    whole = execute(asked("echo"), tmp_path / "whole", fake_build)
    assert as_measured(read.load(file)) == as_measured(load(whole))
    assert read.load_cells(file) == read.load_cells(whole.folder / schema.FILE_NAME)


class CountedCell:
    """A cell that counts the readings of all cells."""

    readings = 0

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    def __getattr__(self, name: str) -> object:
        CountedCell.readings += 1
        return getattr(self._cell, name)


def made_of(cell: Cell, scenario: Scenario) -> Trial:
    return msgspec.structs.replace(
        made_trial(scenario, cell.block, cell.contestant, cell.levels, {}), position=cell.position
    )


def test_whether_a_block_is_over_is_known_without_reading_the_plan() -> None:
    """A resumed run asks this for every stored trial, and a plan may have thousands of cells."""
    requested = asked("echo").with_each(precision=None)
    planned = plan.plan(requested)
    trials = tuple(made_of(cell, requested.scenarios[0]) for cell in planned)
    run = Run(run_id="r", experiment=requested, started_at="", finished_at=None, environment={}, trials=trials[:3])
    cells = cast(Sequence[Cell], [CountedCell(cell) for cell in planned])
    schedule = Schedule(run, cells, Progress(planned, 1.0))
    before = CountedCell.readings
    assert before > 0
    assert [schedule.is_over(block) for block in (1, 2, 3)] == [True, False, False]
    schedule.add(trials[3])
    assert [schedule.is_over(block) for block in (1, 2, 3)] == [True, True, False]
    assert CountedCell.readings == before


# --- what it says at its end -------------------------------------------------------------------------------------


def test_table_and_report_say_why_the_blocks_of_each_scenario_ended(
    tmp_path: Path, fake_build: Path, spread: Spread
) -> None:
    spread(quiet=0.001, rough=0.5)
    analysis = analyse(load(execute(asked("quiet", "rough", most_blocks=18), tmp_path, fake_build)))
    printed = print_in_one_line(analysis)
    page = report.render_html(analysis)
    for scenario in analysis.scenarios:
        assert scenario.ending is not None
        assert stopping_words.explain_end(scenario.ending) in printed
        assert stopping_words.explain_end(scenario.ending) in page
    assert "precise enough after 17 blocks (widest interval ±" in printed
    assert "limit reached after 18 blocks (widest interval ±" in printed
    assert "in 18 of 18 blocks" in page


def test_an_undecided_claim_says_why_its_blocks_ended_and_a_decided_one_does_not() -> None:
    run = claims_run()
    run = msgspec.structs.replace(run, experiment=run.experiment.with_each(precision=0.1, most_blocks=8))
    run = msgspec.structs.replace(run, finished_at="2025-01-01T13:00:00Z")
    analysis = analyse(run)
    notes = {
        claim.verdict: stopping_words.explain_undecided_claim(claim, analysis.scenarios) for claim in analysis.claims
    }
    (note,) = notes["undecided"]
    assert re.fullmatch(r"limit reached after 8 blocks \(widest interval .*; requested ±10%\)", note)
    assert (notes["confirmed"], notes["refuted"]) == ((), ())


# --- what may be asked for ---------------------------------------------------------------------------------------

TOML = """
question = "Until when?"
contestants = ["*"]
blocks = 6
warmup = "0ms"
duration = "1s"
precision = {precision}
{more}
[[scenario]]
name = "one"
workload = "echo"
[[scenario]]
name = "two"
workload = "echo"
precision = 0.2
[budget.full]
precision = 0.01
most-blocks = 200
"""


def parse(precision: str = "0.05", more: str = "", budget: Budget = "normal") -> tuple[Scenario, ...]:
    text = TOML.format(precision=precision, more=more)
    return experiment.parse(text, "until", "until.toml", budget).scenarios


def test_a_file_says_a_precision_for_all_or_for_one_and_a_size_another() -> None:
    assert [scenario.precision for scenario in parse()] == [0.05, 0.2]
    assert [scenario.precision for scenario in parse('"5%"')] == [0.05, 0.2]
    assert [blocks.find_most(scenario) for scenario in parse()] == [blocks.MOST_BLOCKS] * 2
    assert [blocks.find_most(scenario) for scenario in parse(more="most-blocks = 20")] == [20, 20]
    full = parse(budget="full")
    assert ([scenario.precision for scenario in full], [scenario.most_blocks for scenario in full]) == (
        [0.01, 0.2],
        [200, 200],
    )


@pytest.mark.parametrize(
    ("precision", "more", "message"),
    [
        ("0", "", "until.toml: key 'precision': 0 is no precision: write a share above 0, such as 0.05 or '5%'"),
        ("1.5", "", "key 'precision': 1.5 is no precision"),
        ("true", "", "key 'precision': True is no precision"),
        ('"wide"', "", "key 'precision': 'wide' is no precision"),
        ("0.05", "most-blocks = 5", "scenario 1 ('one'): key 'most-blocks': 5 is less than blocks = 6"),
        ("0.05", "most-blocks = 0", "key 'most-blocks': 0 is not a whole number of at least 1"),
    ],
)
def test_what_cannot_be_requested_names_file_and_key(precision: str, more: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        parse(precision, more)


def test_a_budget_needs_something_that_it_is_a_budget_of() -> None:
    text = TOML.format(precision="0.05", more="most-blocks = 9").replace("precision", "# precision")
    with pytest.raises(UserError, match="key 'most-blocks': without a 'precision'"):
        experiment.parse(text, "until", "until.toml")
    fixed = asked("echo").with_each(precision=None)
    with pytest.raises(UserError, match="--time-budget: is for a run with --precision"):
        blocks.replace_budget(fixed, None, 5.0)
    with pytest.raises(UserError, match="scenario 'echo': key 'most-blocks': 5 is less than blocks = 6"):
        blocks.replace_budget(asked("echo"), 5, None)


def test_the_command_line_s_budgets_take_the_place_of_the_file_s() -> None:
    (scenario,) = blocks.replace_budget(asked("echo", most_blocks=30), 40, None).scenarios
    assert blocks.find_most(scenario) == 40
    timed = blocks.replace_budget(asked("echo"), None, 60.0)
    assert (timed.time_budget_s, blocks.find_most(timed.scenarios[0])) == (60.0, blocks.MOST_BLOCKS_IN_TIME)
    assert blocks.find_most(blocks.replace_budget(asked("echo", most_blocks=30), None, 60.0).scenarios[0]) == 30
    limited = msgspec.structs.replace(asked("echo"), time_budget_s=50.0, time_limit_s=100.0)
    limits_s = [blocks.replace_budget(limited, None, budget_s).time_limit_s for budget_s in (60.0, 200.0)]
    assert limits_s == [100.0, 200.0], "the limit is never shorter than the budget"
