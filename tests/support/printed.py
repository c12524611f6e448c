"""The answer of a run as a person reads it."""

from __future__ import annotations

import io

from rich.console import Console

from netdyno.analysis.found.run import Analysis
from netdyno.present.terminal.table import render
from tests.support.undrawn import page_without_panels


def print_table(analysis: Analysis, width: int = 80) -> str:
    """Return the lines of a terminal that is as wide."""
    out = io.StringIO()
    Console(file=out, width=width).print(render(analysis))
    return out.getvalue()


def print_in_one_line(analysis: Analysis, width: int = 80) -> str:
    """Return the same with single spaces, however it was wrapped."""
    return " ".join(print_table(analysis, width).split())


def assert_in_table_and_report(analysis: Analysis, *texts: str) -> None:
    """Assert that the table has each sentence, and that it is an item of a list of the report."""
    table, page = print_in_one_line(analysis), page_without_panels(analysis)
    for text in texts:
        assert text in table
        assert f"<li>{text}</li>" in page
