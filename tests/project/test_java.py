"""Every vector of protocol/golden.json against the sessions that servers in Java share, with the input sliced in many
ways. They are compiled here, all connections go through one JVM, and what it makes of them is compared in Python."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT
from netdyno.model.contestant import behind_launcher
from netdyno.question.contestants.contestants import discover
from tests.support.golden_sessions import expect_golden_sessions

SHARED = sorted(map(str, ROOT.glob("servers/_shared/java/*.java")))


def java_home() -> Path:
    """Return the home of the JDK that the build has found; a stated skip where it has found none."""
    servers = [contestant for contestant in discover() if contestant.manifest.kind == "java"]
    assert servers
    program = next((Path(behind_launcher(server.command)[0]) for server in servers if server.available), None)
    if program is None:
        pytest.skip(servers[0].why_not)
    java = next(word.strip('"') for word in program.read_text().split() if word.endswith('/bin/java"'))
    return Path(java).parents[1]


@pytest.mark.needs_build
def test_java_sessions(tmp_path: Path) -> None:
    home = java_home()
    build = [
        str(home / "bin/javac"),
        "-J-XX:TieredStopAtLevel=1",
        "-J-XX:+UseSerialGC",
        "-proc:none",
        "-nowarn",
        "-d",
        str(tmp_path),
        *SHARED,
        str(ROOT / "tests/project/GoldenSessions.java"),
    ]
    subprocess.run(build, check=True, capture_output=True)
    run = [
        str(home / "bin/java"),
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-cp",
        str(tmp_path),
        "GoldenSessions",
    ]
    expect_golden_sessions(run, places=16)


def without_a_jdk(call: str, folder: Path) -> str:
    """Return why a server in Java is skipped after this call of CMake, where /usr/lib/jvm is empty."""
    script = folder / "asked.cmake"
    script.write_text(f'include({ROOT}/cmake/kinds/java.cmake)\n{call}\nmessage("${{why}}")\n')
    users = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    (folder / "none").mkdir()
    hidden = f"mkdir -p /usr/lib/jvm && mount --bind {folder}/none /usr/lib/jvm || exit 77; exec cmake -P {script}"
    environment = {"PATH": os.environ["PATH"]}  # no JAVA_HOME
    done = subprocess.run(
        ["unshare", *users, "--mount", "sh", "-c", hidden], check=False, capture_output=True, text=True, env=environment
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("call", "version", "how"),
    [
        ("netdyno_need_jdk22(needed why)", 22, "install openjdk-25-jdk-headless"),
        ("netdyno_need_jdk22(needed why)", 22, "unpack one, such as Temurin 25, under /usr/lib/jvm"),
        ("netdyno_add_java(any ${CMAKE_CURRENT_LIST_DIR} any why)", 17, "install default-jdk-headless"),
    ],
)
def test_without_a_jdk_a_server_is_skipped_with_the_way_to_get_one(
    call: str, version: int, how: str, tmp_path: Path
) -> None:
    reason = without_a_jdk(call, tmp_path)
    assert reason.startswith(f"a JDK of version {version} or newer not found")
    assert how in reason


SERVER = """#!/usr/bin/env python3
import json, os, signal, socket, threading
listener = socket.create_server(("127.0.0.1", 0))
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # a handler waits for accept(2) to end
threading.Thread(target=lambda: (signal.sigwait({signal.SIGTERM}), os._exit(0)), daemon=True).start()
print(json.dumps({"ready": True, "endpoint": f"tcp://127.0.0.1:{listener.getsockname()[1]}"}), flush=True)
while True:
    listener.accept()[0].sendall(bytes(4))
"""
SED = """#!/bin/sh
case $1 in s*-XX*) [ ! -e "$SAID" ] || echo "the ready line of an earlier build is still there" >&2 ;; esac
exec /usr/bin/sed "$@"
"""


def test_an_earlier_builds_ready_line_is_gone_before_the_server_starts(tmp_path: Path) -> None:
    """It names a port where no server listens any more, and the new one may come later than the first look for it."""
    archive, program, output = (tmp_path / name for name in ("classes.jsa", "program", "classes.jsa.said"))
    output.write_text('{"ready": true, "endpoint": "tcp://127.0.0.1:1"}\n')
    program.touch()
    for name, text in {"launcher": SERVER, "sed": SED}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    command = ["bash", *map(str, (ROOT / "cmake/kinds/java-archive.sh", archive, program, tmp_path / "launcher"))]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SAID": str(output)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
