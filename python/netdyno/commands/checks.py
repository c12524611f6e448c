"""`netdyno test` and `netdyno check`: every runner with its own output, then what each one concluded."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from netdyno.base.paths import ROOT

_CPP_FOLDERS = ("canary", "bench", "clients", "lib", "link", "loadgen", "servers", "tests/cpp")
_CPP_SUFFIXES = (".cpp", ".hpp", ".cc", ".h")
_CONFORMANCE = ("tests/contract/tcp", "tests/contract/messages", "tests/contract/clients")
NOT_INSTALLED = 127  # what a shell says of a command it does not find


class Step(NamedTuple):
    """One runner: what it is called here and the command."""

    name: str
    command: tuple[str, ...]


def steps(build: Path, pytest_arguments: Sequence[str], root: Path = ROOT) -> list[Step]:
    """Everything that `netdyno test` runs, in order."""
    python = sys.executable
    sources = cpp_sources(root)
    found = [
        Step("C++ tests", ("ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=error")),
        Step("Python, conformance and browser tests", (python, "-m", "pytest", "tests", *pytest_arguments)),
        Step("ruff check", (python, "-m", "ruff", "check", ".")),
        Step("ruff format", (python, "-m", "ruff", "format", "--check", ".")),
        Step("mypy", (python, "-m", "mypy")),
    ]
    if sources:
        found.append(Step("clang-format", ("clang-format", "--dry-run", "--Werror", *sources)))
    return found


def cpp_sources(root: Path = ROOT) -> list[str]:
    """Every C++ file of the project, relative to the repository."""
    files = (path for folder in _CPP_FOLDERS for path in (root / folder).rglob("*") if path.suffix in _CPP_SUFFIXES)
    return sorted(str(path.relative_to(root)) for path in files)


def run_tests(build: Path, pytest_arguments: Sequence[str]) -> int:
    """Run every step, also after one has failed. 0 when all passed, else 1."""
    return report([(step, run_step(step)) for step in steps(build, pytest_arguments)])


def report(results: Sequence[tuple[Step, int]]) -> int:
    """Say what every step concluded. 0 when all passed, else 1."""
    print("\n== summary", flush=True)
    for step, code in results:
        print(f"{'passed' if code == 0 else 'FAILED'}  {step.name}{'' if code == 0 else f' (exit code {code})'}")
    return 1 if any(code != 0 for _, code in results) else 0


def run_conformance(names: Sequence[str], pytest_arguments: Sequence[str]) -> int:
    """The suites over servers (of streams, and of messages) and over clients, for the named contestants or for all.
    Returns pytest's exit code."""
    chosen = [argument for name in names for argument in ("--contestant", name)]
    command = (sys.executable, "-m", "pytest", *_CONFORMANCE, *chosen, *pytest_arguments)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def run_step(step: Step) -> int:
    """Run one step with its output as its own; returns its exit code."""
    print(f"\n== {step.name}: {' '.join(step.command)[:200]}", flush=True)
    if shutil.which(step.command[0]) is None:
        print(f"{step.command[0]} is not installed (run ./netdyno, which installs it)", flush=True)
        return NOT_INSTALLED
    return subprocess.run(step.command, cwd=ROOT, check=False).returncode
