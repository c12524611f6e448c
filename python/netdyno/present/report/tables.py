"""A table of the report as text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Headings with their units, and rows of the same length."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
