"""A gate's run: it goes on until it has decided or its time is used, and its exit code is the decision."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from msgspec.structs import replace

from netdyno.kit.paths import ROOT
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS, GATE_LOOKS
from netdyno.measure.run import runner
from netdyno.measure.trial import first_requests
from netdyno.measure.trial.context import TrialContext
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Scenario
from netdyno.model.trial import Trial
from netdyno.question import plan
from netdyno.question.plan import Cell
from netdyno.store import read, schema
from netdyno.verbs.cli import main
from tests.support.builders.made_claims import made_trial
from tests.support.fixtures import FAKES

pytestmark = [pytest.mark.needs_build, pytest.mark.usefixtures("trial_by_trial", "steady_canary")]

COMMAND = "sh {port}"
ONE_SCENARIO = """
question = "Is it slower?"
contestants = ["*"]
blocks = 1
warmup = "0ms"
timeout = "5s"
duration = "100ms"
[[scenario]]
name = "most"
workload = "http"
"""

ROUGH = """
[[scenario]]
name = "rough"
workload = "http"
"""


@pytest.fixture(autouse=True)
def _without_first_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is started, so nothing is sent to servers before their first trial either."""
    monkeypatch.setattr(first_requests, "check", lambda asked, *_: first_requests.FirstReplies(asked, {}))


def gate(
    monkeypatch: pytest.MonkeyPatch, results: Path, after: float, spread: float, *words: str, more: str = ""
) -> tuple[int, list[Trial]]:
    """Return exit code and trials of a gate whose second server costs so many times as much; nothing is started. The
    figures of a scenario `rough` spread five times as much."""

    def run_trial(cell: Cell, scenario: Scenario, contestant: Contestant, _context: TrialContext) -> Trial:
        draw = random.Random(f"{cell.block} {cell.scenario} {cell.contestant}")
        cost = (after if contestant.name == "after" else 1.0) * draw.lognormvariate(
            0, spread * (5 if cell.scenario == "rough" else 1)
        )
        figures = {"throughput": 1000.0 / cost, "cpu": 20_000.0 * cost}
        trial = made_trial(scenario, cell.block, contestant.name, cell.levels, figures)
        return replace(trial, position=cell.position, attempt=cell.attempt)

    monkeypatch.setattr(runner, "run_trial", run_trial)
    commands = ["--before", COMMAND, "--after", COMMAND, "--margin", "throughput=5", "--margin", "cpu=5"]
    results.parent.mkdir(exist_ok=True)
    toml = results.parent / "one.toml"
    toml.write_text(ONE_SCENARIO + more)
    code = main(["gate", str(toml), *commands, "--results", str(results), *words])
    (stored,) = results.glob(f"*/{schema.FILE_NAME}")
    return code, list(read.load(stored).trials)


@pytest.mark.usefixtures("undrawn")
def test_equal_servers_pass_at_the_look_that_shows_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, trials = gate(monkeypatch, tmp_path / "results", 1.0, 0.015)
    assert code == 0
    blocks = max(trial.block for trial in trials)
    assert blocks in GATE_LOOKS
    assert {trial.contestant for trial in trials} == {"before", "after"}
    assert not any(trial.twin for trial in trials)


@pytest.mark.usefixtures("undrawn")
def test_a_scenario_that_is_decided_is_measured_no_further(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, trials = gate(monkeypatch, tmp_path / "results", 1.0, 0.01, more=ROUGH)
    assert code == 0
    last = {trial.scenario: trial.block for trial in trials}
    assert FEWEST_BLOCKS <= last["most"] < last["rough"]
    assert last["rough"] in GATE_LOOKS


def test_a_slower_one_fails_and_both_files_say_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, xml = tmp_path / "table.md", tmp_path / "junit.xml"
    words = ["--json", "--markdown", str(table), "--junit", str(xml)]
    assert gate(monkeypatch, tmp_path / "results", 1.2, 0.01, *words)[0] == 1
    answer = json.loads(capsys.readouterr().out)["gate"]
    assert answer["decision"] == "fails"
    assert {line["outcome"] for line in answer["lines"]} == {"worse"}
    assert "**worse**" in table.read_text()
    assert "<failure" in xml.read_text()


@pytest.mark.usefixtures("undrawn")
def test_a_server_that_has_used_its_time_says_that_nothing_is_decided(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, trials = gate(monkeypatch, tmp_path / "results", 1.05, 0.1, "--time-budget", "40s")
    assert code == 3
    assert max(trial.block for trial in trials) in (6, 7)  # of two trials of 2.6 s, and the canary
    assert sum(map(plan.sum_trial_seconds, trials)) <= 40


@pytest.mark.usefixtures("undrawn")
def test_a_gate_without_time_measures_one_block_and_decides_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, trials = gate(monkeypatch, tmp_path / "results", 1.0, 0.01, "--time-budget", "1ms")
    assert (code, {trial.block for trial in trials}) == (3, {1})


def test_a_file_that_cannot_be_written_does_not_blame_the_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(5, "no disk")

    monkeypatch.setattr("netdyno.verbs.gate.write_whole", full)
    words = ["--markdown", str(tmp_path / "table.md"), "--json", "--time-budget", "8s"]
    assert gate(monkeypatch, tmp_path / "results", 1.0, 0.01, *words)[0] == 2
    output = capsys.readouterr()
    assert "table.md cannot be written: no disk" in output.err
    assert json.loads(output.out)["gate"]["decision"] == "open"


def test_what_breaks_does_not_blame_the_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaks(*_: object) -> NoReturn:
        raise ValueError("broken")

    monkeypatch.setattr("netdyno.verbs.run.carry_out", breaks)
    assert main(["gate", "--before", COMMAND, "--after", COMMAND]) == 2
    assert capsys.readouterr().err.endswith("\nValueError: broken\n")


def test_a_reader_that_stops_reading_gets_no_verdict_that_the_server_is_worse(tmp_path: Path) -> None:
    line = f"{sys.executable} {FAKES / 'json_api.py'} {{port}}"
    command = [sys.executable, "-m", "netdyno", "gate", "--before", line, "--after", line, "--path", "/api/items"]
    command += ["--time-budget", "1ms"]
    with subprocess.Popen(
        [*command, "--results", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as ended:
        assert ended.stdout is not None
        ended.stdout.close()
        _, printed = ended.communicate()
    assert ended.returncode == 128 + signal.SIGPIPE
    assert not printed


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--before", COMMAND], "a gate has two servers: give --before"),
        (["--before", COMMAND, "--after", COMMAND, "--build", "make"], "a gate has two servers: give --before"),
        (["--base", "HEAD"], "--base: give --before"),
        (["--base", "HEAD", "--server", COMMAND, "--contestant", "epoll-reactor"], "--base: give --before"),
        (["--base", "HEAD", "--contestant", "epoll-reactor", "--build", "make"], "leave out --build and --workload"),
        (["--base", "none", "--repository", ".", "--contestant", "epoll-reactor"], "leave out --repository"),
        (["--before", COMMAND, "--after", COMMAND, "--repository", "."], "a gate has two servers: give --before"),
        (["--base", "HEAD", "--repository", str(ROOT), "--server", COMMAND], "would start one program twice"),
        (["--base", "no-such-commit", "--contestant", "epoll-reactor"], "'no-such-commit' is no commit"),
        (["--before", "sh", "--after", COMMAND], "the command 'sh' does not say where its port goes"),
        (["--before", COMMAND, "--after", COMMAND, "--margin", "p9=1"], "'p9' is no metric of a gate"),
        (["--before", COMMAND, "--after", COMMAND, "--margin", "mean=1"], "measures nothing that has a margin (mean)"),
        (["--before", COMMAND, "--after", COMMAND, "--markdown", "/no-such/a.md"], "/no-such/a.md cannot be written"),
        (["--before", COMMAND, "--after", COMMAND, "--junit", "/"], "/ cannot be written"),
        (["--before", COMMAND, "--after", "no-such-program {port}"], "no-such-program is no program"),
    ],
)
def test_what_cannot_be_meant_is_stated_before_anything_is_measured(
    words: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", *words, "--results", str(tmp_path)]) == 2
    assert complaint in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
