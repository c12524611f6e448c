"""Trials in which server and generator share all cores, and those in which they have cores apart, as the kernel sees
it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from netdyno.kit.paths import build_dir, generator_path
from netdyno.measure.machine import cpu_share
from netdyno.measure.machine.pinning import choose, may_run_realtime
from netdyno.measure.trial.context import TrialContext
from netdyno.measure.trial.trial import run_trial
from netdyno.measure.trial.turns import run_in_turns
from netdyno.model.experiment import Placement, Scenario
from netdyno.model.trial import Trial
from netdyno.question.contestants.contestants import discover, find_by_name
from netdyno.question.plan import Cell

ALL = frozenset(os.sched_getaffinity(0))

pytestmark = [
    pytest.mark.needs_build,
    pytest.mark.quiet,
    pytest.mark.skipif(len(ALL) < 2, reason="on one core server and generator share it, whatever is asked for"),
]

SERVERS = ("threads-global-lock", "epoll-reactor")
LOAD = "netdyno-load"
CoresAndPolicy = tuple[frozenset[int], int]
"""The cores of a process, and its policy (sched(7))."""


def context(folder: Path) -> TrialContext:
    return TrialContext(
        seed=1, generator=(str(generator_path(build_dir())),), pinning=choose(), folder=folder, foreign_load="count"
    )


def make_scenario(placement: Placement) -> Scenario:
    return Scenario(name="s", workload="echo", connections=4, warmup_s=0.1, duration_s=0.7, placement=placement)


def cell(contestant: str, position: int = 0) -> Cell:
    return Cell(block=1, position=position, scenario="s", contestant=contestant, levels={})


def run_one(placement: Placement, folder: Path) -> tuple[Trial, dict[str, CoresAndPolicy]]:
    """A trial, and what its programs had within its window, by their names."""
    seen: dict[str, CoresAndPolicy] = {}

    def record_programs(*_: object) -> None:
        for pid in cpu_share.find_own_processes():
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            seen[name] = (frozenset(os.sched_getaffinity(pid)), os.sched_getscheduler(pid))

    server = find_by_name(discover(), SERVERS[0])
    trial = run_trial(
        cell(server.name),
        make_scenario(placement),
        server,
        msgspec.structs.replace(context(folder), progress=record_programs),
    )
    assert trial.load is not None, trial.reason
    return trial, seen


def test_on_shared_cores_both_may_use_all_and_neither_goes_first(tmp_path: Path) -> None:
    trial, seen = run_one("shared", tmp_path)
    assert seen[SERVERS[0][:15]] == seen[LOAD] == (ALL, os.SCHED_OTHER)
    assert trial.pinning is not None
    assert frozenset(trial.pinning.server) == frozenset(trial.pinning.generator) == ALL
    assert not trial.pinning.realtime
    assert trial.load is not None
    assert trial.load.generator.cores == len(ALL)
    assert trial.load.generator.cores_used > 0
    assert "observation" not in [audit.name for audit in trial.audits if not audit.passed]


def test_on_cores_apart_none_is_of_both(tmp_path: Path) -> None:
    _, seen = run_one("apart", tmp_path)
    (server, of_server), (load, of_load) = seen[SERVERS[0][:15]], seen[LOAD]
    assert server.isdisjoint(load)
    assert server | load == ALL
    assert (of_server, of_load) == (os.SCHED_OTHER, os.SCHED_FIFO if may_run_realtime() else os.SCHED_OTHER)


def test_contestants_take_turns_on_shared_cores(tmp_path: Path) -> None:
    everyone = discover()
    group = [(cell(name, position), find_by_name(everyone, name)) for position, name in enumerate(SERVERS)]
    trials = run_in_turns(group, make_scenario("shared"), context(tmp_path))
    for trial in trials:
        assert trial.load is not None, trial.reason
        assert trial.load.requests.completed > 0
        assert any(part.kept for part in trial.slices)
        assert trial.pinning is not None
        assert frozenset(trial.pinning.server) == frozenset(trial.pinning.generator) == ALL
