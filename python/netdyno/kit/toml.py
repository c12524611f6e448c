"""TOML of unknown origin, read into tables."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

from netdyno.kit.errors import UserError
from netdyno.kit.files import read_given

MOST_LISTED = 10_000
"""The most values of a list, or tables of one name: each costs some of the time before the first trial."""


def read_table(path: Path) -> dict[str, object]:
    """Read a file of TOML. Raises UserError with one clear line."""
    try:
        text = read_given(path).decode()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: cannot be read: {error}") from error
    return parse_table(text, str(path))


def parse_table(text: str, where: str) -> dict[str, object]:
    """Parse TOML; `where` is what errors call it. Pure. Raises UserError, also where a list is too long."""
    try:
        table = tomllib.loads(text)
    except ValueError as error:  # a number with more digits than Python reads is no TOMLDecodeError
        raise UserError(f"{where}: not valid TOML: {error}") from error
    except RecursionError as error:
        raise UserError(f"{where}: not valid TOML: its values are nested too deeply") from error
    for key, values in walk(table):
        if isinstance(values, list) and len(values) > MOST_LISTED:
            raise UserError(f"{where}: key {key!r}: a list of {len(values)}; at most {MOST_LISTED} are possible")
    return table


def walk(value: object) -> Iterator[tuple[str, object]]:
    """Yield a value and all those in its tables and lists, each with the key of its table, empty where it has none."""
    waiting = [("", value)]
    while waiting:
        key, value = waiting.pop()
        yield key, value
        if isinstance(value, dict):
            waiting += value.items()
        elif isinstance(value, list | tuple):
            waiting += ((key, inner) for inner in value)
