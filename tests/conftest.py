"""Options of the whole test tree; they stand here because pytest reads only this file before its command line."""

import gc
import os
import re
import signal
from collections.abc import Collection, Generator, Sequence
from pathlib import Path

import pytest

from netdyno.kit.paths import build_dir
from tests.support import chosen, memory

pytest_plugins = ("tests.support.fixtures", "tests.support.skips", "tests.support.time_spent")

MARKS = (
    "needs_build: the test needs the programs of the build directory",
    "quiet: what others do beside it is in what it measures, or in how long it waits; it runs alone, after the others",
    "calm: mostly it waits for moments that a full machine lets pass; it runs beside others that are marked so",
    "long: its group takes much of its step, and is begun first, so that it does not end alone after all others",
    "quick: the test is one of those of `netdyno test --quick`; all of tests/unit are",
    *chosen.MARKS,
)
ANYTHING = re.escape("*")
_passed: set[str] = set()
UNCHECKED: pytest.StashKey[list[str]] = pytest.StashKey()
"""The contestants that were named and of which no test passed."""
APART = ("quiet", "calm")
"""The marks of tests that do not run beside all others."""


def pytest_configure(config: pytest.Config) -> None:
    """Tests ask whether things work, and the machine may do something else beside them: then a run only counts that.
    The default is tested with this variable taken away. The programs are taken as they are: they are built before the
    tests start.

    Tests that need the programs fail, and are not skipped, where the build is missing: a check that did not run is no
    check."""
    os.environ.setdefault("NETDYNO_FOREIGN_LOAD", "count")
    # A shell starts its background jobs so, and nohup: all that they start would ignore these signals as well.
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    os.environ.setdefault("NETDYNO_BUILD", str(build_dir()))
    if memory.can_hold_files(memory.FOLDER):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory.FOLDER))
    for mark in MARKS:
        config.addinivalue_line("markers", mark)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which contestants the conformance suite looks at, and what the machine is free for."""
    parser.addoption(
        "--contestant", action="append", default=[], metavar="NAME", help="conformance: only this one (repeatable)"
    )
    parser.addoption("--all", action="store_true", help="conformance: every test against every contestant")
    parser.addoption("--attack", action="store_true", help="every seed of tests/attack, where else each has one")
    parser.addoption(
        "--attack-seconds",
        type=float,
        default=510,
        metavar="S",
        help="with --attack: after so long none begins; with those that are under way it is ten minutes at most",
    )
    parser.addoption(
        "--machine",
        choices=("shared", *APART),
        help="only tests that all others may run beside, or only those marked calm or quiet (default: all)",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """For a calm or quiet machine load only the files that write this mark out, which are few, and those that were
    named: to collect every test takes as long as a dozen of them."""
    mark = config.getoption("--machine")
    if mark not in APART or not collection_path.match("test_*.py"):
        return None
    if any(argument.partition("::")[0].endswith(collection_path.name) for argument in config.args):
        return None
    return None if _writes(collection_path, mark) else True


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are collected, nor look through them again later: what is made here stays to the
    end, and each of the full collections would go through all of it, in every process that has tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        memory.join_pages()


def _writes(file: Path, mark: str) -> bool:
    return f"mark.{mark}" in file.read_text(encoding="utf-8")


def _expect_written(mark: str, items: list[pytest.Item]) -> None:
    files = {item.path for item in items if item.get_closest_marker(mark) is not None}
    if unseen := [str(file) for file in sorted(files) if not _writes(file, mark)]:
        raise pytest.UsageError(f"the file of a test marked {mark} must have the words 'mark.{mark}': {unseen}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where tests run side by side (--dist loadgroup), those of one file stay together, as they share its fixtures; so
    do those of one contestant, which their suite has marked. Groups are begun in the order of their tests, the long
    ones first. First, for pytest-xdist reads the marks in this hook."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
    for mark in APART:
        _expect_written(mark, items)
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    if (machine := config.getoption("--machine")) is not None:
        kept: list[pytest.Item] = []
        left_out: list[pytest.Item] = []
        for item in items:
            (kept if _machine_of(item) == machine else left_out).append(item)
        items[:] = kept
        config.hook.pytest_deselected(items=left_out)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed:
        _passed.add(report.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where a contestant was named and no test of it passed: all may have been skipped, as its build failed."""
    option = session.config.option
    is_part = option.attack or option.machine or getattr(option, "lf", False)  # without a cache there is no --lf
    if is_part or option.collectonly or hasattr(session.config, "workerinput"):
        return
    unchecked = _list_unchecked(session.config.getoption("--contestant"), _passed)
    if unchecked and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    session.config.stash[UNCHECKED] = unchecked


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for name in config.stash.get(UNCHECKED, ()):
        terminalreporter.write_line(f"{name}: nothing was checked; the reasons are above (-rs)", red=True)


def _list_unchecked(names: Sequence[str], passed: Collection[str]) -> list[str]:
    """Return the names, or patterns, of which no test passed: it stands in the parameters of its tests. Pure."""
    patterns = {name: re.compile(rf"[\[-]{re.escape(name).replace(ANYTHING, '.*')}[\]-]") for name in names}
    return [name for name, pattern in patterns.items() if not any(map(pattern.search, passed))]


def _machine_of(item: pytest.Item) -> str:
    return next((mark for mark in APART if item.get_closest_marker(mark) is not None), "shared")
