"""Writing a run: the plan first, then each trial before the next one starts."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from netdyno.kit.errors import UserError
from netdyno.model.experiment import Experiment
from netdyno.model.run import Run
from netdyno.model.trial import Traced, Trial
from netdyno.question.plan import Cell
from netdyno.store.opening import DAMAGE, check_folder, distrust, opened
from netdyno.store.schema import FILE_NAME, TABLES

_REVISE = "UPDATE trial SET status = ?, reason = ?, trial = ? WHERE block = ? AND position = ? AND attempt = ?"


class Store:
    """The open file of a run that is being made. Use as a context manager. Raises UserError where it cannot be written,
    as when the disk is full."""

    def __init__(self, connection: sqlite3.Connection, claim: int) -> None:
        self._connection = connection
        self._claim = claim

    @classmethod
    def create(cls, folder: Path, run: Run, argv: Sequence[str], cells: Iterable[Cell]) -> Store:
        """Begin a run in an existing folder. Raises UserError when the file cannot be written."""
        path = folder / FILE_NAME
        with ExitStack() as on_failure:
            try:
                connection = on_failure.enter_context(closing(_connect(path)))
                connection.executescript(f"BEGIN; {TABLES}")
                _insert_run(connection, run, argv, cells)
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise UserError(f"{path}: cannot be written: {error}") from error
            claim = _claim(folder)
            on_failure.pop_all()
        return cls(connection, claim)

    @classmethod
    def reopen(cls, path: Path) -> Store:
        """Continue the run of a file. Raises UserError where it is no run, cannot be written, was made by another
        version of netdyno, or is being written by another process."""
        with opened(path):
            pass
        check_folder(path.parent)
        claim = _claim(path.parent)
        try:
            return cls(_connect(path), claim)
        except DAMAGE as error:
            os.close(claim)
            raise UserError(f"{path}: cannot be written: {error}") from error

    def add(self, trial: Trial) -> None:
        """Store one trial; it is on the disk when this returns."""
        row = (trial.block, trial.position, trial.attempt, trial.status, trial.reason, _json(trial))
        self._write("INSERT INTO trial VALUES (?, ?, ?, ?, ?, ?)", row)

    def extend(self, cells: Iterable[Cell], experiment: Experiment | None = None) -> None:
        """Append cells to the plan, and replace the experiment if they change it: all of it or nothing. It is on the
        disk when this returns."""
        with _report_failures(), self._connection:  # commits, or rolls back where it is interrupted
            self._connection.execute("BEGIN")
            if experiment:
                self._connection.execute("UPDATE run SET experiment = ?", (_json(experiment),))
            _insert_cells(self._connection, cells)

    def record(self, environment: Mapping[str, object]) -> None:
        """Replace the recorded environment."""
        self._write("UPDATE run SET environment = ?", (_json(environment),))

    def add_traced(self, traced: Traced) -> None:
        """Store a traced server beside the trials; it is on the disk when this returns."""
        self._write("INSERT INTO traced (traced) VALUES (?)", (_json(traced),))

    def revise(self, trials: Sequence[Trial]) -> None:
        """Replace stored trials by the same trials as judged later: all of them, or none where it is interrupted. They
        are on the disk when this returns. Raises KeyError for a trial that was never stored."""
        rows = [
            (trial.status, trial.reason, _json(trial), trial.block, trial.position, trial.attempt) for trial in trials
        ]
        with _report_failures(), self._connection:  # commits, or rolls back what an exception has cut short
            self._connection.execute("BEGIN IMMEDIATE")
            for row in rows:
                changed = self._connection.execute(_REVISE, row)
                if changed.rowcount != 1:
                    raise KeyError(f"no trial {row[-2]} of block {row[-3]} is stored")

    def finish(self, finished_at: str) -> None:
        """Note that the run came to its end."""
        self._write("UPDATE run SET finished_at = ?", (finished_at,))

    def _write(self, statement: str, values: Sequence[Any]) -> None:
        with _report_failures():
            self._connection.execute(statement, values)

    def close(self) -> None:
        self._connection.close()
        os.close(self._claim)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def _report_failures() -> Iterator[None]:
    try:
        yield
    except (sqlite3.OperationalError, sqlite3.DataError) as error:  # DataError: a value too large to be read back
        raise UserError(f"the run cannot be stored any further: {error}") from error


def _connect(path: Path) -> sqlite3.Connection:
    """Open a connection for writing: a single file at every moment, and on the disk before commit returns (power loss
    included)."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        distrust(connection)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _claim(folder: Path) -> int:
    """Lock a run against a second writer, as long as the descriptor is open (flock(2)): the lock ends with its process,
    however that ends. The folder is locked and not the file, on which SQLite has locks of its own."""
    claim = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(claim)
        why = "is still being made" if isinstance(error, BlockingIOError) else f"cannot be locked: {error.strerror}"
        raise UserError(f"the run in {folder} {why}") from error
    return claim


def _insert_run(connection: sqlite3.Connection, run: Run, argv: Sequence[str], cells: Iterable[Cell]) -> None:
    seed = run.experiment.seed
    words = [word.encode("utf-8", "backslashreplace").decode() for word in argv]  # a file may have any name
    row = (run.run_id, _json(run.experiment), _json(run.environment), _json(words), seed, run.started_at, None)
    connection.execute("INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    connection.executemany("INSERT INTO about VALUES (?, ?)", enumerate(map(_json, run.about)))
    _insert_cells(connection, cells)


def _insert_cells(connection: sqlite3.Connection, cells: Iterable[Cell]) -> None:
    rows = (
        (cell.block, cell.position, cell.scenario, cell.contestant, _json(cell.levels), cell.twin) for cell in cells
    )
    connection.executemany("INSERT INTO cell VALUES (?, ?, ?, ?, ?, ?)", rows)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
