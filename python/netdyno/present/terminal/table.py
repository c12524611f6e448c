"""The answer in a terminal: the same findings as the report, in short. Readable at 80 columns and on a pipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from netdyno.analysis.findings import Analysis, Axis, CellFigures, ScenarioFindings, Standing, TrialNote, Verdict
from netdyno.base import quantities
from netdyno.model.metrics import METRICS
from netdyno.model.verdicts import ClaimVerdict
from netdyno.present.prose import (
    aa,
    associations,
    canary,
    claims,
    company,
    constant_latency,
    excluded,
    ground,
    languages,
    loss,
    made_again,
    ranking,
    set_aside,
    stopping,
    turns,
    uneven_threads,
    verdict,
    verdicts,
    warmups,
)
from netdyno.present.prose.statuses import STATUS_WORDS

STYLES: dict[Verdict, str] = {
    "winner": "bold green",
    "equal": "bold green",
    "undecided": "bold yellow",
    "not_enough_blocks": "bold yellow",
    "unopposed": "bold",
    "no_data": "bold red",
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
"""Of the published figures of a claim; the report has all of them."""
PAIRS_NAMED = 3
"""More pairs than this that share a cause are counted; the table of pairs names them all."""
LONGEST_REASON = 60
WIDEST = 1000
"""Columns beyond which nobody asks how wide a table would be."""
AXES_BESIDE_LOSS = 4
"""That 80 columns have room for; the report has all."""


def render(analysis: Analysis) -> RenderableType:
    """All answers of a run, its set-aside trials in one line each, and how sure all of it is."""
    parts: list[RenderableType] = [Text(analysis.question, style="bold")]
    if analysis.control.is_the_question:
        parts += [Text(), _control(analysis)]
    if analysis.claims:
        parts += [Text(), Text(verdicts.summary(analysis.claims), style="bold"), _claims(analysis)]
    for one in analysis.scenarios:
        parts += [Text(), *_scenario(one)]
    parts += [Text(), *_set_aside(analysis)]
    parts += [
        Text(text, style="dim")
        for text in dict.fromkeys(text for one in analysis.scenarios for text in ground.sentences(one.ground))
    ]
    if retried := made_again.sentence(analysis.made_again):
        parts.append(Text(retried))
    if drifted := canary.drift_line(analysis.canary):
        parts.append(Text(drifted, style="yellow"))
    if not analysis.control.is_the_question:
        parts.append(_control(analysis))
    return Group(*parts, _sureness(analysis))


def _claims(analysis: Analysis) -> Table:
    """Each claim with its verdict; below the sentence, what is found here, what was published, and why."""
    table = Table(box=None, pad_edge=False, padding=(0, 1), collapse_padding=True, show_header=False)
    table.add_column("claim", no_wrap=True, style="bold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("text", overflow="fold")
    for one in analysis.claims:
        ended = stopping.of_claim(one, analysis.scenarios)
        lines = [Text(one.claim.text), Text(f"here: {verdicts.here(one)}", style="dim")]
        if one.claim.published:
            lines.append(Text(f"published: {verdicts.published(one.claim, PUBLISHED_SHOWN)}", style="dim"))
        lines += [
            Text(text, style="dim")
            for text in (
                claims.measured_on(one),
                claims.beside(one),
                claims.left_out(one),
                *claims.losses(one),
                *ended,
            )
            if text
        ]
        found = Text(verdicts.word(one), style=CLAIM_STYLES[one.verdict])
        table.add_row(one.claim.id, found, Text("\n").join(lines))
    return table


def _scenario(one: ScenarioFindings) -> list[RenderableType]:
    answer = verdict.answer(one)
    title = Text.assemble((f"{one.scenario.name}  ", "bold"), (answer.headline, _style(one)))
    parts: list[RenderableType] = [title, Text(answer.sentence)]
    parts += [Text(text, style="yellow") for text in company.sentences(one.company)]
    if one.axes and one.standings:
        parts.append(_Scores(one))
        if notes := _scores_explained(one):
            parts.append(Text(notes, style="dim"))
    elif one.standings:
        parts += [_ranking(one), Text(_columns_explained(one), style="dim")]
    parts += [Text(text, style="dim") for text in ground.load_shares(one.ground, one.cells)]
    if one.ending:
        parts.append(Text(stopping.sentence(one.ending), style="dim"))
    parts += [Text(f"correlates: {associations.short(why, one.scenario)}", style="dim") for why in one.whys[:1]]
    if text := languages.sentence(one.within, one.ground):
        parts.append(Text(text, style="dim"))
    parts += [Text(text, style="dim") for text in (*warmups.sentences(one), *turns.sentences(one))]
    noticed = (*constant_latency.sentences(one), *uneven_threads.sentences(one))
    parts += [Text(text, style="yellow") for text in noticed]
    if one.pairs:
        parts += [Text(), _pairs(one), Text(_pairs_explained(one), style="dim")]
    if one.unsafe:
        parts += [Text(), *(Text(text, style="bold red") for text in excluded.caveats(one.unsafe))]
        parts += [_unsafe(one), Text(excluded.explained(one.unsafe), style="dim")]
    return parts


def _style(one: ScenarioFindings) -> str:
    is_open = any(flip.flips.verdict == "open" for flip in one.flips)
    return STYLES["not_enough_blocks" if is_open else one.verdict]


def _pairs(one: ScenarioFindings) -> Table:
    """Servers down, clients across."""
    table = _plain_table()
    servers = list(dict.fromkeys(pair.contestant for pair in one.pairs))
    _add_names(table, "server", servers)
    for client in dict.fromkeys(pair.client for pair in one.pairs):
        table.add_column(client, justify="right", overflow="fold", min_width=len(client))
    for server in servers:
        row = [verdict.pair(one.scenario, pair) for pair in one.pairs if pair.contestant == server]
        table.add_row(server, *row)
    return table


def _unsafe(one: ScenarioFindings) -> Table:
    """What was lost or corrupt; the report has the rest as well."""
    table = _plain_table()
    _add_names(table, "contestant", [found.contestant for found in one.unsafe])
    table.add_column("load", overflow="fold", min_width=12)
    for heading in ("trials wrong", "lost", "corrupt", "streams broken"):
        table.add_column(heading, justify="right", overflow="fold")
    for found in one.unsafe:
        wrong = f"{found.wrong} of {found.trials}"
        told = (excluded.lost(found), f"{found.corrupt:,}", f"{found.streams:,}")
        table.add_row(found.contestant, found.level, wrong, *told)
    return table


def _pairs_explained(one: ScenarioFindings) -> str:
    complete = sum(pair.valid == pair.trials > 0 for pair in one.pairs)
    text = f"{quantities.plural(len(one.pairs), 'pair')} of server and client, {complete} with valid trials only"
    return f"{text}; {one.scenario.metric}, geometric mean over {quantities.plural(one.pairs[0].trials, 'trial')}"


def _columns_explained(one: ScenarioFindings) -> str:
    return f"p99: response time, CPU: of the server per message, both at {one.heaviest.label}"


def _loss_explained(one: ScenarioFindings) -> str:
    text = "lost: share of messages, at the load where it was largest"
    apart = [standing.lossy for standing in one.standings]
    if any(apart):
        text += f"; {loss.MARK} above {quantities.share(one.loss_bound)} in some trial"
    if any(apart) and not all(apart):
        text += ": ranked separately, against the first of its group"
    return text


class _Scores:
    """The table of scores. Where a line has no room for it, a rank follows its figure without a space."""

    def __init__(self, one: ScenarioFindings) -> None:
        self._one = one

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = _scores(self._one)
        natural = Measurement.get(console, options.update_width(WIDEST), wide).maximum
        yield wide if natural <= options.max_width else _scores(self._one, gap="")


def _scores(one: ScenarioFindings, gap: str = " ") -> Table:
    """Every axis with each contestant's own figure and its rank there. Where messages may be lost, the loss comes
    before anything that it flatters."""
    table = _plain_table()
    table.add_column("#", justify="right", no_wrap=True)
    _add_names(table, "contestant", [standing.contestant for standing in one.standings])
    axes = one.axes[:AXES_BESIDE_LOSS] if one.may_lose else one.axes
    for axis in axes:
        if one.may_lose and axis is one.axes[1]:
            table.add_column("lost", justify="right", no_wrap=True)
        table.add_column(METRICS[axis.metric].short, justify="right", no_wrap=True)
    for standing in one.standings:
        _begin_ground(table, one, standing)
        mark = company.mark(one.company)
        cells = [score(axis, standing.contestant, gap, mark) for axis in axes]
        if one.may_lose:
            cells.insert(1, loss.largest(standing))
        table.add_row(ranking.rank(one, standing), standing.contestant, *cells)
    return table


def _begin_ground(table: Table, one: ScenarioFindings, standing: Standing) -> None:
    """Say before the first of each ground how many cores those could use, where that is not the same for all."""
    if len(one.ground.together) < 2 or standing != next(
        each for each in one.standings if each.ground == standing.ground
    ):
        return
    if table.row_count:
        table.add_section()
    table.add_row("", Text(f"on {ground.usable_words(one.ground.together[standing.ground].cores)}:", style="italic"))


def score(axis: Axis, contestant: str, gap: str = " ", mark: str = "") -> str:
    """A figure with its mark, and its rank behind it in small digits: "44.1k/s ¹"."""
    found = axis.score(contestant)
    if found is None or found.value is None:
        return quantities.DASH
    figure = f"{verdict.BOUND_SIGNS[axis.bound]}{METRICS[axis.metric].speak(found.value.value)}{mark}"
    decidable = any(comparison.decidable for comparison in axis.comparisons)
    if not decidable or found.rank is None:
        return figure
    return f"{figure}{gap}{quantities.superscript(found.rank)}"


def _scores_explained(one: ScenarioFindings) -> str:
    """What holds for this scenario alone; what the columns are stands below all of them."""
    ranks = "" if one.flips else ", ranks over all loads"
    notes = [f"figures at {one.heaviest.label}{ranks}"] if len(one.levels) > 1 else []
    if one.may_lose:
        notes.append(_loss_explained(one))
    if lags := verdict.lags(one.scenario, one.cells):
        notes.append(lags)
    return "; ".join(notes)


COLUMNS_EXPLAINED = (
    "Figures are each contestant's own: p50 and p99 of the response times of all its valid trials together, CPU of the "
    "server per message, peak memory. The small digit is its rank on that axis: 1 plus the number proven better."
)


def _add_names(table: Table, heading: str, names: Sequence[str]) -> None:
    """Add a column of names, which are never broken: a row may be wider than the console instead."""
    table.add_column(heading, no_wrap=True, min_width=max(map(len, (heading, *names))))


def _plain_table() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True, show_edge=False)


def _ranking(one: ScenarioFindings) -> Table:
    """Of a capacity, which has no other axis."""
    level = one.heaviest
    table = _plain_table()
    table.add_column("#", justify="right", no_wrap=True)
    _add_names(table, "contestant", [standing.contestant for standing in one.standings])
    for heading in (one.scenario.metric, "to first", "95% interval", "p99", "CPU"):
        table.add_column(heading, justify="right", no_wrap=True)
    for standing in one.standings:
        _begin_ground(table, one, standing)
        cell = one.cell(standing.contestant, level.key)
        value = f"{verdict.BOUND_SIGNS[standing.bound]}{verdict.value(one.scenario, standing.value)}"
        value += company.mark(one.company)
        told = (value, ranking.to_first(standing), _interval(standing), _p99(cell), _cpu(cell))
        table.add_row(ranking.rank(one, standing), standing.contestant, *told)
    return table


def _interval(standing: Standing) -> str:
    interval = standing.relative.interval if standing.relative else None
    return ranking.change_interval(interval).replace(" to ", "..") if interval else ""


def _p99(cell: CellFigures | None) -> str:
    return quantities.duration(cell.response_ns.p99.value) if cell else quantities.DASH


def _cpu(cell: CellFigures | None) -> str:
    return quantities.duration(1e3 * cell.cost.cpu_us.value) if cell and cell.cost else quantities.DASH


def _set_aside(analysis: Analysis) -> list[RenderableType]:
    """Each cause in a line, with how many trials it took from whom; the details stand in the report."""
    groups: dict[tuple[str, str], list[TrialNote]] = {}
    for note in analysis.set_aside:
        groups.setdefault((note.status, set_aside.cause(note.cause)), []).append(note)
    # which pair does not work, and why, is the answer itself where pairs are asked for
    shown = len(groups) if any(one.pairs for one in analysis.scenarios) else CAUSES_SHOWN
    parts: list[RenderableType] = []
    if groups:
        table = _plain_table()
        for heading in ("excluded", "trials", "cause", "of"):
            table.add_column(heading, justify="right" if heading == "trials" else "left", overflow="fold")
        shown_groups = list(groups.items())[:shown]
        whose = [_whose(notes) for _, notes in shown_groups]
        table.columns[-1].min_width = max(len(word) for text in whose for word in text.split())
        for ((status, cause), notes), of in zip(shown_groups, whose, strict=True):
            why = set_aside.reason(notes[0]) if status in ("failed", "skipped") else cause
            told = Text(quantities.shortened(why, LONGEST_REASON))
            table.add_row(STATUS_WORDS[status], str(len(notes)), told, Text(of))
        parts.append(table)
    if len(groups) > shown:
        parts.append(Text(f"and {quantities.plural(len(groups) - shown, 'more cause')}; the report has all"))
    return parts


def _whose(notes: Sequence[TrialNote]) -> str:
    took = Counter(f"{note.contestant} with {note.client}" if note.client else note.contestant for note in notes)
    if notes[0].client and len(took) > PAIRS_NAMED:
        return quantities.plural(len(took), "pair")
    if len(took) == 1:
        return next(iter(took))
    return quantities.listed([f"{name} ({count})" for name, count in sorted(took.items())])


def _control(analysis: Analysis) -> Text:
    one = analysis.control
    style = "bold red" if one.fails else "bold" if one.is_the_question else "dim"
    return Text(aa.sentence(one), style=style)


def _sureness(analysis: Analysis) -> Text:
    counts = analysis.counts
    return Text(
        f"{quantities.plural(counts.valid, 'valid trial')} over {quantities.listed(analysis.links)} in "
        f"{quantities.plural(analysis.blocks_measured, 'block')}, "
        f"{counts.struck_out} invalid, {counts.faulty} faulty, {counts.failed} failed, {counts.skipped} skipped. "
        f"{COLUMNS_EXPLAINED if any(one.axes for one in analysis.scenarios) else ''} {verdict.WHAT_HOLDS}",
        style="dim",
    )
