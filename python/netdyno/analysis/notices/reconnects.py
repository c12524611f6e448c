"""Connections that a server of the user's own closed after a reply, as HTTP allows. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.found.notices import Reconnected
from netdyno.model.metrics import TrialWithLoad


def find_reconnected(ranked: Sequence[TrialWithLoad]) -> tuple[Reconnected, ...]:
    """Return every contestant whose clients had to reconnect in some trial."""
    closed: dict[str, list[int]] = {}
    replies: dict[str, int] = {}
    for trial, load in ranked:
        closed.setdefault(trial.contestant, []).append(load.connections.closed_after_reply)
        replies[trial.contestant] = replies.get(trial.contestant, 0) + load.messages.received
    return tuple(
        Reconnected(name, sum(count > 0 for count in counts), len(counts), sum(counts), replies[name])
        for name, counts in sorted(closed.items())
        if any(counts)
    )
