"""Text of unknown origin on a terminal or a page: only what can be seen gets there."""

from __future__ import annotations


def harmless(text: str) -> str:
    """The text with everything that is not a visible character as its Python escape, such as \\x1b or \\u202e."""
    return text if text.isprintable() else "".join(char if char.isprintable() else _escaped(char) for char in text)


def harmless_lines(text: str) -> str:
    """The same, line by line."""
    return "\n".join(map(harmless, text.split("\n")))


def _escaped(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")
