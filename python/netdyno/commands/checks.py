"""`netdyno test` and `netdyno check`: every runner with its own output, then what each one concluded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from netdyno.base.paths import ROOT
from netdyno.base.units import format_clock
from netdyno.contestants import building
from netdyno.contestants.contestants import Kind
from netdyno.model.contestant import Contestant

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
_CONFORMANCE = ("tests/contract/tcp", "tests/contract/messages", "tests/contract/clients")
AGAINST_ALL = ("--all",)
"""The option of tests/conftest.py with which every conformance test runs against every contestant."""
_QUICK = ("tests/unit", "tests/project", "tests/contract")
_OTHER_ENDS = (building.GENERATOR, "threads-global-lock")
"""What the suites load a server with, and what they let a client load."""
NOT_INSTALLED = 127  # what a shell says of a command it does not find
NOTHING_SELECTED = 5  # pytest's exit code
GIVEN_WAY = 10  # a niceness, nice(2)
TESTS_FAILED = {"pytest": 1, "ctest": 8}
"""Exit codes: the runner did its work, and of its tests some failed."""


class Step(NamedTuple):
    """One runner: what it is called here, the command, and the one that runs those of its tests that failed, alone
    (none: they have failed)."""

    name: str
    command: tuple[str, ...]
    alone: tuple[str, ...] = ()


Stage = tuple[Step, ...]
"""Steps that run at the same time: they wait more than they work, or work where the others wait."""


def stages(build: Path, pytest_arguments: Sequence[str], root: Path = ROOT) -> list[Stage]:
    """Everything that `netdyno test` runs, in order. Tests that need the machine for themselves come last, one at a
    time, and before them those that need most of it, a few at a time; which those are is marked in the tests, so that
    each test is in one of the three steps."""

    def side_by_side(name: str, machine: str, processes: int) -> Step:
        arguments = ("--machine", machine, *pytest_arguments)
        return _tried_again(name, arguments, beside=_beside(processes), alone=_beside(1))

    return [
        (_cpp_tests(build), _collection(), *_fast_lint()),
        (side_by_side("Python, conformance and browser tests", "shared", 4 * _cores()), *_slow_lint(root)),
        (side_by_side("tests of a calm machine", "calm", 2 * _cores()),),
        (_tried_again("tests of a quiet machine", ("--machine", "quiet", *pytest_arguments)),),
    ]


def attack_stages(build: Path, pytest_arguments: Sequence[str], root: Path = ROOT) -> list[Stage]:
    """What `netdyno test --attack` runs: every seed of what else has one."""
    del build, root
    return [(_pytest("attacks", "tests/attack", "--attack", *_beside(_cores() + 1), *pytest_arguments),)]


def quick_stages(build: Path, pytest_arguments: Sequence[str], root: Path = ROOT) -> list[Stage]:
    """What `netdyno test --quick` runs: units, the architecture, lint, and of the contract what is marked quick."""
    tests = _pytest("quick tests", *_QUICK, "-m", "quick", *_beside(_cores() + 1), *pytest_arguments)
    return [(_cpp_tests(build), *_fast_lint(), *_slow_lint(root)), (tests,)]


def _cpp_tests(build: Path) -> Step:
    """Four times as many at a time as there are cores: most of the time is that of windows which have to pass."""
    command = ("ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=error")
    return Step("C++ tests", (*command, "--parallel", str(4 * _cores())), (*command, "--rerun-failed"))


def _collection() -> Step:
    """That all tests can be collected; with that, Python has compiled them, which else every process would do."""
    return _pytest("collection of the tests", "tests", "--collect-only", "-qq")


def _fast_lint() -> Stage:
    python = sys.executable
    return (
        Step("ruff check", (python, "-m", "ruff", "check", ".")),
        Step("ruff format", (python, "-m", "ruff", "format", "--check", ".")),
    )


def _slow_lint(root: Path) -> Stage:
    sources = cpp_sources(root)
    formats = (Step("clang-format", ("clang-format", "--dry-run", "--Werror", *sources)),) if sources else ()
    return (Step("mypy", (sys.executable, "-m", "mypy")), *formats)


def _pytest(name: str, *arguments: str) -> Step:
    return Step(name, (sys.executable, "-m", "pytest", *arguments))


def _tried_again(name: str, arguments: Sequence[str], beside: Sequence[str] = (), alone: Sequence[str] = ()) -> Step:
    """All tests, and a second try that ends with the first which fails again. `alone`: in one process, but as the first
    time under pytest-xdist where that was, for it stores who failed by names that have their group at the end."""
    again = ("--last-failed", "--last-failed-no-failures", "none", "--exitfirst")
    second = _pytest(name, "tests", *alone, *again, *arguments).command
    return _pytest(name, "tests", *beside, *arguments)._replace(alone=second)


def _beside(processes: int) -> tuple[str, ...]:
    """In so many processes: of all tests two of three wait for a window or a server, of the quick ones few. What
    belongs together (tests/conftest.py) stays in one of them. What is marked long is begun first, the rest in the order
    of the tree: contestants, which take long, before units, which do not."""
    return "--numprocesses", str(processes), "--dist", "loadgroup", "--no-loadscope-reorder"


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def cpp_sources(root: Path = ROOT) -> list[str]:
    """Every C++ file of the project, relative to the repository."""
    files = (path for folder in _CPP_FOLDERS for path in (root / folder).rglob("*") if path.suffix in _CPP_SUFFIXES)
    return sorted(str(path.relative_to(root)) for path in files)


def run_tests(build: Path, pytest_arguments: Sequence[str], *, quick: bool = False, attack: bool = False) -> int:
    """Run every step, also after one has failed. 0 when all passed, else 1."""
    planned = (attack_stages if attack else quick_stages if quick else stages)(build, pytest_arguments)
    results: list[tuple[Step, int]] = []
    times: list[tuple[Stage, float]] = []
    for stage in planned:
        began = time.monotonic()
        results += second_try(run_stage(stage))
        times.append((stage, time.monotonic() - began))
    code = report(without_the_empty(results) if pytest_arguments else results)
    for stage, seconds in times:
        print(f"{format_clock(seconds):>6}  {', '.join(step.name for step in stage)}")
    return code


def without_the_empty(results: Sequence[tuple[Step, int]]) -> list[tuple[Step, int]]:
    """Arguments such as -k may leave nothing of one step of pytest; that is no failure where another has something."""
    empty = {step for step, code in results if "pytest" in step.command and code == NOTHING_SELECTED}
    if all(step in empty for step, _ in results if "pytest" in step.command):
        return list(results)
    return [(step, 0 if step in empty else code) for step, code in results]


def run_stage(stage: Stage) -> list[tuple[Step, int]]:
    """Run its steps at the same time. The first writes its output as it comes; that of each other follows in one piece.
    All give way to the first, whose tests wait for moments."""
    first, *others = stage
    if others:
        print(f"\n== at the same time: {', '.join(step.name for step in stage)}", flush=True)
    with ThreadPoolExecutor(len(stage)) as pool:
        running = [(step, pool.submit(_output_of, step)) for step in others]
        results = [(first, run_step(first))]
        for step, pending in running:
            code, output = pending.result()
            print(f"\n== {step.name}: {_shown(step)}\n{output}", end="", flush=True)
            results.append((step, code))
    return results


def second_try(results: Sequence[tuple[Step, int]]) -> list[tuple[Step, int]]:
    """Return the results after tests that failed beside others ran once more, alone. If all pass then, the step has not
    failed, and its name says so. The suite starts some ten thousand servers, eight side by side on two cores, where
    a test may fail for a pause that nothing bounds. A fault that shows only beside others may pass; `--attack` looks
    for those and has no second try."""
    return [_second_try(step) if _may_pass_alone(step, code) else (step, code) for step, code in results]


def _may_pass_alone(step: Step, code: int) -> bool:
    return bool(step.alone) and any(name in step.command and code == TESTS_FAILED[name] for name in TESTS_FAILED)


def _second_try(step: Step) -> tuple[Step, int]:
    code = run_step(Step(f"{step.name}: those that failed, again and alone", step.alone))
    return (step if code else step._replace(name=f"{step.name}; some failed at first, and passed alone"), code)


def _output_of(step: Step) -> tuple[int, str]:
    if shutil.which(step.command[0]) is None:
        return NOT_INSTALLED, _missing(step)
    with subprocess.Popen(
        step.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        os.setpriority(os.PRIO_PROCESS, process.pid, min(os.getpriority(os.PRIO_PROCESS, 0) + GIVEN_WAY, 19))
        output, _ = process.communicate()
    return process.returncode, output


def report(results: Sequence[tuple[Step, int]]) -> int:
    """Say what every step concluded. 0 when all passed, else 1."""
    print("\n== summary", flush=True)
    for step, code in results:
        print(f"{'passed' if code == 0 else 'FAILED'}  {step.name}{'' if code == 0 else f' (exit code {code})'}")
    return 1 if any(code != 0 for _, code in results) else 0


def programs(names: Sequence[str], everyone: Mapping[Kind, Sequence[Contestant]]) -> tuple[str, ...]:
    """The targets of the build that the suites need for the named contestants, or for all. Pure."""
    if not names:
        return (building.PROGRAMS,)
    chosen = ((kind, one) for kind, some in everyone.items() for one in some if one.name in names)
    return (*_OTHER_ENDS, *(target for kind, one in chosen for target in building.target(one, kind)))


def run_conformance(names: Sequence[str], pytest_arguments: Sequence[str]) -> int:
    """The suites over servers (of streams, and of messages) and over clients, for the named contestants or for all.
    Returns pytest's exit code."""
    chosen = [argument for name in names for argument in ("--contestant", name)] or AGAINST_ALL
    command = (sys.executable, "-m", "pytest", *_CONFORMANCE, *chosen, *pytest_arguments)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def run_step(step: Step) -> int:
    """Run one step with its output as its own; returns its exit code."""
    print(f"\n== {step.name}: {_shown(step)}", flush=True)
    if shutil.which(step.command[0]) is None:
        print(_missing(step), end="", flush=True)
        return NOT_INSTALLED
    return subprocess.run(step.command, cwd=ROOT, check=False).returncode


def _shown(step: Step) -> str:
    return " ".join(step.command)[:200]


def _missing(step: Step) -> str:
    return f"{step.command[0]} is not installed (run ./netdyno, which installs it)\n"
