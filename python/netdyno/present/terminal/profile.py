"""The functions of a profile on a terminal, or in a pipe."""

from __future__ import annotations

from typing import IO

from rich import box
from rich.table import Table

from netdyno.kit import quantities
from netdyno.model.profile import Profiled
from netdyno.present.prose.profile import ProfileView, view_profiles
from netdyno.present.terminal.console import open_for_sentences


def render(load: Profiled, output: IO[str]) -> None:
    """Print the notes and functions of what servers compute, then of what they wait for."""
    console = open_for_sentences(output)
    for view in view_profiles(load):
        console.print(view.title)
        for server, note in view.notes:
            console.print(f"{server}: {note}")
        if view.functions:
            console.print(_draw_functions(view))


def _draw_functions(view: ProfileView) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True, show_edge=False)
    table.add_column(view.headings[0], overflow="fold")
    for heading in view.headings[1:]:
        table.add_column(heading, justify="right", no_wrap=True, min_width=len(heading))
    for name, shares in view.functions:
        table.add_row(name, *map(quantities.share, shares))
    return table
