"""The text about response times that no load changes. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.notices import Constant
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit import quantities
from netdyno.present.prose import loss


def describe_contestants(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return a sentence for every contestant with the same response time at several loads."""
    says = {standing.contestant: loss.name_with_loss(standing) for standing in findings.standings}
    labels = {level.key: level.label for level in findings.levels}
    return tuple(
        _describe_constant(says[constant.contestant], constant, [labels[key] for key in constant.levels])
        for constant in findings.constant
    )


def _describe_constant(name: str, constant: Constant, loads: list[str]) -> str:
    return (
        f"{name} answers in {quantities.duration(constant.p50_ns)} to {quantities.duration(constant.p99_ns)} "
        f"(p50 to p99) at {quantities.listed(loads)} alike. A response time that load does not change suggests a "
        "timer (a delayed ACK, a retransmission, a timeout) rather than work: no service time and no link delay was "
        "requested."
    )
