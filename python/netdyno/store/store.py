"""results/<run-id>/run.sqlite: the run, its plan, and every trial, each on disk before the next one starts.

The file is readable whenever the harness dies: a transaction is either whole or absent (https://sqlite.org/atomiccommit.html)."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from netdyno.base.errors import UserError, did_you_mean
from netdyno.base.units import parse_duration
from netdyno.experiment.plan import Cell
from netdyno.model.contestant import About
from netdyno.model.experiment import Experiment
from netdyno.model.run import Environment, Run
from netdyno.model.trial import Traced, Trial

SCHEMA_VERSION = 10
# 2: the table about; 3: transports that carry messages; 4: claims; 5: scenarios have it all; 6: relays; 7: figures;
# 8: twins, the canary, blocks until a precision is reached, searches for a capacity, the table traced; 9: trials that
# are made again, blocks until a time is used; 10: every duration of a scenario in seconds
_ONCE_OF_ALL = ("contestants", "blocks", "warmup_s", "duration_s", "timeout_s", "loss_bound", "link", "link_rate")
"""What an experiment said for all its scenarios until schema 5, and each scenario says since."""
_TEXTS = ("round", "look_every", "service_time", "link_delay", "connect_timeout")
"""Durations that a scenario had as texts such as "20ms" until schema 9."""
APPLICATION_ID = 0x6E64796E  # "ndyn", so that file(1) and we tell a run from any other database
FILE_NAME = "run.sqlite"

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE run (
    run_id TEXT PRIMARY KEY,
    experiment TEXT NOT NULL,   -- JSON, model.Experiment
    environment TEXT NOT NULL,  -- JSON object
    argv TEXT NOT NULL,         -- JSON array
    seed INTEGER NOT NULL,
    started_at TEXT NOT NULL,
    finished_at TEXT            -- NULL: the run did not come to its end
);
CREATE TABLE cell (
    block INTEGER NOT NULL,
    position INTEGER NOT NULL,
    scenario TEXT NOT NULL,
    contestant TEXT NOT NULL,
    levels TEXT NOT NULL,       -- JSON object
    twin INTEGER NOT NULL,      -- 1: the second of its kind in the block, for the A/A control
    PRIMARY KEY (block, position)
);
CREATE TABLE about (
    number INTEGER PRIMARY KEY,
    about TEXT NOT NULL         -- JSON, model.About
);
CREATE TABLE traced (
    number INTEGER PRIMARY KEY,
    traced TEXT NOT NULL        -- JSON, model.Traced
);
CREATE TABLE trial (
    block INTEGER NOT NULL,
    position INTEGER NOT NULL,
    attempt INTEGER NOT NULL,   -- counts from 1; above it: made again, for the machine was disturbed
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    trial TEXT NOT NULL,        -- JSON, model.Trial
    PRIMARY KEY (block, position, attempt),
    FOREIGN KEY (block, position) REFERENCES cell (block, position)
);
"""

_REVISE = "UPDATE trial SET status = ?, reason = ?, trial = ? WHERE block = ? AND position = ? AND attempt = ?"


class Store:
    """The open file of a run that is being made. Use as a context manager."""

    def __init__(self, connection: sqlite3.Connection, claim: int) -> None:
        self._connection = connection
        self._claim = claim

    @classmethod
    def create(cls, folder: Path, run: Run, argv: Sequence[str], cells: Iterable[Cell]) -> Store:
        """Begin a run in an existing folder. Raises UserError when the file cannot be written."""
        path = folder / FILE_NAME
        try:
            connection = _connect(path)
            connection.executescript(f"BEGIN; {_SCHEMA}")
            _insert_run(connection, run, argv, cells)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise UserError(f"{path}: cannot be written: {error}") from error
        return cls(connection, _claim(folder))

    @classmethod
    def reopen(cls, path: Path) -> Store:
        """Go on with the run of a file. Raises UserError where it is none, cannot be written, was made by an older
        netdyno, or is being written by another one."""
        with _open(path) as readable:
            version = readable.execute("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA_VERSION:
            raise UserError(f"{path}: made by an older netdyno (schema {version}, this one writes {SCHEMA_VERSION})")
        claim = _claim(path.parent)
        try:
            return cls(_connect(path), claim)
        except sqlite3.Error as error:
            os.close(claim)
            raise UserError(f"{path}: cannot be written: {error}") from error

    def add(self, trial: Trial) -> None:
        """Store one trial; it is on the disk when this returns."""
        row = (trial.block, trial.position, trial.attempt, trial.status, trial.reason, _json(trial))
        self._connection.execute("INSERT INTO trial VALUES (?, ?, ?, ?, ?, ?)", row)

    def extend(self, cells: Iterable[Cell], experiment: Experiment | None = None) -> None:
        """Append cells to the plan, with the experiment as it is with them where that has changed: all of it or
        nothing. It is on the disk when this returns."""
        with self._connection:  # commits, or rolls back where it is interrupted
            self._connection.execute("BEGIN")
            if experiment:
                self._connection.execute("UPDATE run SET experiment = ?", (_json(experiment),))
            _insert_cells(self._connection, cells)

    def record(self, environment: Mapping[str, object]) -> None:
        """Put this environment in the place of what was recorded."""
        self._connection.execute("UPDATE run SET environment = ?", (_json(environment),))

    def add_traced(self, traced: Traced) -> None:
        """Store what was traced beside the trials; it is on the disk when this returns."""
        self._connection.execute("INSERT INTO traced (traced) VALUES (?)", (_json(traced),))

    def revise(self, trials: Sequence[Trial]) -> None:
        """Put stored trials in the place of themselves, as they are judged later: all of them, or none where it is
        interrupted. They are on the disk when this returns. Raises KeyError for a trial that was never stored."""
        rows = [(one.status, one.reason, _json(one), one.block, one.position, one.attempt) for one in trials]
        with self._connection:  # commits, or rolls back what an exception has cut short
            self._connection.execute("BEGIN IMMEDIATE")
            for row in rows:
                changed = self._connection.execute(_REVISE, row)
                if changed.rowcount != 1:
                    raise KeyError(f"no trial {row[-2]} of block {row[-3]} is stored")

    def finish(self, finished_at: str) -> None:
        """Note that the run came to its end."""
        self._connection.execute("UPDATE run SET finished_at = ?", (finished_at,))

    def close(self) -> None:
        self._connection.close()
        os.close(self._claim)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _connect(path: Path) -> sqlite3.Connection:
    """A connection to write by: a single file at every moment, and on the disk before commit returns (power loss
    included)."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _claim(folder: Path) -> int:
    """Lock a run against a second writer, as long as the descriptor is open (flock(2)): it goes with its process,
    however that ends. The folder is locked and not the file, for SQLite has locks of its own there."""
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
    row = (run.run_id, _json(run.experiment), _json(run.environment), _json(list(argv)), seed, run.started_at, None)
    connection.execute("INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    connection.executemany("INSERT INTO about VALUES (?, ?)", enumerate(map(_json, run.about)))
    _insert_cells(connection, cells)


def _insert_cells(connection: sqlite3.Connection, cells: Iterable[Cell]) -> None:
    rows = ((c.block, c.position, c.scenario, c.contestant, _json(c.levels), c.twin) for c in cells)
    connection.executemany("INSERT INTO cell VALUES (?, ?, ?, ?, ?, ?)", rows)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def load(path: Path) -> Run:
    """Read a run back, whole or as far as it came. Raises UserError: missing, not one of ours, or from the future."""
    with _open(path) as connection:
        try:
            row = connection.execute(
                "SELECT run_id, experiment, started_at, finished_at, environment FROM run"
            ).fetchone()
            rows = connection.execute(
                "SELECT trial FROM trial ORDER BY block, position, rowid -- a second try came later"
            ).fetchall()
            trials = [msgspec.json.decode(text, type=Trial) for (text,) in rows]
            if row is None:
                raise UserError(f"{path}: holds no run")
            return Run(
                run_id=row[0],
                experiment=_experiment(row[1]),
                started_at=row[2],
                finished_at=row[3],
                environment=msgspec.json.decode(row[4], type=Environment),
                about=_load_about(connection),
                trials=tuple(trial for trial in trials if not trial.twin),
                twins=tuple(trial for trial in trials if trial.twin),
                traced=_load_traced(connection),
            )
        except (sqlite3.DatabaseError, msgspec.MsgspecError) as error:
            raise UserError(f"{path}: is damaged: {error}") from error


def _experiment(text: str) -> Experiment:
    """Of any schema."""
    raw = msgspec.json.decode(text)
    shared = {key: raw.pop(key) for key in _ONCE_OF_ALL if key in raw}
    scenarios = [{**shared, **_in_seconds(scenario)} for scenario in raw["scenarios"]]
    return msgspec.convert({**raw, "scenarios": scenarios}, Experiment)


def _in_seconds(scenario: Mapping[str, object]) -> dict[str, object]:
    return {
        **{key: value for key, value in scenario.items() if key not in _TEXTS},
        **{f"{key}_s": parse_duration(str(scenario[key])) for key in _TEXTS if key in scenario},
    }


def _load_about(connection: sqlite3.Connection) -> tuple[About, ...]:
    """Who took part; nobody says so in a run of schema 1."""
    if connection.execute("PRAGMA user_version").fetchone()[0] < 2:
        return ()
    rows = connection.execute("SELECT about FROM about ORDER BY number").fetchall()
    return tuple(msgspec.json.decode(text, type=About) for (text,) in rows)


def _load_traced(connection: sqlite3.Connection) -> tuple[Traced, ...]:
    """What was traced; nothing was before schema 8."""
    if connection.execute("PRAGMA user_version").fetchone()[0] < 8:
        return ()
    rows = connection.execute("SELECT traced FROM traced ORDER BY number").fetchall()
    return tuple(msgspec.json.decode(text, type=Traced) for (text,) in rows)


def load_cells(path: Path) -> tuple[Cell, ...]:
    """The plan of a stored run, in its order."""
    with _open(path) as connection:
        twin = "twin" if connection.execute("PRAGMA user_version").fetchone()[0] >= 8 else "0"
        rows = connection.execute(
            f"SELECT block, position, scenario, contestant, levels, {twin} FROM cell ORDER BY 1, 2"
        )
        return tuple(
            Cell(block=b, position=p, scenario=s, contestant=c, levels=msgspec.json.decode(text), twin=bool(t))
            for b, p, s, c, text, t in rows
        )


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a file that has been found to be a run of this version; it is not written to."""
    if not path.is_file():
        raise UserError(f"no such run: {path} does not exist")
    # mode=rw, never rwc: a journal left behind by a kill may have to be rolled back before reading
    uri = f"{path.resolve().as_uri()}?mode=rw"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        try:
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
        except sqlite3.DatabaseError as error:
            raise UserError(f"{path}: not a netdyno run ({error})") from error
        if application != APPLICATION_ID:
            raise UserError(f"{path}: not a netdyno run")
        if version > SCHEMA_VERSION:
            raise UserError(
                f"{path}: made by a newer netdyno (schema {version}, this one reads up to {SCHEMA_VERSION}): update"
            )
        yield connection


def run_ids(results: Path) -> list[str]:
    """Every stored run in a results folder, oldest first (a run id begins with its time)."""
    return sorted(path.parent.name for path in results.glob(f"*/{FILE_NAME}"))


def find(results: Path, run: str) -> Path:
    """The file of a run given by id, or by the path of its folder or file. Raises UserError with the nearest id."""
    for candidate in (results / run / FILE_NAME, Path(run) / FILE_NAME, Path(run)):
        if candidate.is_file():
            return candidate
    raise UserError(f"no such run {run!r} in {results}{did_you_mean(run, run_ids(results))}")


def summary(path: Path) -> Mapping[str, object]:
    """One line about a stored run, without decoding its trials."""
    with _open(path) as connection:
        run_id, experiment, started_at, finished_at = connection.execute(
            "SELECT run_id, experiment, started_at, finished_at FROM run"
        ).fetchone()
        # SQLite gives a bare column the value of the row that has the maximum: of each place, the last try.
        last = "SELECT status, max(rowid) FROM trial GROUP BY block, position"
        counts = dict(connection.execute(f"SELECT status, count(*) FROM ({last}) GROUP BY status").fetchall())
        counts["made_again"] = connection.execute("SELECT count(*) FROM trial").fetchone()[0] - sum(counts.values())
        planned = connection.execute("SELECT count(*) FROM cell").fetchone()[0]
    return {
        "id": run_id,
        "experiment": _experiment(experiment).name,
        "started_at": started_at,
        "finished_at": finished_at,
        "planned": planned,
        "trials": count_trials(counts),
    }


def count_trials(counts: Mapping[str, int]) -> dict[str, int]:
    """All outcomes, those that did not occur as 0, and how many trials were made again."""
    return {status: counts.get(status, 0) for status in ("valid", "struck_out", "skipped", "failed", "made_again")}
