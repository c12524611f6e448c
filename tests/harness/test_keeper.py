"""A server under its keeper: nothing that it starts leaves it, and it ends as if there were none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from netdyno.measure.machine import server_proc, server_processes
from netdyno.measure.machine.process import KEEPER, Process, TrialError
from netdyno.measure.machine.server_processes import Origin
from netdyno.question.contestants import stand_in
from tests.support.patience import PATIENCE_S, eventually

SERVES = "trap 'exit 5' TERM; echo $$; while :; do sleep 0.01; done"


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", -9), ("kill -11 $$", -11), ("true", 0)])
def test_it_ends_as_the_server_does(script: str, code: int) -> None:
    assert subprocess.run([*KEEPER, "sh", "-c", script], check=False).returncode == code


def test_a_command_that_cannot_be_started_says_so() -> None:
    done = subprocess.run([*KEEPER, "/nowhere/x"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (127, "/nowhere/x cannot be started: No such file or directory\n")


def test_a_signal_to_end_is_passed_on(tmp_path: Path) -> None:
    with (
        (tmp_path / "out").open("wb") as output,
        Process(["sh", "-c", SERVES], [], output, talks=True, kept=True) as kept,
    ):
        line = kept.lines().wait_line(time.monotonic() + PATIENCE_S)
        assert line is not None
        assert int(line) in server_proc.find_children(kept.pid)
        kept.terminate()
        with pytest.raises(TrialError, match="ended with exit code 5"):
            kept.expect_end(time.monotonic(), PATIENCE_S)


def test_the_server_ends_with_its_keeper(tmp_path: Path) -> None:
    with (
        (tmp_path / "out").open("wb") as output,
        Process(["sh", "-c", SERVES], [], output, talks=True, kept=True) as kept,
    ):
        line = kept.lines().wait_line(time.monotonic() + PATIENCE_S)
        os.kill(kept.pid, signal.SIGKILL)
        eventually(lambda: not Path(f"/proc/{line}").exists(), "the server's end")


@pytest.mark.parametrize("kind", ["keeper", "stand-in"])
def test_what_the_server_has_started_ends_with_the_harness(kind: str, tmp_path: Path) -> None:
    """Its workers ignore SIGTERM, and one has begun a session."""
    worker = f"trap '' TERM HUP; echo $$ >>{tmp_path}/workers; while :; do sleep 0.01; done"
    (tmp_path / "worker").write_text(worker)
    script = f"sh {tmp_path}/worker & setsid -f sh {tmp_path}/worker; wait"
    starter = KEEPER if kind == "keeper" else (sys.executable, stand_in.__file__)
    command = [*starter, "sh", "-c", script, *(("--listen", "tcp://127.0.0.1:0") if kind == "stand-in" else ())]
    harness = subprocess.Popen([sys.executable, "-c", f"import subprocess; subprocess.run({command!r})"])
    workers = tmp_path / "workers"
    eventually(lambda: workers.exists() and len(workers.read_text().split()) == 2, "both workers")
    harness.kill()
    harness.wait()
    left = workers.read_text().split()
    try:
        eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left), "the workers' end")
    finally:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def test_an_orphan_is_the_servers_and_so_is_what_it_has_used_when_it_has_ended(tmp_path: Path) -> None:
    """It has forked twice and begun a session."""
    burns = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    script = f"(setsid sh -c 'echo $$; read -r _ <{tmp_path}/go; {burns}' &); exec sleep 1000"
    os.mkfifo(tmp_path / "go")
    with (
        (tmp_path / "out").open("wb") as output,
        Process(["sh", "-c", script], [], output, talks=True, kept=True) as kept,
    ):
        line = kept.lines().wait_line(time.monotonic() + PATIENCE_S)
        assert line is not None
        (server,) = [pid for pid in server_proc.find_children(kept.pid) if pid != int(line)]
        origin = Origin(server, kept.pid)
        assert server_processes.find_members(origin) == (server, int(line))
        assert set(server_processes.list_members(origin, server_proc.read_parents())) == {server, int(line)}
        family = server_processes.choose(origin)
        before = server_processes.take(family)
        (tmp_path / "go").write_text("\n")
        eventually(lambda: server_processes.find_members(origin) == (server,), "the orphan's end")
        after = server_processes.take_last(family, origin)
    assert server_processes.sum_used_s(*map(server_processes.list_cpu, (before, after))) > 0.02


def test_a_stand_in_says_how_long_its_server_took_to_accept() -> None:
    late_s = 0.2
    listen = "listener = socket.create_server(('127.0.0.1', {port}))"
    program = f"import socket, time; time.sleep({late_s}); {listen}; time.sleep(60)"
    command = (sys.executable, stand_in.__file__, sys.executable, "-c", program, "--listen", "tcp://127.0.0.1:0")
    began_s = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        taken_s = time.monotonic() - began_s
        process.terminate()
    assert late_s <= ready["ready_s"] < taken_s
    assert 0 < ready["begun_cpu_s"] < taken_s
