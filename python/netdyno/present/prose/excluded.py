"""What is said of servers that are in no ranking or claim: those that give wrong answers on purpose, with what
verification found, and programs that are no contestants. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.findings import Unranked, Unsafe
from netdyno.base import quantities

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


def row(one: Unsafe) -> tuple[str, ...]:
    """A line under HEADINGS."""
    counts = (one.duplicated, one.reordered, one.corrupt, one.streams)
    return (one.contestant, one.level, str(one.trials), str(one.wrong), lost(one), *(f"{count:,}" for count in counts))


def lost(one: Unsafe) -> str:
    """How many messages, and which share of those that should have come."""
    return f"{one.lost:,} ({quantities.share(one.lost / one.expected)})" if one.lost else "0"


def caveats(found: Sequence[Unsafe]) -> tuple[str, ...]:
    """What a reader must know of each."""
    why = {one.contestant: one.why for one in found}
    return tuple(f"{name} is UNSAFE and in no ranking or claim: {text}." for name, text in why.items())


def unranked_caveats(found: Sequence[Unranked]) -> tuple[str, ...]:
    """The same of each that is no contestant."""
    return tuple(f"{one.contestant} is in no ranking or claim: it is {one.what}." for one in found)


def explained(found: Sequence[Unsafe]) -> str:
    """What stands below the lines of HEADINGS."""
    counted = "Lost: of the messages expected; streams broken: connections whose bytes could no longer be parsed"
    right = sum(one.trials - one.wrong for one in found)
    if not right:
        return f"{counted}."
    trials = f"{quantities.plural(right, 'trial')} without a fault {'proves' if right == 1 else 'prove'}"
    return f"{counted}. {trials} no safety, only that this load does not show the fault."


def left_out(found: Sequence[Unsafe]) -> str:
    """The sentence that goes with every answer beside which somebody unsafe was run, with a space before it; nothing
    where nobody was."""
    names = list(dict.fromkeys(one.contestant for one in found))
    return f" Left out as unsafe: {quantities.listed(names)}." if names else ""
