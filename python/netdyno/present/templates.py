"""Pages are made from templates, in which every text is data: seen, and never done."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from netdyno.base.escape import harmless_lines

REPORT = Path(__file__).parent / "report"


def of(folder: Path) -> Environment:
    """The templates of a folder. What a template says of something that is not there is an error."""
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=seen,
    )


def seen(value: object) -> object:
    """What a run says is text that can be seen, on a page as on a terminal; Markup is our own."""
    return harmless_lines(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def style(folder: Path) -> Markup:
    """The report's, which all pages have, and what the folder adds to it."""
    return Markup("".join((of / "page.css").read_text(encoding="utf-8") for of in (REPORT, folder)))
