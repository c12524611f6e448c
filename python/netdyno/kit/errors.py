"""Errors that the user can correct: one clear line with the nearest valid name, never a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

MOST_SHOWN = 2000
"""The most characters of an error: the value in it may have millions."""
_END_SHOWN = 600


class UserError(Exception):
    """An error that the user can correct. The text is the whole line that is shown; the exit code is 2."""

    def __init__(self, text: str) -> None:
        super().__init__(cut_middle(text))


def cut_middle(text: str) -> str:
    """Return the text of an error with at most MOST_SHOWN characters: its beginning, and its end, which says what to
    do."""
    if len(text) <= MOST_SHOWN:
        return text
    cut = f" [... {len(text) - MOST_SHOWN} characters ...] "
    return f"{text[: MOST_SHOWN - _END_SHOWN - len(cut)]}{cut}{text[-_END_SHOWN:]}"


def did_you_mean(word: str, valid: Iterable[str], listed_by: str = "") -> str:
    """Return a half-sentence that names the nearest valid word, or all of them when none is near, or the command that
    lists them. It starts with a space."""
    names = sorted(valid)
    if not names:
        return ""
    near = difflib.get_close_matches(word[:MOST_SHOWN].lower(), names, n=1, cutoff=0.5)
    if listed_by:
        return f" ({f'did you mean {near[0]!r}? ' if near else ''}see: {listed_by})"
    return f" (did you mean {near[0]!r}?)" if near else f" (there are: {', '.join(names)})"


def check_keys(where: str, keys: Iterable[str], valid: Iterable[str]) -> None:
    """Raise UserError for the first key that is not valid. `where` names the file and the table in it."""
    names = list(valid)
    for key in keys:
        if key not in names:
            raise UserError(f"{where}: unknown key {key!r}{did_you_mean(key, names)}")


def table_in(where: str, parent: Mapping[str, object], key: str) -> dict[str, object]:
    """Return the table of that name in a table of TOML, empty where there is none. Raises UserError for anything
    else."""
    value = parent.get(key, {})
    if not isinstance(value, dict):
        raise UserError(f"{where}: key {key!r}: must be a table")
    return value
