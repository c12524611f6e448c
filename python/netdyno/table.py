"""The answer in a terminal: the same findings as the report, in short. Readable at 80 columns and on a pipe."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from netdyno import answers, words
from netdyno.findings import Analysis, CellFigures, ScenarioFindings, Standing, Verdict

STYLES: dict[Verdict, str] = {
    "winner": "bold green",
    "tie": "bold cyan",
    "not_enough_blocks": "bold yellow",
    "unopposed": "bold",
    "no_data": "bold red",
}
REASONS_SHOWN = 5


def render(analysis: Analysis) -> RenderableType:
    """All answers of a run, its set-aside trials in one line each, and how sure all of it is."""
    parts: list[RenderableType] = [Text(analysis.question, style="bold")]
    for one in analysis.scenarios:
        parts += [Text(), *_scenario(one)]
    return Group(*parts, Text(), *_set_aside(analysis), _sureness(analysis))


def _scenario(one: ScenarioFindings) -> list[RenderableType]:
    style = STYLES[one.verdict]
    title = Text.assemble((f"{one.scenario.name}  ", "bold"), (one.headline, style))
    parts: list[RenderableType] = [title, Text(one.sentence)]
    if one.standings:
        parts += [_ranking(one), Text(_columns_explained(one), style="dim")]
    return parts


def _columns_explained(one: ScenarioFindings) -> str:
    text = f"p99: response time, CPU: of the server per message, both at {one.levels[-1].label}"
    if one.scenario.arrivals == "closed" or not one.cells:
        return text
    return f"{text}; send lag p99 at most {words.duration(max(cell.send_lag.p99_ns for cell in one.cells))}"


def _ranking(one: ScenarioFindings) -> Table:
    level = one.levels[-1]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True, show_edge=False)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("contestant", overflow="fold", min_width=12)
    for heading in (one.scenario.metric, "to first", "95% interval", "p99", "CPU"):
        table.add_column(heading, justify="right", no_wrap=True)
    for standing in one.standings:
        table.add_row(*_line(one, standing, one.cell(standing.contestant, level.key)))
    return table


def _line(one: ScenarioFindings, standing: Standing, cell: CellFigures | None) -> tuple[str, ...]:
    relative = standing.relative
    interval = relative.interval if relative else None
    return (
        rank(one, standing),
        standing.contestant,
        answers.value(one.scenario, standing.value),
        words.percent_change(relative.value) if relative else "",
        words.change_interval(interval).replace(" to ", "..") if interval else "",
        words.duration(cell.response_ns.p99.value) if cell else words.DASH,
        f"{words.three_digits(cell.cost.cpu_us.value)} µs" if cell and cell.cost else words.DASH,
    )


def rank(one: ScenarioFindings, standing: Standing) -> str:
    """ "2", "2=" where others share it, a dash where the pairs could not have proven any rank."""
    if not any(comparison.decidable for comparison in one.comparisons):
        return words.DASH
    return f"{standing.rank}=" if standing.shared else str(standing.rank)


def _set_aside(analysis: Analysis) -> list[RenderableType]:
    """Each distinct reason once, with how many trials it took."""
    groups: dict[tuple[str, str, str], int] = {}
    for note in analysis.set_aside:
        key = (note.status, note.contestant, note.reason)
        groups[key] = groups.get(key, 0) + 1
    lines: list[RenderableType] = [
        Text.assemble(
            (f"{status.replace('_', ' ')}: ", "yellow"), f"{contestant}, {words.plural(count, 'trial')}: {why}"
        )
        for (status, contestant, why), count in list(groups.items())[:REASONS_SHOWN]
    ]
    if len(groups) > REASONS_SHOWN:
        lines.append(Text(f"and {len(groups) - REASONS_SHOWN} more reasons; all stand in the report"))
    return lines


def _sureness(analysis: Analysis) -> Text:
    counts = analysis.counts
    return Text(
        f"{words.plural(counts.valid, 'valid trial')} in {words.plural(analysis.blocks_measured, 'block')}, "
        f"{counts.struck_out} struck out, {counts.failed} failed, {counts.skipped} skipped. "
        f"Equal ranks (=) could not be told apart. Chance that a ranking claims any difference that is not there: "
        f"at most {analysis.level:.0%} (Holm over all its comparisons).",
        style="dim",
    )
