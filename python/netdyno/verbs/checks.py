"""`netdyno test` and `netdyno check`: every runner with its own output, then a summary."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from netdyno.kit.paths import ROOT
from netdyno.kit.units import format_clock
from netdyno.model.contestant import Contestant
from netdyno.question.contestants import building
from netdyno.question.contestants.contestants import ContestantKind

_CPP_FOLDERS = (
    "canary",
    "bench",
    "clients",
    "launch",
    "lib",
    "link",
    "loadgen",
    "servers",
    "tests/cpp",
    "tests/support",
)
_CPP_SUFFIXES = (".cpp", ".hpp", ".cc", ".h")
_CONFORMANCE = tuple(f"tests/contract/{suite}" for suite in ("tcp", "messages", "web", "grpc", "clients"))
AGAINST_ALL = ("--all",)
"""The option of tests/conftest.py with which every conformance test runs against every contestant."""
_QUICK = ("tests/unit", "tests/project", "tests/contract")
_OTHER_ENDS = (building.GENERATOR, "threads-global-lock")
"""The load for servers, and the server for clients, in the suites."""
NOT_INSTALLED = 127  # a shell's exit code for a command that it does not find
NOTHING_SELECTED = 5  # pytest's exit code
GIVEN_WAY = 10  # a niceness, nice(2)
TESTS_FAILED = {"pytest": 1, "ctest": 8}
"""The exit codes of a runner that worked, while some of its tests failed."""


class CheckStep(NamedTuple):
    """One runner: its name here, its command, and the command that runs its failed tests again, alone (none: there is
    no second try)."""

    name: str
    command: tuple[str, ...]
    alone: tuple[str, ...] = ()


CheckStage = tuple[CheckStep, ...]
"""Steps that run at the same time: they wait more than they work, or work while the others wait."""


def plan_stages(build: Path, pytest_arguments: Sequence[str]) -> list[CheckStage]:
    """Return everything that `netdyno test` runs, in order. Tests that need the machine for themselves come last, one
    at a time, and before them those that need most of it, a few at a time. Marks in the tests put each into one of the
    three steps."""

    def side_by_side(name: str, machine: str, processes: int) -> CheckStep:
        arguments = ("--machine", machine, *pytest_arguments)
        return _step_with_retry(
            name, arguments, parallel=_choose_xdist_options(processes), alone=_choose_xdist_options(1)
        )

    return [
        (_make_cpp_test_step(build), _make_collection_step(), *_make_fast_lint_steps()),
        (side_by_side("Python, conformance and browser tests", "shared", 4 * _count_cores()), *_make_slow_lint_steps()),
        (side_by_side("tests of a calm machine", "calm", 2 * _count_cores()),),
        (_step_with_retry("tests of a quiet machine", ("--machine", "quiet", *pytest_arguments)),),
    ]


def plan_attack_stages(build: Path, pytest_arguments: Sequence[str]) -> list[CheckStage]:
    """Return what `netdyno test --attack` runs: the attacks with all of their seeds."""
    del build
    return [
        (
            _make_pytest_step(
                "attacks", "tests/attack", "--attack", *_choose_xdist_options(_count_cores() + 1), *pytest_arguments
            ),
        )
    ]


def plan_quick_stages(build: Path, pytest_arguments: Sequence[str]) -> list[CheckStage]:
    """Return what `netdyno test --quick` runs: units, the architecture, lint, and the tests of the contract marked
    quick."""
    tests = _make_pytest_step(
        "quick tests", *_QUICK, "-m", "quick", *_choose_xdist_options(_count_cores() + 1), *pytest_arguments
    )
    return [(_make_cpp_test_step(build), *_make_fast_lint_steps(), *_make_slow_lint_steps()), (tests,)]


def _make_cpp_test_step(build: Path) -> CheckStep:
    """Return the C++ tests, four times as many at a time as there are cores: most of their time passes in windows."""
    command = ("ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=error")
    return CheckStep("C++ tests", (*command, "--parallel", str(4 * _count_cores())), (*command, "--rerun-failed"))


def _make_collection_step() -> CheckStep:
    """Return the collection of all tests. It also compiles their Python, which else every process would do."""
    return _make_pytest_step("collection of the tests", "tests", "--collect-only", "-qq")


def _make_fast_lint_steps() -> CheckStage:
    python = sys.executable
    return (
        CheckStep("ruff check", (python, "-m", "ruff", "check", ".")),
        CheckStep("ruff format", (python, "-m", "ruff", "format", "--check", ".")),
    )


def _make_slow_lint_steps() -> CheckStage:
    program = str(Path(sysconfig.get_path("scripts")) / "clang-format")  # the locked one: releases format differently
    return (
        CheckStep("mypy", (sys.executable, "-m", "mypy")),
        CheckStep("clang-format", (program, "--dry-run", "--Werror", *list_cpp_sources())),
    )


def _make_pytest_step(name: str, *arguments: str) -> CheckStep:
    return CheckStep(name, (sys.executable, "-m", "pytest", *arguments))


def _step_with_retry(
    name: str, arguments: Sequence[str], parallel: Sequence[str] = (), alone: Sequence[str] = ()
) -> CheckStep:
    """Return all tests, and a second try that ends with the first test that fails again. `alone`: the options for one
    process, under pytest-xdist like the first try, because it stores failed tests by names that end with their
    group."""
    retry_options = ("--last-failed", "--last-failed-no-failures", "none", "--exitfirst")
    second = _make_pytest_step(name, "tests", *alone, *retry_options, *arguments).command
    return _make_pytest_step(name, "tests", *parallel, *arguments)._replace(alone=second)


def _choose_xdist_options(processes: int) -> tuple[str, ...]:
    """Return the options for so many processes: two of three tests wait for a window or a server, few of the quick ones
    do. Tests of a group (tests/conftest.py) share a process. Tests marked long begin first, the rest in the order of
    the tree: contestants, which take long, before units, which do not."""
    return "--numprocesses", str(processes), "--dist", "loadgroup", "--no-loadscope-reorder"


def _count_cores() -> int:
    return len(os.sched_getaffinity(0))


def list_cpp_sources(root: Path = ROOT) -> list[str]:
    """Return every C++ file of the project, relative to the repository."""
    files = (path for folder in _CPP_FOLDERS for path in (root / folder).rglob("*") if path.suffix in _CPP_SUFFIXES)
    return sorted(str(path.relative_to(root)) for path in files)


def run_tests(build: Path, pytest_arguments: Sequence[str], *, quick: bool = False, attack: bool = False) -> int:
    """Run every step, even after one has failed. Return 0 when all passed, else 1."""
    planned = (plan_attack_stages if attack else plan_quick_stages if quick else plan_stages)(build, pytest_arguments)
    results: list[tuple[CheckStep, int]] = []
    times: list[tuple[CheckStage, float]] = []
    for stage in planned:
        began = time.monotonic()
        results += retry_failed(run_stage(stage))
        times.append((stage, time.monotonic() - began))
    code = report(pass_empty(results) if pytest_arguments else results)
    for stage, seconds in times:
        print(f"{format_clock(seconds):>6}  {', '.join(step.name for step in stage)}")
    return code


def pass_empty(results: Sequence[tuple[CheckStep, int]]) -> list[tuple[CheckStep, int]]:
    """Pass the steps of pytest that arguments such as -k left empty, unless all are empty."""
    empty = {step for step, code in results if "pytest" in step.command and code == NOTHING_SELECTED}
    if all(step in empty for step, _ in results if "pytest" in step.command):
        return list(results)
    return [(step, 0 if step in empty else code) for step, code in results]


def run_stage(stage: CheckStage) -> list[tuple[CheckStep, int]]:
    """Run its steps at the same time. The first writes its output as it comes; that of each other follows in one piece.
    The others have a lower priority, for the tests of the first wait for moments."""
    first, *others = stage
    if others:
        print(f"\n== at the same time: {', '.join(step.name for step in stage)}", flush=True)
    with ThreadPoolExecutor(len(stage)) as pool:
        running = [(step, pool.submit(_collect_output, step)) for step in others]
        results = [(first, run_step(first))]
        for step, pending in running:
            code, output = pending.result()
            print(f"\n== {step.name}: {_show_command(step)}\n{output}", end="", flush=True)
            results.append((step, code))
    return results


def retry_failed(results: Sequence[tuple[CheckStep, int]]) -> list[tuple[CheckStep, int]]:
    """Return the results after tests that failed beside others ran once more, alone. If all pass then, the step has
    passed, and its name says so. The suite starts some ten thousand servers, eight side by side on two cores, where
    a test may fail for a pause that nothing bounds. A fault that shows only beside others may pass; `--attack` looks
    for those and has no second try."""
    return [_try_again(step) if _may_pass_alone(step, code) else (step, code) for step, code in results]


def _may_pass_alone(step: CheckStep, code: int) -> bool:
    return bool(step.alone) and any(name in step.command and code == TESTS_FAILED[name] for name in TESTS_FAILED)


def _try_again(step: CheckStep) -> tuple[CheckStep, int]:
    code = run_step(CheckStep(f"{step.name}: those that failed, again and alone", step.alone))
    if code == NOTHING_SELECTED:  # where pytest could not store which failed
        return step, TESTS_FAILED["pytest"]
    return (step if code else step._replace(name=f"{step.name}; some failed at first, and passed alone"), code)


def _collect_output(step: CheckStep) -> tuple[int, str]:
    if shutil.which(step.command[0]) is None:
        return NOT_INSTALLED, _describe_missing(step)
    with subprocess.Popen(
        step.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        os.setpriority(os.PRIO_PROCESS, process.pid, min(os.getpriority(os.PRIO_PROCESS, 0) + GIVEN_WAY, 19))
        output, _ = process.communicate()
    return process.returncode, output


def report(results: Sequence[tuple[CheckStep, int]]) -> int:
    """Print the result of every step. Return 0 when all passed, else 1."""
    print("\n== summary", flush=True)
    for step, code in results:
        print(f"{'passed' if code == 0 else 'FAILED'}  {step.name}{'' if code == 0 else f' (exit code {code})'}")
    return 1 if any(code != 0 for _, code in results) else 0


def list_programs(names: Sequence[str], everyone: Mapping[ContestantKind, Sequence[Contestant]]) -> tuple[str, ...]:
    """Return the targets of the build that the suites need for the named contestants, or for all. Pure."""
    if not names:
        return (building.PROGRAMS,)
    chosen = [
        (kind, contestant) for kind, group in everyone.items() for contestant in group if contestant.name in names
    ]
    return (
        *_OTHER_ENDS,
        *building.list_tls_targets(contestant for _, contestant in chosen),
        *(target for kind, contestant in chosen for target in building.list_targets(contestant, kind)),
    )


def run_conformance(names: Sequence[str], pytest_arguments: Sequence[str]) -> int:
    """Run the suites over servers and clients, for the named contestants or for all. Returns pytest's exit code."""
    chosen = [argument for name in names for argument in ("--contestant", name)] or AGAINST_ALL
    command = (sys.executable, "-m", "pytest", *_CONFORMANCE, *chosen, *pytest_arguments)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def run_step(step: CheckStep) -> int:
    """Run one step with its output as its own; returns its exit code."""
    print(f"\n== {step.name}: {_show_command(step)}", flush=True)
    if shutil.which(step.command[0]) is None:
        print(_describe_missing(step), end="", flush=True)
        return NOT_INSTALLED
    return subprocess.run(step.command, cwd=ROOT, check=False).returncode


def _show_command(step: CheckStep) -> str:
    return " ".join(step.command)[:200]


def _describe_missing(step: CheckStep) -> str:
    return f"{step.command[0]} is not installed (run ./netdyno, which installs it)\n"
