"""The program, of those not the run's, that ran longest on given cores between two readings some milliseconds apart:
its CPU clock counts nanoseconds (clock_getcpuclockid(3)), where /proc/stat counts ticks of 10 ms.

A reading of a hundred processes costs 50 us; finding them costs milliseconds. A program that begins and ends between
two readings is not seen."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import NamedTuple

from netdyno.measure.machine import server_proc
from netdyno.measure.machine.cpu_users import parse_process, read_processes

_SEEN_S = 0.0001
"""Less is not looked up: the program did not stay long enough to matter."""
_WORKS_FOR_ALL = ("ksoftirqd/", "kworker/", "rcu", "migration/", "napi/", "irq/")
"""Threads of the kernel that work for the programs of a trial: packets, timers, memory given back."""


class ForeignTime(NamedTuple):
    """The name of a program that is not the run's, and the time for which it ran; both empty where none was seen."""

    program: str = ""
    seconds: float = 0.0


class ForeignPrograms:
    """All processes visible now but those of the run, `own`, and this one; watched on `cores`."""

    def __init__(self, own: Collection[int], cores: Collection[int]) -> None:
        self._cores = frozenset(cores)
        self._names = {
            pid: process.name
            for pid, process in read_processes()
            if pid not in own and not process.name.startswith(_WORKS_FOR_ALL)
        }

    def read(self) -> dict[int, int]:
        """Return the nanoseconds that each has used so far, by process; those that have ended are left out."""
        used: dict[int, int] = {}
        for pid in self._names:
            with suppress(OSError):
                used[pid] = time.clock_gettime_ns(server_proc.cpu_clock(pid))
        return used

    def find_longest(self, before: Mapping[int, int], after: Mapping[int, int]) -> ForeignTime:
        """Return the program that ran longest between two readings, of those that ran on the cores. A program of
        several threads counts where any of them ran there last, as only the sum of their times is known."""
        spent = {pid: (read - before.get(pid, read)) / 1e9 for pid, read in after.items()}
        for pid in sorted(spent, key=lambda pid: -spent[pid]):
            if spent[pid] < _SEEN_S:
                break
            if self._cores & _read_cores(pid):
                return ForeignTime(self._names[pid], spent[pid])
        return ForeignTime()


def _read_cores(pid: int) -> set[int]:
    """Return the cores where its threads ran last; none where it has ended."""
    cores: set[int] = set()
    with suppress(OSError), os.scandir(f"/proc/{pid}/task") as tasks:
        for task in tasks:
            cores.add(parse_process(server_proc.read_file(f"{task.path}/stat")).core)
    return cores
