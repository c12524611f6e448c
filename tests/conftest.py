"""Options of the whole test tree; they stand here because pytest reads only this file before its command line."""

import os

import pytest


def pytest_configure() -> None:
    """Tests ask whether things work, and the machine may do something else beside them: then a run only counts that.
    What it does where nobody asks is tested with this variable taken away."""
    os.environ.setdefault("NETDYNO_FOREIGN_LOAD", "count")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which contestants the conformance suite looks at."""
    parser.addoption(
        "--contestant", action="append", default=[], metavar="NAME", help="conformance: only this one (repeatable)"
    )
