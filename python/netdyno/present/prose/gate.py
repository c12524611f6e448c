"""The decision of a gate, in words."""

from __future__ import annotations

from collections.abc import Mapping

from netdyno.analysis.found.gate import Decision, Faults, GatedMetric, GateFindings, Outcome
from netdyno.base import quantities
from netdyno.base.escape import harmless
from netdyno.base.quantities import percent_change, plural, share
from netdyno.model.metrics import METRICS
from netdyno.present.prose import faults as fault_words
from netdyno.present.prose import ranking

OUTCOMES: Mapping[Outcome, str] = {
    "better": "better",
    "within": "within the margin",
    "worse": "worse",
    "faulty": "faulty",
    "open": "not decided",
    "bound": "not decided: the generator was at its limit",
    "unsound": "not decided: the old server was faulty",
}
DECISIONS: Mapping[Decision, str] = {
    "passes": "No metric is worse by more than its margin.",
    "fails": "The new server is worse by more than the margin.",
    "open": "Not decided.",
}


def name_line(line: GatedMetric) -> str:
    return f"{line.scenario}, {METRICS[line.metric].title}"


def format_margin(line: GatedMetric) -> str:
    """The margin, with the sign of a worse metric."""
    worse = quantities.MINUS if METRICS[line.metric].better == "higher" else "+"
    return f"{worse}{share(line.margin)}"


def format_figures(line: GatedMetric) -> tuple[str, str]:
    """The figures before and after."""
    speak = METRICS[line.metric].speak
    return speak(line.before), speak(line.after)


def format_change(line: GatedMetric) -> str:
    return percent_change(line.ratio)


def format_interval(line: GatedMetric) -> str:
    return ranking.format_change_interval(line.interval)


def describe_line(line: GatedMetric) -> str:
    """The line as one sentence. A faulty server has no figures; its faults stand in their place."""
    if line.faults:
        return f"{name_line(line)}: {OUTCOMES[line.outcome]}. The new server {list_faults(line)}"
    before, after = format_figures(line)
    return (
        f"{name_line(line)}: {OUTCOMES[line.outcome]}. {before} before, {after} after: "
        f"{format_change(line)} ({format_interval(line)}), "
        f"margin {format_margin(line)}, {plural(line.blocks, 'block')}"
    )


def list_faults(line: GatedMetric) -> str:
    """List the faults of the line's server, without a subject. A detail may hold what the server printed."""
    return harmless(quantities.listed([fault_words.describe_fault(fault) for fault in line.faults]))


def describe_faults(counts: Faults) -> str:
    """Count the faults of both servers; a busy machine causes faults in both."""
    return (
        f"{counts.scenario}: of {plural(counts.of, 'block')}, the old server had a fault in {counts.before} and the "
        f"new server in {counts.after}"
    )


def describe_decision(result: GateFindings) -> str:
    """Return the decision; where there is none, what would help."""
    outcomes = {line.outcome for line in result.lines}
    if result.decision == "fails" and "worse" not in outcomes:
        named = next((line for line in result.lines if line.faults), None)
        detail = f": in {named.scenario!r} it {list_faults(named)}" if named else ""
        return f"The new server has a fault that the old server does not have{detail}."
    if result.decision != "open":
        return DECISIONS[result.decision]
    broken = {counts.scenario for counts in result.faults if counts.before == counts.after == counts.of}
    if broken:
        return f"{DECISIONS['open']} In every block both servers had a fault: {quantities.listed(sorted(broken))}."
    return f"{DECISIONS['open']}{' More time, or a wider margin, would decide.' if 'open' in outcomes else ''}"
