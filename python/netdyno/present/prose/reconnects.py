"""The text about connections that a server closed after a reply. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.notices import Reconnected
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit import quantities

LEAST_KEPT = 1.5
"""With fewer replies on a connection than these, the server closes each after one."""


def describe_contestants(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return a sentence for every contestant that closed connections."""
    return tuple(map(_describe_reconnected, findings.reconnected))


def _describe_reconnected(server: Reconnected) -> str:
    trials = quantities.plural(server.of, "trial")
    replies, closed = server.replies / server.closed, quantities.plural(server.closed, "connection")
    often = (
        f"closed each of {closed} after one reply"
        if replies < LEAST_KEPT
        else f"closed {closed} after a reply, one in {replies:,.0f} replies"
    )
    return (
        f"{server.contestant} {often}, in {server.trials} of {trials}; "
        "clients reconnected, and response times include that. Its keep-alive settings decide how often."
    )
