"""The text about connections that were spread unevenly over threads. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.notices import UnevenThreads
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.analysis.notices.uneven_threads import UNEVEN
from netdyno.kit import quantities


def describe_contestants(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return a sentence for every contestant that was measured so."""
    return tuple(_describe_uneven(contestant) for contestant in findings.uneven_threads)


def _describe_uneven(server: UnevenThreads) -> str:
    return (
        f"In {server.trials} of {quantities.plural(server.of, 'trial')} one thread of {server.contestant} had more "
        f"than {UNEVEN:g} times its even share of the connections (at worst {server.most} of {server.connections} on "
        f"{server.threads} threads, at {server.level}). Such figures show chance as much as the model; more "
        "connections spread more evenly."
    )
