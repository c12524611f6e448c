"""Flame graphs, on a page of their own or in a report: the script, its input, and its style."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from netdyno.model.profile import Profiled
from netdyno.present import templates
from netdyno.present.profile import packing
from netdyno.present.prose import profile as prose

HERE = Path(__file__).resolve().parent
STYLE = HERE / "flames.css"
SCRIPT = HERE / "flames.js"
"""Draws each `.flames` of a page, once it is unfolded, from the page's JSON `profiles`."""
MOST_OF_PAGE = 3_000_000
"""Characters of a page that has nothing else."""


def encode_data(loads: Sequence[Profiled], most: int) -> Markup:
    """Return the JSON `profiles` of a page, in about `most` characters at most."""
    return templates.encode_json(packing.pack_loads(loads, most))


def render_page(profiled: Profiled) -> str:
    """Return the page of one server's profiles, or of several, of which two are compared."""
    return (
        templates.load_folder(HERE)
        .get_template("page.html.j2")
        .render(
            servers=profiled.servers,
            load=profiled.load,
            what_it_is=prose.WHAT_IT_IS,
            style=templates.read_style(STYLE),
            data=encode_data([profiled], MOST_OF_PAGE),
            script=Markup(SCRIPT.read_text(encoding="utf-8")),
        )
    )
