"""What is said of connections that were spread unevenly over threads. Pure functions."""

from __future__ import annotations

from netdyno.analysis.findings import ScenarioFindings, UnevenThreads
from netdyno.analysis.uneven_threads import UNEVEN
from netdyno.base import quantities


def sentences(findings: ScenarioFindings) -> tuple[str, ...]:
    """One for every contestant that was measured so."""
    return tuple(_sentence(one) for one in findings.uneven_threads)


def _sentence(one: UnevenThreads) -> str:
    return (
        f"In {one.trials} of {quantities.plural(one.of, 'trial')} one thread of {one.contestant} had more than "
        f"{UNEVEN:g} times its even share of the connections (at worst {one.most} of {one.connections} on "
        f"{one.threads} threads, at {one.level}). Such figures show chance as much as the model; with more connections "
        "they spread more evenly."
    )
