"""Pages are made from templates, in which every text is data: seen, and never done."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from netdyno.base.escape import harmless_lines

REPORT = Path(__file__).parent / "report"


@functools.cache
def of(folder: Path) -> Environment:
    """The templates of a folder, which are compiled once. What a template says of something that is not there is an
    error."""
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


def style(*more: Path) -> Markup:
    """The report's, which all pages have, and what these files add to it."""
    return Markup("".join(path.read_text(encoding="utf-8") for path in (REPORT / "page.css", *more)))


def json_of(value: object) -> Markup:
    """JSON for a script of the page, which cannot end its own script element."""
    text = json.dumps(_all_seen(value), separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


def _all_seen(value: object) -> object:
    if isinstance(value, dict):
        return {seen(key): _all_seen(each) for key, each in value.items()}
    return [_all_seen(each) for each in value] if isinstance(value, list | tuple) else seen(value)
