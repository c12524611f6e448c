"""Text of unknown origin on a terminal or a page: only what can be seen gets there."""

from __future__ import annotations


def harmless(text: str) -> str:
    """Replace every character that is not visible by its Python escape, such as \\x1b or \\u202e."""
    return text if text.isprintable() else "".join(char if char.isprintable() else _escape(char) for char in text)


def harmless_lines(text: str) -> str:
    """Apply `harmless` to each line."""
    return "\n".join(map(harmless, text.split("\n")))


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")
