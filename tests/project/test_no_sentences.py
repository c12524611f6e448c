"""A finding and an event of a run are numbers and names; only present/prose words them. Text from outside, a manifest
or a stored trial, is quoted, and named so (model/base.py). Allowed elsewhere: what an error says, a verb's own lines,
and a reason or detail that a trial stores, for only the audit or the program that failed knows it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

import pytest

from netdyno.kit.paths import ROOT

SOURCES = ROOT / "python" / "netdyno"
SILENT = ("analysis", "kit/statistics", "measure/run")
PARTS = {
    "measure/run/changes.py": "of the error of `resume`, whose words a run stores",
    "measure/run/preparation.py": "of an error",
    "measure/run/resume.py": "of an error",
    "measure/run/runner.py": "of a trial: why it took no turns",
    "measure/run/schedule.py": "of a trial: why it was skipped",
}
"""Modules of these rooms with parts of what is allowed."""
NAMES = {"Name", "Quoted"}
"""What a word in a finding may be declared as, beside one of a closed list (Literal)."""
SEVERAL_WORDS = re.compile(r"\w[^\w\s]* [^\w\s]*\w")


def sources(*rooms: str) -> list[Path]:
    paths = [path for room in rooms for path in sorted((SOURCES / room).rglob("*.py"))]
    assert {room for room in rooms if any(path.is_relative_to(SOURCES / room) for path in paths)} == set(rooms)
    return paths


def told_apart(path: Path, node: ast.expr | ast.stmt) -> str:
    return f"{path.relative_to(SOURCES)}:{node.lineno}"


# --- fields ------------------------------------------------------------------------------------------------------


def loose_fields(module: ast.Module) -> Iterator[ast.AnnAssign]:
    """Fields of classes that could hold any words at all."""
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            yield from (
                statement
                for statement in node.body
                if isinstance(statement, ast.AnnAssign) and _is_loose(statement.annotation)
            )


def _is_loose(annotation: ast.expr) -> bool:
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) in ("Literal", "Callable"):
        return False
    if isinstance(annotation, ast.Name):
        return annotation.id == "str"
    return any(_is_loose(child) for child in ast.iter_child_nodes(annotation) if isinstance(child, ast.expr))


FINDINGS = [*sources("analysis"), SOURCES / "measure" / "run" / "progress.py"]


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: str(path.relative_to(SOURCES)))
def test_no_finding_has_a_field_for_any_words(path: Path) -> None:
    module = ast.parse(path.read_text())
    assert not [f"{told_apart(path, field)} {ast.unparse(field)}" for field in loose_fields(module)]


def test_a_field_for_any_words_would_be_seen() -> None:
    module = ast.parse(
        "class Found:\n a: str\n b: Name\n c: tuple[str, ...] = ()\n d: Literal['x']\n e: str | None\n f: list[Name]"
    )
    assert [ast.unparse(field.target) for field in loose_fields(module)] == ["a", "c", "e"]


def test_there_is_no_other_name_for_any_words() -> None:
    """The names are those of model/base.py, and no module makes another."""
    aliases = {
        f"{told_apart(path, node)} {ast.unparse(node)}"
        for path in sources(*SILENT)
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == "str"
    }
    assert not aliases
    text = (SOURCES / "model" / "base.py").read_text()
    assert set(re.findall(r"^(\w+) = str$", text, flags=re.MULTILINE)) == NAMES


# --- literals ----------------------------------------------------------------------------------------------------


@cache
def closed_words() -> set[str]:
    """All values of closed lists: they are names, whatever they look like."""
    return {
        value.value
        for path in sorted(SOURCES.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Literal"
        for value in ast.walk(node.slice)
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    }


def sentences(module: ast.Module) -> Iterator[ast.Constant]:
    """Literals of several words, but documentation and what an error says."""
    silent: set[ast.AST] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Raise | ast.Assert) or (isinstance(node, ast.Expr) and _is_text(node.value)):
            silent.update(ast.walk(node))
    for node in ast.walk(module):
        if node not in silent and _is_text(node) and SEVERAL_WORDS.search(str(node.value)):
            yield node


def _is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@pytest.mark.parametrize("path", sources(*SILENT), ids=lambda path: str(path.relative_to(SOURCES)))
def test_no_sentence_stands_but_in_present(path: Path) -> None:
    module = ast.parse(path.read_text())
    found = [
        f"{told_apart(path, literal)} {literal.value!r}"
        for literal in sentences(module)
        if literal.value not in closed_words()
    ]
    assert bool(found) == (str(path.relative_to(SOURCES)) in PARTS), found


def test_a_sentence_would_be_seen() -> None:
    module = ast.parse(
        '"""Of a module."""\nx = "two words"\ny = f"{x} is more"\nz = "p99"\nraise ValueError("of an error")\nw = ", "'
    )
    assert [literal.value for literal in sentences(module)] == ["two words", " is more"]
