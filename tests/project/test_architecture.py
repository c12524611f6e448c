"""The rule of the house: a module imports only from its own room and from rooms further left (docs/start.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from netdyno.base.paths import ROOT

pytestmark = pytest.mark.quick

SOURCES = ROOT / "python" / "netdyno"
RULE = (
    {"base"},
    {"statistics"},
    {"model"},
    {"contestants", "experiment", "audits", "machine", "protocol"},
    {"store", "trial", "analysis"},
    {"cluster"},
    {"run"},
    {"present"},
    {"instruments"},
    {"commands"},
)
"""From left to right; rooms of one set do not import each other."""
APART = (("present/terminal", "present/report"), ("present/report", "present/terminal"))
"""Both speak by present/prose."""
PURE = {"statistics", "model", "audits", "analysis"}
"""Rooms that touch no file, clock or process: what they say follows from what they are given."""
OF_THE_WORLD = {"os", "subprocess", "socket", "time", "pathlib"}


class Import(NamedTuple):
    """One import of a module: where it stands, from which room, and what it takes."""

    where: str
    home: Path
    taken: str

    @property
    def room(self) -> str:
        return self.home.parts[0]

    @property
    def said(self) -> str:
        return f"{self.where} imports {self.taken}"


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
    package, _, rest = imported.taken.partition(".")
    room = rest.partition(".")[0]
    if package != "netdyno" or room == imported.room:
        target = rest.replace(".", "/")
        return any(imported.home.is_relative_to(here) and Path(target).is_relative_to(there) for here, there in APART)
    return _rank(room) >= _rank(imported.room)


def _rank(room: str) -> int:
    return next((rank for rank, rooms in enumerate(RULE) if room in rooms), len(RULE))


def test_every_import_goes_to_the_left() -> None:
    assert [imported.said for imported in all_imports() if against_the_rule(imported)] == []


def test_every_room_has_its_place_in_the_rule() -> None:
    rooms = {path.name for path in SOURCES.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert rooms == set().union(*RULE)


def test_what_is_pure_touches_nothing_of_the_world() -> None:
    touching = [
        imported.said
        for imported in all_imports()
        if imported.room in PURE and imported.taken.partition(".")[0] in OF_THE_WORLD
    ]
    assert touching == []


@pytest.mark.parametrize(
    ("module", "text", "broken"),
    [
        ("model/run.py", "from netdyno.store import read\n", "1 imports netdyno.store.read"),
        (
            "audits/of_trial.py",
            "def f():\n    import netdyno.machine.process\n",
            "2 imports netdyno.machine.process",
        ),
        (
            "present/report/marks.py",
            "from netdyno.present.terminal import table\n",
            "1 imports netdyno.present.terminal.table",
        ),
        ("present/report/views.py", "from netdyno.present.prose import loss\nfrom netdyno.base import units\n", ""),
        ("analysis/loss.py", "from netdyno.analysis import cells\nimport numpy\n", ""),
        ("analysis/loss.py", "from netdyno.commands import cli\n", "1 imports netdyno.commands.cli"),
    ],
)
def test_the_import_that_breaks_the_rule_is_named(module: str, text: str, broken: str, tmp_path: Path) -> None:
    path = tmp_path / module
    path.parent.mkdir(parents=True)
    path.write_text(text)
    broken_rules = [imported.said for imported in imports(tmp_path) if against_the_rule(imported)]
    assert broken_rules == ([f"{module}:{broken}"] if broken else [])
