"""The answer in a terminal: the same findings as the report, in short. Readable at 80 columns and on a pipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from netdyno.analysis.found.exclusions import TrialNote
from netdyno.analysis.found.ranking import Axis, RankingVerdict, Standing
from netdyno.analysis.found.run import Analysis, ScenarioFindings
from netdyno.kit import quantities
from netdyno.model.metrics import METRICS
from netdyno.model.verdicts import ClaimVerdict
from netdyno.present.prose import (
    aa,
    associations,
    bursts,
    canary,
    caveats,
    claim_verdicts,
    claims,
    company,
    exclusions,
    ground,
    languages,
    loss,
    notices,
    ranking,
    replies,
    retries,
    scaling,
    stopping,
    unranked,
    unread,
    verdict,
)

STYLES: dict[RankingVerdict, str] = {
    "winner": "bold green",
    "equal": "bold green",
    "undecided": "bold yellow",
    "not_enough_blocks": "bold yellow",
    "unopposed": "bold",
    "no_data": "bold red",
    "not_ranked": "bold",
    "flip": "bold green",
}
CLAIM_STYLES: dict[ClaimVerdict, str] = {
    "confirmed": "bold green",
    "refuted": "bold red",
    "undecided": "bold yellow",
    "not_testable": "bold",
}
CAUSES_SHOWN = 5
PUBLISHED_SHOWN = 4
"""The most published figures of a claim that are shown; the report has all."""
PAIRS_NAMED = 3
"""More pairs than this that share a cause are counted; the table of pairs names them all."""
LONGEST_REASON = 60
WIDEST = 1000
"""Columns: the width at which a table's natural width is measured."""
AXES_WITH_LOSS = 4
"""The axes that 80 columns have room for; the report has all."""


def render(analysis: Analysis) -> RenderableType:
    """All answers of a run, its excluded trials in one line per cause, and how certain the answers are."""
    parts: list[RenderableType] = [Text(analysis.question, style="bold")]
    if analysis.control.is_the_question:
        parts += [Text(), _describe_control(analysis)]
    if analysis.claims:
        parts += [Text(), Text(claim_verdicts.summarise_claims(analysis.claims), style="bold"), _draw_claims(analysis)]
    for findings in analysis.scenarios:
        parts += [Text(), *draw_scenario(findings)]
    parts += [Text(), *_draw_excluded(analysis)]
    parts += _write(
        "dim", *dict.fromkeys(text for findings in analysis.scenarios for text in ground.list_caveats(findings.ground))
    )
    parts += _write("", retries.describe_retries(analysis.retried))
    parts += _write("yellow", canary.summarise_drift(analysis.canary))
    if not analysis.control.is_the_question:
        parts.append(_describe_control(analysis))
    return Group(*parts, _describe_certainty(analysis))


def _write(style: str, *texts: str) -> list[Text]:
    """Return each text that is not empty, in this style."""
    return [Text(text, style=style) for text in texts if text]


def _draw_claims(analysis: Analysis) -> Table:
    """Draw each claim with its verdict; below the sentence, the figures here, the published ones, and the reasons."""
    table = Table(box=None, pad_edge=False, padding=(0, 1), collapse_padding=True, show_header=False)
    table.add_column("claim", no_wrap=True, style="bold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("text", overflow="fold")
    for result in analysis.claims:
        published = claim_verdicts.quote_published(result.claim, PUBLISHED_SHOWN)
        lines = _write(
            "dim",
            f"here: {claim_verdicts.describe_outcome(result)}",
            claim_verdicts.describe_by_script(result),
            f"published: {published}" if published else "",
            claims.name_systems(result),
            claims.name_difference(result),
            claims.describe_counts(result),
            claims.name_left_out(result),
            *claims.describe_losses(result),
            *stopping.explain_undecided_claim(result, analysis.scenarios),
        )
        word = Text(claim_verdicts.name_verdict(result), style=CLAIM_STYLES[result.verdict])
        table.add_row(result.claim.id, word, Text("\n").join([Text(result.claim.text), *lines]))
    return _keep_whole(table)


def draw_scenario(findings: ScenarioFindings) -> list[RenderableType]:
    """Draw one question: its answer, its table, and what holds for its figures."""
    answer = verdict.answer(findings)
    title = Text.assemble((f"{findings.scenario.name}  ", "bold"), (answer.headline, _choose_style(findings)))
    parts: list[RenderableType] = [title, Text(answer.sentence)]
    parts += _write("yellow", *company.list_caveats(findings.company))
    if findings.axes and findings.standings:
        parts += [_Scores(findings), *_write("dim", _explain_scores(findings), *ranking.explain_ranks(findings))]
    elif findings.standings:
        parts += [_draw_ranking(findings), Text(_explain_columns(findings), style="dim")]
    verified = replies.describe_verification(findings.scenario)
    parts += _write(
        "dim",
        *ground.describe_load_shares(findings.ground, findings.cells),
        f"{replies.describe_requests(findings.scenario)}. {verified}" if verified else "",
        replies.describe_rate(findings.scenario),
        stopping.explain_end(findings.ending) if findings.ending else "",
        *(f"correlates: {associations.summarise_pair(why, findings.scenario)}" for why in findings.whys[:1]),
        languages.describe_choices(findings.within, findings.ground),
        *scaling.describe_contestants(findings),
        *notices.describe_warm_up_times(findings),
        *notices.describe_turns(findings),
    )
    parts += _write(
        "yellow",
        *notices.describe_overload(findings),
        *notices.describe_constant_latency(findings),
        *notices.describe_throttling(findings),
        *bursts.describe_contestants(findings),
        *notices.describe_noted(findings),
        *notices.describe_uneven_threads(findings),
        *notices.describe_reconnects(findings),
    )
    if findings.pairs:
        parts += [Text(), _draw_pairs(findings), Text(_explain_pairs(findings), style="dim")]
    if findings.unread:
        parts += [_draw_unread(findings), Text(unread.EXPLAINED, style="dim")]
    if findings.unsafe:
        parts += [Text(), *_write("bold red", *unranked.explain_unsafe(findings.unsafe))]
        parts += [_draw_unsafe(findings), Text(unranked.explain_columns(findings.unsafe), style="dim")]
    return parts


def _choose_style(findings: ScenarioFindings) -> str:
    is_open = any(flip.flips.verdict == "open" for flip in findings.flips)
    return STYLES["not_enough_blocks" if is_open else findings.verdict]


def _draw_pairs(findings: ScenarioFindings) -> Table:
    """Draw the pairs: servers down, clients across."""
    table = _make_table()
    table.add_column("server", no_wrap=True)
    for client in dict.fromkeys(pair.client for pair in findings.pairs):
        table.add_column(client, justify="right", overflow="fold")
    for server in dict.fromkeys(pair.contestant for pair in findings.pairs):
        row = [verdict.format_pair(findings.scenario, pair) for pair in findings.pairs if pair.contestant == server]
        table.add_row(server, *row)
    return _keep_whole(table)


def _draw_unsafe(findings: ScenarioFindings) -> Table:
    """Draw what was lost or corrupt; the report has the rest as well."""
    table = _make_table()
    table.add_column("contestant", no_wrap=True)
    table.add_column("load", overflow="fold")
    for heading in ("trials wrong", "lost", "corrupt", "streams broken"):
        table.add_column(heading, justify="right", overflow="fold")
    for row in findings.unsafe:
        wrong = f"{row.wrong} of {row.trials}"
        counts = (unranked.format_lost(row), f"{row.corrupt:,}", f"{row.streams:,}")
        table.add_row(row.contestant, row.level, wrong, *counts)
    return _keep_whole(table)


def _draw_unread(findings: ScenarioFindings) -> Table:
    table = _make_table()
    names = ["contestant", *(row.contestant for row in findings.unread)]
    table.add_column("contestant", no_wrap=True, min_width=max(map(len, names)))
    table.add_column("load", overflow="fold", min_width=12)
    for heading in unread.HEADINGS[2:]:
        table.add_column(heading, justify="right", overflow="fold")
    for row in findings.unread:
        table.add_row(*unread.make_row(row))
    return table


def _explain_pairs(findings: ScenarioFindings) -> str:
    complete = sum(pair.valid == pair.trials > 0 for pair in findings.pairs)
    text = f"{quantities.plural(len(findings.pairs), 'pair')} of server and client, {complete} with valid trials only"
    return (
        f"{text}; {findings.scenario.metric}, geometric mean over "
        f"{quantities.plural(findings.pairs[0].trials, 'trial')}"
    )


def _explain_columns(findings: ScenarioFindings) -> str:
    return f"p99: response time, CPU: of the server per message, both at {findings.heaviest.label}"


def _explain_loss(findings: ScenarioFindings) -> str:
    text = "lost: share of messages, at the load where it was largest"
    lossy = [standing.lossy for standing in findings.standings]
    if any(lossy):
        text += f"; {loss.MARK} above {quantities.share(findings.loss_bound)} in some trial"
    if any(lossy) and not all(lossy):
        text += ": ranked separately, against the first of its group"
    return text


class _Scores:
    """The table of scores. Where a line has no room for it, a rank follows its figure without a space; where that does
    not suffice, columns are a space apart, and at last the mark of all figures stands in their headings. Nothing is
    cut: what is wider yet, the terminal wraps."""

    def __init__(self, findings: ScenarioFindings) -> None:
        self._findings = findings

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        forms = ((" ", 1, True), ("", 1, True), ("", 0, True), ("", 0, False))
        tables = [_draw_scores(self._findings, gap, padding, marks_figures=marks) for gap, padding, marks in forms]
        wide = options.update_width(WIDEST)
        fitting = (table for table in tables if Measurement.get(console, wide, table).maximum <= options.max_width)
        yield next(fitting, tables[-1])


def _draw_scores(findings: ScenarioFindings, gap: str, padding: int, *, marks_figures: bool) -> Table:
    """Draw every axis with each contestant's own figure and its rank there. Where messages may be lost, the loss comes
    before the figures that it flatters."""
    table = _make_table(padding)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("contestant", no_wrap=True)
    axes = findings.axes[:AXES_WITH_LOSS] if findings.may_lose else findings.axes
    mark = company.mark(findings.company)
    of_figures, of_headings = (mark, "") if marks_figures else ("", mark)
    for axis in axes:
        if findings.may_lose and axis is findings.axes[1]:
            table.add_column("lost", justify="right", no_wrap=True)
        table.add_column(METRICS[axis.metric].short + of_headings, justify="right", no_wrap=True)
    for standing in findings.standings:
        _begin_ground(table, findings, standing)
        cells = [score(axis, standing.contestant, gap, of_figures) for axis in axes]
        if findings.may_lose:
            cells.insert(1, loss.format_largest(standing))
        table.add_row(ranking.rank(findings, standing), standing.contestant, *cells)
    return _keep_whole(table)


def _begin_ground(table: Table, findings: ScenarioFindings, standing: Standing) -> None:
    """Write before each group its number of usable cores, where that is not the same for all."""
    if len(findings.ground.together) < 2 or standing != next(
        peer for peer in findings.standings if peer.group == standing.group
    ):
        return
    if table.row_count:
        table.add_section()
    table.add_row(
        "", Text(f"on {ground.describe_usable_cores(findings.ground.together[standing.group].cores)}:", style="italic")
    )


def score(axis: Axis, contestant: str, gap: str = " ", mark: str = "") -> str:
    """A figure with its mark, and its rank behind it in small digits: "44.1k/s ¹"."""
    entry = axis.score(contestant)
    if entry is None or entry.shown is None:
        return quantities.DASH
    figure = f"{verdict.BOUND_SIGNS[axis.bound]}{METRICS[axis.metric].speak(entry.shown)}{mark}"
    decidable = any(comparison.decidable for comparison in axis.comparisons)
    if not decidable or entry.rank is None:
        return figure
    return f"{figure}{gap}{quantities.superscript(entry.rank)}"


def _explain_scores(findings: ScenarioFindings) -> str:
    """Explain what holds for this scenario alone; the columns are explained once, below all scenarios."""
    notes = [text] if (text := ranking.describe_loads(findings)) else []
    if findings.may_lose:
        notes.append(_explain_loss(findings))
    if lags := caveats.describe_lags(findings.scenario, findings.cells):
        notes.append(lags)
    return "; ".join(notes)


COLUMNS_EXPLAINED = (
    "Figures are each contestant's own: at one load over all its valid trials together (p50 and p99 of the response "
    "times, server CPU per message, peak memory of the largest trial), over several loads geometric means. The small "
    "digit is the rank on that axis: 1 plus the number proven better."
)


def _keep_whole(table: Table) -> Table:
    """Give each column the room of its longest word, and of its whole cells where they are not wrapped: no figure, word
    or name is broken or cut. A row may be wider than the console instead."""
    for column in table.columns:
        words = [word for cell in (column.header, *column.cells) for word in str(cell).split()]
        whole = map(str, (column.header, *column.cells)) if column.no_wrap else words
        column.min_width = max(map(cell_len, whole), default=0)
    return table


def _make_table(padding: int = 1) -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, padding), collapse_padding=True, show_edge=False)


def _draw_ranking(findings: ScenarioFindings) -> Table:
    """Draw the ranking of a capacity, which has no other axis."""
    level = findings.heaviest
    table = _make_table()
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("contestant", no_wrap=True)
    for heading in (findings.scenario.metric, "to first", "95% interval", "p99", "CPU"):
        table.add_column(heading, justify="right", no_wrap=True)
    for standing in findings.standings:
        _begin_ground(table, findings, standing)
        cell = findings.cell(standing.contestant, level.key)
        value = f"{verdict.BOUND_SIGNS[standing.bound]}{verdict.format_value(findings.scenario, standing.value)}"
        value += company.mark(findings.company)
        figures = (
            value,
            ranking.compare_with_first(standing),
            _format_interval(standing),
            *(quantities.duration(cell.value(metric)) if cell else quantities.DASH for metric in ("p99", "cpu")),
        )
        table.add_row(ranking.rank(findings, standing), standing.contestant, *figures)
    return _keep_whole(table)


def _format_interval(standing: Standing) -> str:
    interval = standing.relative.interval if standing.relative else None
    return ranking.format_change_interval(interval).replace(" to ", "..") if interval else ""


def _draw_excluded(analysis: Analysis) -> list[RenderableType]:
    """Draw each cause in a line, with its number of excluded trials by contestant; the report has the details."""
    groups: dict[tuple[str, str], list[TrialNote]] = {}
    for note in analysis.excluded:
        groups.setdefault((note.status, exclusions.describe_cause(note.cause)), []).append(note)
    # With pairs, the answer itself is which pairs do not work, and why.
    shown = len(groups) if any(findings.pairs for findings in analysis.scenarios) else CAUSES_SHOWN
    parts: list[RenderableType] = []
    if groups:
        table = _make_table()
        for heading in ("excluded", "trials", "cause", "of"):
            table.add_column(heading, justify="right" if heading == "trials" else "left", overflow="fold")
        shown_groups = list(groups.items())[:shown]
        origins = [_name_origins(notes) for _, notes in shown_groups]
        for ((status, cause), notes), origin in zip(shown_groups, origins, strict=True):
            why = exclusions.describe_reason(notes[0]) if status in ("failed", "skipped") else cause
            shown_reason = Text(quantities.shortened(why, LONGEST_REASON))
            table.add_row(exclusions.STATUS_WORDS[status], str(len(notes)), shown_reason, Text(origin))
        parts.append(_keep_whole(table))
    if len(groups) > shown:
        parts.append(Text(f"and {quantities.plural(len(groups) - shown, 'more cause')}; the report has all"))
    return parts


def _name_origins(notes: Sequence[TrialNote]) -> str:
    counts = Counter(f"{note.contestant} with {note.client}" if note.client else note.contestant for note in notes)
    if notes[0].client and len(counts) > PAIRS_NAMED:
        return quantities.plural(len(counts), "pair")
    if len(counts) == 1:
        return next(iter(counts))
    return quantities.listed([f"{name} ({count})" for name, count in sorted(counts.items())])


def _describe_control(analysis: Analysis) -> Text:
    control = analysis.control
    style = "bold red" if control.fails else "bold" if control.is_the_question else "dim"
    return Text(aa.describe_control(control), style=style)


def _describe_certainty(analysis: Analysis) -> Text:
    counts = analysis.counts
    return Text(
        f"{quantities.plural(counts.valid, 'valid trial')} over {quantities.listed(analysis.links)} in "
        f"{quantities.plural(analysis.blocks_measured, 'block')}, "
        f"{counts.invalid} invalid, {counts.faulty} faulty, {counts.failed} failed, {counts.skipped} skipped. "
        f"{COLUMNS_EXPLAINED if any(findings.axes for findings in analysis.scenarios) else ''} {verdict.WHAT_HOLDS}",
        style="dim",
    )
