"""A table of the report as text."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from netdyno.kit.quantities import DASH
from netdyno.kit.statistics.stats import Interval


class ReportTable(msgspec.Struct, frozen=True):
    """Headings with their units, and rows of the same length."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Sortable(str):
    """The text of a cell with the number by which the page's script sorts its column; it sorts others as texts."""

    number: float


def make_sortable(text: str, number: float | None) -> str:
    """Return a text that is sorted by a number, where there is one."""
    if number is None or not math.isfinite(number):
        return text
    sortable = Sortable(text)
    sortable.number = number
    return sortable


def make_cell(number: float | None, speak: Callable[[float], str]) -> str:
    """Return the cell of a figure; a dash where it was not measured."""
    return DASH if number is None else make_sortable(speak(number), number)


def make_count(number: int | None) -> str:
    """Return the cell of a count, with commas."""
    return make_cell(number, lambda count: f"{count:,}")


def sort_by_low(text: str, interval: Interval | None) -> str:
    """Return the text of an interval that is sorted by its lower end."""
    return make_sortable(text, interval.low if interval else None)
