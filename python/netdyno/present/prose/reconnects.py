"""The text about connections that a server closed after a reply. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.notices import Reconnected
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit import quantities


def describe_contestants(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return a sentence for every contestant that closed connections."""
    return tuple(map(_describe_reconnected, findings.reconnected))


def _describe_reconnected(server: Reconnected) -> str:
    trials = quantities.plural(server.of, "trial")
    return (
        f"{server.contestant} closed {quantities.plural(server.closed, 'connection')} after a reply, one in "
        f"{server.replies / server.closed:,.0f} replies, in {server.trials} of {trials}; "
        "clients reconnected, and response times include that. Its keep-alive settings decide how often."
    )
