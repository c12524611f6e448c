"""The answer in a terminal: the same findings as the report, in short. Readable at 80 columns and on a pipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from netdyno import answers, canary_findings, endings, loss_words, unsafe, words
from netdyno.aa import speech
from netdyno.claims import verdict_words
from netdyno.claims.verdicts import ClaimVerdict, Judged
from netdyno.findings import Analysis, CellFigures, ScenarioFindings, Standing, TrialNote, Verdict

STYLES: dict[Verdict, str] = {
    "winner": "bold green",
    "tie": "bold cyan",
    "not_enough_blocks": "bold yellow",
    "unopposed": "bold",
    "no_data": "bold red",
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
LONGEST_REASON = 120


def render(analysis: Analysis) -> RenderableType:
    """All answers of a run, its set-aside trials in one line each, and how sure all of it is."""
    parts: list[RenderableType] = [Text(analysis.question, style="bold")]
    if analysis.control.is_the_question:
        parts += [Text(), _control(analysis)]
    if analysis.claims:
        parts += [Text(), Text(verdict_words.summary(analysis.claims), style="bold"), _claims(analysis.claims)]
    for one in analysis.scenarios:
        parts += [Text(), *_scenario(one)]
    parts += [Text(), *_set_aside(analysis)]
    if drifted := canary_findings.drift_line(analysis.canary):
        parts.append(Text(drifted, style="yellow"))
    if not analysis.control.is_the_question:
        parts.append(_control(analysis))
    return Group(*parts, _sureness(analysis))


def _claims(claims: Sequence[Judged]) -> Table:
    """Each claim with its verdict; below the sentence, what is found here, what was published, and why."""
    table = Table(box=None, pad_edge=False, padding=(0, 1), collapse_padding=True, show_header=False)
    table.add_column("claim", no_wrap=True, style="bold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("text", overflow="fold")
    for one in claims:
        lines = [Text(one.claim.text), Text(f"here: {verdict_words.here(one)}", style="dim")]
        if one.claim.published:
            lines.append(Text(f"published: {verdict_words.published(one.claim, PUBLISHED_SHOWN)}", style="dim"))
        lines += [Text(text, style="dim") for text in (one.why, *one.notes) if text]
        verdict = Text(verdict_words.VERDICT_WORDS[one.verdict], style=CLAIM_STYLES[one.verdict])
        table.add_row(one.claim.id, verdict, Text("\n").join(lines))
    return table


def _scenario(one: ScenarioFindings) -> list[RenderableType]:
    style = STYLES[one.verdict]
    title = Text.assemble((f"{one.scenario.name}  ", "bold"), (one.headline, style))
    parts: list[RenderableType] = [title, Text(one.sentence)]
    if one.standings:
        parts += [_ranking(one), Text(_columns_explained(one), style="dim")]
    if one.ending:
        parts.append(Text(endings.sentence(one.ending), style="dim"))
    parts += [Text(f"goes along: {why.short}", style="dim") for why in one.whys[:1]]
    parts += [Text(text, style="yellow") for text in one.timers]
    if one.pairs:
        parts += [Text(), _pairs(one), Text(_pairs_explained(one), style="dim")]
    if one.unsafe:
        parts += [Text(), *(Text(text, style="bold red") for text in unsafe.caveats(one.unsafe))]
        parts += [_unsafe(one), Text(unsafe.explained(one.unsafe), style="dim")]
    return parts


def _pairs(one: ScenarioFindings) -> Table:
    """Servers down, clients across. A client's name breaks at its hyphens, so that five fit into 80 columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True, show_edge=False)
    table.add_column("server", overflow="fold", min_width=12)
    clients = list(dict.fromkeys(pair.client for pair in one.pairs))
    for client in clients:
        table.add_column(client.replace("-", "-\n"), justify="right", overflow="fold")
    for server in dict.fromkeys(pair.contestant for pair in one.pairs):
        row = [answers.pair(one.scenario, pair) for pair in one.pairs if pair.contestant == server]
        table.add_row(server, *row)
    return table


def _unsafe(one: ScenarioFindings) -> Table:
    """What was lost or corrupt; the report has the rest as well."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True, show_edge=False)
    table.add_column("contestant", overflow="fold", min_width=12)
    table.add_column("load", overflow="fold", min_width=12)
    for heading in ("trials wrong", "lost", "corrupt", "streams broken"):
        table.add_column(heading, justify="right", overflow="fold")
    for found in one.unsafe:
        wrong = f"{found.wrong} of {found.trials}"
        told = (unsafe.lost(found), f"{found.corrupt:,}", f"{found.streams:,}")
        table.add_row(found.contestant, found.level, wrong, *told)
    return table


def _pairs_explained(one: ScenarioFindings) -> str:
    complete = sum(pair.valid == pair.trials > 0 for pair in one.pairs)
    text = f"{words.plural(len(one.pairs), 'pair')} of server and client, {complete} with valid trials only"
    return f"{text}; {one.scenario.metric}, geometric mean over {words.plural(one.pairs[0].trials, 'trial')}"


def _columns_explained(one: ScenarioFindings) -> str:
    text = f"p99: response time, CPU: of the server per message, both at {one.heaviest.label}"
    if one.may_lose:
        text = _loss_explained(one)
    if not one.scenario.scheduled or not one.cells:
        return text
    return f"{text}; send lag p99 at most {words.duration(max(cell.send_lag.p99_ns for cell in one.cells))}"


def _loss_explained(one: ScenarioFindings) -> str:
    text = f"lost: messages, at the load where it was most; percentiles and CPU: at {one.heaviest.label}"
    apart = [standing.apart for standing in one.standings]
    if any(apart):
        text += f"; {loss_words.MARK} above {words.share(one.loss_bound)} in some trial"
    if any(apart) and not all(apart):
        text += ": ranked apart, against the first of its kind"
    return text


Column = tuple[str, Callable[[Standing, CellFigures | None], str]]


def _ranking(one: ScenarioFindings) -> Table:
    level = one.heaviest
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True, show_edge=False)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("contestant", overflow="fold", min_width=12)
    columns = _columns(one)
    for heading, _ in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    for standing in one.standings:
        cell = one.cell(standing.contestant, level.key)
        told = (speak(standing, cell) for _, speak in columns)
        table.add_row(rank(one, standing), standing.contestant, *told)
    return table


def _columns(one: ScenarioFindings) -> list[Column]:
    """What stands beside a contestant. Where messages may be lost, the loss comes before anything that it flatters; 80
    columns then have room for the interval or the CPU."""
    metric: Column = (
        one.scenario.metric,
        lambda standing, _: f"{standing.bound}{answers.value(one.scenario, standing.value)}",
    )
    to_leader: Column = ("to first", lambda standing, _: to_first(standing))
    if not one.may_lose:
        return [metric, to_leader, ("95% interval", _interval), ("p99", _p99), ("CPU", _cpu)]
    lost: Column = ("lost", lambda standing, _: loss_words.largest(standing))
    percentiles: list[Column] = [
        column for column in (("p50", _p50), ("p99", _p99)) if column[0] != one.scenario.metric
    ]
    has_interval = any(standing.relative and standing.relative.interval for standing in one.standings)
    last: Column = ("95% interval", _interval) if has_interval else ("CPU", _cpu)
    return [metric, lost, *percentiles, to_leader, last]


def _interval(standing: Standing, _: CellFigures | None) -> str:
    interval = standing.relative.interval if standing.relative else None
    return words.change_interval(interval).replace(" to ", "..") if interval else ""


def _p50(_: Standing, cell: CellFigures | None) -> str:
    return words.duration(cell.response_ns.p50.value) if cell else words.DASH


def _p99(_: Standing, cell: CellFigures | None) -> str:
    return words.duration(cell.response_ns.p99.value) if cell else words.DASH


def _cpu(_: Standing, cell: CellFigures | None) -> str:
    return words.duration(1e3 * cell.cost.cpu_us.value) if cell and cell.cost else words.DASH


def rank(one: ScenarioFindings, standing: Standing) -> str:
    """ "2", "2=" where others share it, a dash where the pairs could not have proven any rank."""
    if not any(comparison.decidable for comparison in one.comparisons):
        return words.DASH
    return f"{standing.rank}=" if standing.shared else str(standing.rank)


def to_first(standing: Standing) -> str:
    """The change against the leader, with a star where the two were told apart: a shared rank may hide that."""
    one = standing.against_leader
    return f"{words.percent_change(one.ratio)}{'*' if one.different else ' '}" if one else ""


def _set_aside(analysis: Analysis) -> list[RenderableType]:
    """Each cause once, with the contestants it took trials from and, where trials differ, one of the reasons."""
    groups: dict[tuple[str, str], list[TrialNote]] = {}
    for note in analysis.set_aside:
        groups.setdefault((note.status, note.kind), []).append(note)
    # which pair does not work, and why, is the answer itself where pairs are asked for
    shown = len(groups) if any(one.pairs for one in analysis.scenarios) else CAUSES_SHOWN
    lines: list[RenderableType] = [
        Text.assemble((f"{answers.STATUS_WORDS[status]}: ", "yellow"), _cause(kind, notes))
        for (status, kind), notes in list(groups.items())[:shown]
    ]
    if len(groups) > shown:
        lines.append(Text(f"and {words.plural(len(groups) - shown, 'more cause')}; all stand in the report"))
    return lines


def _cause(kind: str, notes: Sequence[TrialNote]) -> str:
    took = Counter(f"{note.contestant} with {note.client}" if note.client else note.contestant for note in notes)
    who = words.listed([f"{name} ({words.plural(count, 'trial')})" for name, count in sorted(took.items())])
    if notes[0].client and len(took) > PAIRS_NAMED:
        who = f"{words.plural(len(took), 'pair')} ({words.plural(len(notes), 'trial')})"
    first = notes[0].reason
    return f"{who}: {first if len(notes) == 1 or first == kind else f'{kind}, such as {_short(first)}'}"


def _short(reason: str) -> str:
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON].rsplit(' ', 1)[0]} ..."


def _control(analysis: Analysis) -> Text:
    one = analysis.control
    style = "bold red" if one.fails else "bold" if one.is_the_question else "dim"
    return Text(speech.sentence(one), style=style)


def _sureness(analysis: Analysis) -> Text:
    counts = analysis.counts
    return Text(
        f"{words.plural(counts.valid, 'valid trial')} over {words.listed(analysis.links)} in "
        f"{words.plural(analysis.blocks_measured, 'block')}, "
        f"{counts.struck_out} struck out, {counts.failed} failed, {counts.skipped} skipped. "
        f"Equal ranks (=) could not all be told apart; * is told apart from the first. "
        f"Chance that a ranking claims any difference that is not there: "
        f"at most {analysis.level:.0%} (Holm over all its comparisons).",
        style="dim",
    )
