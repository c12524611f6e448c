"""A profile as folded stacks, and as a page of flame graphs that needs nothing else: offline, light and dark, by
keyboard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from netdyno.analysis import flames
from netdyno.base import quantities
from netdyno.base.escape import harmless
from netdyno.model.profile import Profile, Sort
from netdyno.present import templates
from netdyno.present.profile import drawing
from netdyno.present.profile.drawing import Figure
from netdyno.present.prose import profile as prose

HERE = Path(__file__).resolve().parent
MOST_CHANGES = 20
LEAST_CHANGE = 0.002
"""Of the time, of a function that stands in the table."""


class Part(NamedTuple):
    """What one server computes or waits for, or two: figures, what is said of each, and what differs."""

    title: str
    figures: list[Figure]
    notes: list[tuple[str, list[str]]]
    changes: list[flames.Change]


def folded(one: Profile) -> str:
    """A line for each stack: its frames with semicolons between them, and whole microseconds, as all tools for flame
    graphs read it."""
    lines = sorted(f"{harmless(';'.join(stack))} {round(amount)}" for stack, amount in one.stacks.items())
    return "\n".join([*lines, ""])


def page(found: Sequence[Profile], load: str) -> str:
    """Of one server's profiles, or of two servers', the second held against the first."""
    servers = list(dict.fromkeys(one.server for one in found))
    by_name = {(one.server, one.sort): one for one in found}
    sorts: tuple[Sort, ...] = ("on-cpu", "off-cpu")
    parts = [_part([by_name[name, sort] for name in servers], sort) for sort in sorts]
    environment = templates.of(HERE)
    environment.filters["share"] = quantities.share
    return environment.get_template("page.html.j2").render(
        servers=servers,
        load=load,
        row=drawing.ROW,
        parts=parts,
        style=templates.style(HERE),
        script=Markup((HERE / "page.js").read_text(encoding="utf-8")),
    )


def _part(some: Sequence[Profile], sort: Sort) -> Part:
    seen = [one for one in some if one.stacks]
    if len(seen) == 2:
        before, after = seen
        changes = flames.changes(after, before)
        figures = [
            drawing.difference(f"{one.server}, coloured by the difference", flames.tree(one.stacks), changes)
            for one in (after, before)
        ]
    else:
        figures = [drawing.figure(one.server, flames.tree(one.stacks)) for one in seen]
        changes = []
    notes = [(one.server, prose.notes(one)) for one in some]
    told = [one for one in changes if abs(one.after - one.before) >= LEAST_CHANGE]
    return Part(prose.TITLES[sort], figures, notes, told[:MOST_CHANGES])
