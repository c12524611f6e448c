"""`netdyno test` runs everything, says what each runner concluded, and fails when one failed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from netdyno.base.paths import ROOT
from netdyno.commands.checks import NOT_INSTALLED, Step, cpp_sources, report, run_conformance, run_step, steps


def test_every_kind_of_check_is_there() -> None:
    found = {step.name: step.command for step in steps(Path("/b"), ["-k", "x"])}
    assert found["C++ tests"][:3] == ("ctest", "--test-dir", "/b")
    assert found["Python, conformance and browser tests"][-3:] == ("tests", "-k", "x")
    assert {"ruff check", "ruff format", "mypy", "clang-format"} <= found.keys()


def test_every_cpp_file_of_the_project_is_formatted() -> None:
    known = {"build", ".venv", ".netdyno"}
    every = (path.relative_to(ROOT) for suffix in ("cpp", "hpp") for path in ROOT.rglob(f"*.{suffix}"))
    assert {str(path) for path in every if path.parts[0] not in known} == set(cpp_sources())


def test_every_suite_over_contestants_is_run_for_those_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[tuple[str, ...]] = []

    def remember(command: tuple[str, ...], **_: object) -> subprocess.CompletedProcess[bytes]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(subprocess, "run", remember)
    assert run_conformance(["a", "b"], ["-x"]) == 3
    assert commands[0][-5:] == ("--contestant", "a", "--contestant", "b", "-x")
    suites = {path.parent for path in (ROOT / "tests").glob("*/conftest.py") if "chosen(" in path.read_text()}
    assert set(commands[0][3:-5]) == {str(suite.relative_to(ROOT)) for suite in suites}


def test_one_failure_is_enough_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = Step("good", ("true",)), Step("bad", ("false",))
    assert report([(good, run_step(good))]) == 0
    assert report([(bad, run_step(bad)), (good, run_step(good))]) == 1
    assert "FAILED  bad (exit code 1)\npassed  good\n" in capsys.readouterr().out


def test_a_runner_that_is_missing_fails_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_step(Step("x", ("no-such-program-anywhere",))) == NOT_INSTALLED
    assert "no-such-program-anywhere is not installed" in capsys.readouterr().out
