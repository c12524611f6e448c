"""Code is counted as a reader would count it, model apart from what is shared."""

from __future__ import annotations

from pathlib import Path

import pytest

from netdyno.codesize import CodeError, describe, imported, measure, sources
from netdyno.model import CodeSize, Contestant, Manifest

CPP = """\
// a comment is no line of code

#include <vector>
/* nor is
   this */
int count(const std::vector<int>& numbers, bool all) {  // one way through, and
  int found = 0;
  for (int number : numbers) {                          // one more,
    if (all || number > 0) ++found;                     // two more
  }
  return found;
}

struct Both {
  int sum() const { return first + second; }            // one way
  int first = 0;
  int second = 0;
};
"""
JAVASCRIPT = """\
// sums what is a number
const isNumber = (value) => typeof value === 'number';

/** Not a line. */
function sum(values) {
  let total = 0;
  for (const value of values) {
    if (!isNumber(value)) continue;
    total += value > 0 ? value : 0;
  }
  return total;
}
"""
PYTHON = '''\
"""A docstring is a comment."""

import asyncio


async def answer(numbers: list[int]) -> int:
    """So is this."""
    # and this
    while numbers and numbers[-1] < 0:
        await asyncio.sleep(0)
        numbers.pop()
    return len(numbers)
'''
# lines, functions, complexity in all, of the most complex function; counted by hand
EXPECTED = {
    "main.cpp": (13, 2, 4 + 1, 4),
    "main.js": (9, 2, 1 + 4, 4),
    "main.py": (6, 1, 3, 3),
}
TEXT = {"main.cpp": CPP, "main.js": JAVASCRIPT, "main.py": PYTHON}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def contestant(name: str) -> Contestant:
    manifest = Manifest(kind="cmake", model="m", summary="s", workloads=("rpc",), caveats=("slow",))
    return Contestant(name=name, manifest=manifest, command=("x",), available=False)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_source_of_each_language_is_counted_as_by_hand(name: str, tmp_path: Path) -> None:
    lines, functions, complexity, most = EXPECTED[name]
    assert measure([write(tmp_path / name, TEXT[name])]) == CodeSize(
        files=1, lines=lines, functions=functions, complexity=complexity, complexity_max=most
    )


def test_files_are_added_up_and_the_most_complex_function_stands_out(tmp_path: Path) -> None:
    files = [write(tmp_path / name, text) for name, text in TEXT.items()]
    assert measure(files) == CodeSize(files=3, lines=28, functions=5, complexity=13, complexity_max=4)
    assert measure([]) == CodeSize(files=0, lines=0, functions=0, complexity=0, complexity_max=0)


def test_tests_and_what_was_installed_are_not_the_contestants_code(tmp_path: Path) -> None:
    mine = write(tmp_path / "inner" / "loop.hpp", CPP)
    for name in ("session.test.js", "test_session.py", "node_modules/x/main.js", "__pycache__/a.py", ".hidden/a.py"):
        write(tmp_path / name, "")
    write(tmp_path / "README.md", "# words")
    assert sources(tmp_path) == [mine]
    assert sources(tmp_path, deep=False) == []


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "main.py"
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(CodeError, match=r"main.py cannot be counted"):
        measure([broken])


def test_the_model_stands_apart_from_what_is_shared(tmp_path: Path) -> None:
    for path in ("servers/a/main.cpp", "common/net.cpp", "common/epoll/loop.cpp", "clients/_shared/journal.cpp"):
        write(tmp_path / path, CPP)
    write(tmp_path / "clients/c/main.py", "from netdyno import wire\n")
    write(tmp_path / "python/netdyno/wire.py", PYTHON)
    write(tmp_path / "loadgen/plan.cpp", CPP)
    alone = [(one.kind, one.name) for one in describe([contestant("a")], [], tmp_path)]
    assert alone == [("server", "a"), ("shared", "common"), ("shared", "common/epoll")]
    all_of_it = describe([contestant("a"), contestant("missing")], [contestant("c")], tmp_path)
    assert [(one.kind, one.name) for one in all_of_it] == [
        ("server", "a"),
        ("server", "missing"),
        ("client", "c"),
        ("shared", "common"),
        ("shared", "common/epoll"),
        ("shared", "loadgen"),
        ("shared", "clients/_shared"),
        ("shared", "python/netdyno, as far as contestants import it"),
    ]
    assert all_of_it[0].caveats == ("slow",)
    assert all_of_it[0].code is not None
    assert all_of_it[0].code.lines == 13
    assert (all_of_it[1].code, all_of_it[1].why_no_code) == (None, "no source files")


def test_modules_are_followed_through_our_own_package_only(tmp_path: Path) -> None:
    package = tmp_path / "netdyno"
    main = write(tmp_path / "main.py", "import os\nfrom netdyno.client.plan import parse\n")
    plan = write(package / "client" / "plan.py", "from netdyno import units\nimport netdyno.client\n")
    init = write(package / "client" / "__init__.py", "")
    root = write(package / "__init__.py", "")
    units = write(package / "units.py", "from netdyno.client import plan\n")
    write(package / "unused.py", "")
    assert sorted(imported([main], tmp_path)) == sorted([plan, init, root, units])
