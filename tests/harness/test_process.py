"""Children are bound to the harness: waited for with a deadline, ended with their group, dead when it dies."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from netdyno.base.paths import ROOT
from netdyno.machine.process import LineReader, Process, TrialError, describe_exit

SOON_S = 30.0  # a limit for a stuck test, never waited for in one that passes

PARENT = """
import sys, signal
from netdyno.machine.process import Process
with open("/dev/null", "wb") as output, Process(["sleep", "1000"], [], output) as child:
    print(child.pid, flush=True)
    signal.pause()
"""


@pytest.mark.quiet
def test_kill_9_of_the_harness_takes_its_children_along() -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
        ready, _, _ = select.select([child], [], [], SOON_S)
        os.close(child)
    assert ready, "the child outlived the harness"


def test_the_whole_group_ends_with_the_process(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as output:
        with Process(["sh", "-c", "sleep 1000 & echo $!; wait"], [], output, talks=True) as process:
            line = process.lines().wait_line(time.monotonic() + SOON_S)
            assert line is not None
            grandchild = os.pidfd_open(int(line))
        ready, _, _ = select.select([grandchild], [], [], SOON_S)
        os.close(grandchild)
    assert ready


def test_it_leads_a_session_of_its_own_so_that_ctrl_c_does_not_reach_it(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as output, Process(["sleep", "1000"], [], output) as process:
        assert os.getsid(process.pid) == process.pid


def test_a_wait_ends_at_its_deadline_or_with_the_process(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as output:
        with Process(["sleep", "1000"], [], output) as process:
            assert not process.wait(time.monotonic() + 0.01)
            assert not process.has_ended()
        with Process(["sh", "-c", "echo sorry; exit 7"], [], output) as process:
            assert process.wait(time.monotonic() + SOON_S)
            assert process.exit_code() == 7
            assert process.last_words() == ": sorry"


def test_a_program_that_is_not_there_is_a_trial_error(tmp_path: Path) -> None:
    with (
        (tmp_path / "out").open("wb") as output,
        pytest.raises(TrialError, match="/nowhere/x cannot be started: No such"),
    ):
        Process(["/nowhere/x"], [], output)


def test_lines_come_whole_however_they_are_written() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"):
        lines = LineReader(reading)
        assert lines.wait_line(time.monotonic()) is None
        os.write(writing, b"one\ntw")
        assert lines.read_lines() == ["one"]
        os.write(writing, b"o\nthree")
        assert lines.wait_line(time.monotonic()) == "two"
        os.close(writing)
        assert lines.wait_line(time.monotonic() + SOON_S) == "three"
        assert lines.wait_line(time.monotonic() + SOON_S) is None
        assert lines.at_end


def test_an_exit_is_said_in_words() -> None:
    assert (describe_exit(3), describe_exit(-11)) == ("exit code 3", "signal SIGSEGV")
