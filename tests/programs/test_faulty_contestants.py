"""A server that crashes or corrupts in one of three trials is ranked apart from its healthy twin, and the answer says
which fault it has. A single stall is no proof, and is said. One whole run with the built generator; nothing here
depends on how fast anything is, but that a fault in the middle of the window is within it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pytest

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.ranking import Standing
from netdyno.kit.paths import build_dir
from netdyno.measure.audits import of_trial
from netdyno.measure.run import runner
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.present.terminal.display import PlainDisplay
from netdyno.store import read, schema
from tests.support.fakes import faulty

pytestmark = [pytest.mark.needs_build, pytest.mark.quiet]

BLOCKS = 3
WARMUP_S, DURATION_S, STALL_S = 0.1, 0.6, 0.3
FAULT_AFTER_S = WARMUP_S + (DURATION_S - STALL_S) / 2
"""Seconds after the first request, so that a stall lies in the middle of the window."""
ANSWERS = {"verification", "bytes", "connections", "server_alive", "server_totals"}
"""The audits of a server that a busy machine cannot fail."""
FAULTY = tuple(name for name in faulty.FAULTS if name != faulty.HEALTHY)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the run, when it is done."""
    starts = tmp_path_factory.mktemp("starts")
    everyone = faulty.contestants(starts, FAULT_AFTER_S)
    scenario = Scenario(
        name="echo",
        workload="echo",
        contestants=tuple(contestant.name for contestant in everyone),
        blocks=BLOCKS,
        warmup_s=WARMUP_S,
        duration_s=DURATION_S,
        timeout_s=1.0,
        connections=8,
        turns="off",  # the faults come at a moment of a window without pauses
    )
    experiment = Experiment(name="faulty", question="Who has a fault?", scenarios=(scenario,))
    return runner.execute(
        experiment,
        everyone,
        results=tmp_path_factory.mktemp("results"),
        build=build_dir(),
        argv=["netdyno", "run", "faulty"],
        display=PlainDisplay(io.StringIO()),
        foreign_load="count",  # else some are retried, and which starts are kept is chance
        trace="never",
    ).folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return read.load(folder / schema.FILE_NAME)


def with_the_fault(run: Run, folder: Path, contestant: str) -> list[Trial]:
    """The trials in which the fault came, as the server's own words say."""
    trials = [trial for trial in run.trials if trial.contestant == contestant]
    return [trial for trial in trials if "now comes the fault" in (folder / trial.log).read_text(encoding="utf-8")]


def failed_audits(trial: Trial) -> set[str]:
    return {audit.name for audit in trial.audits if not audit.passed}


def undisturbed(trials: Sequence[Trial]) -> list[Trial]:
    """The trials whose timing was the server's: a neighbour can starve one, and move the fault out of the window."""
    return [
        trial for trial in trials if all(audit.passed for audit in of_trial.foreign_load(trial.machine, "strike-out"))
    ]


# --- what the trials are ------------------------------------------------------------------------------------------


def test_one_start_of_three_is_faulty(run: Run, folder: Path) -> None:
    faulty_trials = {name: len(with_the_fault(run, folder, name)) for name in faulty.FAULTS}
    assert faulty_trials == {faulty.HEALTHY: 0} | dict.fromkeys(FAULTY, BLOCKS // 3)


def test_without_the_fault_all_answers_are_true(run: Run, folder: Path) -> None:
    for name in faulty.FAULTS:
        faults = with_the_fault(run, folder, name)
        for trial in (trial for trial in run.trials if trial.contestant == name and trial not in faults):
            assert trial.status != "failed", trial.reason
            assert {audit.name for audit in trial.audits} >= ANSWERS
            assert not ANSWERS & failed_audits(trial), trial.reason


def test_a_crash_names_its_signal(run: Run, folder: Path) -> None:
    for trial in with_the_fault(run, folder, "crashing"):
        assert trial.status in ("failed", "struck_out", "faulty")
        assert "SIGSEGV" in trial.reason


def test_a_wrong_reply_fails_the_verification(run: Run, folder: Path) -> None:
    for trial in with_the_fault(run, folder, "corrupting"):
        assert trial.load is not None
        assert trial.load.messages.corrupt > 0
        assert "verification" in failed_audits(trial)


def test_a_stall_leaves_intervals_without_an_answer(run: Run, folder: Path) -> None:
    stalled = undisturbed(with_the_fault(run, folder, "stalling"))
    if not stalled:
        pytest.skip("no trial that stalled had the machine for itself")
    for trial in stalled:
        assert trial.load is not None
        completed = trial.load.timeseries.completed
        assert completed.count(0) >= 2, completed
        assert completed[0] > 0, completed
        assert completed[-1] > 0, completed


# --- what is made of them -----------------------------------------------------------------------------------------


def standings(run: Run) -> dict[str, Standing]:
    """The standings by contestant, in the order of the ranking."""
    return {standing.contestant: standing for standing in analyse(run).scenarios[0].standings}


def neighbours_faults(run: Run, contestant: str) -> set[str]:
    """The faults that a neighbour may cause where trials count here: a server without a core stands still."""
    trials = [trial for trial in run.trials if trial.contestant == contestant]
    return {"stalled"} if undisturbed(trials) != trials else set()


def test_a_fault_that_no_machine_can_cause_is_ranked_apart(run: Run) -> None:
    by_name = standings(run)
    assert by_name.keys() == faulty.FAULTS.keys()
    if by_name[faulty.HEALTHY].faults and neighbours_faults(run, faulty.HEALTHY):
        pytest.skip("a neighbour made the healthy one stand still")
    apart = {name: standing.kind > 0 for name, standing in by_name.items()}
    assert apart == {faulty.HEALTHY: False, "stalling": False, "crashing": True, "corrupting": True}
    assert set(list(by_name)[:2]) == {faulty.HEALTHY, "stalling"}


@pytest.mark.parametrize(
    ("contestant", "kind", "word"),
    [("crashing", "died", "SIGSEGV"), ("corrupting", "verification", "corrupt 3")],
)
def test_each_fault_is_named(run: Run, folder: Path, contestant: str, kind: str, word: str) -> None:
    faults = {fault.kind: fault for fault in standings(run)[contestant].faults}
    assert faults.keys() - (neighbours_faults(run, contestant) - {kind}) == {kind}
    assert 1 <= faults[kind].trials <= len(with_the_fault(run, folder, contestant))
    assert word in faults[kind].detail


def test_a_single_stall_is_stated_and_is_no_proof(run: Run, folder: Path) -> None:
    findings = analyse(run).scenarios[0]
    assert standings(run)["stalling"].faults == ()
    if not undisturbed(with_the_fault(run, folder, "stalling")):
        pytest.skip("no trial that stalled had the machine for itself")
    unproven = {server.contestant: {fault.kind for fault in server.faults} for server in findings.unproven}
    assert "stalled" in unproven["stalling"]


def test_the_healthy_twin_has_no_fault(run: Run) -> None:
    faults = {fault.kind for fault in standings(run)[faulty.HEALTHY].faults}
    assert faults <= neighbours_faults(run, faulty.HEALTHY)
