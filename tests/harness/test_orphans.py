"""Processes that a program leaves behind are ended, and no others are."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from netdyno.measure.machine import cpu_share, orphans, server_proc
from netdyno.measure.machine.process import Process
from tests.support.patience import PATIENCE_S, eventually

APART = """setsid sh -c 'echo $$; exec sleep 1000'"""
CHILD = f"{APART} & wait"
ORPHAN = f"({APART} &); exec sleep 1000"
FAMILY = """setsid sh -c 'trap "" TERM; sleep 1000 & echo $!; wait' & wait"""


@pytest.mark.parametrize("script", [CHILD, ORPHAN, FAMILY], ids=["child", "orphan", "family"])
def test_processes_in_sessions_of_their_own_end_with_the_block(script: str, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as output, orphans.end() as left:
        with Process(["sh", "-c", script], [], output, talks=True) as program:
            line = program.lines().wait_line(time.monotonic() + PATIENCE_S)
            assert line is not None
        assert Path(f"/proc/{line}").exists()
        assert left == []
    assert not Path(f"/proc/{line}").exists()
    assert len(left) == (2 if script == FAMILY else 1)
    assert set(left) <= {"sh", "sleep"}


def test_a_process_that_has_ended_in_time_was_not_left_behind(tmp_path: Path) -> None:
    """The process has become this process's child and waits to be reaped."""
    script = "(setsid sh -c 'echo $$' &); exec sleep 1000"
    with (
        (tmp_path / "out").open("wb") as output,
        orphans.end() as left,
        Process(["sh", "-c", script], [], output, talks=True) as program,
    ):
        line = program.lines().wait_line(time.monotonic() + PATIENCE_S)
        eventually(lambda: ") Z" in Path(f"/proc/{line}/stat").read_text(), "a zombie")
    assert left == []
    assert not Path(f"/proc/{line}").exists()


def test_an_inherited_process_is_not_counted_as_the_harness_itself(tmp_path: Path) -> None:
    """What a program has left to work on is no work of the harness, while the program's own children are the run's."""
    with (
        (tmp_path / "out").open("wb") as output,
        orphans.end(),
        Process(["sh", "-c", CHILD], [], output, talks=True) as program,
    ):
        line = program.lines().wait_line(time.monotonic() + PATIENCE_S)
        assert line is not None
        assert {program.pid, int(line)} <= {*cpu_share.find_own_processes()}
        program.kill()
        assert server_proc.read_parents()[int(line)] == os.getpid()
        assert int(line) not in cpu_share.find_own_processes()


def test_other_children_of_this_process_are_let_alone() -> None:
    """One was there before, in a session of its own; another is started meanwhile, in the session of this process."""
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as before:
        with orphans.end() as left, subprocess.Popen(["sleep", "1000"]) as meanwhile:
            meanwhile.kill()
        assert left == []
        assert before.poll() is None
        with orphans.end():
            later = subprocess.Popen(["sleep", "1000"])
        assert later.poll() is None
        for process in (before, later):
            process.kill()
            process.wait()


def test_none_is_inherited_afterwards() -> None:
    with orphans.end():
        pass
    script = "sleep 1000 >/dev/null 2>&1 & echo $!"
    done = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True)
    orphan = int(done.stdout)
    parent = Path(f"/proc/{orphan}/stat").read_text().rpartition(")")[2].split()[1]
    os.kill(orphan, 9)
    assert int(parent) != os.getpid()
