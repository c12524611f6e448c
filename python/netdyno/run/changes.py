"""What is not as it was, in words. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable

from netdyno.analysis.differences import Change

MOST_NAMED = 3
"""Of a list that differs, entries that are named."""


def said(change: Change) -> str:
    """The key with both values; of lists, with what only one of them has."""
    was, now = change.was, change.now
    if not isinstance(was, list) or not isinstance(now, list):
        return f"{change.key} was {_shown(was)} and is {_shown(now)}"
    gone = [entry for entry in was if entry not in now]
    new = [entry for entry in now if entry not in was]
    return f"{change.key} had {_named(gone)} and has {_named(new)}"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "nothing" if value is None else _named(value) if isinstance(value, list) else str(value)


def _named(entries: Iterable[object]) -> str:
    named = [str(entry) for entry in entries]
    if not named:
        return "nothing else"
    more = len(named) - MOST_NAMED
    return ", ".join(named[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
