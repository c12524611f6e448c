"""Fixtures: fake programs that obey the contracts or break them, contestants and experiments made of them."""

from __future__ import annotations

import functools
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from netdyno.kit.paths import launcher_path
from netdyno.measure.audits import of_trial
from netdyno.measure.machine import environment, program_settings
from netdyno.measure.run import capacity_search, resume, runner
from netdyno.measure.run.progress import Display
from netdyno.measure.trial.context import TrialContext
from netdyno.model.contestant import About, Contestant, Manifest
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.observation import Pinning
from netdyno.question import side_by_side
from netdyno.question.contestants import codesize
from tests.support.chosen import discover_once
from tests.support.fakes import unhurried

FAKES = Path(__file__).parent / "fakes"
FakeRun = Callable[..., runner.RunOutcome]
WriteProgram = Callable[[Path, str], None]
NOBODY_UID = 65534
PYTHON = (sys.executable, "-I", "-S")


def with_launcher(build: Path) -> Path:
    """The build, with an empty launcher."""
    launcher = launcher_path(build)
    launcher.parent.mkdir(parents=True)
    launcher.touch()
    return build


@pytest.fixture
def contestant() -> Contestant:
    """The fake server; FAKE_SERVER in the environment makes it misbehave."""
    command = (*PYTHON, str(FAKES / "server.py"))
    manifest = Manifest(kind="command", model="fake", summary="a fake", workloads=("echo",), run=command)
    return Contestant(name="fake", manifest=manifest, command=command, available=True)


@pytest.fixture
def datagram_contestant(contestant: Contestant) -> Contestant:
    """The fake server over UDP; with FAKE_SERVER=lossy it drops one message in three."""
    manifest = msgspec.structs.replace(contestant.manifest, transports=("udp",))
    return msgspec.structs.replace(contestant, manifest=manifest)


@pytest.fixture
def client() -> Contestant:
    """The fake client; FAKE_CLIENT in the environment makes it misbehave."""
    command = (*PYTHON, str(FAKES / "load.py"), "--as-client")
    manifest = Manifest(kind="command", model="fake", summary="a fake", workloads=("echo",), run=command)
    return Contestant(name="fake-client", manifest=manifest, command=command, available=True)


@pytest.fixture
def experiment() -> Experiment:
    """Two blocks of one scenario with two levels."""
    scenario = Scenario(name="echo", workload="echo", factors={"connections": (1, 2)})
    return Experiment(
        name="tiny",
        question="Does it work?",
        scenarios=(scenario,),
    ).with_each(contestants=("fake",), blocks=2, duration_s=0.1, timeout_s=1.0)


@pytest.fixture
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """In trials of fake programs a busy machine has no word, and variables of the tests say what the fakes do, within
    this process; unhurried.py is for others. Nor does each of the runs look at the code of the
    contestants or call git."""
    for name, value_s in unhurried.BOUNDS_S.items():
        monkeypatch.setattr(of_trial, name, value_s)
    describe_code_once(monkeypatch)
    monkeypatch.setattr(environment, "read_commit", commit_once)
    monkeypatch.setattr(program_settings, "PASSED_ON", unhurried.PASSED_ON)


@pytest.fixture
def context(tmp_path: Path, _unhurried: None) -> TrialContext:
    """A context with the fake generator (FAKE_LOAD makes it misbehave), its folder empty; the machine may be busy."""
    return TrialContext(
        seed=1,
        generator=(*PYTHON, str(FAKES / "load.py")),
        pinning=Pinning(server=(), generator=(), note="not pinned: a test"),
        folder=tmp_path,
        foreign_load="count",
    )


@pytest.fixture
def trial_by_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """No contestants take turns: for tests that put trials of their own in the place of the programs', one by one."""
    monkeypatch.setattr(side_by_side, "explain_alone", lambda *_: side_by_side.ONLY)


commit_once = functools.cache(environment.read_commit)
describe = codesize.describe
find_families_once = functools.cache(codesize.find_families)
described: dict[bytes, tuple[About, ...]] = {}


def describe_once(servers: Sequence[Contestant], clients: Sequence[Contestant]) -> tuple[About, ...]:
    """Describe these contestants, from the second time on as the first time: a description does not depend on the build
    directory, of which each test has its own."""
    key = msgspec.json.encode(
        [[(member.name, member.manifest, member.own) for member in kind] for kind in (servers, clients)]
    )
    if key not in described:
        described[key] = describe(servers, clients)
    return described[key]


def describe_code_once(patch: pytest.MonkeyPatch) -> None:
    """Describe the same contestants once for all tests of a process, and read once which of them share code."""
    patch.setattr(codesize, "describe", describe_once)
    patch.setattr(codesize, "find_families", find_families_once)


def draw_nothing(patch: pytest.MonkeyPatch) -> None:
    """Leave the reports of this process's commands empty."""
    patch.setattr("netdyno.present.report.write_page", lambda _analysis, path, *_: path.touch())


def use_steady_canary(patch: pytest.MonkeyPatch) -> None:
    """Read the same speed of the machine beside every trial, without a program."""
    from tests.support.builders.made_canary import SteadyCanary  # loads NumPy, which few runs of tests need

    patch.setattr(runner, "Canary", SteadyCanary)
    patch.setattr(resume, "Canary", SteadyCanary)
    patch.setattr(capacity_search, "Canary", SteadyCanary)


@pytest.fixture
def steady_canary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside trials that start no program, the canary starts none either: the machine is equally fast all the time. Nor
    is the code of the same contestants looked at for each of these runs."""
    use_steady_canary(monkeypatch)
    describe_code_once(monkeypatch)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reports of this process's commands are empty files: to draw one takes as long as some ten trials of fakes,
    and belongs to tests that look at it."""
    draw_nothing(monkeypatch)


@pytest.fixture(params=["root", "anybody"])
def rights(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The rights of the harness where it makes namespaces: root's, or none but a user namespace."""
    user: str = request.param
    if user == "anybody":
        monkeypatch.setattr(os, "geteuid", lambda: NOBODY_UID)
    elif os.geteuid() != 0:
        pytest.skip("needs root")
    return user


def write_fake(path: Path, fake: str) -> None:
    """Make an executable that runs a fake."""
    path.parent.mkdir(parents=True, exist_ok=True)
    runner = ("/bin/sh",) if fake.endswith(".sh") else PYTHON
    path.write_text(f'#!/bin/sh\nexec {" ".join(runner)} {FAKES / fake} "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def make_fake_build(build: Path) -> Path:
    """A build directory with the fake generator and canary, and the fake server under the name of every CMake
    contestant."""
    write_fake(build / "loadgen" / "netdyno-load", "load.py")
    write_fake(build / "canary" / "netdyno-canary", "canary.sh")
    for candidate in discover_once():
        if candidate.manifest.is_built:
            write_fake(build / "servers" / candidate.name, "server.py")
    return build


@pytest.fixture
def write_program() -> WriteProgram:
    """Make an executable that runs a fake, for tests that need a build directory."""
    return write_fake


@pytest.fixture
def fake_build(tmp_path: Path, _unhurried: None) -> Path:
    return make_fake_build(tmp_path / "build")


@pytest.fixture
def execute(contestant: Contestant, tmp_path: Path, fake_build: Path) -> FakeRun:
    """Run an experiment with the fake server, or with `servers`, into the folder results; `options` are those of
    runner.execute."""
    from tests.support.builders.made_blocks import Silent

    def run(experiment: Experiment, display: Display | None = None, **options: Any) -> runner.RunOutcome:
        servers = options.pop("servers", [contestant])
        requested = experiment.with_each(contestants=tuple(server.name for server in servers))
        words = {"argv": ["netdyno", "run"], "build": fake_build, "foreign_load": "count", **options}
        return runner.execute(requested, servers, results=tmp_path / "results", display=display or Silent(), **words)

    return run


@pytest.fixture
def strace_program() -> str:
    """The program, where it is installed and may trace."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("strace is not installed (package strace)")
    if subprocess.run([program, "-o", "/dev/null", "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("strace may not trace here (ptrace_scope, or a container without CAP_SYS_PTRACE)")
    return program
