"""Text of unknown origin on a terminal, on a page or in a file: only what can be seen gets there, and has no effect."""

from __future__ import annotations

import json
import re

_MARKS = re.compile(
    r"""(?P<apart>(?::(?=//)|(?<=www)\.|[@$]|[#~%](?=[\w"])|!(?=\d))+)"""
    r"""|(?P<entity><|&(?=[\w#]))"""
    r"""|(?P<sign>[\\`*\[\]|~]|(?<!\w)_|_(?!\w)|\A[-+](?=[ -]|\Z)|\A[>#=]|\A\d+[.)])"""
)
"""What Markdown acts on (GitHub Flavored Markdown 0.29; GitLab's references): bare addresses, mentions and references,
which no backslash stops, so that their sign stands apart in code; mark-up of HTML; signs of Markdown."""
_ENTITIES = {"<": "&lt;", "&": "&amp;"}
_SECRET = re.compile(
    r"""(?i)(?<![\w-])((?:proxy-)?authorization|cookie|[\w-]*(?:api-?key|token|secret|password))"""
    r"""(:[ ]*)[^\s'"][^'"\n]*"""
)
"""A header, as a command line or JSON has it, whose value tells who may do something (RFC 9110, 11.6.2; RFC 6265)."""


def harmless(text: str) -> str:
    """Replace every character that is not visible by its Python escape, such as \\x1b or \\u202e."""
    return text if text.isprintable() else "".join(char if char.isprintable() else _escape(char) for char in text)


def hide_secrets(text: str) -> str:
    """Replace the values of headers that tell who may do something."""
    return _SECRET.sub(r"\1\2…", text)


def harmless_lines(text: str) -> str:
    """Apply `harmless` to each line."""
    return "\n".join(map(harmless, text.split("\n")))


def harmless_markdown(text: str) -> str:
    """Return the text as one line that Markdown shows as it is, without link, image, mention or mark-up."""
    return _MARKS.sub(_escape_mark, harmless(" ".join(text.split())))


def _escape_mark(found: re.Match[str]) -> str:
    sign = found[0]
    if found["apart"]:
        return f"`{sign}`"
    return _ENTITIES[sign] if found["entity"] else f"{sign[:-1]}\\{sign[-1]}"


def harmless_json(text: str) -> str:
    """Write the invisible characters of a JSON text, which only its strings have, as JSON's escapes."""
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")
