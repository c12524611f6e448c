"""The text about servers in no ranking: those that give wrong answers on purpose, with the findings of
verification, and programs that are no contestants. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.found.notices import Unranked, Unsafe
from netdyno.kit import quantities

HEADINGS = (
    "contestant",
    "load",
    "trials",
    "of them wrong",
    "lost",
    "duplicated",
    "reordered",
    "corrupt",
    "streams broken",
)


def make_row(server: Unsafe) -> tuple[str, ...]:
    """Return a line under HEADINGS."""
    counts = (server.duplicated, server.reordered, server.corrupt, server.streams)
    return (
        server.contestant,
        server.level,
        str(server.trials),
        str(server.wrong),
        format_lost(server),
        *(f"{count:,}" for count in counts),
    )


def format_lost(server: Unsafe) -> str:
    """The number of lost messages, and their share of the expected ones."""
    return f"{server.lost:,} ({quantities.share(server.lost / server.expected)})" if server.lost else "0"


def explain_unsafe(servers: Sequence[Unsafe]) -> tuple[str, ...]:
    """Say why each server is in no ranking."""
    why = {server.contestant: server.why for server in servers}
    return tuple(f"{name} is UNSAFE and in no ranking: {text}." for name, text in why.items())


def explain_unranked(servers: Sequence[Unranked]) -> tuple[str, ...]:
    """Say why each program that is no contestant is in no ranking."""
    return tuple(f"{server.contestant} is in no ranking or claim: it is {server.what}." for server in servers)


def explain_columns(servers: Sequence[Unsafe]) -> str:
    """Explain the columns of HEADINGS."""
    counted = "Lost: of the messages expected; streams broken: connections whose bytes could no longer be parsed"
    right = sum(server.trials - server.wrong for server in servers)
    if not right:
        return f"{counted}."
    trials = f"{quantities.plural(right, 'trial')} without a fault {'proves' if right == 1 else 'prove'}"
    return f"{counted}. {trials} no safety, only that this load does not show the fault."


def name_left_out(servers: Sequence[Unsafe]) -> str:
    """The sentence that every answer of a run with unsafe servers gets, with a leading space; empty without any."""
    names = list(dict.fromkeys(server.contestant for server in servers))
    return f" Left out as unsafe: {quantities.listed(names)}." if names else ""
