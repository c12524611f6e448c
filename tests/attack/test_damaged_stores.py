"""Files of runs that are damaged anywhere: each is read, or said to be damaged, and hides no other."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from netdyno.base.errors import UserError
from netdyno.commands import listing
from netdyno.experiment.plan import Cell
from netdyno.store import read, schema, write
from tests.support.builders.made_run import paired_run

FILES = 100
PAGE = 4096


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("whole")
    run = paired_run()
    trials = [replace(trial, position=number) for number, trial in enumerate(run.trials)]
    cells = [
        Cell(block=t.block, position=t.position, scenario=t.scenario, contestant=t.contestant, levels=t.levels)
        for t in trials
    ]
    with write.Store.create(folder, run, ["netdyno"], cells) as made:
        for trial in trials:
            made.add(trial)
    return (folder / schema.FILE_NAME).read_bytes()


def cut(content: bytearray, chance: Random) -> None:
    del content[chance.randrange(len(content)) :]


def scatter(content: bytearray, chance: Random) -> None:
    within = chance.choice((100, PAGE, len(content)))
    for _ in range(chance.choice((1, 8, 200))):
        content[chance.randrange(within)] = chance.randrange(256)


def blank(content: bytearray, chance: Random) -> None:
    at = chance.randrange(len(content))
    content[at : at + PAGE] = bytes(len(content[at : at + PAGE]))


def swap(content: bytearray, chance: Random) -> None:
    one, other = (PAGE * chance.randrange(len(content) // PAGE) for _ in range(2))
    content[one : one + PAGE], content[other : other + PAGE] = content[other : other + PAGE], content[one : one + PAGE]


DAMAGES: tuple[Callable[[bytearray, Random], None], ...] = (cut, scatter, blank, swap)


def test_a_damaged_file_is_read_or_said_to_be_damaged(seed: int, whole: bytes, tmp_path: Path) -> None:
    chance = Random(seed)
    path = tmp_path / "damaged" / schema.FILE_NAME
    other = tmp_path / "other" / schema.FILE_NAME
    for file in (path, other):
        file.parent.mkdir()
        file.write_bytes(whole)
    for _ in range(FILES):
        content = bytearray(whole)
        chance.choice(DAMAGES)(content, chance)
        path.write_bytes(content)
        for ask in (read.load, read.summary, read.load_cells, lambda one: write.Store.reopen(one).close()):
            with suppress(UserError):
                ask(path)
        assert [row["id"] for row in listing.runs(tmp_path)][1] == read.load(other).run_id
