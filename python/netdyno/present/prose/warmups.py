"""How long those with a JIT were warmed up, in words. Pure functions."""

from __future__ import annotations

from netdyno.analysis.findings import ScenarioFindings
from netdyno.trial.warm_up import words


def sentences(findings: ScenarioFindings) -> tuple[str, ...]:
    """One for every contestant that was."""
    return tuple(
        f"W{words(one.contestant, findings.scenario.name, one.each).removeprefix('w')}." for one in findings.warmups
    )
