"""A server of several processes: the arithmetic on made-up readings, and readings of a program that forks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from netdyno.measure.machine import server_proc, server_processes
from netdyno.measure.machine.server_processes import FamilySnapshot, Origin, ProcessCpu, ProcessMemory

MIB = 1 << 20
TICKS_S = 0.03
"""The counts of user and of system time that a parent has of its children, each rounded to 10 ms, at two moments."""
FORKS = """
import os, sys, time
held = bytearray(int(sys.argv[1]) << 20)
children = []

def write(mib, value):
    for i in range(0, mib << 20, 4096): held[i] = value

def obey(what, amount):
    if what == "use":
        until = time.process_time() + float(amount)
        while time.process_time() < until: pass
    if what == "write": write(int(amount), 2)

def serve(orders, answers):
    for line in os.fdopen(orders):
        obey(*line.split())
        os.write(answers, b"%d %.9f\\n" % (os.getpid(), time.process_time()))
        if line.startswith("end"): return

def fork():
    orders, answers = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(orders[1])
        serve(orders[0], answers[1])
        os._exit(0)
    os.close(orders[0])
    os.close(answers[1])
    children.append((os.fdopen(orders[1], "w", buffering=1), os.fdopen(answers[0])))

write(int(sys.argv[1]), 1)
print(os.getpid(), time.process_time(), flush=True)
for line in sys.stdin:
    who, what, amount = line.split()
    if what == "fork":
        for _ in range(int(amount)): fork()
    elif what == "wait": os.wait()
    elif who == "parent": obey(what, amount)
    else:
        orders, answers = children[int(who)]
        print(what, amount, file=orders)
        print(answers.readline().strip(), flush=True)
        continue
    print(os.getpid(), time.process_time(), flush=True)
"""
"""Holds MiB, and forks. Each order is for the parent or for a child by its number, which answers with its process and
the CPU seconds that it has used."""


class CpuAnswer(NamedTuple):
    pid: int
    cpu_s: float


class Forks:
    """A running program that forks."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = self._read_answer().pid

    def tell(self, who: int | str, what: str, amount: float = 0) -> CpuAnswer:
        """Give an order and wait until it is carried out."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{who} {what} {amount}\n")
        self._process.stdin.flush()
        return self._read_answer()

    def _read_answer(self) -> CpuAnswer:
        assert self._process.stdout is not None
        pid, cpu_s = self._process.stdout.readline().split()
        return CpuAnswer(int(pid), float(cpu_s))


@contextmanager
def forking(children: int, held_mib: int = 1) -> Iterator[Forks]:
    """Start a program that holds so much memory and has forked so many children."""
    command = (sys.executable, "-I", "-S", "-c", FORKS, str(held_mib))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        forks = Forks(process)
        forks.tell("parent", "fork", children)
        yield forks  # its input is closed after that, which ends all of them


def test_the_cpu_of_all_processes_counts_also_of_those_that_came_and_went() -> None:
    """A child that stays, one that was waited for, and one that began after the first reading."""
    with forking(children=2) as forks:
        first = [forks.tell(0, "use", 0.05), forks.tell(1, "use", 0.1), forks.tell("parent", "use", 0.02)]
        family = server_processes.choose(Origin(forks.pid))
        before = server_processes.take(family)
        last = [forks.tell(0, "use", 0.1), forks.tell(1, "use", 0.2)]
        forks.tell(1, "end")
        forks.tell("parent", "wait")
        forks.tell("parent", "fork", 1)
        begun = forks.tell(2, "use", 0.15)
        last.append(forks.tell("parent", "use", 0.05))
        after = server_processes.take_last(family, Origin(forks.pid))
        expected_s = sum(answer.cpu_s for answer in last) - sum(answer.cpu_s for answer in first) + begun.cpu_s
        assert len(family.pids) == len(before.read) == len(after.read) == 3
        assert begun.pid in after.read
        assert first[1].pid not in after.read
    assert expected_s > 0.5
    assert server_processes.sum_used_s(*map(server_processes.list_cpu, (before, after))) == pytest.approx(
        expected_s, abs=TICKS_S
    )


def test_what_a_process_used_before_is_not_counted_when_its_parent_gets_it() -> None:
    first = {1: ProcessCpu(1.0, 0.5), 2: ProcessCpu(4.0), 3: ProcessCpu(7.0)}
    assert server_processes.sum_used_s(first, {1: ProcessCpu(1.25, 4.75), 3: ProcessCpu(7.5)}) == pytest.approx(
        0.25 + 0.25 + 0.5
    )
    assert server_processes.sum_used_s(first, {1: ProcessCpu(1.25, 0.5), 3: ProcessCpu(7.5)}) == pytest.approx(0.75), (
        "not waited for"
    )
    assert server_processes.sum_used_s(
        {1: ProcessCpu(1.0)}, {1: ProcessCpu(1.5, 0.25), 9: ProcessCpu(0.125)}
    ) == pytest.approx(0.875)
    assert server_processes.sum_used_s({1: ProcessCpu(1.0)}, {}) == 0.0


def test_memory_that_processes_share_counts_once_and_each_ones_own_in_full() -> None:
    held, children, written = 64, 3, 16
    with forking(children, held) as forks:
        shared = server_processes.read_peak_memory(server_processes.choose(Origin(forks.pid)))
        alone = server_proc.read_peak_memory(forks.pid)
        forks.tell(0, "write", written)
        with_own = server_processes.read_peak_memory(server_processes.choose(Origin(forks.pid)))
    assert alone > held * MIB
    assert alone - MIB < shared < alone + children * 4 * MIB
    assert written * MIB <= with_own - shared < (written + 4) * MIB


def test_of_one_process_the_sum_is_the_peak_that_the_kernel_has() -> None:
    with forking(children=0, held_mib=32) as forks:
        forks.tell("parent", "write", 32)
        memory = ProcessMemory(*(Path(f"/proc/{forks.pid}/{name}").read_bytes() for name in ("status", "smaps_rollup")))
        peak = server_proc.read_peak_memory(forks.pid)
        assert server_processes.read_peak_memory(server_processes.choose(Origin(forks.pid))) == peak
    assert server_processes.compute_peak_memory([memory], 1) == pytest.approx(peak, abs=MIB)


def make_memory(*, hwm: int, rss: int, files: int, pss: int, pss_files: int) -> ProcessMemory:
    return ProcessMemory(
        f"VmHWM: {hwm} kB\nVmRSS: {rss} kB\nRssFile: {files} kB\n".encode(),
        f"00400000-7fff ---p 00000000 00:00 0 [rollup]\nPss: {pss} kB\nPss_File: {pss_files} kB\n".encode(),
    )


def test_pages_of_files_count_in_full_though_other_programs_have_them_too() -> None:
    first = make_memory(hwm=900, rss=800, files=500, pss=250, pss_files=50)
    second = make_memory(hwm=700, rss=700, files=300, pss=130, pss_files=30)
    unshared = (200 + 100) + (100 + 0)
    assert server_processes.compute_peak_memory([first, second], 2) == 1024 * (unshared + 500)
    assert server_processes.compute_peak_memory([first, second], 4) == 1024 * (unshared + 2 * 100 + 500)
    many_files = make_memory(hwm=700, rss=700, files=300, pss=800, pss_files=700)
    assert server_processes.compute_peak_memory([first, many_files], 2) == 1024 * (unshared + 750)
    unknown = ProcessMemory(second.status, b"")
    assert server_processes.compute_peak_memory([first, unknown], 3) == 1024 * (900 + 2 * 700)


def test_what_is_counted_of_a_process_is_added_up() -> None:
    """A field that `sum_readings` forgets would be the first process's alone."""
    subprocess.run([sys.executable, "-c", "sum(range(2_000_000))"], check=True)  # a child that has been reaped
    snapshot = server_proc.take(os.getpid())
    alone = server_proc.understand(snapshot)
    both = server_processes.sum_readings(FamilySnapshot({1: snapshot, 2: snapshot}, {}))
    counts = {name for name in alone.__struct_fields__ if name not in {"at_s", "harness_cpu_s", "tasks"}}
    assert all(getattr(alone, name) for name in counts)
    assert {name: getattr(both, name) for name in counts} == {name: 2 * getattr(alone, name) for name in counts}


def test_of_many_processes_some_are_read_and_the_cpu_of_all() -> None:
    children = server_processes.MOST_PROCESSES_READ + 20
    with forking(children) as forks:
        family = server_processes.choose(Origin(forks.pid))
        assert len(family.read) == server_processes.MOST_PROCESSES_READ
        assert len(set(family.pids)) == 1 + children
        assert family.read[0] == forks.pid
        before = server_processes.take(family)
        reading = server_processes.sum_readings(before)
        unread = next(number for number in range(children) if forks.tell(number, "use").pid in family.unread)
        forks.tell(unread, "use", 0.2)
        after = server_processes.take_last(family, Origin(forks.pid))
        memory = server_processes.read_peak_memory(family)
        alone = server_proc.read_peak_memory(forks.pid)
    assert reading.threads == 1 + children
    assert len(reading.tasks) == server_processes.MOST_PROCESSES_READ
    assert family.is_sample
    assert server_processes.sum_used_s(*map(server_processes.list_cpu, (before, after))) > 0.2
    assert alone - MIB < memory < alone + children * 2 * MIB


def test_the_children_of_a_process_with_many_threads_are_found_too() -> None:
    program = f"""
import os, threading
read, write = os.pipe()
for _ in range({server_proc.MOST_THREADS_READ}):
    threading.Thread(target=os.read, args=(read, 1), daemon=True).start()
child = os.fork()
if child == 0:
    os.read(read, 1)
print(child, flush=True)
input()
os.kill(child, 9)
os._exit(0)
"""
    command = (sys.executable, "-I", "-S", "-c", program)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert server_proc.find_family(process.pid) == (process.pid, child)
        assert server_proc.count_descriptors([process.pid, child]) > server_proc.count_descriptors([child]) > 0
        process.communicate("\n")
