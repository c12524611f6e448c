"""A server without optimisation: which program a cell starts, what a run builds for it, and where there is none."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from msgspec.structs import replace

from netdyno.measure.run import needed
from netdyno.measure.trial.context import TrialContext
from netdyno.measure.trial.trial import run_trial
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.trial import Trial
from netdyno.question.plan import Cell

SCENARIO = Scenario(
    name="echo", workload="echo", connections=2, duration_s=0.1, timeout_s=1.0, factors={"build": ("release", "debug")}
)


@pytest.fixture
def built(contestant: Contestant, tmp_path: Path) -> Contestant:
    """A server whose two programs note which of them was started."""
    for build in ("release", "dev"):
        program = tmp_path / "build" / build / "servers" / "fake"
        program.parent.mkdir(parents=True)
        program.write_text(
            f"#!/bin/sh\necho {build} >>{shlex.quote(str(tmp_path / 'started'))}\n"
            f'exec {shlex.join(contestant.command)} "$@"\n'
        )
        program.chmod(0o755)
    manifest = replace(contestant.manifest, kind="cmake", run=())
    return replace(contestant, manifest=manifest, command=(str(tmp_path / "build/release/servers/fake"),))


def run(contestant: Contestant, context: TrialContext, build: str) -> Trial:
    cell = Cell(block=1, position=0, scenario="echo", contestant="fake", levels={"build": build})
    return run_trial(cell, SCENARIO, contestant, context)


def test_a_cell_starts_the_program_of_its_build(built: Contestant, context: TrialContext, tmp_path: Path) -> None:
    for build in ("debug", "release", "debug"):
        trial = run(built, context, build)
        assert (trial.status, trial.reason) == ("valid", "")
    assert (tmp_path / "started").read_text().split() == ["dev", "release", "dev"]


def test_a_program_that_was_not_built_is_a_stated_skip(built: Contestant, context: TrialContext) -> None:
    program = Path(built.command[0]).parents[2] / "dev/servers/fake"
    program.unlink()
    trial = run(built, context, "debug")
    assert trial.status == "skipped"
    assert trial.reason.startswith(f"{program} is missing: a run on one machine builds it")
    assert run(built, context, "release").status == "valid"


def make_experiment(**fields: object) -> Experiment:
    scenario = replace(SCENARIO, contestants=("fake", "other", "script"), **fields)
    return Experiment(name="e", question="?", scenarios=(scenario,))


def test_only_servers_in_cpp_that_a_cell_starts_so_are_built_again(built: Contestant, contestant: Contestant) -> None:
    missing = replace(built, name="other", available=False, why_not="Folly not found")
    servers = (built, missing, replace(built, name="unused"), replace(contestant, name="script"))
    assert needed.list_debug_programs(make_experiment(), servers) == ("fake",)
    assert needed.list_debug_programs(make_experiment(factors={"build": ("release",)}), servers) == ()
    assert needed.list_debug_programs(make_experiment(factors={}, server={"build": "debug"}), servers) == ("fake",)


def test_both_programs_of_a_server_are_recorded(built: Contestant) -> None:
    (recorded,) = needed.list_debug_servers(make_experiment(), (built,))
    assert (recorded.name, Path(recorded.command[0]).parent.parent.name) == ("fake-debug", "dev")
    Path(recorded.command[0]).unlink()
    assert needed.list_debug_servers(make_experiment(), (built,)) == ()
