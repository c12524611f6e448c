"""The functions of a profile with their shares of the time. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from netdyno.model.base import Name
from netdyno.model.profile import Profile

MOST_FUNCTIONS = 20
LEAST_SHARE = 0.002
"""The least share of a function that is listed."""


class FunctionShares(NamedTuple):
    """A function and its shares: of one profile in itself and with all that it calls, of several the latter of each."""

    name: Name
    shares: tuple[float, ...]


def rank_functions(profiles: Sequence[Profile]) -> list[FunctionShares]:
    """Return the functions in which most time is spent; of several profiles those whose shares differ most."""
    whole = [sum_by_function(profile) for profile in profiles]
    if len(profiles) == 1:
        columns = [sum_by_function(profiles[0], in_itself=True), *whole]
        ranked = sorted(_tabulate(columns), key=lambda row: (-row.shares[0], -row.shares[1], row.name))
    else:
        ranked = sorted(_tabulate(whole), key=lambda row: (-_find_range(row), -max(row.shares), row.name))
    return ranked[:MOST_FUNCTIONS]


def _tabulate(columns: Sequence[dict[Name, float]]) -> list[FunctionShares]:
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [FunctionShares(name, tuple(column.get(name, 0.0) for column in columns)) for name in names]
    return [row for row in rows if max(row.shares) >= LEAST_SHARE]


def _find_range(row: FunctionShares) -> float:
    return max(row.shares) - min(row.shares)


def sum_by_function(profile: Profile, *, in_itself: bool = False) -> dict[Name, float]:
    """Return each function's share of all time on the stack, counted once for each stack however often it is there; or
    its share of the time in which it called no other."""
    shares: dict[Name, float] = {}
    total = profile.total_us or 1.0
    for stack, amount in profile.stacks.items():
        for name in dict.fromkeys(stack[-1:] if in_itself else stack):
            shares[name] = shares.get(name, 0.0) + amount / total
    return shares
