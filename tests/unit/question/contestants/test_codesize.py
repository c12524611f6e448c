"""Code is counted as a reader would count it, model apart from what is shared."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT
from netdyno.model.contestant import About, CodeSize, Contestant, Manifest
from netdyno.question.contestants.codesize import (
    describe,
    find_families,
    find_imports,
    find_parts,
    list_sources,
    measure,
    sum_with_family,
)
from netdyno.question.contestants.contestants import discover
from netdyno.question.contestants.counted import CodeError

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
RUST = """\
//! Not a line.
use std::io;

/// Nor this.
fn answer(number: Option<u32>) -> io::Result<u32> {
    match number {
        Some(0) => Ok(1),
        Some(number) if number > 7 => Ok(number),
        _ => Err(io::ErrorKind::Other.into()), // three ways
    }
}
"""
GO = """\
// Package main is not a line.
package main

func count(numbers []int, all bool) (found int) {
	for _, number := range numbers {
		if all || number > 0 { // two
			found++
		}
	}
	return found
}
"""
ERLANG = """\
%% Not a line.
-module(main).

-export([count/1]).

count([]) ->
    0;
count([Number | Numbers]) ->
    % nor is this
    case Number > 0 of % two
        true -> 1 + count(Numbers);
        false -> count(Numbers)
    end.
"""
# lines, functions (clauses in Erlang), complexity in all, of the most complex function; counted by hand
EXPECTED = {
    "main.cpp": (13, 2, 4 + 1, 4),
    "main.js": (9, 2, 1 + 4, 4),
    "main.py": (6, 1, 3, 3),
    "main.rs": (8, 1, 4, 4),
    "main.go": (9, 1, 4, 4),
    "main.erl": (9, 2, 1 + 2, 2),
}
TEXT = {
    "main.cpp": CPP,
    "main.js": JAVASCRIPT,
    "main.py": PYTHON,
    "main.rs": RUST,
    "main.go": GO,
    "main.erl": ERLANG,
}


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
    assert measure(files) == CodeSize(files=6, lines=54, functions=9, complexity=24, complexity_max=4)
    assert measure([]) == CodeSize(files=0, lines=0, functions=0, complexity=0, complexity_max=0)


def test_tests_and_what_was_installed_are_not_the_contestants_code(tmp_path: Path) -> None:
    mine = write(tmp_path / "inner" / "loop.hpp", CPP)
    tests = ("session.test.js", "golden.test.rs", "golden_test.go", "test_session.py")
    for name in (*tests, "example/main.cpp", "node_modules/x/main.js", "__pycache__/a.py", ".hidden/a.py"):
        write(tmp_path / name, "")
    write(tmp_path / "README.md", "# words")
    assert list_sources(tmp_path) == [mine]
    assert list_sources(tmp_path, deep=False) == []


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "main.py"
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(CodeError, match=r"main.py cannot be counted"):
        measure([broken])


def test_the_model_stands_apart_from_what_is_shared(tmp_path: Path) -> None:
    for path in (
        "servers/a/main.cpp",
        "lib/net/bind.cpp",
        "servers/_shared/epoll/loop.cpp",
        "clients/_shared/journal.cpp",
    ):
        write(tmp_path / path, CPP)
    write(tmp_path / "clients/c/main.py", "from netdyno.protocol import wire\n")
    write(tmp_path / "python/netdyno/protocol/wire.py", PYTHON)
    write(tmp_path / "loadgen/plan/plan.cpp", CPP)
    alone = [(part.kind, part.name) for part in describe([contestant("a")], [], tmp_path)]
    assert alone == [("server", "a"), ("shared", "lib/net"), ("shared", "servers/_shared/epoll")]
    all_of_it = describe([contestant("a"), contestant("missing")], [contestant("c")], tmp_path)
    assert [(part.kind, part.name) for part in all_of_it] == [
        ("server", "a"),
        ("server", "missing"),
        ("client", "c"),
        ("shared", "lib/net"),
        ("shared", "servers/_shared/epoll"),
        ("shared", "loadgen/plan"),
        ("shared", "clients/_shared"),
        ("shared", "python/, as far as contestants import it"),
    ]
    assert all_of_it[0].caveats == ("slow",)
    assert all_of_it[0].code is not None
    assert all_of_it[0].code.lines == 13
    assert (all_of_it[1].code, all_of_it[1].why_no_code) == (None, "no source files")


def test_a_contestant_that_includes_another_is_as_large_as_that(tmp_path: Path) -> None:
    write(tmp_path / "servers/b/main.cpp", '#include "part.hpp"\n#include "servers/_shared/x/y.hpp"\n' + CPP)
    write(tmp_path / "servers/b/part.hpp", CPP)
    write(tmp_path / "servers/_shared/x/y.hpp", CPP)
    write(tmp_path / "servers/a/main.cpp", '#include "own.hpp"\n#include "servers/b/main.cpp"\n')
    write(tmp_path / "servers/a/own.hpp", CPP)
    sharing, alone, _ = describe([contestant("a"), contestant("b")], [], tmp_path)
    assert sharing.code is not None
    assert alone.code is not None
    assert (alone.code.files, alone.code.lines) == (2, 2 * 13 + 2)
    assert (sharing.code.files, sharing.code.lines) == (4, 3 * 13 + 2 + 2)


def test_modules_are_followed_through_our_own_package_only(tmp_path: Path) -> None:
    package = tmp_path / "python" / "netdyno"
    main = write(tmp_path / "main.py", "import os\nfrom netdyno_client.plan import parse\n")
    plan = write(package.with_name("netdyno_client") / "plan.py", "from netdyno import units\nimport netdyno_client\n")
    init = write(package.with_name("netdyno_client") / "__init__.py", "")
    root = write(package / "__init__.py", "")
    units = write(package / "units.py", "from netdyno_client import plan\n")
    write(package / "unused.py", "")
    assert sorted(find_imports([main], tmp_path)) == sorted([plan, init, root, units])


def test_a_file_that_has_changed_is_read_once_more(tmp_path: Path) -> None:
    """One process keeps what it has read of a file for its later runs."""
    first = write(tmp_path / "python/netdyno/one.py", PYTHON)
    second = write(tmp_path / "python/netdyno/other.py", PYTHON)
    main = write(tmp_path / "servers/a/main.py", "from netdyno import one\n")
    loop = write(tmp_path / "servers/b/main.cpp", f'#include "lib/net/epoll/a.hpp"\n{CPP}')
    write(tmp_path / "servers/c/main.cpp", CPP)
    for room in ("epoll", "uring"):
        write(tmp_path / f"lib/net/{room}/a.hpp", CPP)
    assert find_imports([main], tmp_path) == [first]
    assert find_families(tmp_path / "servers", tmp_path)["b"] == ("lib/net/epoll",)
    for path, text in ((main, "from netdyno import other\n"), (loop, f'#include "lib/net/uring/a.hpp"\n{CPP}\n')):
        path.write_text(text)
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000))  # a clock's tick may be longer than this test
    assert find_imports([main], tmp_path) == [second]
    assert find_families(tmp_path / "servers", tmp_path)["b"] == ("lib/net/uring",)


# --- families ----------------------------------------------------------------------------------------------------


def tree(root: Path, **servers: str) -> Path:
    """Servers that include the given headers, and what there is to include."""
    for name, headers in servers.items():
        write(
            root / "servers" / name / "main.cpp", "".join(f'#include "{header}"\n' for header in headers.split()) + CPP
        )
    write(root / "lib/net/socket.hpp", CPP)
    write(root / "servers/_shared/epoll/loop.hpp", f'#include "lib/net/socket.hpp"\n{CPP}')
    write(root / "servers/_shared/epoll/loop.cpp", CPP)
    write(root / "servers/_shared/datagram/client.hpp", f'#  include "servers/_shared/epoll/loop.hpp"\n{CPP}')
    write(root / "lib/net/epoll/poller.hpp", CPP)
    write(root / "servers/_shared/zmq/router.hpp", CPP)
    write(root / "servers/_shared/zmq/router.cpp", f'#include "../datagram/client.hpp"\n{CPP}')
    write(root / "lib/net/multicast.hpp", f'#include "servers/_shared/datagram/client.hpp"\n{CPP}')
    write(
        root / "servers/_shared/qt/application.hpp",
        f'// #include "servers/_shared/epoll/loop.hpp"\n#include <servers/_shared/zmq/router.hpp>\n{CPP}',
    )
    return root


@pytest.mark.parametrize(
    ("headers", "family"),
    [
        ("", ()),
        ("lib/net/socket.hpp lib/net/missing.hpp", ()),
        ("lib/net/epoll/poller.hpp", ("lib/net/epoll",)),  # a folder within a room is for some
        ("servers/_shared/epoll/loop.hpp", ("servers/_shared/epoll",)),
        ("servers/_shared/datagram/client.hpp", ("servers/_shared/datagram", "servers/_shared/epoll")),
        ("lib/net/multicast.hpp", ("servers/_shared/datagram", "servers/_shared/epoll")),  # through a header of a room
        (
            "servers/_shared/zmq/router.hpp",
            ("servers/_shared/datagram", "servers/_shared/epoll", "servers/_shared/zmq"),
        ),  # the folder counts whole
        ("servers/_shared/qt/application.hpp", ("servers/_shared/qt",)),
    ],
)
def test_a_family_is_what_is_included_directly_or_not(headers: str, family: tuple[str, ...], tmp_path: Path) -> None:
    root = tree(tmp_path, a=headers, plain="lib/net/socket.hpp")
    assert find_families(root / "servers", root) == {"a": family, "plain": ()}


def test_what_every_server_includes_is_nobodys_family(tmp_path: Path) -> None:
    """In another language there is nothing to include, and what has no sources or is shared is no contestant."""
    root = tree(
        tmp_path,
        a="servers/_shared/epoll/loop.hpp servers/_shared/qt/application.hpp",
        b="servers/_shared/epoll/loop.hpp",
    )
    for path in ("node/main.js", "_shared/base.hpp", "empty/README.md"):
        write(root / "servers" / path, "")
    assert find_families(root / "servers", root) == {"a": ("servers/_shared/qt",), "b": ()}


def test_the_family_of_a_program_in_rust_or_go_is_what_its_own_file_names(tmp_path: Path) -> None:
    shared = tmp_path / "servers" / "_shared"
    write(shared / "rust/Cargo.toml", '[lib]\npath = "lib.rs"\n')
    write(shared / "tokio/Cargo.toml", '[dependencies]\nours = { path = "../rust" }\ntokio = "=1.0.0"\n')
    write(tmp_path / "servers/a/Cargo.toml", '[dependencies]\nours = { version = "1", path = "../_shared/tokio" }\n')
    write(tmp_path / "servers/b/go.mod", "module b\n\nrequire ours v0.0.0\n\nreplace ours => ../_shared/go\n")
    write(tmp_path / "servers/c/Cargo.toml", "[dependencies]\n")
    for name in ("a/main.rs", "c/main.rs", "_shared/rust/lib.rs", "_shared/tokio/lib.rs"):
        write(tmp_path / "servers" / name, RUST)
    for name in ("b/main.go", "_shared/go/session.go"):
        write(tmp_path / "servers" / name, GO)
    assert find_families(tmp_path / "servers", tmp_path) == {
        "a": ("servers/_shared/rust", "servers/_shared/tokio"),
        "b": ("servers/_shared/go",),
        "c": (),
    }
    everyone = describe([contestant(name) for name in "abc"], [], tmp_path)
    sizes = [sum_with_family(about, everyone) for about in everyone[:3]]
    assert [size.files for size in sizes if size is not None] == [3, 2, 1]
    assert [about.language for about in everyone] == ["Rust", "Go", "Rust", "", "", ""]


def test_a_family_in_python_is_what_is_imported(tmp_path: Path) -> None:
    root = tree(tmp_path, cpp="servers/_shared/epoll/loop.hpp", plain="lib/net/socket.hpp")
    write(root / "servers/py/main.py", "def main():\n    from servers._shared.asyncio.protocols import serve\n")
    write(root / "servers/_shared/asyncio/protocols.py", "from netdyno_server import session\n")
    write(root / "python/netdyno_server/session.py", PYTHON)
    assert find_families(root / "servers", root)["py"] == ("servers/_shared/asyncio",)
    about = {part.name: part for part in describe([contestant("py")], [], root)}
    shared = about["python/, as far as contestants import it"]
    assert shared.code is not None
    assert shared.code.files == 1  # through what the family imports, and without it


def test_a_family_in_javascript_is_what_is_required(tmp_path: Path) -> None:
    write(tmp_path / "servers/a/main.js", "const { serve } = require('../_shared/node/serve.js');\n")
    write(tmp_path / "servers/b/main.js", "const net = require('node:net');\nconst own = require('./own.js');\n")
    write(tmp_path / "servers/b/own.js", "require('./missing.js');\n")
    write(tmp_path / "servers/_shared/node/serve.js", "const list = require('../list/list.js');\n")
    write(tmp_path / "servers/_shared/list/list.js", "require('../node/serve.js');\n")
    assert find_families(tmp_path / "servers", tmp_path) == {"a": ("servers/_shared/list", "servers/_shared/node")}


def test_a_family_counts_with_each_of_its_members(tmp_path: Path) -> None:
    root = tree(tmp_path, a="servers/_shared/datagram/client.hpp", b="lib/net/socket.hpp")
    everyone = describe([contestant("a"), contestant("b")], [], root)
    server, server_alone = everyone[:2]
    assert (server.family, server_alone.family) == (("servers/_shared/datagram", "servers/_shared/epoll"), ())
    assert [part.name for part in find_parts(server, everyone)] == [
        "a",
        "servers/_shared/datagram",
        "servers/_shared/epoll",
    ]
    # main.cpp, client.hpp and loop.hpp have an include more than the last file
    assert sum_with_family(server, everyone) == CodeSize(
        files=4, lines=3 * (13 + 1) + 13, functions=8, complexity=20, complexity_max=4
    )
    assert sum_with_family(server_alone, everyone) == server_alone.code


def test_a_family_of_which_a_part_cannot_be_counted_has_no_figure(tmp_path: Path) -> None:
    root = tree(tmp_path, a="servers/_shared/qt/application.hpp", b="")
    (root / "servers/_shared/qt/broken.cpp").write_bytes(b"\xff")
    everyone = describe([contestant("a"), contestant("b")], [], root)
    assert everyone[0].code is not None
    assert sum_with_family(everyone[0], everyone) is None
    assert sum_with_family(everyone[1], everyone) is not None


def test_the_families_of_the_tree_are_found() -> None:
    servers, clients = discover(), discover(kind="client")
    everyone = describe(servers, clients)
    server = {about.name: about for about in everyone if about.kind == "server"}
    assert server["qt-thread-pool"].family == server["qt-thread-per-client"].family == ("servers/_shared/qt",)
    epoll = ("lib/net/epoll", "servers/_shared/epoll")
    assert server["epoll-coroutines"].family == server["epoll-reactor"].family == epoll
    assert server["uring-per-core"].family == ("servers/_shared/inbox", "servers/_shared/uring")
    datagram = ("lib/net/datagram", "servers/_shared/datagram")
    assert server["udp-coroutines"].family == tuple(sorted((*epoll, *datagram)))
    assert server["threads-global-lock"].family == ("servers/_shared/threads",)
    assert "servers/_shared/zmq" in server["zeromq-coroutines"].family
    assert server["tokio"].family == ("servers/_shared/rust", "servers/_shared/tokio")
    assert server["go-net"].family == ("servers/_shared/go",)
    written = {"epoll-reactor": "C++", "node-events": "JavaScript", "tokio": "Rust", "go-net": "Go"}
    written["erlang-processes"] = "Erlang"
    assert {name: server[name].language for name in written} == written
    assert server["asio-callbacks"].family == ("servers/_shared/boost",)
    for name in ("asyncio-protocol", "uvloop"):
        assert server[name].family == ("servers/_shared/asyncio",)
    assert server["node-events"].family == ("servers/_shared/node",)
    for name in ("asio-coroutines", "folly-async", "node-0-10"):
        assert server[name].family == ()
        assert sum_with_family(server[name], everyone) == server[name].code
    assert {about.family for about in everyone if about.kind != "server"} == {()}
    _expect_sum(server["qt-thread-pool"], everyone, "servers/qt-thread-pool", "servers/_shared/qt")


def _expect_sum(about: About, everyone: tuple[About, ...], *folders: str) -> None:
    assert sum_with_family(about, everyone) == measure(
        path for folder in folders for path in list_sources(ROOT / folder)
    )
