"""The decision of a gate, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netdyno.analysis.found.gate import (
    Faults,
    GateDecision,
    GatedMetric,
    GateFindings,
    GateOutcome,
    NoFigures,
    Unmeasured,
)
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit import quantities
from netdyno.kit.quantities import percent_change, plural, share
from netdyno.model.experiment import Scenario
from netdyno.model.levels import combinations
from netdyno.model.metrics import METRICS
from netdyno.model.options import settings
from netdyno.present.prose import company, ground, ranking, wrong_reply
from netdyno.present.prose import faults as fault_words

OUTCOMES: Mapping[GateOutcome, str] = {
    "better": "better",
    "within": "within the margin",
    "worse": "worse",
    "faulty": "faulty",
    "open": "not decided",
    "bound": "not decided: the generator was at its limit",
    "unsound": "not decided: the old server was faulty",
}
DECISIONS: Mapping[GateDecision, str] = {
    "passes": "No metric is worse by more than its margin.",
    "fails": "The new server is worse by more than the margin.",
    "open": "Not decided.",
    "unmeasured": "Nothing was measured.",
}
WHAT_HOLDS = "In 95% of gates all intervals are right, however often the gate judges them."


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


def describe_line(line: GatedMetric) -> str:
    """The line as one sentence. A faulty server has no figures; its faults stand in their place."""
    if line.faults:
        server = "old" if line.outcome == "unsound" else "new"
        return (
            f"{name_line(line)}: {OUTCOMES[line.outcome]}. The {server} server {fault_words.list_faults(line.faults)}"
        )
    before, after = format_figures(line)
    return (
        f"{name_line(line)}: {OUTCOMES[line.outcome]}. {before} before, {after} after: "
        f"{percent_change(line.ratio)} ({ranking.format_change_interval(line.interval)}), "
        f"margin {format_margin(line)}, {plural(line.blocks, 'block')}"
    )


def describe_faults(counts: Faults) -> str:
    """Count the faults of both servers; a busy machine causes faults in both."""
    return (
        f"{counts.scenario}: of {plural(counts.blocks, 'block')}, the old server had a fault in {counts.before} and "
        f"the new server in {counts.after}"
    )


def describe_unmeasured(missing: Unmeasured) -> str:
    """Say why a scenario has no figure of both servers: what each did."""
    servers = (("old", missing.before), ("new", missing.after))
    reasons = [f"the {name} server {_describe_no_figures(side)}" for name, side in servers if side]
    why = "; ".join(reasons) or "the servers have no block in common"
    return f"{missing.scenario}: nothing was measured: {why}."


def _describe_no_figures(side: NoFigures) -> str:
    if side.faults:
        return fault_words.list_faults(side.faults)
    reason = quantities.shortened(side.reason, fault_words.LONGEST_DETAIL)
    return f"has no valid trial: {reason}" if reason else "has no trial"


def describe_exchange(counts: Faults, scenario: Scenario) -> str:
    """Say what was sent where no reply was right, what was expected and what came; empty where some was right."""
    if counts.exchange is None:
        return ""
    first = next(iter(combinations(scenario)), {})
    status = wrong_reply.read_status(counts.exchange.received)
    return f"{counts.scenario}: {wrong_reply.describe_exchange(settings(scenario, first), counts.exchange, status)}."


def list_notes(result: GateFindings, scenarios: Sequence[ScenarioFindings]) -> tuple[str, ...]:
    """Return what was sent and came where no reply was right, and what holds for all figures of these scenarios: the
    neighbours and the CPU quota, each sentence once."""
    by_name = {findings.scenario.name: findings.scenario for findings in scenarios}
    exchanges = (describe_exchange(counts, by_name[counts.scenario]) for counts in result.faults)
    notes = (
        note
        for scenario in scenarios
        for note in (*company.list_caveats(scenario.company), *ground.describe_quota(scenario.ground.quota_cores))
    )
    return tuple(dict.fromkeys([*filter(None, exchanges), *notes]))


def describe_decision(result: GateFindings) -> str:
    """Return the decision; where there is none, what would help."""
    outcomes = {line.outcome for line in result.lines}
    if result.decision == "fails" and "worse" not in outcomes:
        faulty = next((line for line in result.lines if line.outcome == "faulty" and line.faults), None)
        detail = f": in {faulty.scenario!r} it {fault_words.list_faults(faulty.faults)}" if faulty else ""
        return f"The new server has a fault that the old server does not have{detail}."
    if result.decision == "unmeasured":
        questions = quantities.listed([missing.scenario for missing in result.unmeasured])
        return f"{DECISIONS['unmeasured']} No block has figures of both servers: {questions}."
    old = next((line for line in result.lines if line.outcome == "unsound"), None)
    if result.decision == "open" and old is not None:
        return f"{DECISIONS['open']} {_blame_old(result, old)}"
    more = result.decision == "open" and "open" in outcomes
    way_out = " A longer --time-budget or a wider --margin may give an answer." if more else ""
    return f"{DECISIONS[result.decision]}{way_out}"


def _blame_old(result: GateFindings, line: GatedMetric) -> str:
    also = any(counts.after for counts in result.faults if counts.scenario == line.scenario)
    alone = "" if also else " that the new server does not have"
    return f"The old server has a fault{alone}: in {line.scenario!r} it {fault_words.list_faults(line.faults)}."
