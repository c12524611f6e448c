"""The file results/<run-id>/run.sqlite: the run, its plan, and every trial, each on disk before the next one starts.

The file is readable whenever the harness dies: a transaction is either whole or absent
(https://sqlite.org/atomiccommit.html)."""

from __future__ import annotations

import re

SCHEMA_VERSION = 10
APPLICATION_ID = 0x6E64796E  # "ndyn", so that file(1) and netdyno recognise a run among databases
FILE_NAME = "run.sqlite"
MOST_VALUE_BYTES = 64 << 20
"""The most bytes of a value, and so of a trial: most have some 10 KiB, one of a day in steps of a second some 4 MiB."""

TABLES = f"""
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
    attempt INTEGER NOT NULL,   -- counts from 1; above it: retried, for the machine was disturbed
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    trial TEXT NOT NULL,        -- JSON, model.Trial
    PRIMARY KEY (block, position, attempt),
    FOREIGN KEY (block, position) REFERENCES cell (block, position)
);
"""


def normalized(statement: str) -> str:
    """Return the statement on one line, without its comments, for SQLite's own table of tables has both. Quoted text
    stays visible, so that a statement that only looks like another is not taken for it."""
    return re.sub(r"[ \t\r\n]+", " ", re.sub(r"--[^\n]*", "", statement)).strip()


STATEMENTS = {
    match[1]: normalized(match[0]) for match in re.finditer(r"CREATE TABLE (\w+) \(.*?\n\)", TABLES, re.DOTALL)
}
"""The statement that made each table: any other was not made by netdyno."""
AUTOINDEXES = frozenset(f"sqlite_autoindex_{name}_1" for name in ("run", "cell", "trial"))
"""The indexes that SQLite itself adds for the primary keys."""
