"""The contestants that took no turns with others, in words. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.run import ScenarioFindings
from netdyno.base import quantities


def explain_exceptions(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return a sentence for each reason."""
    return tuple(
        f"{quantities.listed(group.contestants)} took no turns with others, because {group.why}."
        for group in findings.alone
    )
