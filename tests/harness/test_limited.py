"""Trials of a server with a CPU quota, or a limit of its memory, by a control group of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from netdyno.measure.machine import control_group
from netdyno.measure.machine.control_group import ControlGroup, Limits, NoControlGroupError
from netdyno.measure.trial.context import TrialContext
from netdyno.measure.trial.trial import run_trial
from netdyno.model.contestant import Contestant, Own
from netdyno.model.experiment import Scenario
from netdyno.model.trial import Trial
from netdyno.question.contestants import own
from netdyno.question.plan import Cell
from tests.support.fixtures import PYTHON

SCENARIO = Scenario(name="echo", workload="echo", connections=2, duration_s=0.1, timeout_s=1.0)
CELL = Cell(block=1, position=0, scenario="echo", contestant="fake", levels={})
GREEDY = "taken = b'x' * (512 << 20); import time; time.sleep(60)"


def run(contestant: Contestant, context: TrialContext, **limits: object) -> Trial:
    return run_trial(CELL, replace(SCENARIO, **limits), contestant, context)


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders of the groups that are made, on a machine where some can be made."""
    try:
        with control_group.make_group(Limits(0.5, 256 << 20)):
            pass
    except NoControlGroupError as error:
        pytest.skip(str(error))
    made: list[Path] = []

    class KeptGroup(ControlGroup):
        def __init__(self, folders: list[Path]) -> None:
            made.extend(folders)
            super().__init__(folders)

    monkeypatch.setattr(control_group, "ControlGroup", KeptGroup)
    return made


def test_a_server_with_a_quota_has_a_group_of_its_own_that_goes_with_it(
    contestant: Contestant, context: TrialContext, folders: list[Path]
) -> None:
    trial = run(contestant, context, cpu_quota=0.5, memory_limit=256 << 20)
    assert (trial.status, trial.reason) == ("valid", "")
    assert trial.server is not None
    assert trial.server.quota_use is not None
    assert folders
    assert not any(folder.exists() for folder in folders)
    assert f"{folders[0]}/cgroup.procs" in (context.folder / trial.log).read_text()


def test_what_exceeds_its_memory_is_charged_with_its_end(
    contestant: Contestant, context: TrialContext, folders: list[Path]
) -> None:
    greedy = replace(contestant, command=(*PYTHON, "-c", GREEDY))
    trial = run(greedy, context, memory_limit=64 << 20)
    assert (trial.status, trial.reason) == ("failed", "the kernel killed it at its memory limit of 64.0 MiB")
    assert [audit.name for audit in trial.audits] == ["died"]
    assert not any(folder.exists() for folder in folders)


def test_without_a_limit_no_group_is_made(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_group, "_make_folder", lambda folder: pytest.fail(f"{folder} is made"))
    trial = run(contestant, context)
    assert trial.server is not None
    assert (trial.status, trial.server.quota_use) == ("valid", None)


@contextmanager
def refuse(_: Limits) -> Iterator[ControlGroup]:
    raise NoControlGroupError("no control group can be made: not here")
    yield


def test_where_none_can_be_made_the_trial_is_skipped_for_that_reason(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_group, "make_group", refuse)
    trial = run(contestant, context, cpu_quota=0.5)
    assert (trial.status, trial.reason) == ("skipped", "no control group can be made: not here")


def test_a_server_that_runs_already_is_skipped(context: TrialContext) -> None:
    there = own.make_contestant("fake", Own(command="", workload="echo", address="tcp://127.0.0.1:9"))
    trial = run(replace(there, available=True), context, cpu_quota=0.5)
    assert (trial.status, trial.reason) == ("skipped", "an already running server keeps the limits that it has")
