"""A trial of a server that asks a backend, which the harness runs beside the load."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from netdyno.kit.paths import backend_path, build_dir, generator_path
from netdyno.measure.machine.pinning import choose
from netdyno.measure.trial import postgresql
from netdyno.measure.trial.context import TrialContext
from netdyno.measure.trial.trial import run_trial
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Scenario
from netdyno.model.metrics import METRICS
from netdyno.model.trial import Trial
from netdyno.question.contestants.contestants import discover, find_by_name
from netdyno.question.plan import Cell
from tests.support.chosen import startable

pytestmark = [pytest.mark.needs_build, pytest.mark.xdist_group("measures")]

SERVICE_S = 0.005
POOL = 4
WAITS_BY_ITSELF = """
import os, sys
words = sys.argv[1:]
for name in ("--service-kind", "--pool", "--backend"):
    at = words.index(name)
    del words[at : at + 2]
os.execv(words[0], words)
"""


@pytest.fixture
def contestant() -> Contestant:
    assert backend_path(build_dir()).exists(), "calibration is not built"
    return startable(find_by_name(discover(), "epoll-coroutines"), "server")


def run_asking(contestant: Contestant, folder: Path, **changed: object) -> Trial:
    """Run a trial of more clients than connections to the backend."""
    scenario = Scenario(
        name="s",
        workload="rpc",
        connections=5 * POOL,
        warmup_s=0.1,
        duration_s=0.4,
        server={"service-kind": "backend", "service-time": "5ms", "pool": POOL},
    )
    scenario = msgspec.structs.replace(scenario, **changed)
    generator = (str(generator_path(build_dir())),)
    context = TrialContext(seed=1, generator=generator, pinning=choose(), folder=folder, foreign_load="count")
    return run_trial(
        Cell(block=1, position=0, scenario="s", contestant=contestant.name, levels={}), scenario, contestant, context
    )


def failed_audits(trial: Trial) -> set[str]:
    return {audit.name for audit in trial.audits if not audit.passed}


def test_no_more_is_answered_than_the_pool_lets_through(contestant: Contestant, tmp_path: Path) -> None:
    """k connections and a wait of w answer at most k/w; a busy machine makes it less, never more. The backend is in
    none of the server's figures: its totals agree with the load's."""
    trial = run_asking(contestant, tmp_path)
    assert trial.load is not None, trial.reason
    window_s = trial.load.plan.duration_s
    assert 0 < trial.load.requests.completed <= POOL * (window_s / SERVICE_S + 1)
    assert not failed_audits(trial) & {"backend", "server_totals", "work", "completed", "left_behind"}
    assert "== backend: " in (tmp_path / trial.log).read_text()


def test_in_a_burst_beyond_the_pool_the_pool_limits_what_is_answered_in_time(
    contestant: Contestant, tmp_path: Path
) -> None:
    """A burst of 100 ms at five times what the pool lets through, which all connections are busy for."""
    trial = run_asking(contestant, tmp_path, arrivals="constant", rate=400, burst_rate=4000, duration_s=0.8)
    assert trial.load is not None, trial.reason
    assert isinstance(trial.load.steps, tuple)
    assert [(step.from_hz, step.begins_s, step.seconds) for step in trial.load.steps] == [
        (400, 0, 0.2),
        (4000, 0.2, 0.1),
        (400, pytest.approx(0.3), 0.5),
    ]
    goodput_hz = METRICS["burst-goodput"].value(trial, trial.load)
    assert goodput_hz is not None
    assert 0 < goodput_hz <= POOL * (0.1 / SERVICE_S + 1) / 0.1
    recovery_ns = METRICS["recovery"].value(trial, trial.load)
    assert recovery_ns is not None
    assert 0 < recovery_ns <= 0.5e9
    assert not failed_audits(trial) & {"stationary", "plausible", "observation", "verification"}


@pytest.mark.parametrize("name", ["epoll-coroutines", "threads-snapshot"])
def test_a_database_is_a_backend(name: str, tmp_path: Path) -> None:
    """pg_sleep takes at least its time, so the pool's bound holds; PostgreSQL counts the questions."""
    server = {"service-kind": "backend", "service-time": "5ms", "pool": POOL, "backend": "postgresql"}
    trial = run_asking(find_by_name(discover(), name), tmp_path, server=server)
    if trial.status == "skipped":
        pytest.skip(trial.reason)
    assert trial.load is not None, trial.reason
    assert 0 < trial.load.requests.completed <= POOL * (trial.load.plan.duration_s / SERVICE_S + 1)
    assert not failed_audits(trial) & {"backend", "server_totals", "work", "completed", "left_behind"}


def test_a_database_that_is_not_installed_is_a_stated_skip(
    contestant: Contestant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netdyno.measure.trial.postgresql.find_programs", lambda: None)
    server = {"service-kind": "backend", "service-time": "5ms", "backend": "postgresql"}
    trial = run_asking(contestant, tmp_path, server=server)
    assert (trial.status, trial.reason) == ("skipped", postgresql.WAY_OUT)


def test_over_a_link_the_backend_is_on_the_side_of_the_server(contestant: Contestant, tmp_path: Path) -> None:
    trial = run_asking(contestant, tmp_path, link="lan")
    if trial.status == "skipped":
        pytest.skip(trial.reason)
    assert trial.load is not None, trial.reason
    assert trial.load.requests.completed > 0
    assert "backend" not in failed_audits(trial)


def test_a_server_that_waits_by_itself_is_found_out(contestant: Contestant, tmp_path: Path) -> None:
    """It answers as the others do, but has no pool that could be exhausted."""
    script = tmp_path / "waits_by_itself.py"
    script.write_text(WAITS_BY_ITSELF)
    command = (sys.executable, str(script), *contestant.command)
    trial = run_asking(msgspec.structs.replace(contestant, command=command), tmp_path)
    assert "backend" in failed_audits(trial), trial.reason


def test_without_a_backend_the_trial_says_so(
    contestant: Contestant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netdyno.measure.trial.backend.backend_path", lambda _: Path("/bin/false"))
    trial = run_asking(contestant, tmp_path)
    assert trial.status == "failed"
    assert "the backend wrote no ready line" in trial.reason
