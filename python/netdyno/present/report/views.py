"""What the template prints: each scenario's ranking with its forest plot, its panels and its table. No HTML here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from netdyno.analysis.findings import AuditTally, CellFigures, Estimate, LossOfTrial, ScenarioFindings, Standing
from netdyno.base import quantities
from netdyno.contestants import codesize
from netdyno.model import outcomes
from netdyno.model.contestant import About
from netdyno.model.metrics import METRICS
from netdyno.model.verdicts import Check, Judged
from netdyno.present.prose import claims as claim_words
from netdyno.present.prose import company, excluded, ground, languages, ranking, stopping, verdict, verdicts
from netdyno.present.prose import loss as loss_words
from netdyno.present.report import along, panels, scoreboard
from netdyno.present.report import work as behind
from netdyno.present.report.drawing import Panel
from netdyno.present.report.panels import Looks
from netdyno.present.report.scale import RatioScale, Tick
from netdyno.present.report.tables import Table
from netdyno.statistics.stats import Comparison


@dataclass(frozen=True)
class Mark:
    """A place in a forest plot, in percent of its width; low and high are None where there is no interval."""

    at: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Rank:
    """One row of a ranking, ready to print."""

    rank: str
    contestant: str
    value: str
    change: str
    interval: str
    blocks: int | None
    mark: Mark | None
    missing: int
    loss: str
    lossy: bool


@dataclass(frozen=True)
class ScenarioView:
    anchor: str
    findings: ScenarioFindings
    answer: verdict.Answer
    evidence: tuple[str, ...]
    caveats: tuple[str, ...]
    ground: tuple[str, ...]
    verdict: str
    metric: str
    load: str
    certainty: str
    scores: scoreboard.Scoreboard | None
    ranks: tuple[Rank, ...]
    ticks: tuple[Tick, ...]
    leader_at: float
    performance: tuple[Panel, ...]
    curves: tuple[Panel, ...]
    costs: tuple[Panel, ...]
    figures: Table
    comparisons: Table
    along: along.AlongView | None
    pairs: Table | None
    lag: str
    undrawn_curves: int
    undrawn_sweeps: int
    loss_bound: str
    apart: Mapping[str, str]
    """Why the ranking goes on apart, by the first of those who are."""
    marked: bool
    trials: Table | None
    unsafe: Table | None
    unsafe_explained: str
    ended: str
    work: behind.WorkView | None


def view(findings: ScenarioFindings, looks: Looks, number: int) -> ScenarioView:
    name = f"s{number}"
    scale = _scale(findings.standings)
    lag = panels.send_lag(findings)
    curves = tuple(panels.curves(findings, looks, name)) if findings.cells else ()
    drawn = {one.contestant: looks[one.contestant] for one in findings.standings}
    return ScenarioView(
        anchor=name,
        findings=findings,
        answer=verdict.answer(findings),
        evidence=verdict.evidence(findings),
        caveats=verdict.caveats(findings),
        ground=(
            *filter(None, [languages.sentence(findings.within, findings.ground)]),
            *ground.sentences(findings.ground),
            *ground.load_shares(findings.ground, findings.cells),
        ),
        verdict=_verdict(findings),
        metric=METRICS[findings.scenario.metric].title,
        load=verdict.load_words(findings.scenario),
        certainty=_certainty(findings),
        scores=scoreboard.view(findings),
        ranks=tuple(_rank(findings, standing, scale) for standing in findings.standings),
        ticks=scale.ticks(),
        leader_at=scale.at(1.0),
        performance=tuple(panels.performance(findings, drawn, name)) if findings.cells else (),
        curves=curves,
        costs=tuple(panels.costs(findings, drawn, name)) if findings.cells else (),
        figures=_figures(findings),
        comparisons=_comparisons(findings),
        along=along.view(findings),
        pairs=_pairs(findings) if findings.pairs else None,
        lag=quantities.duration(lag) if lag is not None else "",
        undrawn_sweeps=max(0, len(panels.measured_sweeps(findings)) - panels.MOST_SWEEPS),
        undrawn_curves=len({cell.level for cell in findings.cells}) - len(curves),
        loss_bound=quantities.share(findings.loss_bound),
        apart=_apart(findings),
        marked=any(cell.marked for cell in findings.cells),
        trials=_trials(findings) if findings.may_lose else None,
        unsafe=Table(excluded.HEADINGS, tuple(map(excluded.row, findings.unsafe))) if findings.unsafe else None,
        unsafe_explained=excluded.explained(findings.unsafe),
        ended=stopping.sentence(findings.ending) if findings.ending else "",
        work=behind.view(findings),
    )


def _verdict(findings: ScenarioFindings) -> str:
    """Whom to take, in a few words; one who leads only among those that lost messages, or failed, is marked as such."""
    if findings.capacity is not None and findings.capacity.search is not None:
        return "Capacity"
    word = verdict.answer(findings).headline if findings.flips else verdict.badge(findings)
    kind = findings.standings[0].kind if findings.standings else 0
    together, told = findings.ground.together, findings.decision.among
    several = len(together) > 1 and bool(told) and not findings.flips
    cores = f", {ground.usable_words(together[findings.ground.group_of(told[0])].cores)}" if several else ""
    return f"{word}{('', ', with loss', ', with faults')[kind]}{cores}"


def _apart(findings: ScenarioFindings) -> dict[str, str]:
    """Where those begin that are not ranked with the ones above."""
    firsts = {one.peers: one.contestant for one in reversed(findings.standings)}
    lossy = (
        f"they lost more than {quantities.share(findings.loss_bound)} of their messages in some trial, so their "
        "latencies, which leave lost messages out, say too little"
    )
    first = findings.standings[0].contestant if findings.standings else ""
    reasons = ("", lossy, "they had a fault in some trial, and their figures are those of their other trials")
    usable = [f"they could use {ground.usable_words(group.cores)}" for group in findings.ground.together]
    return {name: reasons[kind] or usable[of_ground] for (of_ground, kind), name in firsts.items() if name != first}


def _certainty(findings: ScenarioFindings) -> str:
    """How much stands behind the answer, in one line."""
    if not findings.comparisons:
        return ""
    shared = [one.blocks for one in findings.comparisons]
    blocks = f"{max(shared)}" if min(shared) == max(shared) else f"{min(shared)} to {max(shared)}"
    drift = f"the machine's own speed drifted {findings.drift:.2f}-fold between blocks"
    return f"Over {blocks} shared blocks; {drift}"


# --- claims ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClaimView:
    """One row of the table of verdicts, and the comparisons it stands on."""

    judged: Judged
    verdict: str
    here: str
    published: str
    beside: str
    """What was counted on its sides; empty where nothing was to be."""
    notes: tuple[str, ...]
    checks: Table


def claims(judged: Sequence[Judged], scenarios: Sequence[ScenarioFindings]) -> tuple[ClaimView, ...]:
    return tuple(
        ClaimView(
            judged=one,
            verdict=verdicts.word(one),
            here=verdicts.here(one),
            published=verdicts.published(one.claim),
            beside=claim_words.beside(one),
            notes=(
                *filter(None, [claim_words.measured_on(one), claim_words.left_out(one)]),
                *claim_words.losses(one),
                *stopping.of_claim(one, scenarios),
            ),
            checks=_checks(one),
        )
        for one in judged
    )


def _checks(judged: Judged) -> Table:
    headings = ("comparison", "effect, 95% interval", "claimed", "figures", "blocks", "p", "p corrected", "outcome")
    return Table(headings, tuple(_check_row(one, judged) for one in judged.checks))


def _check_row(one: Check, judged: Judged) -> tuple[str, ...]:
    p, p_corrected = (quantities.p_value(p).removeprefix("p = ").removeprefix("p ") for p in (one.p, one.p_corrected))
    outcome = f"{verdicts.OUTCOME_WORDS[one.outcome][0]}{'' if one.needed else ' (need not hold)'}"
    what, figures = claim_words.what(one, judged.scenarios), " against ".join(claim_words.figures(one))
    claimed = claim_words.claimed(one.step)
    return what, claim_words.shown(one), claimed, figures, str(one.blocks), p, p_corrected, outcome


# --- ranking and forest plot -------------------------------------------------------------------------------------


def _scale(standings: Sequence[Standing]) -> RatioScale:
    """Of ratios to the leader, from the least to the greatest end of any interval."""
    ratios: list[float] = []
    for one in standings:
        if one.relative is not None:
            interval = one.relative.interval
            ratios += [one.relative.value, *((interval.low, interval.high) if interval else ())]
    return RatioScale(ratios)


def _mark(scale: RatioScale, estimate: Estimate | None) -> Mark | None:
    if estimate is None:
        return None
    interval = estimate.interval
    low, high = (None, None) if interval is None else (scale.at(interval.low), scale.at(interval.high))
    return Mark(scale.at(estimate.value), low, high)


def _rank(findings: ScenarioFindings, standing: Standing, scale: RatioScale) -> Rank:
    relative, one = standing.relative, standing.against_leader
    leads = standing.contestant == next(one for one in findings.standings if one.peers == standing.peers).contestant
    return Rank(
        rank=ranking.rank(findings, standing),
        contestant=standing.contestant,
        value=f"{verdict.BOUND_SIGNS[standing.bound] if math.isfinite(standing.value) else ''}"
        f"{verdict.value(findings.scenario, standing.value)}{company.mark(findings.company)}",
        change=ranking.to_first(standing),
        interval=ranking.change_interval(relative.interval) if relative and relative.interval else "",
        blocks=one.blocks if one else None,
        mark=_mark(scale, Estimate(1.0, None, ()) if leads else relative),
        missing=standing.missing,
        loss=quantities.share(standing.loss or 0.0) if findings.may_lose else "",
        lossy=standing.lossy,
    )


# --- tables ------------------------------------------------------------------------------------------------------


def with_interval(estimate: Estimate, speak: Callable[[float], str]) -> str:
    if estimate.interval is None:
        return speak(estimate.value)
    return f"{speak(estimate.value)} [{speak(estimate.interval.low)}, {speak(estimate.interval.high)}]"


def _figures(findings: ScenarioFindings) -> Table:
    """Everything that is drawn, and what is not: the text alternative of the section's figures."""
    scheduled = findings.scenario.scheduled
    clients = any(cell.tick_lag_p99_ns is not None for cell in findings.cells)
    ticks = any(cell.server_tick_lag_p99_ns is not None for cell in findings.cells)
    load = "client" if clients else "generator"
    headings = [
        "load",
        "contestant",
        "trials",
        *(("lost", "late", "duplicated", "reordered") if findings.may_lose else ()),
        "throughput",
        "response mean",
        "response p50",
        "response p90",
        "response p99",
        "response p99.9",
        "service p50",
        "service p99",
        *(("send lag p50", "send lag p99", "send lag max") if scheduled else ()),
        *("receive lag p50", "receive lag p99"),
        "CPU user per message",
        "CPU kernel per message",
        "switches voluntary per message",
        "switches involuntary per message",
        "run-queue wait per message",
        "peak memory",
        "memory per connection",
        "threads",
        *(("server loop lag p99",) if ticks else ()),
        f"{load} cores",
        f"{load} CPU per message",
        f"{load} peak memory",
        *(("client loop lag p99",) if clients else ()),
    ]
    labels = {level.key: level.label for level in findings.levels}
    rows = (_figures_row(cell, labels[cell.level], findings, clients, ticks) for cell in findings.cells)
    return Table(tuple(headings), tuple(rows))


def _figures_row(
    cell: CellFigures, label: str, findings: ScenarioFindings, clients: bool, ticks: bool
) -> tuple[str, ...]:
    scheduled = findings.scenario.scheduled
    response, service, lag, cost = cell.response_ns, cell.service_ns, cell.send_lag, cell.cost
    row = [label, cell.contestant, str(cell.trials)]
    if findings.may_lose:
        row += _loss_columns(cell)
    row += [with_interval(cell.throughput, quantities.rate), with_interval(cell.mean_ns, quantities.duration)]
    row += [
        with_interval(one, quantities.duration) for one in (response.p50, response.p90, response.p99, response.p999)
    ]
    row += [with_interval(one, quantities.duration) for one in (service.p50, service.p99)]
    if scheduled:
        row += [quantities.duration(one) for one in (lag.p50_ns, lag.p99_ns, lag.max_ns)]
    read = cell.receive_lag
    row += [quantities.DASH] * 2 if read is None else [quantities.duration(one) for one in (read.p50_ns, read.p99_ns)]
    if cost is None:
        row += [quantities.DASH] * 8
    else:
        row += [f"{quantities.three_digits(one.value)} µs" for one in (cost.cpu_user_us, cost.cpu_system_us)]
        switches, waited = (cost.voluntary_switches, cost.involuntary_switches), cost.run_queue_wait_us
        row += [quantities.DASH if one is None else quantities.three_digits(one.value) for one in switches]
        row += [quantities.DASH if waited is None else f"{quantities.three_digits(waited.value)} µs"]
        each = cost.connection_bytes
        row += [
            quantities.memory(cost.rss_peak_bytes.value),
            quantities.DASH if each is None else quantities.memory(each.value),
        ]
        row += [str(cost.threads)]
    if ticks:
        row += [_tick_lag(cell.server_tick_lag_p99_ns)]
    row += [quantities.three_digits(cell.generator_cores.value)]
    row += [f"{quantities.three_digits(cell.generator_cpu_us.value)} µs", quantities.memory(cell.generator_rss_bytes)]
    if clients:
        row += [_tick_lag(cell.tick_lag_p99_ns)]
    return tuple(row)


def _tick_lag(lag_ns: float | None) -> str:
    return quantities.DASH if lag_ns is None else quantities.duration(lag_ns)


def _loss_columns(cell: CellFigures) -> list[str]:
    loss = cell.loss
    if loss is None:
        return [quantities.share(0.0)] * 4
    lost = f"{with_interval(loss.lost, quantities.share)}{f' {loss_words.MARK}' if loss.above else ''}"
    return [lost, *(quantities.share(one) for one in (loss.late, loss.duplicated, loss.reordered))]


def _trials(findings: ScenarioFindings) -> Table:
    """Every valid trial over a transport that may lose messages: its latencies, what they leave out, and where that
    was lost."""
    headings = (
        *("load", "contestant", "block", "lost", "late", "duplicated", "reordered"),
        *("response mean", "response p50", "response p99"),
        *("dropped at the server's sockets", "at the generator's", "at others", "not sent by the server"),
        "not served by it",
    )
    labels = {level.key: level.label for level in findings.levels}
    rows = (
        (labels[cell.level], cell.contestant, str(trial.block), *_trial_row(trial))
        for cell in findings.cells
        if cell.loss is not None
        for trial in cell.loss.trials
    )
    return Table(headings, tuple(rows))


def _trial_row(trial: LossOfTrial) -> tuple[str, ...]:
    drops = trial.drops
    return (
        f"{quantities.share(trial.lost)}{f' {loss_words.MARK}' if trial.above else ''}",
        *(quantities.share(one) for one in (trial.late, trial.duplicated, trial.reordered)),
        *(quantities.duration(one) for one in (trial.mean_ns, trial.p50_ns, trial.p99_ns)),
        *(
            quantities.DASH if one is None else f"{one:,}"
            for one in (drops.server, drops.generator, drops.elsewhere, drops.unsent, drops.unserved)
        ),
    )


def _pairs(findings: ScenarioFindings) -> Table:
    """Servers down, clients across."""
    clients = tuple(dict.fromkeys(pair.client for pair in findings.pairs))
    servers = dict.fromkeys(pair.contestant for pair in findings.pairs)
    rows = (
        (server, *(verdict.pair(findings.scenario, pair) for pair in findings.pairs if pair.contestant == server))
        for server in servers
    )
    return Table(("server", *clients), tuple(rows))


CONSEQUENCES = {
    "server": "a fault: ranked separately",
    "instrument": "figures are bounds, for every contestant",
    "machine": "retried",
    "note": "shown only",
}
"""By the kind of an audit (docs/adr/audit-kinds.md)."""


def audits(tallies: Sequence[AuditTally]) -> Table:
    """What each is about, and what follows where it fails."""
    rows = (
        (one.name.replace("_", " "), kind, CONSEQUENCES[kind], str(one.passed), str(one.failed))
        for one in tallies
        for kind in (outcomes.kind(one.name),)
    )
    return Table(("audit", "about the", "if it fails", "trials passed", "trials failed"), tuple(rows))


def code(about: Sequence[About]) -> Table:
    """How much code each contestant is, by itself and with its family; what is shared last."""
    headings = (
        *("contestant", "what", "model", "family", "files", "lines", "lines with family", "functions"),
        *("complexity, sum", "complexity with family", "complexity, largest"),
    )
    return Table(headings, tuple(_code_row(one, about) for one in about))


def _kind(one: About) -> str:
    return f"{one.kind}, UNSAFE" if one.unsafe else f"{one.kind}, not ranked" if one.unranked else one.kind


def _code_row(one: About, everyone: Sequence[About]) -> tuple[str, ...]:
    kind = "shared code" if one.kind == "shared" else _kind(one)
    who = (one.name, kind, one.model, ", ".join(one.family) or quantities.DASH)
    size = one.code
    if size is None:
        return (*who, *(quantities.DASH,) * 7)
    whole = None if one.kind == "shared" else codesize.with_family(one, everyone)
    lines, complexity = (whole.lines, whole.complexity) if whole else (None, None)
    figures = (size.files, size.lines, lines, size.functions, size.complexity, complexity, size.complexity_max)
    return (*who, *(quantities.DASH if figure is None else f"{figure:,}" for figure in figures))


def _comparisons(findings: ScenarioFindings) -> Table:
    """Of every axis, those that differ first."""
    families = {METRICS[axis.metric].short: axis.comparisons for axis in findings.axes} or {
        findings.scenario.metric: findings.comparisons
    }
    headings = ("axis", "first", "second", "first / second", "95% interval, corrected", "blocks", "different")
    rows = (
        (axis, one.a, one.b, quantities.three_digits(one.ratio), _ends(one), str(one.blocks), _told_apart(one))
        for axis, family in families.items()
        for one in sorted(family, key=lambda one: (not one.different, -abs(math.log(one.ratio))))
    )
    return Table(headings, tuple(rows))


def _ends(one: Comparison) -> str:
    if one.interval is None:
        return quantities.DASH
    return f"{quantities.three_digits(one.interval.low)} to {quantities.three_digits(one.interval.high)}"


def _told_apart(one: Comparison) -> str:
    return "yes" if one.different else "no" if one.decidable else "not enough blocks"


def comparison_row(one: Comparison) -> tuple[str, ...]:
    p, p_corrected = (quantities.p_value(p).removeprefix("p = ").removeprefix("p ") for p in (one.p, one.p_corrected))
    told = (quantities.three_digits(one.ratio), _ends(one), str(one.blocks), p, p_corrected, _told_apart(one))
    return one.a, one.b, *told
