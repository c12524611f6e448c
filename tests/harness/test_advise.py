"""`netdyno advise`: a run that drops beaten contestants, an answer from stored runs, and its sentences."""

from __future__ import annotations

import functools
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from msgspec.structs import replace

from netdyno.kit.errors import UserError
from netdyno.kit.paths import ROOT
from netdyno.kit.statistics.block_counts import ADVICE_LOOKS
from netdyno.measure.machine import environment
from netdyno.measure.run import preparation, runner
from netdyno.measure.trial import prepared
from netdyno.measure.trial.context import TrialContext
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.present import report
from netdyno.question import experiment, workload
from netdyno.question.contestants import building
from netdyno.question.contestants.contestants import discover
from netdyno.question.plan import Cell
from netdyno.store import read, schema
from netdyno.verbs import advise, advise_questions, candidates
from netdyno.verbs.cli import main
from tests.support.builders import made_advice
from tests.support.edit_store import edit_store

pytestmark = [pytest.mark.needs_build, pytest.mark.usefixtures("trial_by_trial", "steady_canary")]

FIRST, SECOND, THIRD = "epoll-coroutines", "epoll-reactor", "threads-global-lock"
COSTS = {FIRST: 10.0, SECOND: 10.1, THIRD: 30.0}
WORKLOAD = ("--connections", "20", "--rate", "1k", "--objective", "p99<5ms")
NAMED = ("--contestants", ",".join(COSTS))


of_machine = functools.cache(environment.describe_machine)


class FakeMachine:
    """The true figures of each contestant; nothing is started. Above `crossing` msg/s the second is better."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, results: Path) -> None:
        self.costs: Mapping[str, float] = COSTS
        self.spread = 0.05
        self.crossing = 1e9
        self.ran: Counter[str] = Counter()
        self.results = results
        monkeypatch.setattr(runner, "run_trial", self._run_trial)
        monkeypatch.setattr(environment, "describe_machine", of_machine)
        monkeypatch.setattr(report, "write_page", lambda *_: None)

    def _run_trial(self, cell: Cell, scenario: Scenario, contestant: Contestant, _context: TrialContext) -> Trial:
        self.ran[contestant.name] += 1
        rate = float(cell.levels.get("rate", scenario.rate or 0))
        more = 1.5 if contestant.name == FIRST and rate > self.crossing else 1.0
        made = made_advice.trial(cell, scenario, more * self.costs[contestant.name], self.spread)
        return replace(made, position=cell.position, attempt=cell.attempt)

    def asks(self, *words: str, named: tuple[str, ...] = NAMED) -> int:
        return main(["advise", *WORKLOAD, *named, "--results", str(self.results), *words])

    def runs(self) -> list[Run]:
        """Return the stored runs, oldest first: two may begin within the same second, the resolution of an id."""
        stored = (read.load(self.results / run_id / schema.FILE_NAME) for run_id in read.run_ids(self.results))
        return sorted(stored, key=lambda run: run.started_at)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeMachine:
    return FakeMachine(monkeypatch, tmp_path / "results")


def test_a_server_that_is_beaten_is_dropped_and_the_rest_has_the_time(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert machine.asks("--no-along", "--time-budget", "10m") == 0
    assert machine.ran[THIRD] == ADVICE_LOOKS[0]
    assert machine.ran[FIRST] == machine.ran[SECOND] > ADVICE_LOOKS[0]
    out = capsys.readouterr().out
    assert f"Servers dropped because they cannot be the best: {THIRD} after {ADVICE_LOOKS[0]} blocks." in out
    assert "p99 < 5 ms is met by" in out
    assert "Whether the answer changes near these values was not measured." in out
    (run,) = machine.runs()
    assert f"{run.run_id}, made for this question." in out


def test_its_run_can_be_repeated_by_its_file(machine: FakeMachine, tmp_path: Path) -> None:
    machine.asks("--no-along", "--time-budget", "60s")
    (run,) = machine.runs()
    again = experiment.load(tmp_path / "results" / run.run_id / advise.FILE_NAME)
    assert again.scenarios == run.experiment.scenarios
    assert replace(run.experiment, advise=None, name=again.name) == again


def test_it_keeps_to_its_time(machine: FakeMachine) -> None:
    machine.spread = 0.5
    machine.asks("--no-along", "--time-budget", "60s")
    (run,) = machine.runs()
    assert sum(trial.seconds for trial in run.trials) <= 60 + 2.6  # each trial is 2.6 s


def test_json_has_the_answer_and_so_has_the_folder(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert machine.asks("--no-along", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert FIRST in answer["take"]
    assert answer["metric"] == "cpu"
    assert (answer["objective"], answer["among"]) == ("p99<5ms", "meets")
    assert (answer["stored"], answer["along"]) == (False, None)
    third = next(entry for entry in answer["beside"] if entry["contestant"] == THIRD)
    assert third["low"] < third["ratio"] < third["high"] < 1
    assert {contestant["outcome"] for contestant in answer["kept"]} == {"meets"}
    assert json.loads((tmp_path / "results" / answer["run"] / advise.ANSWER_NAME).read_text()) == answer


def test_json_is_whole_where_there_is_no_answer(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--no-along", "--time-budget", "60s", "--again", "--json")
    machine.asks(*words)
    answered = json.loads(capsys.readouterr().out)
    monkeypatch.setattr(runner, "run_trial", lambda cell, *_: prepared.record_skip(cell, "it is not there"))
    assert machine.asks(*words) == 1
    answer = json.loads(capsys.readouterr().out)
    assert list(answer) == list(answered)
    assert (answer["take"], answer["metric"], answer["objective"], answer["run"]) == ([], "cpu", "p99<5ms", None)
    assert {name for name in answer if type(answer[name]) is not type(answered[name])} == {
        "verdict",
        "among",
        "behind",
        "run",
        "folder",
    }


def test_the_page_explains_every_key_of_the_json(machine: FakeMachine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.asks("--no-along", "--time-budget", "60s", "--json")
    answer = json.loads(capsys.readouterr().out)
    (chapter,) = re.findall(
        r"^## For programs\n(.*?)^## ", (ROOT / "docs" / "advise.md").read_text(), re.MULTILINE | re.DOTALL
    )
    keys = [key for line in re.findall(r"^\* ((?:`\w+`(?:, )?)+):", chapter, re.MULTILINE) for key in line.split(", ")]
    assert sorted(key.strip("`") for key in keys) == sorted(answer)


# --- half and double -----------------------------------------------------------------------------------------------


def test_half_and_double_are_looked_at_and_a_flip_is_named(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.crossing, machine.spread = 1500.0, 0.01
    machine.costs = {**COSTS, SECOND: 12.0}
    assert machine.asks("--time-budget", "20m") == 0
    _, beside = machine.runs()
    assert [scenario.factors for scenario in beside.experiment.scenarios] == [
        {"rate": (500, 1000, 2000)},
        {"connections": (10, 20, 40)},
    ]
    out = capsys.readouterr().out
    changes = f"Server CPU per message: the winner changes from {FIRST} to {SECOND} between "
    assert f"Across rate, the answer changes. {changes}" in out
    assert (
        "Across connections, the answer does not change between 10 connections and 40 connections, compared with" in out
    )
    assert "at 2000 msg/s offered it is met" in out
    assert f"; the neighbouring values on {machine.results / beside.run_id}." in out


def test_a_server_that_ends_that_early_has_the_answer_all_the_same(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    carried_out = advise._run_experiment

    def cut_short(request: advise.AdviseRequest, name: str, *rest: Any) -> Any:
        done, folder = carried_out(request, name, *rest)
        return (msgspec.structs.replace(done, exit_code=130) if name == advise.NEIGHBOURS_NAME else done), folder

    monkeypatch.setattr(advise, "_run_experiment", cut_short)
    assert machine.asks("--time-budget", "20m") == 0
    assert len(machine.runs()) == 2
    out = capsys.readouterr().out
    assert ", made for this question." in out
    assert "near these values was not measured" in out


def test_where_double_is_too_much_for_the_machine_the_answer_is_given_all_the_same(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check = preparation.check

    def refuse(planned: Experiment, *rest: Any) -> None:
        if len(planned.scenarios) > 1:
            raise UserError("too few file descriptors")
        check(planned, *rest)

    monkeypatch.setattr(preparation, "check", refuse)
    assert machine.asks("--time-budget", "20m") == 0
    output = capsys.readouterr()
    assert "netdyno: half and double of the values were not measured: too few file descriptors" in output.err
    assert "near these values was not measured" in output.out


def test_where_no_time_is_left_for_them_that_is_stated(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each trial is 2.6 s: two do not fit into 4 s, and one is longer than 2 s."""
    for budget in ("4s", "2s"):
        assert machine.asks("--time-budget", budget, "--again") == 0
        output = capsys.readouterr()
        assert "was not measured, because there was no time left." in output.out
        assert "half and double" not in output.err


def test_what_is_built_first_takes_nothing_of_their_time(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now, late_s = time.monotonic, [0.0]

    def make(*_: object) -> None:
        late_s[0] += 3600

    monkeypatch.setattr(building, "make", make)
    monkeypatch.setattr(time, "monotonic", lambda: now() + late_s[0])
    assert machine.asks("--time-budget", "20m") == 0
    assert "Across rate, " in capsys.readouterr().out


# --- what is stored ------------------------------------------------------------------------------------------------


def test_what_was_measured_is_not_measured_again(machine: FakeMachine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.asks("--no-along")
    before = machine.ran.total()
    assert machine.asks("--no-along") == 0
    assert machine.ran.total() == before
    assert ", a stored run of " in capsys.readouterr().out
    assert machine.asks("--no-along", "--again") == 0
    assert machine.ran.total() > before


def test_half_and_double_that_are_stored_are_reported_with_the_run_that_they_belong_to(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run at half and double is the newer one, and contains the workload, too."""
    machine.crossing, machine.spread = 1500.0, 0.01
    machine.costs = {**COSTS, SECOND: 12.0}
    machine.asks("--time-budget", "20m")
    first = capsys.readouterr().out
    main_run, beside = machine.runs()
    before = machine.ran.total()
    assert machine.asks("--time-budget", "20m") == 0
    assert machine.ran.total() == before
    again = capsys.readouterr().out
    lines = [line for line in first.splitlines() if line.startswith("Across ")]
    assert [line for line in again.splitlines() if line.startswith("Across ")] == lines
    assert len(lines) == 2
    rests = f"This is based on {machine.results / main_run.run_id}, a stored run of {main_run.started_at}"
    assert f"{rests}; the neighbouring values on {machine.results / beside.run_id}." in again


def test_half_and_double_of_a_stored_run_are_looked_at_where_that_was_not_done(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.costs, machine.spread = {**COSTS, SECOND: 13.0}, 0.02
    machine.asks("--no-along", "--time-budget", "5m")
    assert machine.asks("--time-budget", "5m") == 0
    _, beside = machine.runs()
    assert beside.experiment.name == workload.NEIGHBOURS
    assert sum(trial.seconds for trial in beside.trials) <= 300 + 2.6
    before = machine.ran.total()
    for words, has_neighbours in (((), True), (("--no-along",), False)):
        capsys.readouterr()
        assert machine.asks("--time-budget", "5m", *words) == 0
        assert ("Across rate, " in capsys.readouterr().out) is has_neighbours
    assert machine.ran.total() == before
    with edit_store(machine.results / beside.run_id / schema.FILE_NAME) as connection:
        connection.execute("UPDATE run SET finished_at = NULL")
    machine.asks("--time-budget", "5m")
    assert [run.experiment.name for run in machine.runs()[2:]] == [workload.NEIGHBOURS]


def test_an_answer_that_is_not_settled_is_measured_again_where_there_is_more_time(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.spread = 0.5
    assert machine.asks("--no-along", "--time-budget", "60s") == 0
    assert "A longer --time-budget would show more." in capsys.readouterr().out
    before = machine.ran.total()
    for budget in ("60s", "50s"):
        assert machine.asks("--no-along", "--time-budget", budget) == 0
        assert machine.ran.total() == before
    capsys.readouterr()
    assert machine.asks("--no-along", "--time-budget", "2m") == 0
    assert machine.ran.total() > before
    out = capsys.readouterr().out
    why = "its answer is not settled, and it had 1:00, while this run has 2:00."
    assert f"-advise, which measured this workload: {why}" in out


def test_a_settled_answer_is_taken_however_much_time_there_is(machine: FakeMachine) -> None:
    machine.costs, machine.spread = {**COSTS, SECOND: 13.0}, 0.02
    machine.asks("--no-along", "--time-budget", "60s")
    before = machine.ran.total()
    assert machine.asks("--no-along", "--time-budget", "30m") == 0
    assert machine.ran.total() == before


def test_a_run_that_was_ended_had_the_time_of_its_trials(machine: FakeMachine) -> None:
    machine.spread = 0.5
    machine.asks("--no-along", "--time-budget", "60s")
    before = machine.ran.total()
    with edit_store(machine.results / machine.runs()[0].run_id / schema.FILE_NAME) as connection:
        connection.execute("UPDATE run SET finished_at = NULL")
    machine.asks("--no-along", "--time-budget", "50s")
    assert machine.ran.total() == before
    machine.asks("--no-along", "--time-budget", "60s")
    assert machine.ran.total() > before


def test_fewer_contestants_are_covered_and_more_are_not(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.asks("--no-along", named=("--contestants", f"{SECOND},{THIRD}"))
    before = machine.ran.total()
    machine.asks("--no-along", named=("--contestants", f"{SECOND},{THIRD}"))
    assert machine.ran.total() == before
    capsys.readouterr()
    machine.asks("--no-along")
    assert machine.ran.total() > before
    assert f"which measured this workload: without {FIRST}." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("git_commit", "0c374d8", "git_commit was 0c374d8 and is "),
        ("cpu_model", "Abacus", "cpu_model was Abacus and is "),
        ("programs", [f"{SECOND} 000000000000"], f"the program {SECOND} was 000000000000 and is "),
    ],
)
def test_what_another_machine_or_commit_measured_is_not_taken(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str], tmp_path: Path, key: str, value: Any, message: str
) -> None:
    machine.asks("--no-along")
    (run,) = machine.runs()
    with edit_store(tmp_path / "results" / run.run_id / schema.FILE_NAME) as connection:
        changed = json.dumps({**run.environment, key: value})
        connection.execute("UPDATE run SET environment = ?", (changed,))
    before = machine.ran.total()
    machine.asks("--no-along")
    assert machine.ran.total() > before
    assert message in capsys.readouterr().out


def stored_levels(machine: FakeMachine, tmp_path: Path, names: Iterable[str] = COSTS) -> None:
    """A run of 500, 2,000 and 8,000 messages a second."""
    text = f"""
question = "?"
contestants = {list(names)}
blocks = 8
warmup = "0s"
duration = "1s"
aa-share = 0.0
[[scenario]]
name = "there"
workload = "rpc"
arrivals = "poisson"
metric = "p99"
connections = 20
size = 64
[scenario.factors]
rate = [500, 2000, 8000]
"""
    (tmp_path / "there.toml").write_text(text)
    assert main(["run", str(tmp_path / "there.toml"), "--results", str(tmp_path / "results"), "--trace", "never"]) == 0
    machine.ran.clear()


def test_between_two_levels_with_one_answer_nothing_is_measured_and_it_says_so(
    machine: FakeMachine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.costs, machine.spread = {**COSTS, SECOND: 13.0}, 0.02
    stored_levels(machine, tmp_path)
    assert machine.asks() == 0
    assert not machine.ran
    out = capsys.readouterr().out
    assert f"Take {FIRST}: it has the lowest server CPU per message" in out
    assert (
        "which did not measure this workload, but 500 msg/s offered and 2,000 msg/s offered, "
        "with the same answer at both" in out
    )


@pytest.mark.parametrize(("cost", "spread"), [(13.0, 0.02), (15.0, 0.005)], ids=["another", "one of the two"])
def test_between_two_levels_with_two_answers_it_is_measured(
    machine: FakeMachine, tmp_path: Path, capsys: pytest.CaptureFixture[str], cost: float, spread: float
) -> None:
    """A statement on two contestants at one level does not hold between this level and the next."""
    machine.costs, machine.spread, machine.crossing = {**COSTS, SECOND: cost}, spread, 1500.0
    stored_levels(machine, tmp_path)
    assert machine.asks("--no-along") == 0
    assert machine.ran
    differ = "its answers at 500 msg/s offered and at 2,000 msg/s offered are not the same."
    assert f"-there, which measured values below and above those of this workload: {differ}" in capsys.readouterr().out


def test_why_a_run_is_not_taken_that_has_it_and_values_around_it(
    machine: FakeMachine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A contestant is missing at all of its levels."""
    stored_levels(machine, tmp_path, names=(SECOND, THIRD))
    for rate, has in (("2k", "this workload"), ("1k", "values below and above those of this workload")):
        assert machine.asks("--rate", rate, "--no-along") == 0
        assert f"-there, which measured {has}: without {FIRST}." in capsys.readouterr().out


def test_what_had_too_few_messages_for_the_objective_is_measured(
    machine: FakeMachine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored_levels(machine, tmp_path)
    assert machine.asks("--rate", "2k", "--objective", "p99.99<5ms", "--no-along") == 0
    assert machine.ran
    assert "its windows have too few messages for p99.99 < 5 ms" in capsys.readouterr().out
    (scenario,) = machine.runs()[-1].experiment.scenarios
    assert scenario.duration_s == 5


def test_the_stored_neighbours_say_where_it_changes(
    machine: FakeMachine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.costs, machine.spread, machine.crossing = {**COSTS, SECOND: 13.0}, 0.02, 4000.0
    stored_levels(machine, tmp_path)
    assert machine.asks("--rate", "2k") == 0
    assert not machine.ran
    out = capsys.readouterr().out
    assert (
        f"The answer does not change between 500 msg/s offered and 2,000 msg/s offered: {FIRST} there as well." in out
    )
    assert f"The answer changes between 2,000 msg/s offered and 8,000 msg/s offered: {SECOND} there." in out


# --- contestants and questions ---------------------------------------------------------------------------------------


def test_languages_narrow_the_contestants() -> None:
    servers = discover()
    chosen = candidates.select_allowed(servers, {"languages": ("JavaScript", "python")})
    chosen_names = {contestant.name for contestant in chosen}
    assert {"node-events", "asyncio-protocol"} <= chosen_names
    assert not {"go-net", "tokio", "epoll-coroutines"} & chosen_names
    names = {contestant.name for contestant in candidates.select_allowed(servers, {})}
    assert SECOND in names
    assert not {contestant.name for contestant in servers if contestant.manifest.apart} & names
    assert not any(name.startswith(("udp-", "zeromq-")) for name in names)
    assert {contestant.name for contestant in candidates.select_allowed(servers, {"transports": ("udp",)})} >= {
        "udp-coroutines"
    }


def test_frameworks_are_candidates_where_they_are_requested() -> None:
    servers = [replace(server, available=True) for server in discover()]
    frameworks = {
        server.name for server in servers if server.manifest.is_framework and "web" in server.manifest.workloads
    }
    names = {contestant.name for contestant in candidates.select_allowed(servers, {"speaks": "web"})}
    assert frameworks - names == {"nginx"}, "a configuration is no answer to which server to take"
    assert SECOND in names
    assert not frameworks & {contestant.name for contestant in candidates.select_allowed(servers, {"speaks": "http"})}
    named = candidates.select_allowed(servers, {"speaks": "web", "contestants": ("nginx", "framework:go-*")})
    assert [contestant.name for contestant in named] == ["go-http", "nginx"]


def test_the_flag_says_what_is_spoken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[advise.AdviseRequest] = []

    def keep(request: advise.AdviseRequest, _argv: list[str]) -> int:
        seen.append(request)
        return 0

    monkeypatch.setattr(advise, "run", keep)
    words = ("--server", "mine {port}", "--results", str(tmp_path))
    assert main(["advise", "--frameworks", "--service-time", "1ms", "--waits", *words]) == 0
    assert seen[0].given == {"speaks": "web", "service-time": "1ms", "service-kind": "wait"}
    own, requested = candidates.settle_workload(seen[0].own, seen[0].given)
    assert (own.workload, requested) == ("web", seen[0].given)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--frameworks", "--speaks", "rpc"), "--frameworks: frameworks speak web; leave --speaks out"),
        (("--frameworks", "--fan-out", "room"), "--speaks: a room is 'chat', and nothing else"),
        (("--languages", "cobol"), "no server is written in 'cobol'"),
        (("--transports", "tpc"), "unknown transport 'tpc' (did you mean 'tcp'?)"),
        (("--transports", "udp"), "over udp here"),
        (("--waits",), "need a --service-time"),
        (("--waits", "--computes"), "--waits and --computes: leave one of them out"),
        (("--rate", "often"), "--rate: 'often' is no rate"),
        (("--workload", "nowhere.toml"), "nowhere.toml: cannot be read"),
    ],
)
def test_what_cannot_be_meant_is_stated(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], complaint: str
) -> None:
    assert machine.asks(*words) == 2
    assert complaint in capsys.readouterr().err
    assert not machine.ran


def test_other_cores_than_this_machine_has_are_a_caveat(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.asks("--no-along", "--cores", "77")
    assert "and yours will have 77: the effect of that was not measured." in capsys.readouterr().out


def test_a_file_says_it_as_well_and_flags_go_before(machine: FakeMachine, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('connections = 7\nrate = "3k"\nsize = 128\ntime-budget = "60s"\n')
    machine.asks("--no-along", "--workload", str(tmp_path / "mine.toml"))
    (scenario,) = machine.runs()[0].experiment.scenarios
    assert (scenario.connections, scenario.rate, scenario.size) == (20, 1000, 128)


def test_without_a_word_a_terminal_gets_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"connections": "30", "rate": "2k", "service-time": "1ms", "service-kind": "cpu", "objective": "p99<9ms"}
    texts = {text: name for name, text, _ in advise_questions.QUESTIONS}
    prompted: list[str] = []

    def prompt(text: str, default: str, **_: object) -> str:
        prompted.append(texts[text])
        return answers.get(texts[text], default)

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(typer, "prompt", prompt)
    received = advise_questions.ask_questions(lambda _: None)
    assert received == {
        "connections": 30,
        "rate": 2000.0,
        "size": 64,
        "service-time": "1ms",
        "service-kind": "cpu",
        "objective": "p99<9ms",
        "time-budget": 300.0,
    }
    assert "slow-readers" not in prompted  # there is no room
    assert prompted.index("objective") < prompted.index("rate")


def test_a_mistyped_answer_is_requested_again_and_the_rest_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = {"connections": ["many", "30"], "size": ["2 KB", "2KiB"], "objective": ["p99<", "cpu"]}
    texts = {text: name for name, text, _ in advise_questions.QUESTIONS}
    prompted: list[str] = []

    def prompt(text: str, default: str, **_: object) -> str:
        prompted.append(texts[text])
        return (typed.get(texts[text]) or [default]).pop(0)

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(typer, "prompt", prompt)
    received = advise_questions.ask_questions(lambda _: None)
    assert received == {"connections": 30, "size": 2048, "objective": "cpu", "time-budget": 300.0}
    words = workload.list_words(received)
    assert words == ["--connections", "30", "--size", "2048", "--objective", "cpu", "--time-budget", "300s"]
    assert [prompted.count(name) for name in ("connections", "rate", "size", "objective")] == [2, 1, 2, 2]
    assert capsys.readouterr().err.count("; try again\n") == 3


def test_answers_that_contradict_each_other_are_requested_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = {"objective": ["p99<5ms"], "rate": ["0", "2k"], "languages": ["c--", "c++"]}
    texts = {text: name for name, text, _ in advise_questions.QUESTIONS}

    def prompt(text: str, default: str, **_: object) -> str:
        return (typed.get(texts[text]) or [default]).pop(0)

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(typer, "prompt", prompt)
    servers = [replace(server, available=True) for server in discover()]
    received = advise_questions.ask_questions(lambda given: candidates.select_allowed(servers, given))
    assert (received["objective"], received["rate"], list(received["languages"])) == ("p99<5ms", 2000.0, ["c++"])
    errors = capsys.readouterr().err
    assert "response times need a --rate" in errors
    assert "no server is written in 'c--'" in errors


def test_without_a_word_and_without_a_terminal_it_says_what_to_say(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False)
    assert main(["advise"]) == 2
    assert "say what the workload is" in capsys.readouterr().err
