"""Options of the whole test tree; they stand here because pytest reads only this file before its command line."""

import os

import pytest

pytest_plugins = ("tests.support.fixtures",)

MARKS = (
    "needs_build: the test needs the programs of the build directory",
    "quiet: what other tests do beside it would be in what it measures, or in how long it waits; `netdyno test` runs "
    "these tests one at a time, after all others",
    "quick: the test is one of those of `netdyno test --quick`",
)


def pytest_configure(config: pytest.Config) -> None:
    """Tests ask whether things work, and the machine may do something else beside them: then a run only counts that.
    What it does where nobody asks is tested with this variable taken away.

    Tests that need the programs fail, and are not skipped, where the build is missing: a check that did not run is no
    check."""
    os.environ.setdefault("NETDYNO_FOREIGN_LOAD", "count")
    for mark in MARKS:
        config.addinivalue_line("markers", mark)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which contestants the conformance suite looks at."""
    parser.addoption(
        "--contestant", action="append", default=[], metavar="NAME", help="conformance: only this one (repeatable)"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where tests run side by side (`--dist loadgroup`), those of one file stay together, as its fixtures are for all of
    them; so do those of one contestant, which their suite has marked."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.relative_to(item.config.rootpath).as_posix()))
