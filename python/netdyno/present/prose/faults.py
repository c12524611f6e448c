"""What is said of servers that did something wrong. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.server_faults import Fault, Faulty
from netdyno.base import quantities

WORDS = {
    "died": "ended by itself",
    "verification": "gave wrong or lost replies",
    "bytes": "sent a wrong number of bytes",
    "connections": "refused or dropped connections",
    "completed": "answered nothing",
    "stalled": "stopped answering for a time",
    "server_alive": "did not answer at the end",
    "server_totals": "reported wrong totals",
}
"""By the audit that found it."""
LONGEST_DETAIL = 90


def fault(one: Fault) -> str:
    """How, how often, and the first detail: "ended by itself in 4 of 11 trials: signal SIGSEGV"."""
    detail = quantities.shortened(one.detail, LONGEST_DETAIL)
    return f"{WORDS.get(one.kind, one.kind)} in {one.trials} of {quantities.plural(one.of, 'trial')}: {detail}"


def named(faulty: Faulty) -> str:
    return f"{faulty.contestant} {quantities.listed([fault(one) for one in faulty.faults])}"


def sentence(found: Sequence[Faulty]) -> str:
    """The sentence about those that are ranked apart for their faults, with a space before it; nothing where there are
    none."""
    return f" Ranked separately, for their faults: {'; '.join(map(named, found))}." if found else ""
