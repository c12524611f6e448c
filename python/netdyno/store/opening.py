"""Opening the file of a run. Whatever its origin, opening it changes nothing but that file, and ends.

SQLite trusts a file and the files beside it: it deletes the super-journal that a rollback journal names, takes over the
pages of a write-ahead log, and begins to run a view that never ends (https://sqlite.org/security.html). So the file and
its neighbours are checked before SQLite opens it, and its tables before any is read."""

from __future__ import annotations

import os
import sqlite3
import stat
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from netdyno.kit.errors import UserError
from netdyno.kit.files import kind_of, open_regular
from netdyno.store.schema import APPLICATION_ID, AUTOINDEXES, MOST_VALUE_BYTES, SCHEMA_VERSION, STATEMENTS, normalized

DAMAGE = (sqlite3.Error, ValueError, RecursionError)
"""The errors that reading a damaged file may raise: msgspec's errors are ValueErrors, and so are some of sqlite3's."""

# https://sqlite.org/fileformat2.html: 1.3, the database header, and 3, the rollback journal
_HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\0"
_HEADER = struct.Struct(">16xHBB48xI")
"""After the magic text: the bytes of a page, the versions that write and read it (2: a write-ahead log), and far behind
them the application id."""
_LARGEST_PAGE = 1 << 16
"""The bytes of the largest page, for which the header has 1."""
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_JOURNAL_HEADER = struct.Struct(">16xI4xI")
"""After magic number, count and nonce: the pages that the file had before, and, after the bytes of a sector, the bytes
of a page."""

_SCHEMA_STEPS = 10_000
"""The steps of SQLite's machine for the names of the tables: there are five of them."""
_STEPS_PER_BYTE = 4
"""The steps for each byte of the file and each statement. A row takes some 30 steps, and has at least as many bytes."""
_MOST_STEPS = 2**31 - 1


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a connection to a file that is checked to be a run of a known version; it is not written to. Raises
    UserError, also where the block raises because the data that it reads is damaged."""
    size = _check_file(path)
    # mode=rw, never rwc: a journal left behind by a kill may have to be rolled back before reading
    uri = f"{path.resolve().as_uri()}?mode=rw"
    try:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise UserError(f"{path}: cannot be read ({error})") from error
    with closing(connection):
        try:
            distrust(connection)
            connection.execute("PRAGMA query_only = ON")
            connection.set_progress_handler(_give_up, _SCHEMA_STEPS)
            version = connection.execute("PRAGMA user_version").fetchone()[0]
        except DAMAGE as error:
            raise UserError(f"{path}: not a netdyno run ({error})") from error
        if version != SCHEMA_VERSION:
            made = f"{path}: made by {'a newer' if version > SCHEMA_VERSION else 'an older'} netdyno"
            advice = "update" if version > SCHEMA_VERSION else "run it again"
            raise UserError(f"{made} (schema {version}, this one reads {SCHEMA_VERSION}): {advice}")
        try:
            _check_tables(connection)
            connection.set_progress_handler(_give_up, min(_SCHEMA_STEPS + _STEPS_PER_BYTE * size, _MOST_STEPS))
            _check_pages(connection)
            yield connection
        except DAMAGE as error:
            raise UserError(f"{path}: is damaged: {_describe(error)}") from error


def distrust(connection: sqlite3.Connection) -> None:
    """Make SQLite treat the schema of the file as data and not as commands, accept no value larger than one that is
    stored, and write no temporary files."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_VALUE_BYTES)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA temp_store = MEMORY")


def check_folder(folder: Path) -> None:
    """Raise UserError where the folder of a run holds a link, through which a write would go elsewhere, or a pipe, in
    which it would wait for ever. netdyno puts only files and folders there."""
    for inside, folders, files in os.walk(folder):
        for name in (*folders, *files):
            entry = Path(inside, name)
            kind = entry.lstat().st_mode
            if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
                raise UserError(f"{entry} is {kind_of(kind)}, and in the folder of a run are only files")


def _give_up() -> bool:
    """End the statement by returning true. SQLite calls this after the allowed number of steps."""
    return True


def _describe(error: Exception) -> str:
    if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
        return "to read it takes more steps than its size explains"
    return str(error)


# --- before SQLite sees it -----------------------------------------------------------------------------------------


def _check_file(path: Path) -> int:
    """Return the bytes of a file that SQLite may open. Raises UserError where it, or a file beside it that SQLite would
    read, is not as netdyno leaves it, even when killed.

    POSIX locks of a process on a file end when it closes any descriptor of it (https://sqlite.org/howtocorrupt.html,
    2.2). This process is not in a transaction here: one thread stores a run, and reads between its statements."""
    ends = _read_ends(path)
    if ends is None:
        raise UserError(f"no such run: {path} does not exist")
    if len(ends.first) < _HEADER_BYTES or not ends.first.startswith(_MAGIC):
        raise UserError(f"{path}: not a netdyno run")
    page_bytes, write_version, read_version, application = _HEADER.unpack_from(ends.first)
    if application != APPLICATION_ID:
        raise UserError(f"{path}: not a netdyno run")
    log = path.with_name(f"{path.name}-wal")
    if (write_version, read_version) != (1, 1) or os.path.lexists(log):
        raise UserError(f"{path}: is damaged: it has a write-ahead log ({log.name}), or claims one, and no run has one")
    _check_journal(path.with_name(f"{path.name}-journal"), _LARGEST_PAGE if page_bytes == 1 else page_bytes, ends.size)
    return ends.size


def _check_journal(journal: Path, page_bytes: int, size: int) -> None:
    """Raise UserError where this is a rollback journal that a kill of netdyno cannot have left behind. SQLite writes
    its pages back and deletes the super-journal that its end names; netdyno has one file in a transaction, and so no
    super-journal. SQLite truncates the file to the length at the journal's beginning; a run only grows, so the file was
    no longer than now."""
    ends = _read_ends(journal)
    if ends is None:
        return
    if ends.last == _JOURNAL_MAGIC:
        raise UserError(
            f"{journal} names another file, which SQLite would delete: remove the journal if you trust the run "
            "without it"
        )
    if ends.first.startswith(_JOURNAL_MAGIC) and len(ends.first) >= _JOURNAL_HEADER.size:  # else SQLite ignores it
        pages, journal_page_bytes = _JOURNAL_HEADER.unpack_from(ends.first)
        if journal_page_bytes != page_bytes or pages * page_bytes > size:
            raise UserError(f"{journal} is of another file: remove the journal if you trust the run without it")


class _Ends(NamedTuple):
    """The first bytes of a file, the last ones, and its size."""

    first: bytes
    last: bytes
    size: int


def _read_ends(path: Path) -> _Ends | None:
    """Read both ends of a file; None where there is none. Raises UserError where it is no regular file, or cannot be
    read."""
    try:
        with os.fdopen(open_regular(path), "rb", 0) as file:
            size = os.fstat(file.fileno()).st_size
            first = file.read(_HEADER_BYTES)
            file.seek(max(0, size - len(_JOURNAL_MAGIC)))
            return _Ends(first, file.read(len(_JOURNAL_MAGIC)), size)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error


# --- before a table is read ----------------------------------------------------------------------------------------


def _check_tables(connection: sqlite3.Connection) -> None:
    """Raise ValueError where there is anything but the tables that netdyno makes, or has made: a view or a trigger
    would run, and a column may be a computation."""
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_schema"):
        is_known = isinstance(sql, str) and normalized(sql) == STATEMENTS.get(name)
        if not (is_known if kind == "table" else kind == "index" and sql is None and name in AUTOINDEXES):
            raise ValueError(f"its {kind} {name!r} is not one of netdyno's")


def _check_pages(connection: sqlite3.Connection) -> None:
    """Raise ValueError where the pages of the file are not in order. In order, no page belongs to two rows, so that no
    more is read than the file holds."""
    (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if result != "ok":
        raise ValueError(" ".join(result.removeprefix("*** in database main ***").split()))
