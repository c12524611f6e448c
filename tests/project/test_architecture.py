"""The rule of the house: a module imports only from its own room and from rooms further left (docs/start.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from netdyno.kit.paths import ROOT

pytestmark = pytest.mark.quick

SOURCES = ROOT / "python" / "netdyno"
RULE = (
    {"kit"},
    {"model"},
    {"question", "protocol"},
    {"store", "analysis"},
    {"measure"},
    {"present"},
    {"verbs"},
)
"""From left to right; rooms of one set do not import each other."""
WINGS = {"measure": ("audits", "machine", "trial", "run", "cluster")}
"""Rooms with an order of their own, from left to right."""
MIRRORS = ("analysis/found", "present/prose", "present/report", "present/export")
"""Rooms with a file for each subject of the rest."""
MOST_ARROWS = 40
MOST_UNPACKED = 3
"""A tuple with more fields is never unpacked by position, so it is no tuple."""
WITHOUT_LIBRARIES = (SOURCES / "question" / "contestants" / "stand_in.py",)
"""Programs that start for each trial and load nothing."""
APART = (("present/terminal", "present/report"), ("present/report", "present/terminal"))
"""Both speak by present/prose."""
PURE = ("kit/statistics", "model", "measure/audits", "analysis")
"""Rooms that touch no file, clock or process: what they say follows from what they are given."""
OF_THE_WORLD = {"os", "subprocess", "socket", "time", "pathlib"}


class Import(NamedTuple):
    """One import of a module: where it stands, from which room, and what it takes."""

    where: str
    home: Path
    taken: str

    @property
    def room(self) -> str:
        return find_room(self.home.parts)

    @property
    def target(self) -> str:
        """The room that it goes to; empty for what is not the project's, or in no room."""
        package, *parts = self.taken.split(".")
        return find_room(tuple(parts)) if package == "netdyno" else ""

    @property
    def sentence(self) -> str:
        return f"{self.where} imports {self.taken}"


def find_room(parts: tuple[str, ...]) -> str:
    """Return the room of a module; in a wing, the room within it."""
    in_wing = len(parts) > 1 and parts[1] in WINGS.get(parts[0], ())
    return "/".join(parts[: 2 if in_wing else 1])


@cache
def all_imports() -> tuple[Import, ...]:
    """Those of the project, read once for all tests of this file."""
    return tuple(imports(SOURCES))


def imports(sources: Path) -> Iterator[Import]:
    """Every import of every module in a room, those inside functions too."""
    for path in sorted(sources.rglob("*.py")):
        home = path.relative_to(sources)
        if len(home.parts) > 1:
            for node in ast.walk(ast.parse(path.read_text())):
                yield from (Import(f"{home}:{line}", home, name) for line, name in _taken(node))


def _taken(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Import):
        yield from ((node.lineno, alias.name) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports name their module in full"
        yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def against_the_rule(imported: Import) -> bool:
    """Whether it goes to a room that is not further left, or into a room's rooms that stand apart."""
    if not imported.target or imported.target == imported.room:
        path = Path(*imported.taken.split(".")[1:])
        return any(imported.home.is_relative_to(here) and path.is_relative_to(there) for here, there in APART)
    return _rank(imported.target) >= _rank(imported.room)


def _rank(room: str) -> tuple[int, int]:
    wing, _, within = room.partition("/")
    rank = next((rank for rank, rooms in enumerate(RULE) if wing in rooms), len(RULE))
    return rank, WINGS[wing].index(within) if within else -1


def test_every_import_goes_to_the_left() -> None:
    assert [imported.sentence for imported in all_imports() if against_the_rule(imported)] == []


def test_every_room_has_its_place_in_the_rule() -> None:
    assert _find_packages(SOURCES) == set().union(*RULE)
    for wing, rooms in WINGS.items():
        assert _find_packages(SOURCES / wing) == set(rooms)


def _find_packages(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if (path / "__init__.py").exists()}


def test_a_file_name_stands_once_in_its_room() -> None:
    """In `analysis/found` and the rooms of `present`, a file has the name of its subject wherever that stands."""
    mirrors = {SOURCES / mirror for mirror in MIRRORS}
    for room in sorted({SOURCES / name for name in set().union(*RULE)} | mirrors):
        files = [path for path in room.rglob("*.py") if path.stem not in ("__init__", "__main__")]
        names = [path.name for path in files if room in mirrors or not mirrors.intersection(path.parents)]
        assert sorted(names) == sorted(set(names)), room.name


def test_the_arrows_do_not_grow_more() -> None:
    """A new arrow between rooms is a decision: one fact that another room needs moves to `model` instead."""
    arrows = {_find_arrow(imported.room, imported.target) for imported in all_imports() if imported.target}
    assert len({(here, there) for here, there in arrows if here != there}) <= MOST_ARROWS


def _find_arrow(here: str, there: str) -> tuple[str, str]:
    """A wing is one room to all others."""
    wing, other = here.partition("/")[0], there.partition("/")[0]
    return (here, there) if wing == other else (wing, other)


def list_other_records(module: ast.Module) -> Iterator[str]:
    """Yield the records of a module that are to be structs: frozen dataclasses, and tuples too long to unpack."""
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            fields = sum(isinstance(statement, ast.AnnAssign) for statement in node.body)
            is_long = any(ast.unparse(base) == "NamedTuple" for base in node.bases) and fields > MOST_UNPACKED
            if is_long or any("frozen=True" in ast.unparse(decorator) for decorator in node.decorator_list):
                yield node.name


def test_a_record_is_a_struct() -> None:
    packages = (SOURCES, SOURCES.parent / "netdyno_client")
    files = [path for package in packages for path in package.rglob("*.py") if path not in WITHOUT_LIBRARIES]
    assert [name for path in files for name in list_other_records(ast.parse(path.read_text()))] == []


def test_a_frozen_dataclass_and_a_long_tuple_would_be_seen() -> None:
    three, four = ("\n".join(f"    f{number}: int" for number in range(count)) for count in (3, 4))
    text = f"@dataclass(frozen=True)\nclass A:\n{three}\nclass B(NamedTuple):\n{three}\nclass C(NamedTuple):\n{four}\n"
    assert list(list_other_records(ast.parse(text))) == ["A", "C"]


def test_only_verbs_import_the_cluster() -> None:
    """It is an option: a run on one machine loads nothing of it."""
    users = {imported.room for imported in all_imports() if imported.target == "measure/cluster"}
    assert users == {"measure/cluster", "verbs"}


def test_what_is_pure_touches_nothing_of_the_world() -> None:
    touching = [
        imported.sentence
        for imported in all_imports()
        if any(imported.home.is_relative_to(room) for room in PURE) and imported.taken.partition(".")[0] in OF_THE_WORLD
    ]
    assert touching == []


@pytest.mark.parametrize(
    ("module", "text", "broken"),
    [
        ("model/run.py", "from netdyno.store import read\n", "1 imports netdyno.store.read"),
        (
            "measure/audits/of_trial.py",
            "def f():\n    import netdyno.measure.machine.process\n",
            "2 imports netdyno.measure.machine.process",
        ),
        (
            "present/report/marks.py",
            "from netdyno.present.terminal import table\n",
            "1 imports netdyno.present.terminal.table",
        ),
        ("present/report/views.py", "from netdyno.present.prose import loss\nfrom netdyno.kit import units\n", ""),
        ("analysis/loss.py", "from netdyno.analysis import cells\nimport numpy\n", ""),
        ("measure/run/runner.py", "from netdyno.measure.trial import load\n", ""),
        (
            "measure/run/runner.py",
            "from netdyno.measure.cluster import stage\n",
            "1 imports netdyno.measure.cluster.stage",
        ),
        ("analysis/loss.py", "from netdyno.verbs import cli\n", "1 imports netdyno.verbs.cli"),
    ],
)
def test_the_import_that_breaks_the_rule_is_named(module: str, text: str, broken: str, tmp_path: Path) -> None:
    path = tmp_path / module
    path.parent.mkdir(parents=True)
    path.write_text(text)
    broken_rules = [imported.sentence for imported in imports(tmp_path) if against_the_rule(imported)]
    assert broken_rules == ([f"{module}:{broken}"] if broken else [])
