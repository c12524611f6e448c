"""`netdyno test` runs everything, says what each runner concluded, and fails when one failed."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT
from netdyno.verbs import checks
from netdyno.verbs.checks import (
    GIVEN_WAY,
    NOT_INSTALLED,
    NOTHING_SELECTED,
    TESTS_FAILED,
    CheckStage,
    CheckStep,
    list_cpp_sources,
    pass_empty,
    plan_attack_stages,
    plan_stages,
    report,
    retry_failed,
    run_conformance,
    run_stage,
    run_step,
    run_tests,
)

LINT = {"ruff check", "ruff format", "mypy", "clang-format"}


def by_name(planned: list[CheckStage]) -> dict[str, tuple[str, ...]]:
    return {step.name: step.command for stage in planned for step in stage}


def test_every_kind_of_check_is_there() -> None:
    commands = by_name(plan_stages(Path("/b"), []))
    assert commands["C++ tests"][:3] == ("ctest", "--test-dir", "/b")
    assert commands.keys() >= LINT


def test_all_python_tests_are_run_and_those_of_a_quiet_machine_alone_and_last() -> None:
    """Which test is in which of the three steps is tested in tests/project/test_suite.py."""
    planned = plan_stages(Path("/b"), ["-k", "x"])[-3:]
    commands = [stage[0].command[3:] for stage in planned]
    assert [command[-4:] for command in commands] == [
        ("--machine", machine, "-k", "x") for machine in ("shared", "calm", "quiet")
    ]
    shared, calm = (int(command[command.index("--numprocesses") + 1]) for command in commands[:2])
    assert 1 < calm < shared
    assert "--numprocesses" not in commands[2]
    assert [step.name for stage in planned for step in stage[1:]] == ["mypy", "clang-format"]
    assert len(planned[-1]) == 1


def test_every_cpp_file_of_the_project_is_formatted() -> None:
    known = {"build", ".venv", ".netdyno"}
    paths = (path.relative_to(ROOT) for suffix in ("cpp", "hpp") for path in ROOT.rglob(f"*.{suffix}"))
    assert {str(path) for path in paths if path.parts[0] not in known} == set(list_cpp_sources())


def test_every_suite_over_contestants_is_run_for_those_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[tuple[str, ...]] = []

    def remember(command: tuple[str, ...], **_: object) -> subprocess.CompletedProcess[bytes]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(subprocess, "run", remember)
    assert run_conformance(["a", "b"], ["-x"]) == 3
    assert commands[0][-5:] == ("--contestant", "a", "--contestant", "b", "-x")
    run_conformance([], [])
    assert commands[1][-1] == "--all"
    suites = {path.parent for path in (ROOT / "tests").glob("contract/*/conftest.py") if "metafunc" in path.read_text()}
    assert set(commands[0][3:-5]) == {str(suite.relative_to(ROOT)) for suite in suites}


def test_a_retry_that_finds_nothing_to_retry_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = CheckStep("a", ("pytest",), ("pytest", "--last-failed"))
    monkeypatch.setattr(checks, "run_step", lambda _: checks.NOTHING_SELECTED)
    assert checks.pass_empty(checks.retry_failed([(failing, 1), (CheckStep("b", ("pytest",)), 0)]))[0][1] == 1


def test_one_failure_is_enough_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = CheckStep("good", ("true",)), CheckStep("bad", ("false",))
    assert report([(good, run_step(good))]) == 0
    assert report([(bad, run_step(bad)), (good, run_step(good))]) == 1
    assert "FAILED  bad (exit code 1)\npassed  good\n" in capsys.readouterr().out


def test_the_summary_ends_with_the_time_of_each_stage(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[CheckStage] = [(CheckStep("a", ("true",)), CheckStep("b", ("true",))), (CheckStep("c", ("false",)),)]
    monkeypatch.setattr(checks, "plan_quick_stages", lambda *_: planned)
    assert run_tests(Path("/b"), (), quick=True) == 1
    assert re.search(r"FAILED  c \(exit code 1\)\n +\d:\d\d  a, b\n +\d:\d\d  c\n$", capsys.readouterr().out)


PYTEST_FAILED = TESTS_FAILED["pytest"]
TWO_TESTS = """
from pathlib import Path
import pytest

def ran(name):
    with Path("ran").open("a") as file:
        file.write(f"{name} ")

@pytest.mark.xdist_group("a group")
def test_unsteady():
    again = Path("ran").exists()
    ran("unsteady")
    assert again

@pytest.mark.xdist_group("a group")
def test_steady():
    ran("steady")
"""


@pytest.mark.parametrize(("alone", "ends_with"), [("true", 0), ("false", 1)])
def test_what_failed_beside_others_has_failed_if_it_does_so_alone(
    alone: str, ends_with: int, capsys: pytest.CaptureFixture[str]
) -> None:
    unsteady = CheckStep("tests", ("pytest",), (alone,))
    assert report(retry_failed([(unsteady, PYTEST_FAILED), (CheckStep("lint", ("ruff",)), 0)])) == ends_with
    printed = capsys.readouterr().out
    assert "== tests: those that failed, again and alone: " in printed
    assert ("passed  tests; some failed at first, and passed alone" in printed) == (ends_with == 0)


@pytest.mark.parametrize("code", [0, PYTEST_FAILED + 1, NOTHING_SELECTED])
def test_what_passed_or_could_not_be_run_has_no_second_try(code: int) -> None:
    once = CheckStep("tests", ("pytest",), ("false",))
    assert retry_failed([(once, code)]) == [(once, code)]
    lint = CheckStep("ruff check", ("ruff",))
    assert retry_failed([(lint, 1)]) == [(lint, 1)]


@pytest.mark.parametrize("machine", ["shared", "quiet"])
def test_the_second_try_is_of_those_that_failed_and_of_no_other(machine: str, tmp_path: Path) -> None:
    """One of two tests fails the first time. They have a group, as all of the project's do: one worker will
    do. A calm machine has the commands of a shared one, with fewer workers."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(TWO_TESTS)
    steps = (stage[0] for stage in plan_stages(Path("/b"), []))
    (step,) = (step for step in steps if ("--machine", machine) in itertools.pairwise(step.alone))
    first, second = ([word for word in command if word not in ("tests", "--machine", machine)] for command in step[1:])
    if "--numprocesses" in first:
        first[first.index("--numprocesses") + 1] = "1"
    assert subprocess.run(first, cwd=tmp_path, check=False).returncode == PYTEST_FAILED
    assert subprocess.run(second, cwd=tmp_path, check=False).returncode == 0
    assert (tmp_path / "ran").read_text() == "unsteady steady unsteady "


def test_steps_at_the_same_time_are_reported_in_their_order_each_in_one_piece(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The first ends only when the second releases it: they run at the same time."""
    with tempfile.TemporaryDirectory() as folder:
        pipe = Path(folder) / "pipe"
        os.mkfifo(pipe)
        waits = CheckStep("waits", ("sh", "-c", f"echo one; cat {pipe}; echo three; exit 3"))
        tells = CheckStep("tells", ("sh", "-c", f"echo two >{pipe}; echo four >&2"))
        results = run_stage((waits, tells))
    assert results == [(waits, 3), (tells, 0)]
    printed = capfd.readouterr().out
    words = re.findall("^one$|^two$|^three$|^four$|^== (?:waits|tells)", printed, re.MULTILINE)
    assert words == ["== waits", "one", "two", "three", "== tells", "four"]


def test_what_runs_beside_the_first_step_gives_way_to_it(capfd: pytest.CaptureFixture[str]) -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    wait = "i=0; while [ $(nice) = $0 ] && [ $((i += 1)) -lt 1000 ]; do :; done; echo at $(nice)"  # 19 gives no way
    niced = CheckStep("niced", ("sh", "-c", wait, str(own)))
    assert run_stage((CheckStep("first", ("nice",)), niced))[1] == (niced, 0)
    assert f"\n{own}\n" in (printed := capfd.readouterr().out)
    assert f"\nat {min(own + GIVEN_WAY, 19)}\n" in printed


def test_a_step_of_pytest_that_is_left_nothing_by_arguments_is_no_failure_unless_all_are() -> None:
    first, second, lint = CheckStep("1", ("pytest",)), CheckStep("2", ("pytest",)), CheckStep("lint", ("ruff",))
    assert pass_empty([(lint, 0), (first, 0), (second, NOTHING_SELECTED)])[-1] == (second, 0)
    assert pass_empty([(first, 1), (second, NOTHING_SELECTED)]) == [(first, 1), (second, 0)]
    nothing = [(lint, 0), (first, NOTHING_SELECTED), (second, NOTHING_SELECTED)]
    assert pass_empty(nothing) == nothing
    assert pass_empty([(lint, NOTHING_SELECTED), (first, 0)])[0] == (lint, NOTHING_SELECTED)


def test_a_runner_that_is_missing_fails_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    missing = CheckStep("x", ("no-such-program-anywhere",))
    assert run_step(missing) == NOT_INSTALLED
    assert run_stage((missing, CheckStep("y", ("true",)))) == [
        (missing, NOT_INSTALLED),
        (CheckStep("y", ("true",)), 0),
    ]
    assert capsys.readouterr().out.count("no-such-program-anywhere is not installed") == 2


def test_the_attacks_are_all_their_seeds_and_nothing_else() -> None:
    ((step,),) = plan_attack_stages(Path("/b"), ["-k", "kills"])
    assert {"tests/attack", "--attack", "--numprocesses"} < set(step.command)
    assert step.command[-2:] == ("-k", "kills")
