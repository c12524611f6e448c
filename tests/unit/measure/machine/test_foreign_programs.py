"""The foreign program that ran longest on given cores, with real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from netdyno.measure.machine.foreign_programs import ForeignPrograms, ForeignTime
from tests.support.patience import eventually

NAME = "busy-program"
WORKS = f"""
import os, sys, threading
os.sched_setaffinity(0, {{int(sys.argv[1])}})
open("/proc/self/comm", "w").write("{NAME}")
def work():
    while True:
        pass
print(flush=True)
threading.Thread(target=work).start() if sys.argv[2] == "thread" else work()
"""
LASTS_S = 0.1
StartProgram = Callable[[int, str], subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[StartProgram]:
    """Start a program that never rests on a core, in its first thread or in another."""
    started: list[subprocess.Popen[bytes]] = []

    def start(core: int, where: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", WORKS, str(core), where], stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def all_but(process: subprocess.Popen[bytes]) -> set[int]:
    """Return all processes of now but this one, which is then the only foreign program."""
    return {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()} - {process.pid}


@pytest.mark.parametrize("where", ["first", "thread"])
def test_the_program_is_named_with_its_time(where: str, start: StartProgram) -> None:
    core = max(os.sched_getaffinity(0))
    process = start(core, where)
    programs = ForeignPrograms(all_but(process), {core})
    before = programs.read()
    eventually(lambda: programs.find_longest(before, programs.read()).seconds > LASTS_S, "it was not seen")
    assert programs.find_longest(before, programs.read()).program == NAME


def test_a_process_of_the_run_or_on_another_core_or_that_has_ended_is_not_named(start: StartProgram) -> None:
    own, elsewhere = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    process = start(own, "first")
    programs = ForeignPrograms((process.pid,), {own})
    before = programs.read()
    time.sleep(LASTS_S)
    assert programs.find_longest(before, programs.read()).program != NAME
    if own != elsewhere:
        programs = ForeignPrograms((), {elsewhere})
        before = programs.read()
        time.sleep(LASTS_S)
        assert programs.find_longest(before, programs.read()).program != NAME
    programs = ForeignPrograms((), {own})
    before = programs.read()
    process.kill()
    process.wait()
    assert programs.find_longest(before, programs.read()).program != NAME
    assert process.pid not in programs.read()


def test_no_time_is_no_program() -> None:
    assert ForeignPrograms((), {0}).find_longest({1: 5_000_000}, {1: 5_000_000, 2: 9_000_000}) == ForeignTime()


def test_threads_of_the_kernel_that_work_for_all_are_left_out() -> None:
    watched = ForeignPrograms((), {0}).read()
    names = {Path(f"/proc/{pid}/comm").read_text(encoding="utf-8") for pid in watched if Path(f"/proc/{pid}").exists()}
    assert names
    assert not [name for name in names if name.startswith(("ksoftirqd/", "kworker/", "migration/"))]
