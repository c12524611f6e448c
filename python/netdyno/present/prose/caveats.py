"""What a reader must know before quoting an answer. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.found.cells import CellFigures
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit import quantities
from netdyno.model.contestant import GENERATOR
from netdyno.model.experiment import Scenario
from netdyno.model.metrics import METRICS
from netdyno.present.prose import (
    bursts,
    capacity,
    company,
    faults,
    ground,
    loss,
    notices,
    ranking,
    unranked,
)

LARGE_LAG_SHARE = 0.1
"""The send lag, as a share of p99, from which the caveat names the contestant."""
MOST_GAPS = 4
"""The most gaps in a ranking that are listed one by one."""


def list_caveats(findings: ScenarioFindings) -> tuple[str, ...]:
    """All that a reader must know before quoting the answer."""
    return (
        *company.list_caveats(findings.company),
        *ranking.explain_ranks(findings),
        *unranked.explain_unsafe(findings.unsafe),
        *unranked.explain_unranked(findings.unranked),
        *ground.list_caveats(findings.ground),
        *ground.describe_load_shares(findings.ground, findings.cells),
        *_explain_bounds(findings),
        *capacity.list_caveats(findings.capacity),
        *notices.describe_overload(findings),
        *notices.describe_constant_latency(findings),
        *notices.describe_throttling(findings),
        *bursts.describe_contestants(findings),
        *_explain_loop(findings),
        *_explain_client_contestants(findings),
        *_explain_fixed_rate(findings.scenario),
        *_list_missing(findings),
        *_list_gaps(findings),
        *faults.list_caveats(findings.unproven),
        *_list_unsteady(findings),
        *notices.describe_noted(findings),
        *notices.describe_uneven_threads(findings),
        *notices.describe_reconnects(findings),
        *notices.describe_warm_up_times(findings),
        *notices.describe_turns(findings),
        *loss.list_caveats(findings.cells, findings.loss_bound),
        *_list_added_options(findings),
        *_explain_threads_each(findings),
        *_explain_sampled_threads(findings),
    )


def _explain_bounds(findings: ScenarioFindings) -> list[str]:
    """Say why figures are bounds."""
    labels = {level.key: level.label for level in findings.levels}
    reasons = []
    for key in dict.fromkeys(cell.level for cell in findings.censored):
        names = [f"{cell.contestant} ({cell.share:.0%} of a core)" for cell in findings.censored if cell.level == key]
        reasons.append(
            f"At {labels[key]} the generator was at its limit with {quantities.listed(names)}, so figures measure the "
            "generator too. For every contestant, rates are 'at least' and response times 'at most'; true differences "
            "may be larger. More cores for the generator, or more of its threads, would show more."
        )
    for bar in findings.error_bars:
        parts = [f"it sent messages {quantities.duration(bar.send_ns)} late"] if findings.scenario.scheduled else []
        if bar.receive_ns is None:
            parts.append("how late it read replies is unknown")
        elif bar.receive_ns:
            parts.append(f"it read replies {quantities.duration(bar.receive_ns)} after they had arrived")
        reasons.append(
            f"At {labels[bar.level]} the generator's own delay is {bar.share:.0%} of the shortest {bar.percentile} "
            f"({quantities.duration(bar.shortest_ns)}): {', and '.join(parts)}. "
            "So these response times are 'at most', and the ratios between servers may be larger."
        )
    return reasons


def _explain_loop(findings: ScenarioFindings) -> list[str]:
    notes = []
    if findings.scenario.arrivals == "closed":
        notes.append(
            "Closed loop: each connection waits for its reply before it sends again, so a slow server gets fewer "
            "requests. "
            + (
                "In a round, all connections that have their replies send at the same moment, and the generator reads "
                "replies on its own cores: each latency includes that work."
                if findings.scenario.scheduled
                else "Latencies are service times under full load, not what users at a fixed rate would see."
            )
        )
    if findings.scenario.scheduled and (late := _select_with_send_lag(findings.cells)):
        notes.append(_describe_send_lag(late))
    return notes


def _select_with_send_lag(cells: Sequence[CellFigures]) -> list[CellFigures]:
    """Return the cells with a send lag: an external load program reports none."""
    return [cell for cell in cells if cell.value("send-lag-max") > 0]


def _describe_send_lag(cells: Sequence[CellFigures]) -> str:
    worst = max(cells, key=lambda cell: cell.value("send-lag-p99"))
    lag, response = worst.value("send-lag-p99"), worst.value("p99")
    text = (
        f"Send lag, the error bar of these latencies: p99 at most {quantities.duration(lag)}, "
        f"largest {quantities.duration(max(cell.value('send-lag-max') for cell in cells))}"
    )
    if lag > LARGE_LAG_SHARE * response:
        text += (
            f". For {worst.contestant} that is {lag / response:.0%} of its p99 response time: "
            "part of this latency may be the generator's own"
        )
    return f"{text}."


def describe_lags(scenario: Scenario, cells: Sequence[CellFigures]) -> str:
    """The generator's own part of the response times: its send lag, where it has a schedule, and its receive lag."""
    parts = []
    if scenario.scheduled and (late := _select_with_send_lag(cells)):
        parts.append(f"send lag p99 at most {quantities.duration(max(cell.value('send-lag-p99') for cell in late))}")
    received = [lag.value for cell in cells if (lag := cell.values.get("receive-lag-p50"))]
    if received:
        parts.append(f"receive lag p50 at most {quantities.duration(max(received))}")
    return ", ".join(parts)


def _explain_client_contestants(findings: ScenarioFindings) -> list[str]:
    scenario = findings.scenario
    if scenario.client == GENERATOR and not set(scenario.factors.get("client", ())) - {GENERATOR}:
        return []
    if findings.instruments:
        own = (
            f"The figures of {quantities.listed(findings.instruments)} are those of an external load program, which "
            "verifies no reply and does not report how late it sends and reads."
        )
        return [own]
    text = (
        "The load came from client contestants: every figure includes the client's own time per request. Servers are "
        "compared only under the same client."
    )
    return [text]


def _explain_fixed_rate(scenario: Scenario) -> list[str]:
    if not scenario.scheduled or scenario.metric != "throughput":
        return []
    return ["The rate was fixed: equal throughput means that every server kept up, not that all are equally fast."]


def _list_missing(findings: ScenarioFindings) -> list[str]:
    """List the contestants that are not ranked, or on fewer trials than planned."""
    notes = []
    unmeasured = findings.without_figure
    if unmeasured:
        title = METRICS[findings.scenario.metric].title
        notes.append(f"Not ranked, without a figure for {title}: {quantities.listed(unmeasured)}.")
    if absent := [name for name in findings.absent if name not in unmeasured]:
        notes.append(f"Not ranked, without a valid trial: {quantities.listed(absent)}.")
    if fewer := [f"{standing.contestant} ({standing.missing})" for standing in findings.standings if standing.missing]:
        notes.append(f"Compared on fewer cells than planned (trials excluded): {quantities.listed(fewer)}.")
    return notes


def _list_gaps(findings: ScenarioFindings) -> list[str]:
    """List whole levels that a ranked contestant did not finish though others did. A capacity has none: above it, no
    valid trial is the expected result."""
    if findings.capacity is not None:
        return []
    finished = {(cell.contestant, cell.level) for cell in findings.cells}
    finished_levels = {key for _, key in finished}
    gaps = [
        f"{standing.contestant} has no valid trial at {level.label}: its rank covers the other loads only."
        for level in findings.levels
        if level.key in finished_levels
        for standing in findings.standings
        if (standing.contestant, level.key) not in finished
    ]
    if len(gaps) > MOST_GAPS:
        return [
            f"In {len(gaps)} cases a contestant has no valid trial at a load: its rank covers the other loads only."
        ]
    return gaps


def _list_unsteady(findings: ScenarioFindings) -> list[str]:
    """List contestants with a level that moved within windows more often than by chance."""
    return [
        f"{server.contestant} was not steady: its throughput or response time moved within the window in "
        f"{server.moved} of {quantities.plural(server.trials, 'trial')}."
        for server in findings.unsteady
    ]


def _list_added_options(findings: ScenarioFindings) -> list[str]:
    """List the options that the harness added, with their contestants."""
    texts = [
        f"{added.option} {added.value} ({quantities.listed(added.contestants)})" for added in findings.added_options
    ]
    return [f"Options set only where supported: {'; '.join(texts)}."] if texts else []


def _explain_threads_each(findings: ScenarioFindings) -> list[str]:
    """Name the contestants that got a thread for each connection."""
    return [
        f"{server.contestant} serves one client per thread, and a further client waits until another leaves. So it was "
        f"started with a thread for each connection: {quantities.listed([str(count) for count in server.seen])} "
        "threads in all."
        for server in findings.threads_each
    ]


def _explain_sampled_threads(findings: ScenarioFindings) -> list[str]:
    """Name the contestants with context switches and waits estimated from some of their threads."""
    return [
        f"Context switches and waits of {server.contestant} are estimates where it has thousands of threads: "
        f"{server.read} of up to {server.threads:,}, chosen at random, were read."
        for server in findings.sampled_threads
    ]
