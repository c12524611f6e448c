"""Which audits there are, read from the sources: there is no list of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_IN_CPP = re.compile(r'\breturn \{"([a-z_]+)",')


@cache
def of_harness() -> frozenset[str]:
    """Those that Python judges and can fail: one that it only ever passes belongs to the program that judges it."""
    return frozenset(name for path in (ROOT / "python").rglob("*.py") for name in _judged(path))


def of_generator() -> set[str]:
    """Those of loadgen/report/audits.cpp."""
    return set(_IN_CPP.findall((ROOT / "loadgen" / "report" / "audits.cpp").read_text()))


def of_cpp() -> set[str]:
    """The generator's, and those that client contestants in C++ add to them."""
    sources = [path for path in (ROOT / "clients").rglob("*.cpp") if "audits.hpp" in path.read_text()]
    return of_generator() | {name for path in sources for name in _IN_CPP.findall(path.read_text())}


def _judged(path: Path) -> Iterator[str]:
    for call in ast.walk(ast.parse(path.read_text())):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Audit":
            given = {word.arg: word.value for word in call.keywords}
            name, passed = given["name"], given["passed"]
            if isinstance(name, ast.Attribute) and name.attr == "name":
                continue  # another view of an audit that was made elsewhere
            assert isinstance(name, ast.Constant), f"{path}:{call.lineno}: write the audit's name as a literal"
            if not (isinstance(passed, ast.Constant) and passed.value is True):
                yield str(name.value)
