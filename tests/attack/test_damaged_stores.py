"""Files of runs that are damaged anywhere, or hold impossible figures: each is read and reported, or reported as
damaged, and hides no other."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.compare.run_comparison import compare_runs
from netdyno.kit.errors import UserError
from netdyno.present import report
from netdyno.present.terminal.console import Console
from netdyno.present.terminal.table import render
from netdyno.store import read, schema, write
from netdyno.verbs import compare, listing
from tests.support.builders.made_run import paired_run
from tests.support.builders.stored import stored
from tests.support.edit_store import edit_store

FILES = 100
PAGE = 4096


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = stored(replace(paired_run(), finished_at=None), tmp_path_factory.mktemp("whole"))
    return (folder / schema.FILE_NAME).read_bytes()


def cut(content: bytearray, chance: Random) -> None:
    del content[chance.randrange(len(content)) :]


def scatter(content: bytearray, chance: Random) -> None:
    within = chance.choice((100, PAGE, len(content)))
    for _ in range(chance.choice((1, 8, 200))):
        content[chance.randrange(within)] = chance.randrange(256)


def blank(content: bytearray, chance: Random) -> None:
    start = chance.randrange(len(content))
    content[start : start + PAGE] = bytes(len(content[start : start + PAGE]))


def swap(content: bytearray, chance: Random) -> None:
    first, second = (PAGE * chance.randrange(len(content) // PAGE) for _ in range(2))
    content[first : first + PAGE], content[second : second + PAGE] = (
        content[second : second + PAGE],
        content[first : first + PAGE],
    )


DAMAGES: tuple[Callable[[bytearray, Random], None], ...] = (cut, scatter, blank, swap)


def test_a_damaged_file_is_read_or_called_damaged(seed: int, whole: bytes, tmp_path: Path) -> None:
    chance = Random(seed)
    path = tmp_path / "damaged" / schema.FILE_NAME
    intact = tmp_path / "other" / schema.FILE_NAME
    for file in (path, intact):
        file.parent.mkdir()
        file.write_bytes(whole)
    for _ in range(FILES):
        content = bytearray(whole)
        chance.choice(DAMAGES)(content, chance)
        path.write_bytes(content)
        for ask in (read.load, read.summary, read.load_cells, lambda target: write.Store.reopen(target).close()):
            with suppress(UserError):
                ask(path)
        assert [row["id"] for row in listing.list_runs(tmp_path)][1] == read.load(intact).run_id


RUNS = 2
NUMBERS: tuple[int | float, ...] = (0, -1, 1, 2**31, 2**62, -(2**63), 0.0, 0.5, -1.0, 5e-324, 1e15, 1e308, -1e308)


def numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all numbers in a JSON value."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield path
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(inner, (*path, key))


def put(whole: Any, path: tuple[Any, ...], chance: Random) -> None:
    """Put another number of the same kind in that place."""
    for key in path[:-1]:
        whole = whole[key]
    kind = type(whole[path[-1]])
    whole[path[-1]] = chance.choice([number for number in NUMBERS if type(number) is kind])


def change_some(path: Path, chance: Random) -> None:
    """Change one to three numbers of the experiment or of a trial. Each name of a field is as likely as another."""
    with edit_store(path) as connection:
        for _ in range(chance.choice((1, 1, 2, 3))):
            table, column = chance.choice((("trial", "trial"), ("trial", "trial"), ("run", "experiment")))
            rows = connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
            row, text = chance.choice(rows)
            whole = msgspec.json.decode(text)
            by_name: dict[object, list[tuple[Any, ...]]] = {}
            for place in numbers(whole):
                by_name.setdefault(tuple(key for key in place if isinstance(key, str)), []).append(place)
            put(whole, chance.choice(by_name[chance.choice(list(by_name))]), chance)
            connection.execute(
                f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (msgspec.json.encode(whole).decode(), row)
            )


def test_numbers_that_none_can_have_measured_are_reported_or_called_damage(
    seed: int, whole: bytes, tmp_path: Path
) -> None:
    chance = Random(seed)
    path = tmp_path / schema.FILE_NAME
    for _ in range(RUNS):
        path.write_bytes(whole)
        change_some(path, chance)
        try:
            run = read.load(path)
        except UserError:
            continue
        analysis = analyse(run)
        report.render_html(analysis)
        console = Console(file=io.StringIO(), width=100)
        console.print(render(analysis))
        console.print(compare.render(compare_runs(run, run)))
