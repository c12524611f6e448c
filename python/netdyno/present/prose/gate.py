"""The decision of a gate, in words."""

from __future__ import annotations

from collections.abc import Mapping

from netdyno.analysis.found.gate import Decision, Faults, GatedMetric, GateFindings, NoFigures, Outcome, Unmeasured
from netdyno.kit import quantities
from netdyno.kit.quantities import percent_change, plural, share
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
    "unmeasured": "Nothing was measured.",
}
EXPECTED = {
    "http": "status 200 with a Content-Length, and the request's target as the body",
    "echo": "the same bytes",
    "lines": "the same line",
}
"""The right reply by workload; protocol/WIRE.md has the others."""
MOST_SHOWN = 80
"""The most characters of a message that are shown."""


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
        server = "old" if line.outcome == "unsound" else "new"
        return f"{name_line(line)}: {OUTCOMES[line.outcome]}. The {server} server {list_faults(line)}"
    before, after = format_figures(line)
    return (
        f"{name_line(line)}: {OUTCOMES[line.outcome]}. {before} before, {after} after: "
        f"{format_change(line)} ({format_interval(line)}), "
        f"margin {format_margin(line)}, {plural(line.blocks, 'block')}"
    )


def list_faults(line: GatedMetric) -> str:
    """List the faults of the line's server, without a subject. A detail may hold what the server printed."""
    return quantities.listed([fault_words.describe_fault(fault) for fault in line.faults])


def describe_faults(counts: Faults) -> str:
    """Count the faults of both servers; a busy machine causes faults in both."""
    return (
        f"{counts.scenario}: of {plural(counts.of, 'block')}, the old server had a fault in {counts.before} and the "
        f"new server in {counts.after}"
    )


def describe_unmeasured(missing: Unmeasured) -> str:
    """Say why a scenario has no figure of both servers: what each did, and what was sent, expected and came."""
    servers = (("old", missing.before), ("new", missing.after))
    reasons = [f"the {name} server {_describe_no_figures(side)}" for name, side in servers if side]
    why = "; ".join(reasons) or "the servers have no block in common"
    return f"{missing.scenario}: nothing was measured: {why}.{_describe_exchange(missing)}"


def _describe_no_figures(side: NoFigures) -> str:
    if side.faults:
        return quantities.listed([fault_words.describe_fault(fault) for fault in side.faults])
    reason = quantities.shortened(side.reason, fault_words.LONGEST_DETAIL)
    return f"has no valid trial: {reason}" if reason else "has no trial"


def _describe_exchange(missing: Unmeasured) -> str:
    if missing.exchange is None:
        return ""
    texts = (missing.exchange.sent, missing.exchange.received)
    sent, received = (quantities.shortened(text, MOST_SHOWN) for text in texts)
    came = f"came '{received}'" if received else "nothing came"
    expected = EXPECTED.get(missing.workload, "a reply as requested (protocol/WIRE.md, docs/your-server.md)")
    return f" Sent '{sent}'; expected {expected}; {came}."


def describe_decision(result: GateFindings) -> str:
    """Return the decision; where there is none, what would help."""
    outcomes = {line.outcome for line in result.lines}
    if result.decision == "fails" and "worse" not in outcomes:
        faulty = next((line for line in result.lines if line.outcome == "faulty" and line.faults), None)
        detail = f": in {faulty.scenario!r} it {list_faults(faulty)}" if faulty else ""
        return f"The new server has a fault that the old server does not have{detail}."
    if result.decision == "unmeasured":
        questions = quantities.listed([missing.scenario for missing in result.unmeasured])
        return f"{DECISIONS['unmeasured']} No block has figures of both servers: {questions}."
    old = next((line for line in result.lines if line.outcome == "unsound"), None)
    if result.decision == "open" and old is not None:
        return f"{DECISIONS['open']} {_blame_old(result, old)}"
    more = result.decision == "open" and "open" in outcomes
    return f"{DECISIONS[result.decision]}{' More time, or a wider margin, would decide.' if more else ''}"


def _blame_old(result: GateFindings, line: GatedMetric) -> str:
    also = any(counts.after for counts in result.faults if counts.scenario == line.scenario)
    alone = "" if also else " that the new server does not have"
    return f"The old server has a fault{alone}: in {line.scenario!r} it {list_faults(line)}."
