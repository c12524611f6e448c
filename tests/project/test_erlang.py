"""Every vector of protocol/golden.json against the session of servers in Erlang, with the input sliced in many ways: a
program of Erlang prints what it makes of each, and that is compared in Python."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT, build_dir
from netdyno.measure.machine.environment import parse_cmake_cache
from netdyno.question.contestants.contestants import discover
from tests.support.golden_sessions import expect_golden_sessions

SERVER = ROOT / "servers/erlang-processes"


def find_compiler() -> Path:
    """Return the compiler that the build has found; a stated skip where it has found none."""
    (server,) = (contestant for contestant in discover() if contestant.manifest.kind == "erlang")
    if not server.available:
        pytest.skip(server.why_not)
    return Path(parse_cmake_cache((build_dir() / "CMakeCache.txt").read_text())["NETDYNO_ERLC"])


@pytest.mark.needs_build
def test_erlang_sessions(tmp_path: Path) -> None:
    """A warning of the compiler is an error here."""
    compiler = find_compiler()
    sources = [*sorted(SERVER.glob("*.erl")), ROOT / "tests/project/golden_sessions.erl"]
    build = [compiler, "-Werror", "-I", SERVER, "-o", tmp_path, *sources]
    done = subprocess.run(list(map(str, build)), capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    run = [compiler.parent / "erl", "-noshell", "-noinput", "-pa", tmp_path, "-s", "golden_sessions"]
    expect_golden_sessions(list(map(str, run)), places=16)


def test_without_erlang_a_server_is_skipped_with_the_way_to_get_it(tmp_path: Path) -> None:
    script = tmp_path / "asked.cmake"
    call = "netdyno_add_erlang(any ${CMAKE_CURRENT_LIST_DIR} any why)"
    script.write_text(f'include({ROOT}/cmake/kinds/erlang.cmake)\n{call}\nmessage("${{why}}")\n')
    command = ["cmake", f"-DNETDYNO_ERLC={tmp_path}/erlc", "-P", str(script)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stderr.startswith("Erlang/OTP 25 or newer not found: install erlang-base"), done.stderr
