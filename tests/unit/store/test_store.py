"""A run is readable wherever the harness dies; a file that is no run is refused in one line."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import msgspec
import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.kit.errors import UserError
from netdyno.model import outcomes
from netdyno.model.contestant import About, CodeSize
from netdyno.model.experiment import Experiment
from netdyno.model.load_result import Audit
from netdyno.model.run import Run
from netdyno.model.trial import Traced, Trial
from netdyno.question.plan import Cell
from netdyno.store import read, schema, write
from netdyno.verbs import listing
from tests.support.builders.made_load import MACHINE
from tests.support.builders.made_run import EPOLL, made_run
from tests.support.builders.stored import stored
from tests.support.edit_store import edit_store

NONE = dict.fromkeys(("valid", "struck_out", "faulty", "failed", "skipped", "made_again"), 0)
CODE = CodeSize(files=1, lines=2, functions=3, complexity=4, complexity_max=5)


def cells() -> list[Cell]:
    return [
        Cell(block=1, position=position, scenario="echo", contestant="a", levels={"connections": position + 1})
        for position in range(3)
    ]


def trial(position: int) -> Trial:
    return Trial(
        block=1,
        position=position,
        scenario="echo",
        contestant="a",
        levels={"connections": position + 1},
        status="failed",
        reason="no ready line",
        started_at="2026-01-01T00:00:00+00:00",
        seconds=1.5,
    )


@pytest.fixture
def run(experiment: Experiment) -> Run:
    return Run(
        run_id="r1",
        experiment=experiment,
        started_at="2026-01-01T00:00:00+00:00",
        finished_at=None,
        environment={"kernel": "6.1", "cores": 2, "flags": ["a", "b"], "load": 0.5, "dirty": True},
        trials=(),
        about=(
            About(kind="server", name="a", model="m", caveats=("slow",), code=CODE),
            About(kind="client", name="b", why_no_code="no source files"),
        ),
    )


@pytest.fixture
def path(run: Run, tmp_path: Path) -> Path:
    with write.Store.create(tmp_path, run, ["netdyno", "run"], cells()) as store:
        store.add(trial(1))
        store.add(trial(0))
    return tmp_path / schema.FILE_NAME


def test_twins_and_what_was_traced_come_back(path: Path) -> None:
    traced = Traced(scenario="echo", contestant="a", levels={"connections": 1}, messages=7)
    with write.Store.reopen(path) as store:
        store.add_traced(traced)
    with edit_store(path) as connection:
        connection.execute("UPDATE cell SET twin = 1 WHERE position = 2")
    assert [cell.twin for cell in read.load_cells(path)] == [False, False, True]
    assert read.load(path).traced == (traced,)


def test_a_run_comes_back_as_it_was_stored(path: Path, run: Run) -> None:
    stored = read.load(path)
    assert stored.trials == (trial(0), trial(1))
    assert (stored.run_id, stored.experiment, stored.environment) == (run.run_id, run.experiment, run.environment)
    assert stored.about == run.about
    assert stored.finished_at is None
    assert list(read.load_cells(path)) == cells()


def test_a_word_that_is_no_text_is_stored_as_one(run: Run, tmp_path: Path) -> None:
    write.Store.create(tmp_path, run, ["--results", "r\udcff"], cells()).close()
    with edit_store(tmp_path / schema.FILE_NAME) as connection:
        assert connection.execute("SELECT argv FROM run").fetchone() == ('["--results","r\\\\udcff"]',)


def test_each_trial_is_there_before_the_next(run: Run, tmp_path: Path) -> None:
    with write.Store.create(tmp_path, run, [], cells()) as store:
        for count in (1, 2):
            store.add(trial(count - 1))
            assert len(read.load(tmp_path / schema.FILE_NAME).trials) == count  # another connection sees it
        store.finish("2026-01-01T00:01:00+00:00")
    assert read.load(tmp_path / schema.FILE_NAME).finished_at == "2026-01-01T00:01:00+00:00"


def test_a_plan_is_extended_whole_or_not_at_all(run: Run, tmp_path: Path) -> None:
    more = [replace(cell, block=2) for cell in cells()]
    with write.Store.create(tmp_path, run, [], cells()) as store:
        store.extend(more)
        assert list(read.load_cells(tmp_path / schema.FILE_NAME)) == [*cells(), *more]
        with pytest.raises(sqlite3.IntegrityError):
            store.extend([replace(more[0], block=3), more[1]])
        assert list(read.load_cells(tmp_path / schema.FILE_NAME)) == [*cells(), *more]
        store.add(replace(trial(0), block=2))
    assert len(read.load(tmp_path / schema.FILE_NAME).trials) == 1


def test_a_run_is_gone_on_with_in_the_same_file(path: Path) -> None:
    with write.Store.reopen(path) as store:
        store.add(trial(2))
        store.record({"kernel": "6.2"})
        store.finish("2026-01-01T00:01:00+00:00")
    stored = read.load(path)
    assert stored.trials == (trial(0), trial(1), trial(2))
    assert (stored.environment, stored.finished_at) == ({"kernel": "6.2"}, "2026-01-01T00:01:00+00:00")


def test_only_one_writes_a_run(path: Path) -> None:
    with write.Store.reopen(path), pytest.raises(UserError, match=f"the run in {path.parent} is still being made"):
        write.Store.reopen(path)
    write.Store.reopen(path).close()


def test_a_trial_outside_the_plan_is_refused(run: Run, tmp_path: Path) -> None:
    with write.Store.create(tmp_path, run, [], cells()) as store, pytest.raises(sqlite3.IntegrityError):
        store.add(trial(7))


def test_trials_that_are_judged_later_take_their_own_places(run: Run, tmp_path: Path) -> None:
    with write.Store.create(tmp_path, run, [], cells()) as store:
        store.add(trial(0))
        store.add(trial(1))
        judged = replace(trial(0), status="struck_out", reason="canary: another machine")
        store.revise([judged])
        assert read.load(tmp_path / schema.FILE_NAME).trials == (judged, trial(1))  # another connection sees it
        store.add(trial(2))
    assert read.load(tmp_path / schema.FILE_NAME).trials == (judged, trial(1), trial(2))
    assert read.summary(tmp_path / schema.FILE_NAME)["trials"] == NONE | {"struck_out": 1, "failed": 2}


def test_tries_of_one_place_are_read_in_their_order_and_counted_once(run: Run, tmp_path: Path) -> None:
    tries = tuple(replace(trial(0), attempt=attempt) for attempt in (1, 2, 3))
    with write.Store.create(tmp_path, run, [], cells()) as store:
        for tried in (*tries[:2], trial(1), tries[2]):
            store.add(tried)
    assert read.load(tmp_path / schema.FILE_NAME).trials == (*tries, trial(1))
    counts = read.summary(tmp_path / schema.FILE_NAME)["trials"]
    assert counts == NONE | {"failed": 4}  # only what the machine disturbed is retried


def test_of_trials_that_are_judged_all_are_stored_or_none(run: Run, tmp_path: Path) -> None:
    """The second was never stored; the first stays as it was, and the store accepts more."""
    with write.Store.create(tmp_path, run, [], cells()) as store:
        store.add(trial(0))
        with pytest.raises(KeyError, match="no trial 1 of block 1 is stored"):
            store.revise([replace(trial(0), reason="judged"), trial(1)])
        store.add(trial(2))
    assert read.load(tmp_path / schema.FILE_NAME).trials == (trial(0), trial(2))


def test_a_missing_run_is_one_clear_line(path: Path) -> None:
    (path.parent / "sub").mkdir()
    with pytest.raises(UserError, match="no such run"):
        read.load(path.parent / "sub" / schema.FILE_NAME)
    results = path.parent.parent
    with pytest.raises(UserError, match=rf"no such run '{path.parent.name}x'.*did you mean '{path.parent.name}'"):
        read.find(results, path.parent.name + "x")


def test_a_run_is_found_by_id_folder_or_file(path: Path) -> None:
    results, name = path.parent.parent, path.parent.name
    assert read.find(results, name) == path
    assert read.find(Path("/nowhere"), str(path.parent)) == path
    assert read.find(Path("/nowhere"), str(path)) == path


def test_an_experiment_stands_for_its_newest_run(tmp_path: Path) -> None:
    for run_id in ("20250102-120000-web", "20250101-120000-web", "20250103-120000-own-web"):
        (tmp_path / run_id).mkdir()
        (tmp_path / run_id / schema.FILE_NAME).touch()
    assert read.find(tmp_path, "web").parent.name == "20250102-120000-web"
    assert read.find(tmp_path, "own-web").parent.name == "20250103-120000-own-web"
    with pytest.raises(UserError, match="no such run 'we'"):
        read.find(tmp_path, "we")


def test_what_is_not_ours_says_so(tmp_path: Path) -> None:
    text, database = tmp_path / "text", tmp_path / "other.sqlite"
    text.write_text("hello, this is certainly not a database " * 40)
    sqlite3.connect(database).execute("CREATE TABLE x (y)").connection.close()
    for path in (text, database):
        with pytest.raises(UserError, match=f"{path.name}: not a netdyno run"):
            read.load(path)


@pytest.mark.parametrize(
    ("change", "words"), [(1, "a newer netdyno .*: update"), (-1, "an older netdyno .*: run it again")]
)
def test_another_schema_says_so(path: Path, change: int, words: str) -> None:
    with edit_store(path) as connection:
        connection.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION + change}")
    with pytest.raises(UserError, match=f"made by {words}"):
        read.load(path)


def test_a_damaged_trial_says_so(path: Path) -> None:
    with edit_store(path) as connection:
        connection.execute("UPDATE trial SET trial = '{'")
    with pytest.raises(UserError, match="is damaged"):
        read.load(path)


NO_WINDOW = msgspec.json.encode(msgspec.structs.replace(MACHINE, window_s=0.0)).decode()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE run SET experiment = NULL",
        "UPDATE run SET experiment = '[]'",
        "UPDATE run SET experiment = '{}'",
        "UPDATE run SET experiment = x'ff'",
        "UPDATE run SET experiment = '{\"scenarios\": [1]}'",
        "UPDATE run SET started_at = x'37'",
        "DELETE FROM run",
        "DROP TABLE run",
        "DROP TABLE cell",
        "UPDATE cell SET levels = '[1]'",
        "UPDATE cell SET scenario = x'ff'",
        "UPDATE run SET experiment = json_set(experiment, '$.scenarios', json('[]'))",
        "UPDATE run SET experiment = json_set(experiment, '$.scenarios[0].timeout_s', 1e308)",
        "UPDATE run SET experiment = json_set(experiment, '$.scenarios[0].factors.connections[0]', 0)",
        "UPDATE trial SET trial = json_set(trial, '$.levels.connections', -1)",
        "UPDATE trial SET trial = json_set(trial, '$.attempt', 4611686018427387904)",
        "UPDATE trial SET trial = json_set(trial, '$.position', 2)",
        "UPDATE trial SET trial = json_set(trial, '$.seconds', 1e308)",
        f"UPDATE trial SET trial = json_set(trial, '$.machine', json('{NO_WINDOW}'))",
    ],
)
def test_a_run_that_says_something_else_says_so_whatever_is_requested_of_it(path: Path, change: str) -> None:
    with edit_store(path) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("PRAGMA foreign_keys = OFF")
        for table in ("run", "cell"):
            nullable = "sql = replace(sql, 'NOT NULL', '')"
            connection.execute(f"UPDATE sqlite_schema SET {nullable} WHERE name = ?", (table,))
    with edit_store(path) as connection:
        connection.execute(change)
    messages = []
    for ask in (read.load, read.summary, read.load_cells):
        try:
            ask(path)
        except UserError as error:
            messages.append(str(error))
    assert messages
    assert all(f"{path}: is damaged: " in text for text in messages)


def test_a_file_that_is_damaged_anywhere_is_read_or_says_so(path: Path) -> None:
    """Bytes are changed at random, or all is lost from somewhere on: the same every time."""
    random, content = Random(21), path.read_bytes()
    outcomes: Counter[bool] = Counter()
    for _ in range(200):
        damaged = bytearray(content)
        for _ in range(random.choice([0, 1, 10, 200])):
            damaged[random.randrange(random.choice([200, len(damaged)]))] = random.randrange(256)
        path.write_bytes(damaged[: random.choice([None, random.randrange(len(damaged))])])
        for ask in (read.load, read.summary, read.load_cells, reopened):
            with suppress(UserError):
                ask(path)
                outcomes[True] += 1
            outcomes[False] += 1
    assert 0 < outcomes[True] < outcomes[False]


def reopened(path: Path) -> None:
    write.Store.reopen(path).close()


def test_a_list_of_runs_names_trials_as_the_report_does() -> None:
    rows: list[dict[str, object]] = [{"id": "a", "trials": {"valid": 3, "struck_out": 2, "faulty": 0, "made_again": 1}}]
    assert listing.as_text("runs", rows).endswith("3 valid, 2 invalid, 1 retried")


def test_one_damaged_run_hides_no_other(path: Path, run: Run, tmp_path: Path) -> None:
    results = tmp_path / "results"
    for name in ("a", "b", "c"):
        (results / name).mkdir(parents=True)
        write.Store.create(results / name, replace(run, run_id=name), [], cells()).close()
    file = results / "b" / schema.FILE_NAME
    with file.open("r+b") as stored:
        stored.seek(4096)
        stored.write(bytes(8192))
    rows = listing.list_runs(results)
    assert [row["id"] for row in rows] == ["a", "b", "c"]
    errors = [row.get("error") for row in rows]
    assert (errors[0], errors[2]) == (None, None)
    assert str(errors[1]).startswith(f"{file}: is damaged: ")


def test_a_summary_counts_trials_as_the_report_does(path: Path) -> None:
    summary = read.summary(path)
    assert (summary["id"], summary["planned"], summary["trials"]) == ("r1", 3, NONE | {"failed": 2})


def test_what_only_the_generators_audit_doubts_is_valid_in_list_and_report(tmp_path: Path) -> None:
    doubtful_run = made_run()
    doubt = Audit(name="achieved_rate", passed=False, detail="late")
    sound = [trial for trial in doubtful_run.trials if trial.status == "valid"]
    doubted = [
        replace(trial, status="struck_out", reason="late", audits=(*trial.audits, doubt))
        for trial in sound
        if trial.contestant == EPOLL
    ]
    doubtful_run = replace(doubtful_run, trials=(*doubted, *(trial for trial in sound if trial.contestant != EPOLL)))
    assert "censored" in {trial.status for trial in outcomes.judge_run(doubtful_run).trials}
    stored(doubtful_run, tmp_path)
    (listed,) = listing.list_runs(tmp_path)
    counted = analyse(doubtful_run).counts
    assert listed["trials"] == NONE | {"valid": len(doubtful_run.trials)} == msgspec.to_builtins(counted)


def test_what_cannot_be_written_is_closed_again(run: Run, tmp_path: Path) -> None:
    (tmp_path / schema.FILE_NAME).write_bytes(b"no database" * 100)
    with pytest.raises(UserError, match="cannot be written"):
        write.Store.create(tmp_path, run, [], cells())
    open_files = [path.resolve() for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    assert [path for path in open_files if path.is_relative_to(tmp_path)] == []


def test_a_folder_that_cannot_be_written_is_one_clear_line(run: Run) -> None:
    with pytest.raises(UserError, match=r"/proc/run.sqlite: cannot be written"):
        write.Store.create(Path("/proc"), run, [], [])


def test_a_disk_that_is_full_is_one_clear_line(path: Path) -> None:
    with write.Store.reopen(path) as store:
        store._connection.execute("PRAGMA max_page_count = 1")
        with pytest.raises(UserError, match="the run cannot be stored any further: database or disk is full"):
            store.add(replace(trial(2), reason="x" * 100_000))
    assert read.load(path).trials == (trial(0), trial(1))
