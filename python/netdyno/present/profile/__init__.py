"""Flame graphs, on a page of their own or in a report: what the script is given, the script, and its style."""

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


def data(asked: Sequence[Profiled], most: int) -> Markup:
    """That JSON, in about so many characters at most."""
    return templates.json_of(packing.document(asked, most))


def page(found: Profiled) -> str:
    """Of one server's profiles, or of several, of which two are held against each other."""
    return (
        templates.of(HERE)
        .get_template("page.html.j2")
        .render(
            servers=found.servers,
            load=found.load,
            what_it_is=prose.WHAT_IT_IS,
            style=templates.style(STYLE),
            data=data([found], MOST_OF_PAGE),
            script=Markup(SCRIPT.read_text(encoding="utf-8")),
        )
    )
