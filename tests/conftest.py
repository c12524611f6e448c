"""Options of the whole test tree; they stand here because pytest reads only this file before its command line."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which contestants the conformance suite looks at."""
    parser.addoption(
        "--contestant", action="append", default=[], metavar="NAME", help="conformance: only this one (repeatable)"
    )
