"""The use of the cores while nothing of netdyno runs: the amount, from the cores' idle time, and the programs, from the
CPU times of all processes (proc_pid_stat(5)). The amount is exact; the list of programs leaves out any that lived for
less than the time between two readings."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import msgspec

from netdyno.measure.machine import cpu_share, server_proc
from netdyno.model.observation import ProgramShare

WATCH_S = 1.0
READINGS = 20
"""The number of readings within WATCH_S: a compiler that lives for a tenth of a second is still met twice."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class ProcessTime(msgspec.Struct, frozen=True):
    """The CPU time of one process so far, and when it began, in ticks since boot: process numbers come again."""

    name: str
    used_s: float
    began_ticks: int
    core: int
    """The core on which it ran last."""


class CpuUse(NamedTuple):
    """The CPU time that other programs used, in cores' worth, and these programs, the largest share first."""

    foreign_cores: float
    programs: tuple[ProgramShare, ...]


def watch_cores(cores: Collection[int], seconds: float = WATCH_S) -> CpuUse:
    """Watch the machine for so long. Nothing of netdyno's may run meanwhile but this process."""
    before = cpu_share.take(())
    began_ticks = time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS_PER_S
    began_s = time.monotonic()
    first = dict(read_processes())
    last = dict(first)
    for number in range(1, READINGS + 1):
        time.sleep(max(0.0, began_s + seconds * number / READINGS - time.monotonic()))
        last.update(read_processes())
    seen = cpu_share.compute_observation(before, cpu_share.take(()), cores)
    took_s = time.monotonic() - began_s
    used = compute_shares(first, last, cores, took_s, began_ticks)
    return CpuUse(seen.foreign_s / seen.window_s if seen else sum(program.cores for program in used), used)


def compute_shares(
    first: Mapping[int, ProcessTime],
    last: Mapping[int, ProcessTime],
    cores: Collection[int],
    seconds: float,
    began_ticks: float,
) -> tuple[ProgramShare, ...]:
    """Return what the programs on these cores used between two readings of all processes, by name. One that began after
    `began_ticks` has used all of its time since. Pure."""
    used: dict[str, float] = {}
    for pid, process in last.items():
        earlier = first.get(pid)
        known = earlier is not None and earlier.began_ticks == process.began_ticks
        if process.core in cores and (known or process.began_ticks >= began_ticks - 1):
            before_s = earlier.used_s if known and earlier else 0.0
            used[process.name] = used.get(process.name, 0.0) + process.used_s - before_s
    programs = [ProgramShare(name=name, cores=spent_s / seconds) for name, spent_s in used.items() if spent_s > 0]
    return tuple(sorted(programs, key=lambda program: (-program.cores, program.name)))


def read_processes() -> Iterator[tuple[int, ProcessTime]]:
    """Read all visible processes but this one."""
    with os.scandir("/proc") as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    for pid in pids:
        if pid == os.getpid():
            continue
        try:
            stat = server_proc.read_file(f"/proc/{pid}/stat")
        except OSError:
            continue  # it has just ended, or is hidden
        yield pid, parse_process(stat)


def read_name(pid: int) -> str:
    """Return the name of a process; empty where it has ended."""
    try:
        return parse_process(server_proc.read_file(f"/proc/{pid}/stat")).name
    except OSError:
        return ""


def parse_process(stat: bytes) -> ProcessTime:
    """Read a line of /proc/PID/stat. The program chose its name: characters that do not print are replaced. Pure."""
    head, _, rest = stat.rpartition(b")")
    name = head.partition(b"(")[2].decode("utf-8", "replace")
    fields = rest.split()
    if not name.isprintable():
        name = "".join(character if character.isprintable() else "?" for character in name)
    return ProcessTime(
        name=name or "?",
        used_s=(int(fields[11]) + int(fields[12])) / _TICKS_PER_S,
        began_ticks=int(fields[19]),
        core=int(fields[36]),
    )
