"""How often a CPU quota stopped each server, in a sentence for each load. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit import quantities

METRIC = "throttled"


def describe_contestants(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return a sentence for each load at which a quota stopped a server; none where there was no quota."""
    return tuple(
        f"The CPU quota stopped {quantities.listed(shares)} of its periods of 100 ms ({level.label})."
        for level in findings.levels
        if (shares := _list_shares(findings, level.key))
    )


def _list_shares(findings: ScenarioFindings, level: str) -> list[str]:
    limited = [cell for cell in findings.cells if cell.level == level and METRIC in cell.values]
    if not any(cell.value(METRIC) for cell in limited):
        return []
    return [f"{cell.contestant} in {quantities.share(cell.value(METRIC))}" for cell in limited]
