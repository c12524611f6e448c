"""The rooms of the C++ side (docs/start.md): a file includes only from its own room and from those that it may see."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT
from netdyno.verbs.checks import list_cpp_sources

pytestmark = pytest.mark.quick

PROGRAMS = ("lib/cli", "lib/net", "lib/protocol", "lib/measure")
"""What every program may see. The rest of lib/ is the servers'."""
PLANNED = (*PROGRAMS, "loadgen/plan", "loadgen/codec")
LOADGEN = ("loadgen/plan", "loadgen/codec", "loadgen/transport", "loadgen/match", "loadgen/connect", "loadgen/report")
SERVERS = (*PROGRAMS, "lib/session", "lib/server", "servers/_shared")

SEES: dict[str, tuple[str, ...]] = {
    "lib/cli": (),
    "lib/net": ("lib/cli",),
    "lib/protocol": ("lib/cli", "lib/net"),
    "lib/measure": ("lib/cli", "lib/net", "lib/protocol"),
    "lib/session": ("lib/cli", "lib/net", "lib/protocol"),
    "lib/tls": (*PROGRAMS, "lib/session"),
    "lib/server": (*PROGRAMS, "lib/session"),
    "lib/postgresql": ("lib/cli", "lib/server"),
    "servers/_shared": SERVERS,
    "servers": SERVERS,
    "loadgen/plan": PROGRAMS,
    "loadgen/codec": PLANNED,
    "loadgen/transport": PLANNED,
    "loadgen/match": PLANNED,
    "loadgen/connect": (*PLANNED, "loadgen/match", "loadgen/transport"),
    "loadgen/report": (*PROGRAMS, "loadgen/plan", "loadgen"),
    "loadgen": (*PROGRAMS, *LOADGEN),
    "clients/_shared": (*PROGRAMS, "loadgen", *LOADGEN),
    "clients": (*PROGRAMS, "loadgen", *LOADGEN, "clients/_shared"),
    "launch": (*PROGRAMS, "lib/session", "lib/server"),
    "link": PROGRAMS,
    "canary": PROGRAMS,
    "tests/support/fakes": (),
}
SEES |= dict.fromkeys(("bench", "tests/cpp"), tuple(SEES))  # no file includes these, and they may see everything

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def room_of(path: Path) -> str | None:
    """The innermost room that a file of the tree stands in."""
    return next((str(folder) for folder in path.parents if str(folder) in SEES), None)


def included(path: Path, name: str, root: Path) -> Path | None:
    """The file of the tree that an #include names: beside it, from the root, or generated from protocol/."""
    places = (Path(os.path.normpath(path.parent / name)), Path(name))
    first = next((place for place in places if (root / place).is_file()), None)
    generated = name.endswith(".pb.h") and (root / "protocol" / name.replace(".pb.h", ".proto")).is_file()
    return Path("lib/protocol") / name if generated else first


def breaches(root: Path) -> Iterator[str]:
    """Each breach of the rule, by file, line and include."""
    for path in map(Path, list_cpp_sources(root)):
        room = room_of(path)
        if room is None:
            yield f"{path}: it stands in no room"
            continue
        text = (root / path).read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            where = f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match.group(0).strip()}"
            target = included(path, match.group(1) or match.group(2), root)
            if target is None and match.group(1):
                yield f"{where}: there is no such file"
            elif target is not None and (seen := room_of(target)) not in (room, *SEES[room]):
                yield f"{where}: {room} may not see {seen}"


def test_every_room_includes_only_what_it_may_see() -> None:
    assert list(breaches(ROOT)) == []


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with a file in each room."""
    (tmp_path / "protocol").mkdir()
    (tmp_path / "protocol" / "work.proto").touch()
    for room in SEES:
        (tmp_path / room).mkdir(parents=True, exist_ok=True)
        (tmp_path / room / "own.hpp").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("file", "line", "breach"),
    [
        ("lib/net/bind.hpp", '#include "lib/server/own.hpp"', "lib/net may not see lib/server"),
        ("lib/session/epoll/a.cpp", "# include <lib/measure/own.hpp>", "lib/session may not see lib/measure"),
        ("lib/measure/a.cpp", '#include "lib/session/own.hpp"', "lib/measure may not see lib/session"),
        (
            "loadgen/transport/a.cpp",
            '#include "servers/_shared/own.hpp"',
            "loadgen/transport may not see servers/_shared",
        ),
        ("loadgen/plan/a.cpp", '#include "loadgen/match/own.hpp"', "loadgen/plan may not see loadgen/match"),
        ("clients/qt/main.cpp", '#include "lib/server/own.hpp"', "clients may not see lib/server"),
        ("link/a.cpp", '#include "../servers/own.hpp"', "link may not see servers"),
        ("canary/a.cpp", '#include "tests/cpp/own.hpp"', "canary may not see tests/cpp"),
        ("lib/cli/a.cpp", '#include "work.pb.h"', "lib/cli may not see lib/protocol"),
        ("servers/a/main.cpp", '#include "missing.hpp"', "there is no such file"),
    ],
)
def test_a_breach_is_reported_by_file_line_and_include(tree: Path, file: str, line: str, breach: str) -> None:
    (tree / file).parent.mkdir(parents=True, exist_ok=True)
    (tree / file).write_text(f"#pragma once\n\n{line}\n")
    assert list(breaches(tree)) == [f"{file}:3: {line}: {breach}"]


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("servers/a/main.cpp", '#include "servers/_shared/own.hpp"'),
        ("servers/_shared/epoll/loop.hpp", '#include "lib/server/own.hpp"'),
        ("clients/_shared/own.hpp", '#include "loadgen/own.hpp"'),
        ("loadgen/codec/rpc.cpp", '#include "work.pb.h"'),
        ("lib/net/epoll/a.cpp", '#include "lib/net/own.hpp"'),
        ("tests/cpp/lib/test_a.cpp", '#include "servers/own.hpp"'),
        ("lib/cli/a.cpp", "#include <vector>"),
        ("lib/cli/a.cpp", '// #include "lib/net/own.hpp"'),
    ],
)
def test_what_a_room_may_see_is_no_breach(tree: Path, file: str, line: str) -> None:
    (tree / file).parent.mkdir(parents=True, exist_ok=True)
    (tree / file).write_text(f"{line}\n")
    assert list(breaches(tree)) == []


def test_a_file_in_no_room_is_reported(tree: Path) -> None:
    (tree / "lib" / "stray.cpp").touch()
    assert list(breaches(tree)) == ["lib/stray.cpp: it stands in no room"]
