"""A server compiled with other flags: which program a cell starts, what a run builds, and where there is none."""

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
    name="echo",
    workload="echo",
    connections=2,
    duration_s=0.1,
    timeout_s=1.0,
    factors={"build": ("release", "debug", "O3")},
)


@pytest.fixture
def built(contestant: Contestant, tmp_path: Path) -> Contestant:
    """A server whose programs note which of them was started."""
    for build in ("release", "dev", "o3"):
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
    for build in ("debug", "release", "O3"):
        trial = run(built, context, build)
        assert (trial.status, trial.reason) == ("valid", "")
    assert (tmp_path / "started").read_text().split() == ["dev", "release", "o3"]


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

    def list_programs(level: str, **fields: object) -> tuple[str, ...]:
        return needed.list_level_programs(make_experiment(**fields), servers, level)

    assert list_programs("debug") == list_programs("O3") == ("fake",)
    assert list_programs("debug", factors={"build": ("release", "O3")}) == ()
    assert list_programs("O3", factors={}, server={"build": "O3"}) == ("fake",)


def test_each_program_of_a_server_is_recorded(built: Contestant) -> None:
    (recorded,) = needed.list_level_servers(make_experiment(), (built,), "debug")
    assert (recorded.name, Path(recorded.command[0]).parent.parent.name) == ("fake-debug", "dev")
    Path(recorded.command[0]).unlink()
    assert needed.list_level_servers(make_experiment(), (built,), "debug") == ()
