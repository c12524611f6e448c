"""What is said of response times that no load changes. Pure functions."""

from __future__ import annotations

from netdyno.analysis.findings import Constant, ScenarioFindings
from netdyno.base import quantities
from netdyno.present.prose import loss


def sentences(findings: ScenarioFindings) -> tuple[str, ...]:
    """One for every contestant whose response time is the same at several loads."""
    says = {one.contestant: loss.named(one) for one in findings.standings}
    labels = {level.key: level.label for level in findings.levels}
    return tuple(_sentence(says[one.contestant], one, [labels[key] for key in one.levels]) for one in findings.constant)


def _sentence(who: str, found: Constant, loads: list[str]) -> str:
    return (
        f"{who} answers in {quantities.duration(found.p50_ns)} to {quantities.duration(found.p99_ns)} (p50 to p99) at "
        f"{quantities.listed(loads)} alike. A response time that load does not change suggests a timer (a delayed "
        "ACK, a retransmission, a timeout) rather than work: no service time and no link delay was requested."
    )
