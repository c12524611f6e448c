"""Templates of pages, in which every text is data: shown, and never executed."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from netdyno.kit.escape import harmless_lines

REPORT = Path(__file__).parent / "report"


@functools.cache
def load_folder(folder: Path) -> Environment:
    """The templates of a folder, compiled once. A template that uses an undefined name is an error."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=escape_text,
    )
    environment.filters["mark_up"] = mark_up
    return environment


def mark_up(text: str, name: str = "") -> Markup:
    """Return a text in which a name stands out where it comes first as a word, and no word is broken at a hyphen, as
    most names and options have one."""
    with_hyphen = r"--\w[\w-]*|(?<!\w)\w+(?:-\w+)+"
    word = rf"(?<![\w-]){re.escape(name)}(?![\w-])|{with_hyphen}" if name else with_hyphen
    parts = list[Markup]()
    for part in re.split(f"({word})", harmless_lines(text)):
        stands_out = bool(name) and part == name and Markup("<strong>") not in parts
        shown = (Markup("<strong>"), escape(part), Markup("</strong>")) if stands_out else (escape(part),)
        parts += (Markup('<span class="whole">'), *shown, Markup("</span>")) if "-" in part else shown
    return Markup("").join(parts)


def escape_text(value: object) -> object:
    """Replace what is invisible in a text from a run, on a page as on a terminal; Markup is our own."""
    return harmless_lines(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def read_style(*more: Path) -> Markup:
    """The style of the report, which all pages have, with that of these files."""
    return Markup("".join(path.read_text(encoding="utf-8") for path in (REPORT / "page.css", *more)))


def encode_json(value: object) -> Markup:
    """Write JSON for a script of the page; it cannot end its own script element."""
    text = json.dumps(_make_visible(value), separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


def _make_visible(value: object) -> object:
    if isinstance(value, dict):
        return {escape_text(key): _make_visible(item) for key, item in value.items()}
    return [_make_visible(item) for item in value] if isinstance(value, list | tuple) else escape_text(value)
