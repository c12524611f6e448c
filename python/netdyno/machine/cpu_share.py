"""Whose the cores were over the measured window: what the hypervisor gave to others (steal), what a control group's
quota held back, and what ran on them that the harness had not started (foreign load). docs/adr/foreign-load.md says why
it is read this way.

A reading costs about 100 us. Which processes are the harness's own is looked up before the window, in milliseconds."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from netdyno.machine import cpu_quota, server_proc
from netdyno.machine.cpu_quota import Throttled
from netdyno.model.observation import MachineObservation

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_IDLE, _IOWAIT, _SOFTIRQ, _STEAL = 3, 4, 6, 7
"""Columns of a core in /proc/stat (proc_stat(5)); what the others count is work of some kind."""


class CoreTimes(NamedTuple):
    """One core since boot. `idle_s` with the time in which it was idle while something waited for a disk. `softirq_s`
    is part of `busy_s`."""

    idle_s: float
    steal_s: float
    busy_s: float
    softirq_s: float


class Snapshot(NamedTuple):
    """The machine at one moment. `stat` is /proc/stat as it is, `own_cpu_s` what the harness and all that it started
    have used so far, `throttled` how long control groups have held them back so far."""

    at_s: float
    stat: str
    own_cpu_s: float
    throttled: Throttled | None = None


def own_processes() -> tuple[int, ...]:
    """The processes that this one has started, and those that they have, while they live."""
    return descendants(os.getpid(), _parents())


def descendants(root: int, parents: Mapping[int, int]) -> tuple[int, ...]:
    """All children of a process, and theirs. Pure; `parents` maps each process to its parent."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    waiting = [root]
    while waiting:
        begun = children.get(waiting.pop(), [])
        found += begun
        waiting += begun
    return tuple(sorted(found))


def take(own: Sequence[int]) -> Snapshot:
    """Read the machine now; `own` are the processes that count as the harness's, with those that have ended and were
    waited for. One that begins later counts once it has ended and was waited for."""
    return Snapshot(
        at_s=time.monotonic(),
        stat=server_proc.read_file("/proc/stat").decode("ascii"),
        own_cpu_s=_used(own),
        throttled=cpu_quota.throttled(cpu_quota.own_stat_files()),
    )


def observation(before: Snapshot, after: Snapshot, cores: Collection[int]) -> MachineObservation | None:
    """The window between two readings, on these cores; None where the kernel does not tell of each of them. Pure.

    Work is what the clock on the wall has left of idle and stolen time, and not the sum of /proc/stat's own columns of
    work: those are sampled at each tick, while a kernel with CONFIG_NO_HZ counts idle time exactly (in 10 ms steps).
    The way into idleness and out of it is neither idle time nor a process's, and so looks foreign."""
    first, last = parse_stat(before.stat), parse_stat(after.stat)
    if not all(core in first and core in last for core in cores):
        return None
    steal_s = sum(last[core].steal_s - first[core].steal_s for core in cores)
    idle_s = sum(last[core].idle_s - first[core].idle_s for core in cores)
    window_s = after.at_s - before.at_s
    busy_s = window_s * len(cores) - idle_s - steal_s
    held_back = _increase(before.throttled, after.throttled)
    return MachineObservation(
        cores=len(cores),
        window_s=window_s,
        steal_s=steal_s,
        own_s=after.own_cpu_s - before.own_cpu_s,
        foreign_s=max(0.0, busy_s - (after.own_cpu_s - before.own_cpu_s)),
        switches=parse_switches(after.stat) - parse_switches(before.stat),
        softirq_s={core: last[core].softirq_s - first[core].softirq_s for core in sorted(cores)},
        throttled_s=None if held_back is None else held_back.seconds,
        throttled_periods=0 if held_back is None else held_back.periods,
    )


def _increase(before: Throttled | None, after: Throttled | None) -> Throttled | None:
    if before is None or after is None:
        return None
    return Throttled(after.periods - before.periods, after.seconds - before.seconds)


def parse_stat(text: str) -> dict[int, CoreTimes]:
    """Each core of /proc/stat that is online, by its number. Pure. Kernels that hide the machine (gVisor) have zeros
    only; such a core is left out, for nothing is known of it."""
    cores: dict[int, CoreTimes] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        if not name.startswith("cpu"):
            break  # the cores stand first
        ticks = [int(word) for word in rest.split()[: _STEAL + 1]]
        if name != "cpu" and len(ticks) > _STEAL and any(ticks):
            idle = ticks[_IDLE] + ticks[_IOWAIT]
            busy = sum(ticks) - idle - ticks[_STEAL]
            cores[int(name[3:])] = CoreTimes(
                *(each / _TICKS_PER_S for each in (idle, ticks[_STEAL], busy, ticks[_SOFTIRQ]))
            )
    return cores


def parse_switches(text: str) -> int:
    """Context switches since boot, on all cores: `ctxt` of /proc/stat. Pure."""
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("ctxt ")), 0)


def _used(own: Sequence[int]) -> float:
    """CPU time of this process, of those of its children that have ended, and of all that live. One that ends between
    two readings goes from the last to the second of these, with all that it used."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + sum(_used_by(pid) for pid in own)


def _used_by(pid: int) -> float:
    """A process and those of its children that it has waited for; 0 once it is gone, and its parent has the time."""
    try:
        stat = server_proc.read_file(f"/proc/{pid}/stat")
        return time.clock_gettime(server_proc.cpu_clock(pid)) + _ticks_of_children(stat) / _TICKS_PER_S
    except OSError:
        return 0.0


def _ticks_of_children(stat: bytes) -> int:
    """cutime and cstime of /proc/PID/stat (proc_pid_stat(5)). Pure."""
    fields = stat.rpartition(b")")[2].split()
    return int(fields[13]) + int(fields[14])


def _parents() -> dict[int, int]:
    parents: dict[int, int] = {}
    with os.scandir("/proc") as processes:
        for pid in (int(entry.name) for entry in processes if entry.name.isdigit()):
            try:
                stat = server_proc.read_file(f"/proc/{pid}/stat")
            except OSError:
                continue  # it has just ended, or is somebody else's and hidden: no child of ours
            parents[pid] = int(stat.rpartition(b")")[2].split()[1])
    return parents
