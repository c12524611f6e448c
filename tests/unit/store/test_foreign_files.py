"""A run's file may come from anyone: reading it changes nothing outside, ends, and hides no other run."""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from netdyno.kit.errors import UserError
from netdyno.model.run import Run
from netdyno.store import opening, read, schema, write
from netdyno.verbs import listing
from netdyno.verbs.run import write_report
from tests.support.builders.made_run import made_run
from tests.support.builders.stored import stored

JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
PAGE, SECTOR = 4096, 512


def whole_run() -> Run:
    """Return the run of the file, built at the first call."""
    return made_run(blocks=3)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return (stored(whole_run(), tmp_path_factory.mktemp("whole")) / schema.FILE_NAME).read_bytes()


@pytest.fixture
def path(whole: bytes, tmp_path: Path) -> Path:
    """The file of a run between two others."""
    for name in ("a", "b", "c"):
        file = tmp_path / "results" / name / schema.FILE_NAME
        file.parent.mkdir(parents=True)
        file.write_bytes(whole)
    return tmp_path / "results" / "b" / schema.FILE_NAME


def why_refused(path: Path) -> str:
    """Return why every reader refuses the file, in the same words."""
    messages = set()
    for ask in (read.load, read.summary, read.load_cells, read.read_head, write.Store.reopen):
        with pytest.raises(UserError) as refused:
            ask(path)
        messages.add(str(refused.value))
    (text,) = messages
    assert [row.get("error") for row in listing.list_runs(path.parent.parent)] == [None, text, None]
    return text


def beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.name}-{what}")


# --- what SQLite would recover -------------------------------------------------------------------------------------


def journal(pages: int, page_bytes: int = PAGE, super_journal: str = "") -> bytes:
    """A rollback journal without a page (https://sqlite.org/fileformat2.html#the_rollback_journal), and at its end the
    super-journal."""
    head = JOURNAL_MAGIC + struct.pack(">IIIII", 0, 1, pages, SECTOR, page_bytes)
    name = super_journal.encode()
    tail = struct.pack(">I", 0x40000000 // page_bytes + 1) + name + struct.pack(">II", len(name), sum(name))
    return head.ljust(SECTOR, b"\0") + (tail + JOURNAL_MAGIC if name else b"")


def test_a_journal_that_names_a_super_journal_is_refused_and_the_file_that_it_names_stays(path: Path) -> None:
    precious = path.parent.parent / "precious"
    precious.write_text("mine")
    content = journal(len(path.read_bytes()) // PAGE, super_journal=str(precious))
    beside(path, "journal").write_bytes(content)
    assert "run.sqlite-journal names another file, which SQLite would delete" in why_refused(path)
    assert precious.read_text() == "mine"
    assert beside(path, "journal").read_bytes() == content


@pytest.mark.parametrize(("pages", "page_bytes"), [(1, 512), (1 << 31, PAGE)])
def test_a_journal_of_another_file_is_refused_and_nothing_is_written(path: Path, pages: int, page_bytes: int) -> None:
    before = path.read_bytes()
    beside(path, "journal").write_bytes(journal(pages, page_bytes))
    assert "run.sqlite-journal is of another file" in why_refused(path)
    assert path.read_bytes() == before


def test_the_largest_pages_are_known_by_the_1_that_the_header_has_for_them(path: Path) -> None:
    largest = 1 << 16
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {largest}")
        connection.execute("VACUUM")
    beside(path, "journal").write_bytes(journal(len(path.read_bytes()) // largest, largest))
    assert read.load(path).run_id == whole_run().run_id


def test_a_journal_that_a_kill_left_is_rolled_back(path: Path, whole: bytes) -> None:
    """Half a transaction is in the file, with the journal that undoes it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_spill = 1")
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("UPDATE trial SET trial = replace(trial, 'valid', 'vulid')")
        half, undo = path.read_bytes(), beside(path, "journal").read_bytes()
        connection.execute("ROLLBACK")
    assert half != whole
    path.write_bytes(half)
    beside(path, "journal").write_bytes(undo)
    assert read.load(path).run_id == whole_run().run_id
    assert not beside(path, "journal").exists()


def test_a_write_ahead_log_is_refused(path: Path, whole: bytes) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("UPDATE run SET run_id = 'other'")
        connection.commit()
        logged, log = path.read_bytes(), beside(path, "wal").read_bytes()
    for file, wal in ((whole, log), (logged, None)):
        path.write_bytes(file)
        beside(path, "wal").unlink(missing_ok=True)
        if wal is not None:
            beside(path, "wal").write_bytes(wal)
        assert "it has a write-ahead log (run.sqlite-wal), or claims one, and no run has one" in why_refused(path)
        assert path.read_bytes() == file


@pytest.mark.parametrize("name", [schema.FILE_NAME, f"{schema.FILE_NAME}-journal"])
@pytest.mark.parametrize("kind", ["a symbolic link", "a pipe", "a folder"])
def test_what_is_no_file_is_refused_without_waiting_for_it(path: Path, name: str, kind: str) -> None:
    file = path.with_name(name)
    elsewhere = path.parent.parent / "elsewhere"
    path.rename(elsewhere)
    if name != schema.FILE_NAME:
        path.write_bytes(elsewhere.read_bytes())
    if kind == "a symbolic link":
        file.symlink_to(elsewhere)
    elif kind == "a pipe":
        os.mkfifo(file)
    else:
        file.mkdir()
    before = elsewhere.read_bytes()
    assert f"cannot be read: it is {kind}" in why_refused(path)
    assert elsewhere.read_bytes() == before


# --- what its tables would do --------------------------------------------------------------------------------------

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"
HOSTILE_SCHEMAS = {
    "a view without end": f"""DROP TABLE trial;
        CREATE VIEW trial AS {ENDLESS} 1 AS block, i AS position, '' AS trial, i AS rowid FROM n;""",
    "a table of tables": "CREATE VIRTUAL TABLE more USING fts5(text);",
    "a trigger": f"CREATE TRIGGER t AFTER INSERT ON trial BEGIN {ENDLESS} i FROM n; END;",
    "a computed column": "ALTER TABLE trial ADD COLUMN x AS (hex(zeroblob(1000000)));",
    "an index of a computation": "CREATE INDEX x ON trial (hex(trial));",
    "a check that is a computation": """DROP TABLE traced;
        CREATE TABLE traced (number INTEGER PRIMARY KEY, traced TEXT NOT NULL CHECK (length(traced) > 0));""",
    "a table that looks like one": "DROP TABLE about; CREATE TABLE about (number INTEGER PRIMARY KEY, 'about' TEXT);",
    "a table of others": "CREATE TABLE other (x);",
}


@pytest.mark.parametrize("which", HOSTILE_SCHEMAS)
def test_a_file_with_other_tables_than_a_run_has_is_refused_before_they_are_read(path: Path, which: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(HOSTILE_SCHEMAS[which])
    assert "is not one of netdyno's" in why_refused(path)


def test_a_file_with_more_tables_than_can_be_looked_at_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        tables = "".join(f"CREATE TABLE t{number} (x);" for number in range(2000))
        connection.executescript(f"BEGIN; {tables} COMMIT")
    assert "takes more steps than its size explains" in why_refused(path)


def test_a_value_that_is_larger_than_any_that_is_stored_is_refused(path: Path) -> None:
    """Blanks, which JSON allows."""
    with closing(sqlite3.connect(path)) as connection:
        blanks = f"printf('%*c', {schema.MOST_VALUE_BYTES}, ' ')"
        connection.execute(f"UPDATE trial SET trial = {blanks} || trial WHERE rowid = 1")
        connection.commit()
    for ask in (read.load, read.summary):
        with pytest.raises(UserError, match="is damaged: string or blob too big"):
            ask(path)


def test_a_value_that_could_not_be_read_back_is_not_stored(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM trial WHERE rowid = 1")
        connection.commit()
    (gone,) = set(range(len(whole_run().all_trials))) - {trial.position for trial in read.load(path).all_trials}
    trial = next(trial for number, trial in enumerate(whole_run().all_trials) if number == gone)
    too_large = replace(trial, position=gone, reason="x" * schema.MOST_VALUE_BYTES)
    with write.Store.reopen(path) as store, pytest.raises(UserError, match="cannot be stored any further: string or"):
        store.add(too_large)


def test_pages_that_stand_for_more_rows_than_there_are_are_refused(path: Path) -> None:
    """Two pointers of a tree to one page: with twenty levels of them a small file has rows without end."""
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'trial'").fetchone()
    content = bytearray(path.read_bytes())
    start = (root - 1) * PAGE
    assert content[start] == 5  # an interior page of a table
    first, second = struct.unpack_from(">HH", content, start + 12)
    content[start + second : start + second + 4] = content[start + first : start + first + 4]
    path.write_bytes(content)
    assert "is damaged: " in why_refused(path)


def test_a_query_of_more_steps_than_a_file_has_bytes_is_ended(path: Path) -> None:
    with (
        pytest.raises(UserError, match="to read it takes more steps than its size explains"),
        opening.opened(path) as connection,
    ):
        connection.execute(f"{ENDLESS} count(*) FROM n").fetchone()


def test_nothing_that_is_sorted_goes_to_the_disk(path: Path) -> None:
    with opening.opened(path) as connection:
        assert connection.execute("PRAGMA temp_store").fetchone() == (2,)  # memory


# --- what becomes a path -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run_id", ["", "..", "/../../x", "a/b", "-x", "--server=x", ".hidden", "a\0b"])
def test_an_id_that_is_no_name_of_a_folder_is_refused(path: Path, run_id: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE run SET run_id = ?", (run_id,))
        connection.commit()
    for ask in (read.load, read.summary):
        with pytest.raises(UserError, match="is no valid run id"):
            ask(path)


LINKED: dict[str, Callable[[Path, Path], None]] = {
    "report.html": lambda entry, target: entry.symlink_to(target),
    "logs/canary.log": lambda entry, target: entry.symlink_to(target),
    "environment.json": lambda entry, target: os.mkfifo(entry),
}


@pytest.mark.parametrize("name", LINKED)
def test_a_run_whose_folder_leads_elsewhere_is_not_gone_on_with(path: Path, name: str) -> None:
    target = path.parent.parent / "target"
    target.write_text("mine")
    (path.parent / "logs").mkdir()
    LINKED[name](path.parent / name, target)
    with pytest.raises(UserError, match=f"{name} is a (symbolic link|pipe), and in the folder of a run are only files"):
        write.Store.reopen(path)
    assert read.load(path).run_id == whole_run().run_id


@pytest.mark.parametrize("kind", ["a symbolic link", "a pipe"])
def test_a_report_is_not_written_through_what_lies_in_its_place(path: Path, kind: str) -> None:
    target, report = path.parent.parent / "target", path.parent / "report.html"
    target.write_text("mine")
    if kind == "a pipe":
        os.mkfifo(report)
    else:
        report.symlink_to(target)
    with pytest.raises(UserError, match=f"report.html cannot be written: it is {kind} and no file"):
        write_report(["b"], path.parent.parent)
    assert target.read_text() == "mine"
