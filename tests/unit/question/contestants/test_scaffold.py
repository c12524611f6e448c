"""A new server is a copy of one that works, under its own name, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netdyno.kit.errors import UserError
from netdyno.question.contestants.contestants import discover
from netdyno.question.contestants.scaffold import copy_server, name_edits

MANIFEST = {"kind": "cmake", "model": "reactor", "summary": "one loop", "workloads": ["echo"]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "servers" / "epoll-loop"
    (folder / "sub").mkdir(parents=True)
    (folder / "server.json").write_text(json.dumps(MANIFEST))
    (folder / "main.cpp").write_text('// epoll-loop\nnamespace epoll_loop {}\nusage("epoll-loop");\n')
    (folder / "sub" / "data").write_bytes(b"\x00\xffepoll-loop")
    return tmp_path


def test_the_name_is_replaced_in_both_spellings(root: Path) -> None:
    target = copy_server("my-server", "epoll-loop", root)
    assert target == root / "servers" / "my-server"
    assert (target / "main.cpp").read_text() == '// my-server\nnamespace my_server {}\nusage("my-server");\n'
    assert (target / "sub" / "data").read_bytes() == b"\x00\xffmy-server"
    assert "epoll-loop" in (root / "servers" / "epoll-loop" / "main.cpp").read_text()
    assert name_edits(target) == "sources and summary"


def test_a_program_in_rust_keeps_what_is_called_like_it(root: Path) -> None:
    folder = root / "servers" / "tokio"
    folder.mkdir()
    (folder / "server.json").write_text(json.dumps(MANIFEST | {"kind": "cargo"}))
    (folder / "Cargo.toml").write_text('[[bin]]\nname = "tokio"\n\n[dependencies]\ntokio = "=1.0.0"\n')
    (folder / "main.rs").write_text("use tokio::spawn;\n")
    (folder / "README.md").write_text("# tokio\n")
    (folder / "Cargo.lock").touch()
    target = copy_server("my-server", "tokio", root)
    assert (target / "Cargo.toml").read_text() == '[[bin]]\nname = "my-server"\n\n[dependencies]\ntokio = "=1.0.0"\n'
    assert (target / "main.rs").read_text() == "use tokio::spawn;\n"
    assert (target / "README.md").read_text() == "# my-server\n"
    assert not (target / "Cargo.lock").exists()
    assert name_edits(target) == "sources, summary and README"


def test_the_copy_is_a_contestant_at_once(root: Path) -> None:
    copy_server("my-server", "epoll-loop", root)
    assert [contestant.name for contestant in discover(root, root)] == ["epoll-loop", "my-server"]


@pytest.mark.parametrize("name", ["", "My-Server", "a b", "../evil", "-x", "x-", "1st"])
def test_a_name_that_cannot_be_a_folder_is_refused(root: Path, name: str) -> None:
    with pytest.raises(UserError, match="cannot be a server's name"):
        copy_server(name, "epoll-loop", root)


def test_a_taken_name_and_an_unknown_model_are_refused(root: Path) -> None:
    with pytest.raises(UserError, match="servers/epoll-loop exists already"):
        copy_server("epoll-loop", "epoll-loop", root)
    with pytest.raises(UserError, match=r"unknown server 'epol-loop' \(did you mean 'epoll-loop'\? see: ./netdyno"):
        copy_server("my-server", "epol-loop", root)
