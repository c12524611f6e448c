"""`netdyno capacity` with fake programs: what it prints and stores, how it ends, and what is refused.

The fake generator gets three answers on each connection, whatever the rate: with 40 connections and a window of 100 ms
that is an overload from 1250 messages a second on."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from netdyno.analysis.analysis import analyse
from netdyno.kit.paths import build_dir
from netdyno.measure.audits import neighbour, of_trial
from netdyno.measure.run import next_cells
from netdyno.measure.trial import canary
from netdyno.model import outcomes
from netdyno.model.run import Run
from netdyno.present.prose.repeat import list_commands
from netdyno.present.prose.verdict import answer
from netdyno.store import read, schema
from netdyno.verbs import cli
from tests.support.chosen import discover_once

REAL_BUILD = build_dir()
SERVER = next(
    contestant.name
    for contestant in discover_once()
    if "echo" in contestant.manifest.workloads and not contestant.manifest.apart
)
UNSAFE = next(contestant.name for contestant in discover_once() if contestant.manifest.unsafe)
# The answers of the fake all take the same time, so that the axis of a figure has no length.
pytestmark = pytest.mark.filterwarnings("ignore:Attempting to set identical low and high ylims")
OPTIONS = ("--arrivals", "constant", "-c", "40", "--duration", "100ms", "--warmup", "0ms", "--foreign-load", "count")


@pytest.fixture(autouse=True)
def _build(fake_build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fakes, and no word of the tests that may run beside this one."""
    monkeypatch.setenv("NETDYNO_BUILD", str(fake_build))
    monkeypatch.setattr(neighbour, "is_crowded", lambda _: False)
    monkeypatch.setattr(outcomes, "was_machine_busy", lambda _: False)


def search(results: Path, *more: str) -> int:
    return cli.main(["capacity", SERVER, *OPTIONS, "--results", str(results), *more])


def stored(results: Path) -> Run:
    (path,) = results.glob(f"*/{schema.FILE_NAME}")
    return read.load(path)


@pytest.mark.usefixtures("steady_canary")
def test_every_step_is_printed_and_stored_and_the_report_says_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert search(tmp_path, "--json") == 0
    out, err = capsys.readouterr()
    question, load, time, *lines, sentence, report = err.splitlines()
    assert question == f"Up to which rate does {SERVER} meet p99 < 5 ms?"
    assert re.fullmatch(r"\w+ over 40 connections, 64-byte .*, 0s of warm-up and 100ms measured", load)
    assert re.fullmatch(r"a search usually takes 16 to 46 steps of 0\.3 s, and so ends .*\d\d:\d\d; longer .*", time)
    assert re.fullmatch(r"  1 +1,000/s  held +p50 +1\.00 µs  p99 +1\.00 µs  p99\.9 +1\.00 µs", lines[0])
    assert re.fullmatch(r"  2 +1,980/s  failed .* overload: 1\.20k/s answered of 1\.98k/s offered", lines[1])
    assert [int(line.split()[0]) for line in lines] == list(range(1, len(lines) + 1))
    assert sentence == (
        f"{SERVER} meets p99 < 5 ms up to 1,220 messages/s (held in 3 of 3 trials); at 1,280 it failed in 3 of 3 "
        "trials."
    )
    printed = json.loads(out)
    assert report == f"report: {printed['report']}"
    run = stored(tmp_path)
    assert printed["sentence"] + "." == sentence
    assert len(printed["steps"]) == len(lines)
    assert (printed["ending"], printed["holds"]["rate_hz"], printed["fails"]["rate_hz"]) == ("capacity", 1220, 1280)
    trials = sorted(run.trials, key=lambda trial: trial.position)
    assert [trial.levels["rate"] for trial in trials] == [step["rate_hz"] for step in printed["steps"]]
    assert len({(trial.block, trial.levels["rate"]) for trial in trials}) == len(trials)
    assert run.finished_at is not None
    (scenario,) = run.experiment.scenarios
    assert scenario.factors["rate"] == tuple(sorted({trial.levels["rate"] for trial in trials}))
    assert scenario.blocks == max(trial.block for trial in trials) == 3
    assert answer(analyse(run).scenarios[0]).sentence == printed["sentence"] + "."
    assert Path(printed["report"]).is_file()
    planned = read.load_cells(Path(printed["report"]).parent / schema.FILE_NAME)
    assert {(cell.block, cell.position) for cell in planned} == {(trial.block, trial.position) for trial in trials}


@pytest.fixture
def slow_after_the_sixth(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that is half as fast after the sixth trial (asked twice, as at the very beginning) as otherwise."""
    speeds = tmp_path / "speeds"
    speeds.write_text("1 1  1 1 1 1 1 0.5 0.5 1")
    monkeypatch.setenv("FAKE_CANARY", f"speeds:{speeds}")
    monkeypatch.setattr(canary, "FRESH_S", 1e9)  # however long this machine holds a test up
    monkeypatch.setattr(of_trial, "STEAL_FLOOR_S", 600.0)
    monkeypatch.setattr(of_trial, "FOREIGN_FLOOR_S", 600.0)


@pytest.mark.usefixtures("undrawn", "steady_canary")
def test_beside_others_a_step_is_retried_as_in_a_run_and_the_end_says_what_helps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tries of a run, and three of the search."""
    monkeypatch.setattr(of_trial, "FOREIGN_SHARE", -1e9)
    monkeypatch.setattr(of_trial, "FOREIGN_FLOOR_S", -1e9)
    monkeypatch.setattr(next_cells, "MOST_TRIES", 10)
    assert search(tmp_path, "--json", "--foreign-load", "strike-out") == 1
    printed = json.loads(capsys.readouterr().out)
    assert [step["outcome"] for step in printed["steps"]] == ["disturbed"] * 12
    assert printed["ending"] == "disturbed"
    assert printed["sentence"].endswith("; end the other programs, or measure beside them (--foreign-load count)")
    assert answer(analyse(stored(tmp_path)).scenarios[0]).sentence == f"{printed['sentence']}."


@pytest.mark.usefixtures("undrawn")
@pytest.mark.usefixtures("slow_after_the_sixth")
def test_a_step_whose_machine_was_not_that_of_the_search_does_not_count_and_is_retried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canary, "MOST_TAKES", 2)
    assert search(tmp_path, "--json", "--foreign-load", "strike-out") == 0
    printed = json.loads(capsys.readouterr().out)
    assert [number for number, step in enumerate(printed["steps"], 1) if step["outcome"] == "disturbed"] == [6, 7]
    assert (
        "after the trial, the canary read 10.0k/s (round trips), a factor of 2.00 off the median of the search so far"
        in (printed["steps"][5]["why"])
    )
    assert printed["steps"][7]["rate_hz"] == printed["steps"][5]["rate_hz"]
    assert (printed["ending"], printed["holds"]["rate_hz"], printed["fails"]["rate_hz"]) == ("capacity", 1220, 1280)
    canaries = [
        [audit.detail for audit in trial.audits if audit.name == "canary"]
        for trial in sorted(stored(tmp_path).trials, key=lambda trial: trial.position)
    ]
    assert all(len(details) == 1 for details in canaries)
    unknown = ["not judged, because there are too few trials to compare with" in details[0] for details in canaries[:6]]
    assert unknown == [True] * 4 + [False] * 2


@pytest.mark.usefixtures("undrawn", "steady_canary")
def test_the_report_tells_the_command_that_makes_the_same_search(tmp_path: Path) -> None:
    assert search(tmp_path / "first", "--start", "1200", "--most", "1440", "--resolution", "0.2", "--needed", "1") == 0
    first = stored(tmp_path / "first")
    command = next(known.line for known in list_commands(analyse(first)) if "made this run" in known.purpose)
    program, *words = shlex.split(command)
    assert program == "./netdyno"
    assert cli.main([*words, "--results", str(tmp_path / "second"), "--foreign-load", "count"]) == 0
    assert stored(tmp_path / "second").experiment == first.experiment


@pytest.mark.usefixtures("undrawn", "steady_canary")
def test_what_is_met_at_the_most_and_what_nothing_meets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert search(tmp_path / "most", "--most", "1100") == 0
    assert (
        f"{SERVER} meets p99 < 5 ms at 1,100 messages/s (held in 3 of 3 trials): the highest rate to be tried, so its "
        "capacity is that or more" in capsys.readouterr().out
    )
    assert search(tmp_path / "none", "--objective", "mean<1ns", "--start", "200") == 0
    assert (
        f"{SERVER} does not meet mean < 1 ns at 100 messages/s, the lowest rate to be tried: it failed in 3 of 3 "
        "trials." in capsys.readouterr().out
    )


@pytest.mark.usefixtures("undrawn", "steady_canary")
def test_a_generator_at_its_limit_is_no_capacity(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LOAD", "saturated")
    assert search(tmp_path) == 1
    out = capsys.readouterr().out
    assert f"the generator was at its limit at 1,000 messages/s: it is unknown whether {SERVER}" in out
    assert out.count("generator at its limit  p50") == 3


@pytest.mark.usefixtures("undrawn", "steady_canary")
def test_a_server_that_dies_gives_no_answer_and_exit_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SERVER", "dies_under_load")
    assert search(tmp_path) == 1
    out = capsys.readouterr().out
    assert "no answer, because no trial was completed at 1,000 messages/s (the server ended with signal" in out
    assert len(stored(tmp_path).trials) == 3


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nobody"], "unknown server 'nobody'"),
        ([UNSAFE], f"{UNSAFE} is unsafe, so its capacity is not measured"),
        ([SERVER, "--objective", "p99<5"], "--objective: the limit of 'p99': '5' is not a duration"),
        ([SERVER, "--workload", "ecko"], f"--workload: {SERVER} does not speak 'ecko'"),
        ([SERVER, "--duration", "5"], "--duration: '5' is not a duration"),
        ([SERVER, "--duration", "0s"], "--duration: '0s' is not above 0"),
        ([SERVER, "--start", "10"], "--start: at 10/s a window of 2s has fewer than 100 messages"),
        ([SERVER, "--most", "500"], "--most: 500 is below the rate that the search starts at, 1,000"),
        ([SERVER, "--most", "inf"], "--most: inf is not a rate"),
        ([SERVER, "--start", "nan"], "nan is not a rate"),
        ([SERVER, "--arrivals", "closed"], "'capacity' needs arrivals = 'constant' or 'poisson'"),
        ([SERVER, "--arrivals", "poison"], "did you mean 'poisson'?"),
        ([SERVER, "--size", "28", "--workload", "echo"], "a message of 'echo' has at least 29"),
        ([SERVER, "--service-kind", "sleep"], "'sleep' is not valid"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(
    words: Sequence[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["capacity", *words, "--results", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("netdyno: ")
    assert complaint in err
    assert err.count("\n") == 1
    assert list(tmp_path.glob(f"*/{schema.FILE_NAME}")) == []


@pytest.mark.usefixtures("undrawn", "steady_canary")
@pytest.mark.calm
@pytest.mark.needs_build
def test_a_real_server_is_not_found_to_do_more_than_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request burns 1 ms on the only thread, so that 1000 a second are the most; a busy machine finds less, or
    nothing. A single trial that holds is enough to be found to do too much."""
    monkeypatch.setenv("NETDYNO_BUILD", str(REAL_BUILD))
    words = ["epoll-reactor", "--workload", "rpc", "--service-time", "1ms", "--service-kind", "cpu", "-c", "10"]
    load = ["--objective", "mean<10ms", "--arrivals", "constant", "--start", "600", "--most", "9000"]
    load += ["--warmup", "100ms", "--duration", "200ms"]
    code = cli.main(
        ["capacity", *words, *load, "--resolution", "0.2", "--needed", "1", "--results", str(tmp_path), *OPTIONS[-2:]]
    )
    run = stored(tmp_path)
    findings = analyse(run).scenarios[0]
    assert code in (0, 1)
    assert run.finished_at is not None
    assert findings.capacity is not None
    assert answer(findings).sentence.endswith(".")
    assert all(standing.value <= 1100 for standing in findings.standings), answer(findings).sentence
    assert {trial.status for trial in run.trials} <= {"valid", "struck_out"}
    assert not [
        trial for trial in run.trials for audit in trial.audits if audit.name == "verification" and not audit.passed
    ]
