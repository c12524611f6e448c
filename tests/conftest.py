"""Options of the whole test tree; they stand here because pytest reads only this file before its command line."""

import os

import pytest

pytest_plugins = ("tests.support.fixtures",)


def pytest_configure(config: pytest.Config) -> None:
    """Tests ask whether things work, and the machine may do something else beside them: then a run only counts that.
    What it does where nobody asks is tested with this variable taken away.

    Tests that need the programs fail, and are not skipped, where the build is missing: a check that did not run is no
    check."""
    os.environ.setdefault("NETDYNO_FOREIGN_LOAD", "count")
    config.addinivalue_line("markers", "needs_build: the test needs the programs of the build directory")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which contestants the conformance suite looks at."""
    parser.addoption(
        "--contestant", action="append", default=[], metavar="NAME", help="conformance: only this one (repeatable)"
    )
