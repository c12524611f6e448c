"""The views that the template prints: each scenario's ranking with forest plot, panels and table. No HTML here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec

from netdyno.analysis.found.cells import CellFigures, Estimate, LossOfTrial
from netdyno.analysis.found.notices import Unread, Unsafe
from netdyno.analysis.found.ranking import Standing
from netdyno.analysis.found.run import AuditTally, ScenarioFindings
from netdyno.kit import quantities
from netdyno.kit.statistics.stats import Comparison
from netdyno.model import outcomes
from netdyno.model.contestant import About
from netdyno.model.load_result import PERCENTILES, name_percentile
from netdyno.model.metrics import METRICS
from netdyno.model.verdicts import ComparisonResult, JudgedClaim
from netdyno.present.prose import (
    caveats,
    claim_verdicts,
    company,
    ground,
    languages,
    loads,
    ranking,
    replies,
    stopping,
    unranked,
    unread,
    verdict,
)
from netdyno.present.prose import claims as claim_words
from netdyno.present.prose import loss as loss_words
from netdyno.present.prose import scaling as scaling_words
from netdyno.present.report import associations, bursts, capacity, panels, scaling, scoreboard
from netdyno.present.report import work as behind
from netdyno.present.report.associations import AssociationsView
from netdyno.present.report.drawing import Panel
from netdyno.present.report.panels import Styles
from netdyno.present.report.report_table import ReportTable, make_cell, make_count, make_sortable, sort_by_low
from netdyno.present.report.scale import RatioScale, Tick
from netdyno.question.contestants import codesize


class Mark(msgspec.Struct, frozen=True):
    """A place in a forest plot, in percent of its width; low and high are None where there is no interval."""

    percent: float
    low: float | None
    high: float | None


class Rank(msgspec.Struct, frozen=True):
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
    leader: str
    """The leader's figure over the same loads and blocks, where it is not the one in the leader's own row."""


class ScenarioView(msgspec.Struct, frozen=True):
    anchor: str
    findings: ScenarioFindings
    answer: verdict.AnswerText
    evidence: tuple[str, ...]
    caveats: tuple[str, ...]
    ground: tuple[str, ...]
    verdict: str
    metric: str
    load: str
    requests: str
    certainty: str
    scores: scoreboard.Scoreboard | None
    capacity: capacity.CapacityView | None
    compared: bool
    """Whether there are several to compare."""
    ranks: tuple[Rank, ...]
    ticks: tuple[Tick, ...]
    leader_at: float
    performance: tuple[Panel, ...]
    curves: tuple[Panel, ...]
    costs: tuple[Panel, ...]
    figures: ReportTable
    comparisons: ReportTable
    associations: AssociationsView | None
    scaling: ReportTable | None
    scaling_caveats: tuple[str, ...]
    pairs: ReportTable | None
    lag: str
    undrawn_curves: int
    undrawn_sweeps: int
    loss_bound: str
    apart: Mapping[str, str]
    """The reason why a part of the ranking is separate, by its first contestant."""
    marked: bool
    trials: ReportTable | None
    unread: ReportTable | None
    unsafe: ReportTable | None
    unsafe_explained: str
    ended: str
    work: behind.WorkView | None


def present_scenario(findings: ScenarioFindings, styles: Styles, number: int) -> ScenarioView:
    name = f"s{number}"
    scale = _fit_scale(findings.standings)
    lag = panels.find_send_lag(findings)
    curves = tuple(panels.draw_curves(findings, styles, name)) if findings.cells else ()
    drawn = {standing.contestant: styles[standing.contestant] for standing in findings.standings}
    return ScenarioView(
        anchor=name,
        findings=findings,
        answer=verdict.answer(findings),
        evidence=verdict.list_evidence(findings),
        caveats=caveats.list_caveats(findings),
        ground=(
            *filter(None, [languages.describe_choices(findings.within, findings.ground)]),
            *ground.list_caveats(findings.ground),
            *ground.describe_load_shares(findings.ground, findings.cells),
            *filter(None, [replies.describe_verification(findings.scenario), replies.describe_rate(findings.scenario)]),
        ),
        verdict=_describe_verdict(findings),
        metric=METRICS[findings.scenario.metric].title,
        load=loads.describe_load(findings.scenario),
        requests=replies.describe_requests(findings.scenario),
        certainty=_describe_certainty(findings),
        scores=scoreboard.make_view(findings),
        capacity=capacity.make_view(findings, styles, name),
        compared=sum(standing.relative is not None for standing in findings.standings) > 0,
        ranks=tuple(_make_rank(findings, standing, scale) for standing in findings.standings),
        ticks=scale.ticks(),
        leader_at=scale.to_percent(1.0),
        performance=(*bursts.draw_bursts(findings, drawn, name), *panels.draw_performance(findings, drawn, name))
        if findings.cells
        else (),
        curves=curves,
        costs=tuple(panels.draw_costs(findings, drawn, name)) if findings.cells else (),
        figures=_tabulate_figures(findings),
        comparisons=_tabulate_comparisons(findings),
        associations=associations.make_view(findings),
        scaling=scaling.tabulate(findings.scaling) if findings.scaling else None,
        scaling_caveats=scaling_words.list_caveats(findings),
        pairs=_tabulate_pairs(findings) if findings.pairs else None,
        lag=quantities.duration(lag) if lag is not None else "",
        undrawn_sweeps=max(0, len(panels.list_measured_sweeps(findings)) - panels.MOST_SWEEPS),
        undrawn_curves=len({cell.level for cell in findings.cells}) - len(curves),
        loss_bound=quantities.share(findings.loss_bound),
        apart=_explain_separate_ranking(findings),
        marked=any(cell.marked for cell in findings.cells),
        trials=_tabulate_trials(findings) if findings.may_lose else None,
        unread=ReportTable(unread.HEADINGS, tuple(map(_make_unread_row, findings.unread))) if findings.unread else None,
        unsafe=ReportTable(unranked.HEADINGS, tuple(map(_make_unsafe_row, findings.unsafe)))
        if findings.unsafe
        else None,
        unsafe_explained=unranked.explain_columns(findings.unsafe),
        ended=stopping.explain_end(findings.ending) if findings.ending else "",
        work=behind.make_view(findings),
    )


def _make_unread_row(cell: Unread) -> tuple[str, ...]:
    contestant, level, *texts = unread.make_row(cell)
    return (
        contestant,
        level,
        *map(make_sortable, texts, (cell.trials, cell.finished, cell.written_per_second, cell.ended)),
    )


def _make_unsafe_row(server: Unsafe) -> tuple[str, ...]:
    contestant, level, *texts = unranked.make_row(server)
    counts = (server.trials, server.wrong, server.lost, server.duplicated, server.reordered, server.corrupt)
    return contestant, level, *map(make_sortable, texts, (*counts, server.streams))


def _describe_verdict(findings: ScenarioFindings) -> str:
    """Name the contestant to take, in a few words, and say where it leads only among those with loss or faults."""
    if findings.capacity is not None and findings.capacity.search is not None:
        return "Capacity"
    word = verdict.answer(findings).headline if findings.flips else verdict.make_badge(findings)
    kind = findings.standings[0].kind if findings.standings else 0
    together, eligible = findings.ground.together, findings.decision.eligible
    several = len(together) > 1 and bool(eligible) and not findings.flips
    cores = (
        f", {ground.describe_usable_cores(together[findings.ground.group_of(eligible[0])].cores)}" if several else ""
    )
    return f"{word}{('', ', with loss', ', with faults')[kind]}{cores}"


def _explain_separate_ranking(findings: ScenarioFindings) -> dict[str, str]:
    """Return the reason for each separate part of the ranking, by the part's first contestant."""
    firsts = {standing.peers: standing.contestant for standing in reversed(findings.standings)}
    lossy = (
        f"they lost more than {quantities.share(findings.loss_bound)} of their messages in some trial, and latencies "
        "leave lost messages out"
    )
    first = findings.standings[0].contestant if findings.standings else ""
    reasons = ("", lossy, "they had a fault in some trial, and their figures are those of their other trials")
    usable = [f"they could use {ground.describe_usable_cores(group.cores)}" for group in findings.ground.together]
    return {
        name: reasons[kind] or usable[ground_number] for (ground_number, kind), name in firsts.items() if name != first
    }


def _describe_certainty(findings: ScenarioFindings) -> str:
    """Describe in one line how much data stands behind the answer."""
    if not findings.comparisons:
        return ""
    shared = [comparison.blocks for comparison in findings.comparisons]
    blocks = f"{max(shared)}" if min(shared) == max(shared) else f"{min(shared)} to {max(shared)}"
    drift = f"the machine's own speed drifted {findings.drift:.2f}-fold between blocks"
    return f"Over {blocks} shared blocks; {drift}"


# --- claims ------------------------------------------------------------------------------------------------------


class ClaimView(msgspec.Struct, frozen=True):
    """One row of the table of verdicts, and the comparisons that it rests on."""

    judged: JudgedClaim
    verdict: str
    here: str
    published: str
    counts: str
    """The counts of its sides; empty where none were requested."""
    notes: tuple[str, ...]
    checks: ReportTable


def present_claims(judged: Sequence[JudgedClaim], scenarios: Sequence[ScenarioFindings]) -> tuple[ClaimView, ...]:
    return tuple(
        ClaimView(
            judged=judgement,
            verdict=claim_verdicts.name_verdict(judgement),
            here=claim_verdicts.describe_outcome(judgement),
            published=claim_verdicts.quote_published(judgement.claim),
            counts=claim_words.describe_counts(judgement),
            notes=tuple(
                text
                for text in (
                    claim_verdicts.describe_by_script(judgement).removesuffix("."),
                    claim_words.name_systems(judgement),
                    claim_words.name_difference(judgement),
                    claim_words.name_left_out(judgement),
                    *claim_words.describe_losses(judgement),
                    *stopping.explain_undecided_claim(judgement, scenarios),
                )
                if text
            ),
            checks=_tabulate_checks(judgement),
        )
        for judgement in judged
    )


def _tabulate_checks(judged: JudgedClaim) -> ReportTable:
    figures = claim_words.MEANS
    headings = ("comparison", "effect, 95% interval", "claimed", figures, "blocks", "p", "p corrected", "outcome")
    return ReportTable(headings, tuple(_make_check_row(check, judged) for check in judged.checks))


def _make_check_row(check: ComparisonResult, judged: JudgedClaim) -> tuple[str, ...]:
    p, p_corrected = map(_make_p_cell, (check.p, check.p_corrected))
    outcome = f"{claim_verdicts.OUTCOME_WORDS[check.outcome][0]}{'' if check.needed else ' (need not hold)'}"
    compared = claim_words.describe_comparison(check, judged.scenarios)
    effect = make_sortable(claim_words.format_effect(check), check.effect)
    claimed = make_sortable(claim_words.format_claimed_effect(check.step), check.step.threshold)
    first = check.figures[0] if check.figures else None
    figures = make_sortable(" against ".join(claim_words.list_figures(check)), first)
    return compared, effect, claimed, figures, str(check.blocks), p, p_corrected, outcome


def _make_p_cell(probability: float) -> str:
    return make_cell(probability, lambda p: quantities.p_value(p).removeprefix("p = ").removeprefix("p "))


# --- ranking and forest plot -------------------------------------------------------------------------------------


def _fit_scale(standings: Sequence[Standing]) -> RatioScale:
    """Return a scale of ratios to the leader, from the least to the greatest end of any interval."""
    ratios: list[float] = []
    for standing in standings:
        if standing.relative is not None:
            interval = standing.relative.interval
            ratios += [standing.relative.value, *((interval.low, interval.high) if interval else ())]
    return RatioScale(ratios)


def _place_mark(scale: RatioScale, estimate: Estimate | None) -> Mark | None:
    if estimate is None:
        return None
    interval = estimate.interval
    low, high = (None, None) if interval is None else (scale.to_percent(interval.low), scale.to_percent(interval.high))
    return Mark(scale.to_percent(estimate.value), low, high)


def _make_rank(findings: ScenarioFindings, standing: Standing, scale: RatioScale) -> Rank:
    relative, comparison = standing.relative, standing.against_leader
    figure = standing.over_loads.own if standing.over_loads else standing.value
    value = _format_bounded(findings, standing, figure)
    interval = relative.interval if relative else None
    leader = next(peer for peer in findings.standings if peer.peers == standing.peers)
    leads = standing is leader
    return Rank(
        rank=ranking.rank(findings, standing),
        contestant=standing.contestant,
        value=make_sortable(value, figure),
        change=make_sortable(ranking.compare_with_first(standing), comparison.ratio if comparison else None),
        interval=sort_by_low(ranking.format_change_interval(interval), interval) if interval else "",
        blocks=comparison.blocks if comparison else None,
        mark=_place_mark(scale, Estimate(1.0, None, ()) if leads else relative),
        missing=standing.missing,
        loss=make_cell(standing.loss or 0.0, quantities.share) if findings.may_lose else "",
        lossy=standing.lossy,
        leader=_describe_other_cells(findings, standing, leader),
    )


def _format_bounded(findings: ScenarioFindings, standing: Standing, figure: float) -> str:
    bound = verdict.BOUND_SIGNS[standing.bound] if math.isfinite(figure) else ""
    return f"{bound}{verdict.format_value(findings.scenario, figure)}{company.mark(findings.company)}"


def _describe_other_cells(findings: ScenarioFindings, standing: Standing, leader: Standing) -> str:
    """Return the leader's figure where a contestant shares only some of its loads and blocks; else nothing."""
    if standing.over_loads is None or leader.over_loads is None:
        return ""
    figure, row = (
        verdict.format_value(findings.scenario, value) for value in (standing.over_loads.leader, leader.over_loads.own)
    )
    return "" if figure == row else f"where both were measured, {leader.contestant} has {figure}"


# --- tables ------------------------------------------------------------------------------------------------------


def format_with_interval(estimate: Estimate, speak: Callable[[float], str]) -> str:
    if estimate.interval is None:
        return speak(estimate.value)
    return f"{speak(estimate.value)} [{speak(estimate.interval.low)}, {speak(estimate.interval.high)}]"


class FigureColumn(msgspec.Struct, frozen=True):
    """A column of the table of all figures. `speak` formats its values, where not as the metric does."""

    heading: str
    metric: str
    has_interval: bool = False
    speak: Callable[[float], str] | None = None

    def format(self, cell: CellFigures) -> str:
        """Format a cell's figure; a dash where it was not measured."""
        estimate, speak = cell.values.get(self.metric), self.speak or METRICS[self.metric].speak
        if estimate is None:
            return quantities.DASH
        text = format_with_interval(estimate, speak) if self.has_interval else speak(estimate.value)
        marked = f"{text} {loss_words.MARK}" if self.metric == "lost" and cell.marked else text
        return make_sortable(marked, estimate.value)


LOSSES = (FigureColumn("lost", "lost", has_interval=True), *(FigureColumn(kind, kind) for kind in loss_words.KINDS[1:]))
TIMES = (
    FigureColumn("throughput", "throughput", has_interval=True),
    FigureColumn("response mean", "mean", has_interval=True),
    *(FigureColumn(f"response {name}", name, has_interval=True) for name in map(name_percentile, PERCENTILES)),
    FigureColumn("service p50", "service-p50", has_interval=True),
    FigureColumn("service p99", "service-p99", has_interval=True),
)
SEND_LAGS = tuple(FigureColumn(f"send lag {part}", f"send-lag-{part}") for part in ("p50", "p99", "max"))
COSTS = (
    FigureColumn("receive lag p50", "receive-lag-p50"),
    FigureColumn("receive lag p99", "receive-lag-p99"),
    FigureColumn("CPU user per message", "cpu-user", speak=quantities.microseconds),
    FigureColumn("CPU kernel per message", "cpu-system", speak=quantities.microseconds),
    FigureColumn("switches voluntary per message", "voluntary"),
    FigureColumn("switches involuntary per 1,000 messages", "involuntary"),
    FigureColumn("run-queue wait per message", "run-queue", speak=quantities.microseconds),
    FigureColumn("peak memory", "memory"),
    FigureColumn("memory per connection", "connection-memory"),
    FigureColumn("threads", "threads", speak=lambda count: f"{count:.0f}"),
)


def _list_columns(findings: ScenarioFindings) -> tuple[FigureColumn, ...]:
    """Return the columns of the metrics that were measured."""
    measured = {metric for cell in findings.cells for metric in cell.values}
    load = "client" if "tick-lag-p99" in measured else "generator"
    columns = (
        *(LOSSES if findings.may_lose else ()),
        *TIMES,
        FigureColumn("TLS handshake p50", "handshake"),
        *(SEND_LAGS if findings.scenario.scheduled else ()),
        *COSTS,
        FigureColumn("chunks late p50", "chunk-lag-p50"),
        FigureColumn("chunks late p99", "chunk-lag-p99"),
        FigureColumn("CPU per chunk", "chunk-cpu", speak=quantities.microseconds),
        FigureColumn("until ready", "ready"),
        FigureColumn("until the first answer", "first-answer"),
        FigureColumn("CPU until ready", "ready-cpu"),
        *((FigureColumn("memory when ready", "ready-memory"),) if "ready" in measured else ()),
        FigureColumn("warm-up", "warm-up"),
        FigureColumn("throttled", "throttled"),
        FigureColumn("goodput in the burst", "burst-goodput"),
        FigureColumn("recovery after it", "recovery"),
        FigureColumn("unanswered in time", "unanswered"),
        FigureColumn("server loop lag p99", "server-tick-lag-p99"),
        FigureColumn(f"{load} cores", "generator-cores", speak=quantities.three_digits),
        FigureColumn(f"{load} CPU per message", "generator-cpu", speak=quantities.microseconds),
        FigureColumn(f"{load} peak memory", "generator-memory"),
        FigureColumn("client loop lag p99", "tick-lag-p99"),
    )
    return tuple(column for column in columns if column.metric in measured)


def _tabulate_figures(findings: ScenarioFindings) -> ReportTable:
    """Return all figures, drawn or not: the text alternative of the section's drawings."""
    columns, labels = _list_columns(findings), {level.key: level.label for level in findings.levels}
    headings = ("load", "contestant", "trials", *(column.heading for column in columns))
    rows = (
        (labels[cell.level], cell.contestant, str(cell.trials), *(column.format(cell) for column in columns))
        for cell in findings.cells
    )
    return ReportTable(headings, tuple(rows))


def _tabulate_trials(findings: ScenarioFindings) -> ReportTable:
    """List each valid trial over a transport that may lose messages: latencies, lost messages, and where these went."""
    headings = (
        *("load", "contestant", "block", "lost", "late", "duplicated", "reordered"),
        *("response mean", "response p50", "response p99"),
        *("dropped at the server's sockets", "at the generator's", "at others", "not sent by the server"),
        "not served by it",
    )
    labels = {level.key: level.label for level in findings.levels}
    rows = (
        (labels[cell.level], cell.contestant, str(trial.block), *_format_trial(trial))
        for cell in findings.cells
        if cell.loss is not None
        for trial in cell.loss.trials
    )
    return ReportTable(headings, tuple(rows))


def _format_trial(trial: LossOfTrial) -> tuple[str, ...]:
    drops = trial.drops
    return (
        make_sortable(f"{quantities.share(trial.lost)}{f' {loss_words.MARK}' if trial.above else ''}", trial.lost),
        *(make_cell(share, quantities.share) for share in (trial.late, trial.duplicated, trial.reordered)),
        *(make_cell(value_ns, quantities.duration) for value_ns in (trial.mean_ns, trial.p50_ns, trial.p99_ns)),
        *map(make_count, (drops.server, drops.generator, drops.elsewhere, drops.unsent, drops.unserved)),
    )


def _tabulate_pairs(findings: ScenarioFindings) -> ReportTable:
    """Return the table of pairs: servers down, clients across."""
    clients = tuple(dict.fromkeys(pair.client for pair in findings.pairs))
    servers = dict.fromkeys(pair.contestant for pair in findings.pairs)
    rows = (
        (
            server,
            *(
                make_sortable(verdict.format_pair(findings.scenario, pair), pair.figure)
                for pair in findings.pairs
                if pair.contestant == server
            ),
        )
        for server in servers
    )
    return ReportTable(("server", *clients), tuple(rows))


CONSEQUENCES = {
    "server": "a fault: ranked separately",
    "instrument": "figures are bounds, for every contestant",
    "machine": "retried",
    "note": "shown only",
}
"""The consequence of a failed audit, by its kind (docs/adr/audit-kinds.md)."""


def tabulate_audits(tallies: Sequence[AuditTally]) -> ReportTable:
    """List the audits: the subject of each, and the consequence where it fails."""
    rows = (
        (tally.name.replace("_", " "), kind, CONSEQUENCES[kind], str(tally.passed), str(tally.failed))
        for tally in tallies
        for kind in (outcomes.kind(tally.name),)
    )
    return ReportTable(("audit", "about the", "if it fails", "trials passed", "trials failed"), tuple(rows))


def tabulate_code(about: Sequence[About]) -> ReportTable:
    """Return the amount of code of each contestant, by itself and with its family; shared code comes last."""
    headings = (
        *("contestant", "what", "model", "family", "files", "lines", "lines with family", "functions"),
        *("complexity, sum", "complexity with family", "complexity, largest"),
    )
    return ReportTable(headings, tuple(_make_code_row(contestant, about) for contestant in about))


def _describe_kind(about: About) -> str:
    return f"{about.kind}, UNSAFE" if about.unsafe else f"{about.kind}, not ranked" if about.unranked else about.kind


def _make_code_row(contestant: About, about: Sequence[About]) -> tuple[str, ...]:
    kind = "shared code" if contestant.kind == "shared" else _describe_kind(contestant)
    description = (contestant.name, kind, contestant.model, ", ".join(contestant.family) or quantities.DASH)
    size = contestant.code
    if size is None:
        return (*description, *(quantities.DASH,) * 7)
    whole = None if contestant.kind == "shared" else codesize.sum_with_family(contestant, about)
    lines, complexity = (whole.lines, whole.complexity) if whole else (None, None)
    figures = (size.files, size.lines, lines, size.functions, size.complexity, complexity, size.complexity_max)
    return (*description, *map(make_count, figures))


def _tabulate_comparisons(findings: ScenarioFindings) -> ReportTable:
    """List the comparisons of each axis, those that differ first."""
    families = {METRICS[axis.metric].short: axis.comparisons for axis in findings.axes} or {
        findings.scenario.metric: findings.comparisons
    }
    headings = ("axis", "first", "second", "first / second", "95% interval, corrected", "blocks", "different")
    rows = (
        (
            axis,
            comparison.a,
            comparison.b,
            make_cell(comparison.ratio, quantities.three_digits),
            _format_interval(comparison),
            str(comparison.blocks),
            _describe_difference(comparison),
        )
        for axis, family in families.items()
        for comparison in sorted(
            family, key=lambda comparison: (not comparison.different, -abs(math.log(comparison.ratio)))
        )
    )
    return ReportTable(headings, tuple(rows))


def _format_interval(comparison: Comparison) -> str:
    interval = comparison.interval
    if interval is None:
        return quantities.DASH
    return sort_by_low(f"{quantities.three_digits(interval.low)} to {quantities.three_digits(interval.high)}", interval)


def _describe_difference(comparison: Comparison) -> str:
    return "yes" if comparison.different else "no" if comparison.decidable else "not enough blocks"


def make_comparison_row(comparison: Comparison) -> tuple[str, ...]:
    return (
        make_cell(comparison.ratio, quantities.three_digits),
        _format_interval(comparison),
        str(comparison.blocks),
        *map(_make_p_cell, (comparison.p, comparison.p_corrected)),
        _describe_difference(comparison),
    )
