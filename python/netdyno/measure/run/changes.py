"""Describe changes in words. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable

from netdyno.analysis.found.compare import Change

MOST_NAMED = 3
"""The most entries of a changed list that are named."""


def format_change(change: Change) -> str:
    """Return the key with both values; of lists, with the entries of only one of them."""
    was, now = change.was, change.now
    if not isinstance(was, list) or not isinstance(now, list):
        return f"{change.key} was {_show(was)} and is {_show(now)}"
    gone = [entry for entry in was if entry not in now]
    new = [entry for entry in now if entry not in was]
    return f"{change.key} had {_name_entries(gone)} and has {_name_entries(new)}"


def _show(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "nothing" if value is None else _name_entries(value) if isinstance(value, list) else str(value)


def _name_entries(entries: Iterable[object]) -> str:
    texts = [str(entry) for entry in entries]
    if not texts:
        return "nothing else"
    more = len(texts) - MOST_NAMED
    return ", ".join(texts[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
