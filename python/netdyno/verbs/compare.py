"""`netdyno compare`: two stored runs, as a table or as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from netdyno.analysis.compare.run_comparison import compare_runs
from netdyno.analysis.found.compare import Both, SideBySide
from netdyno.kit import quantities
from netdyno.model.metrics import METRICS
from netdyno.present.prose import compare as prose
from netdyno.present.prose import ranking
from netdyno.present.terminal.console import Console
from netdyno.store import read


def run(first: str, second: str, results: Path, as_json: bool) -> int:
    """Compare two runs. Return 0 when they have a cell in common, else 1. Raises UserError where a run cannot be
    read."""
    comparison = compare_runs(*(read.load(read.find(results, name)) for name in (first, second)))
    if as_json:
        notes = {
            "environment": prose.list_environment_changes(comparison),
            "asked": prose.list_question_changes(comparison),
            "note": prose.NOT_PAIRED,
        }
        print(json.dumps(msgspec.to_builtins(comparison) | notes, allow_nan=False))
    else:
        Console().print(render(comparison))
    return 0 if comparison.cells else 1


def render(comparison: SideBySide) -> RenderableType:
    """Render a comparison. The differences come first: the reader should know them before any figure."""
    parts: list[RenderableType] = [Text(f"{comparison.first} (first) and {comparison.second} (second)", style="bold")]
    for topic, texts in (
        ("environment", prose.list_environment_changes(comparison)),
        ("asked", prose.list_question_changes(comparison)),
    ):
        same = "the same in both runs, in all that affects speed" if topic == "environment" else "the same"
        parts += [Text(f"{topic}: {text}", style="yellow") for text in texts] or [Text(f"{topic}: {same}")]
    if not comparison.cells:
        return Group(*parts, Text("No cell has valid trials in both runs.", style="bold red"))
    scenarios = dict.fromkeys(cell.scenario for cell in comparison.cells)
    for scenario in scenarios:
        parts += [Text(), _build_table(scenario, [cell for cell in comparison.cells if cell.scenario == scenario])]
    alone = (
        f"{quantities.plural(comparison.alone, 'cell')} with valid trials in one run only. " if comparison.alone else ""
    )
    return Group(*parts, Text(), Text(alone + prose.NOT_PAIRED, style="dim"))


def _build_table(scenario: str, cells: list[Both]) -> Table:
    title = f"{scenario}: {cells[0].metric}"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("contestant", overflow="fold", min_width=12)
    table.add_column("load", overflow="fold", min_width=10)
    for heading in ("first", "second", "change", "95% interval", "trials"):
        table.add_column(heading, justify="right", no_wrap=heading != "95% interval")
    for cell in cells:
        table.add_row(
            cell.contestant,
            cell.level,
            *map(METRICS[cell.metric].speak, (cell.first, cell.second)),
            f"{quantities.percent_change(cell.ratio)}{'*' if cell.apart else ' '}",
            ranking.format_change_interval(cell.interval),
            f"{cell.first_trials}, {cell.second_trials}",
        )
    return table
