"""A whole run with fake programs: its stored results, and the state after an interruption and a kill."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from netdyno.kit.errors import UserError
from netdyno.kit.paths import ROOT
from netdyno.measure.machine.links import link_check
from netdyno.measure.run import interrupts, next_cells, preparation
from netdyno.measure.run.progress import Progress
from netdyno.measure.trial import canary, traced
from netdyno.model import outcomes
from netdyno.model.contestant import Contestant, Own
from netdyno.model.experiment import Experiment
from netdyno.model.outcomes import verdict
from netdyno.model.trial import Trial
from netdyno.question import blocks
from netdyno.store import read, schema
from tests.support.builders.made_blocks import Silent
from tests.support.fixtures import FakeRun


def without_canary_audit(trial: Trial) -> Trial:
    """Return the trial as it was before its block ended."""
    return msgspec.structs.replace(trial, audits=tuple(audit for audit in trial.audits if audit.name != "canary"))


def test_a_run_stores_every_trial_of_its_plan(experiment: Experiment, execute: FakeRun, contestant: Contestant) -> None:
    recorder = Silent()
    absent = msgspec.structs.replace(contestant, name="absent", available=False, why_not="Folly not found")
    outcome = execute(experiment, recorder, servers=[contestant, absent])
    path = outcome.folder / schema.FILE_NAME
    run = read.load(path)
    assert [(trial.block, trial.position) for trial in run.trials] == [
        (block, position) for block in (1, 2) for position in range(4)
    ]
    counts = {"valid": 4, "struck_out": 0, "faulty": 0, "failed": 0, "skipped": 4, "made_again": 0}
    assert outcomes.counts(run) == counts
    assert {trial.reason for trial in run.trials if trial.status == "skipped"} == {"Folly not found"}
    assert run.finished_at is not None
    assert tuple(recorder.trials) == tuple(map(without_canary_audit, run.trials))
    assert "It makes 2 blocks of 4 trials over loopback (2 contestants)." in recorder.begun[0]
    assert "It takes about 0:0" in recorder.begun[0]
    assert recorder.closed == 1
    assert json.loads((outcome.folder / "environment.json").read_text()) == run.environment
    assert (run.environment["foreign_load"], run.environment["trace"]) == ("count", "auto")
    assert outcome.interrupted == 0
    (result,) = [candidate for candidate in run.traced if candidate.contestant == contestant.name]
    assert "tracing may take 10% of a run's time" in result.reason, "a short run is not made longer"
    assert recorder.notes == []


def test_a_folder_of_logs_that_is_taken_away_after_each_trial_ends_no_run(
    experiment: Experiment, execute: FakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canary, "FRESH_S", 0.0)

    class Remover(Silent):
        def trial_done(self, trial: Trial, progress: Progress) -> None:
            super().trial_done(trial, progress)
            (logs,) = (tmp_path / "results").glob("*/logs")
            shutil.rmtree(logs)

    recorder = Remover()
    execute(experiment.with_each(blocks=1), recorder)
    assert [(trial.status, trial.canary is not None) for trial in recorder.trials] == [("valid", True)] * 2


def test_a_factor_of_clients_runs_each_of_them_and_skips_what_is_missing(
    experiment: Experiment, execute: FakeRun, client: Contestant
) -> None:
    absent = msgspec.structs.replace(client, name="absent", available=False, why_not="Qt not found")
    factors = {"client": ("netdyno-load", client.name, absent.name)}
    scenario = msgspec.structs.replace(experiment.scenarios[0], factors=factors, connections=1)
    outcome = execute(
        msgspec.structs.replace(experiment, scenarios=(scenario,)).with_each(blocks=1), clients=[client, absent]
    )
    run = read.load(outcome.folder / schema.FILE_NAME)
    assert {(trial.levels["client"], trial.status, trial.reason) for trial in run.trials} == {
        ("netdyno-load", "valid", ""),
        (client.name, "valid", ""),
        ("absent", "skipped", "client absent: Qt not found"),
    }


def test_what_the_links_give_is_recorded_and_a_bad_one_is_not_measured_over(
    experiment: Experiment, execute: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = {"wan with 5ms each way": "it takes 9 ms"}
    checked = link_check.Checked({"link.wan": ["wan with 5ms each way: measured 18 ms"]}, bad)
    monkeypatch.setattr(link_check, "check", lambda *_: checked)
    factors = {"link": ("loopback", "wan")}
    requested = experiment.with_each(factors=factors, link_delay_s=0.005, blocks=1)
    outcome = execute(requested)
    stored = read.load(outcome.folder / schema.FILE_NAME)
    assert stored.environment["link.wan"] == ["wan with 5ms each way: measured 18 ms"]
    assert json.loads((outcome.folder / "environment.json").read_text())["link.wan"]
    results = {trial.levels["link"]: (trial.status, trial.reason) for trial in stored.trials}
    assert results == {"loopback": ("valid", ""), "wan": ("skipped", "it takes 9 ms")}


def test_a_trial_that_fails_does_not_stop_the_run(
    experiment: Experiment, execute: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SERVER", "dies_under_load")
    outcome = execute(experiment.with_each(blocks=1))
    run = read.load(outcome.folder / schema.FILE_NAME)
    assert outcomes.counts(run)["faulty"] == 2
    assert run.finished_at is not None


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_drops_the_current_trial_and_keeps_the_rest(
    number: signal.Signals, code: int, experiment: Experiment, execute: FakeRun
) -> None:
    class InterruptedAfterOne(Silent):
        def throughput(self, completed: int, seconds: float) -> None:
            if len(self.trials) == 1:
                signal.raise_signal(number)

    handler = signal.getsignal(number)
    outcome = execute(experiment, InterruptedAfterOne())
    run = read.load(outcome.folder / schema.FILE_NAME)
    assert outcome.interrupted == code
    assert len(run.trials) == 1
    assert run.finished_at is None
    assert signal.getsignal(number) is handler


KILLED = """
import sys
from pathlib import Path
from netdyno.question.contestants import contestants
from netdyno.question import experiment
from netdyno.present.terminal.display import PlainDisplay
from netdyno.measure.run import runner

build, results, toml = map(Path, sys.argv[1:])
chosen = [server for server in contestants.discover(build=build) if "echo" in server.manifest.workloads][:1]
asked = experiment.load(toml).with_each(contestants=(chosen[0].name,))
display = PlainDisplay(sys.stdout)
runner.execute(asked, chosen, results=results, build=build, argv=[], display=display, foreign_load="count")
"""

ENDLESS = """
question = "Will it be killed?"
contestants = ["*"]
blocks = 200
warmup = "0ms"
duration = "10ms"
[[scenario]]
name = "echo"
workload = "echo"
"""


def kill_after(trials: int, experiment: str, folder: Path, build: Path) -> Path:
    """kill -9 a run after the announcement and one line for each stored trial, and return the file that is left."""
    toml, results = folder / "endless.toml", folder / "results"
    toml.write_text(experiment)
    command = [sys.executable, "-c", KILLED, str(build), str(results), str(toml)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as harness:
        assert harness.stdout is not None
        while not harness.stdout.readline().startswith("It takes "):
            assert harness.poll() is None
        for _ in range(trials):
            assert harness.stdout.readline().startswith("block ")
        harness.send_signal(signal.SIGKILL)
    (run_id,) = read.run_ids(results)
    return results / run_id / schema.FILE_NAME


def test_kill_9_before_the_first_trial_leaves_a_readable_file(tmp_path: Path, fake_build: Path) -> None:
    file = kill_after(0, ENDLESS, tmp_path, fake_build)
    assert read.load(file).finished_at is None
    assert len(read.load_cells(file)) == 200


def test_kill_9_leaves_a_readable_file_with_each_block_judged_or_not_yet(tmp_path: Path, fake_build: Path) -> None:
    experiment = ENDLESS + "[scenario.factors]\nconnections = [1, 2, 3]\n"
    run = read.load(kill_after(7, experiment, tmp_path, fake_build))
    trials = run.trials  # two blocks, and a trial of the third; fewer blocks where some were retried
    assert len(trials) >= 7
    assert run.finished_at is None
    last = trials[-1].block
    assert last > 1
    assert all(has_canary_audit(trial) for trial in trials if trial.block < last)
    # A try that is repeated in a block comes after the judgement of the others.
    assert len({has_canary_audit(trial) for trial in trials if (trial.block, trial.attempt) == (last, 1)}) <= 1
    assert all(trial.canary is not None for trial in trials)
    assert all(trial.load is not None for trial in trials)  # valid or not, for a machine may be late


def has_canary_audit(trial: Trial) -> bool:
    return any(audit.name == "canary" for audit in trial.audits)


# --- the canary --------------------------------------------------------------------------------------------------


@pytest.fixture
def slow_for_a_while(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that is half as fast after the third trial (asked twice, as at the very beginning) as otherwise."""
    speeds = tmp_path / "speeds"
    speeds.write_text("1 1  1 1 0.5 0.5 1")
    monkeypatch.setenv("FAKE_CANARY", f"speeds:{speeds}")
    monkeypatch.setattr(canary, "FRESH_S", 1e9)  # however long this machine holds a test up
    monkeypatch.setattr(canary, "MOST_TAKES", 2)
    monkeypatch.setattr(next_cells, "MOST_TRIES", 1)  # retries are another test's (test_retries.py)


SIX = {"connections": (1, 2, 3, 4, 5, 6)}


@pytest.mark.usefixtures("slow_for_a_while")
def test_a_trial_whose_machine_was_not_that_of_its_block_is_invalid_when_the_block_ends(
    experiment: Experiment, execute: FakeRun
) -> None:
    recorder = Silent()
    requested = experiment.with_each(factors=SIX, blocks=1)
    outcome = execute(requested, recorder, foreign_load="strike-out")
    run = read.load(outcome.folder / schema.FILE_NAME)
    audits = [next(audit for audit in trial.audits if audit.name == "canary") for trial in run.trials]
    assert [audit.passed for audit in audits] == [True, True, False, False, True, True]
    invalid = run.trials[2]
    assert invalid.status == "struck_out"
    assert "canary: after the trial, the canary read 10.0k/s (round trips), a factor of 2.00 off" in invalid.reason
    # who watches sees the trial as it ended, and again where only the canary has made it invalid
    by_canary = [
        trial for trial in run.trials if [audit.name for audit in trial.audits if not audit.passed] == ["canary"]
    ]
    assert all(trial.load is not None for trial in by_canary)  # whose window another program took was cut short
    assert tuple(recorder.trials) == (*map(as_it_ended, run.trials), *by_canary)
    assert recorder.progress.counts["valid"] == outcomes.counts(run)["valid"]


def as_it_ended(trial: Trial) -> Trial:
    without = without_canary_audit(trial)
    status, reason = verdict(without.audits)
    return msgspec.structs.replace(without, status=status, reason=reason)


@pytest.mark.usefixtures("slow_for_a_while")
def test_where_foreign_load_is_only_counted_so_is_the_canary(experiment: Experiment, execute: FakeRun) -> None:
    outcome = execute(experiment.with_each(factors=SIX, blocks=1))
    trials = read.load(outcome.folder / schema.FILE_NAME).trials
    assert not any("canary" in trial.reason for trial in trials)
    (detail,) = [audit.detail for audit in trials[2].audits if audit.name == "canary"]
    assert detail.startswith("not judged, because it is only counted: after the trial, the canary read 10.0k/s")


def test_an_interrupted_block_is_judged_as_far_as_it_came(experiment: Experiment, execute: FakeRun) -> None:
    class InterruptedAfterThree(Silent):
        def throughput(self, completed: int, seconds: float) -> None:
            if len(self.trials) == 3:
                signal.raise_signal(signal.SIGINT)

    outcome = execute(experiment.with_each(factors=SIX), InterruptedAfterThree())
    trials = read.load(outcome.folder / schema.FILE_NAME).trials
    assert [has_canary_audit(trial) for trial in trials] == [True] * 3


def test_a_canary_that_fails_makes_a_trial_invalid_and_does_not_end_the_run(
    experiment: Experiment, execute: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CANARY", "fails")
    monkeypatch.setattr(next_cells, "MOST_TRIES", 1)
    requested = experiment.with_each(blocks=1)
    outcome = execute(requested, foreign_load="strike-out")
    run = read.load(outcome.folder / schema.FILE_NAME)
    assert run.finished_at is not None
    assert {trial.status for trial in run.trials} == {"struck_out"}
    why = "canary: the speed of the machine is unknown: the canary ended with exit code 1"
    assert all(why in trial.reason for trial in run.trials)


def test_a_missing_canary_is_stated_before_anything_is_written(
    experiment: Experiment, execute: FakeRun, tmp_path: Path, fake_build: Path
) -> None:
    (fake_build / "canary" / "netdyno-canary").unlink()
    with pytest.raises(UserError, match="the canary is not built"):
        execute(experiment)
    assert not (tmp_path / "results").exists()


def test_a_missing_generator_is_stated_before_anything_is_written(
    experiment: Experiment, execute: FakeRun, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="the load generator is not built"):
        execute(experiment, build=tmp_path)
    assert not (tmp_path / "results").exists()


def test_a_workload_that_none_speaks_is_a_slip_of_the_pen(experiment: Experiment, contestant: Contestant) -> None:
    scenario = msgspec.structs.replace(experiment.scenarios[0], workload="ehco")
    with pytest.raises(UserError, match=r"scenario 'echo': unknown workload 'ehco' \(did you mean 'echo'\?\)"):
        preparation.check_workloads(msgspec.structs.replace(experiment, scenarios=(scenario,)), [contestant])


def test_what_only_a_server_of_ones_own_does_not_speak_is_no_slip(
    experiment: Experiment, contestant: Contestant
) -> None:
    speaks = msgspec.structs.replace(contestant.manifest, workloads=("echo",))
    mine = msgspec.structs.replace(contestant, manifest=speaks, own=Own(command="mine {port}", workload="echo"))
    echo = experiment.scenarios[0]
    chat = msgspec.structs.replace(echo, name="chat", workload="chat")
    preparation.check_workloads(msgspec.structs.replace(experiment, scenarios=(chat, echo)), [mine])
    with pytest.raises(UserError, match=r"needs chat, but your server speaks echo \(--workload\)"):
        preparation.check_workloads(msgspec.structs.replace(experiment, scenarios=(chat,)), [mine])


def test_descriptors_are_raised_to_the_hard_limit_and_no_further() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
        preparation.ensure_descriptors(257, "big")
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (257, hard)
        preparation.ensure_descriptors(10, "small")
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (257, hard)
        with pytest.raises(
            UserError, match=rf"experiment 'huge' needs {hard + 1} .* raise it with: ulimit -n {hard + 1}"
        ):
            preparation.ensure_descriptors(hard + 1, "huge")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_every_run_has_a_folder_of_its_own(tmp_path: Path) -> None:
    made = {preparation.create_folder(tmp_path, "quick")[0] for _ in range(3)}
    assert len(made) == 3
    assert all((tmp_path / run_id / "logs").is_dir() for run_id in made)


def test_a_results_folder_that_cannot_be_made_is_one_clear_line() -> None:
    with pytest.raises(UserError, match="the results folder /proc/results cannot be written"):
        preparation.create_folder(Path("/proc/results"), "quick")


def test_wishes_replace_what_the_file_says(experiment: Experiment) -> None:
    changed = blocks.apply_overrides(experiment, 7, 0.5, None)
    assert (changed.blocks, changed.seed) == (7, experiment.seed)
    assert [scenario.duration_s for scenario in changed.scenarios] == [0.5]
    assert blocks.apply_overrides(experiment, None, None, 9) == msgspec.structs.replace(experiment, seed=9)


@pytest.mark.usefixtures("strace_program")
def test_system_calls_are_traced_after_the_trials_and_stored_apart_from_them(
    experiment: Experiment, execute: FakeRun, contestant: Contestant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LOAD", "steady")
    recorder = Silent()
    outcome = execute(experiment.with_each(duration_s=0.3, blocks=1), recorder, trace="always")
    run = read.load(outcome.folder / schema.FILE_NAME)
    assert [(result.contestant, result.levels) for result in run.traced] == [("fake", {"connections": 2})]
    assert len(run.trials) == len(recorder.trials) == 2, {trial.reason for trial in run.all_trials}
    assert recorder.notes == ["tracing system calls in 1 short trial of their own, about 1 s"]
    assert run.finished_at is not None


def test_a_signal_while_tracing_leaves_every_trial(
    experiment: Experiment, execute: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(traced, "trace_task", interrupted)
    outcome = execute(experiment.with_each(blocks=1), trace="always")
    run = read.load(outcome.folder / schema.FILE_NAME)
    assert outcome.interrupted == 130
    assert len(run.trials) == 2
    assert run.finished_at is None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_that_came_in_a_finaliser_ends_the_run_at_the_next_trial() -> None:
    class Finalised:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    with interrupts.raise_on_signals() as raise_again:
        raise_again()
        finalised = Finalised()
        del finalised  # Python prints what is raised there, and goes on
        with pytest.raises(interrupts.Interrupted):
            raise_again()
