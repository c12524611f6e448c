"""Changing the file of a stored run by hand."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


@contextmanager
def edit_store(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file; commit and close it at the end. A connection as a context alone would stay open (Python 3.13
    warns)."""
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection
