"""`netdyno compare`: two stored runs, as a table or as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from netdyno.analysis.run_comparison import Both, SideBySide, side_by_side
from netdyno.base import quantities
from netdyno.model.metrics import METRICS
from netdyno.present.prose import ranking
from netdyno.present.prose import side_by_side as prose
from netdyno.present.terminal.console import Console
from netdyno.store import read


def run(first: str, second: str, results: Path, as_json: bool) -> int:
    """Exit code 0 when they have a cell in common, else 1. Raises UserError where a run cannot be read."""
    found = side_by_side(*(read.load(read.find(results, name)) for name in (first, second)))
    if as_json:
        told = {"environment": prose.environment(found), "asked": prose.asked(found), "note": prose.NOT_PAIRED}
        print(json.dumps(asdict(found) | told, allow_nan=False))
    else:
        Console().print(render(found))
    return 0 if found.cells else 1


def render(found: SideBySide) -> RenderableType:
    """What differs first: the reader should know it before any figure."""
    parts: list[RenderableType] = [Text(f"{found.first} (first) and {found.second} (second)", style="bold")]
    for what, texts in (("environment", prose.environment(found)), ("asked", prose.asked(found))):
        same = "the same in both runs, in all that affects speed" if what == "environment" else "the same"
        parts += [Text(f"{what}: {text}", style="yellow") for text in texts] or [Text(f"{what}: {same}")]
    if not found.cells:
        return Group(*parts, Text("No cell has valid trials in both runs.", style="bold red"))
    scenarios = dict.fromkeys(cell.scenario for cell in found.cells)
    for scenario in scenarios:
        parts += [Text(), _table(scenario, [cell for cell in found.cells if cell.scenario == scenario])]
    alone = f"{quantities.plural(found.alone, 'cell')} with valid trials in one run only. " if found.alone else ""
    return Group(*parts, Text(), Text(alone + prose.NOT_PAIRED, style="dim"))


def _table(scenario: str, cells: list[Both]) -> Table:
    title = f"{scenario}: {cells[0].metric}"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("contestant", overflow="fold", min_width=12)
    table.add_column("load", overflow="fold", min_width=10)
    for heading in ("first", "second", "change", "95% interval", "trials"):
        table.add_column(heading, justify="right", no_wrap=heading != "95% interval")
    for one in cells:
        table.add_row(
            one.contestant,
            one.level,
            _figure(one, one.first),
            _figure(one, one.second),
            f"{quantities.percent_change(one.ratio)}{'*' if one.apart else ' '}",
            ranking.change_interval(one.interval),
            f"{one.first_trials}, {one.second_trials}",
        )
    return table


def _figure(one: Both, figure: float) -> str:
    return METRICS[one.metric].speak(figure)
