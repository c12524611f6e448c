"""Where the time of the tests goes: the slowest groups in the summary, and a limit on the CPU of a single test.

A limit on CPU says nothing about speed: a busy machine makes a test wait, and hardly makes it work more."""

from __future__ import annotations

import resource
from collections.abc import Generator
from dataclasses import dataclass

import pytest

MOST_CPU_S = 20.0
"""The limit of one test, with the programs that it started and that have ended."""
MARK = f"costly: the test may take more than {MOST_CPU_S:g} s of CPU"
GROUPS_SHOWN = 10
_CPU = "cpu_s"


@dataclass
class Spent:
    """What the tests of one group took, in seconds."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    tests: int = 0


def pytest_configure(config: pytest.Config) -> None:
    """The mark of this module."""
    config.addinivalue_line("markers", MARK)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test that took more CPU than one may, and keep what each took for the summary."""
    before = cpu_seconds()
    yield
    taken = cpu_seconds() - before
    item.user_properties.append((_CPU, taken))
    if taken > MOST_CPU_S and item.get_closest_marker("costly") is None:
        pytest.fail(f"it took {taken:.0f} s of CPU, and a test may take {MOST_CPU_S:g} s: split it, or mark it costly")


def cpu_seconds() -> float:
    """CPU of this process and of its children that have ended, in seconds (getrusage(2))."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the files of tests that took longest."""
    reports = [
        report
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport)
    ]
    if len(lines := slowest_groups(reports)) > 1:
        terminalreporter.section("slowest groups (seconds: of all tests together, and of CPU)")
        for line in lines:
            terminalreporter.write_line(line)


def slowest_groups(reports: list[pytest.TestReport]) -> list[str]:
    """One line for each of the groups that took longest, the slowest first. Pure."""
    groups: dict[str, Spent] = {}
    for report in reports:
        spent = groups.setdefault(report.nodeid.partition("::")[0], Spent())
        spent.wall_s += report.duration
        if report.when == "call":
            spent.tests += 1
            spent.cpu_s += sum(float(str(value)) for name, value in report.user_properties if name == _CPU)
    ordered = sorted(groups.items(), key=lambda item: item[1].wall_s, reverse=True)
    return [
        f"{spent.wall_s:8.1f} {spent.cpu_s:8.1f} {spent.tests:5} tests  {name}"
        for name, spent in ordered[:GROUPS_SHOWN]
    ]
