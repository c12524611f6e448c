"""The shares of the cores' time over the measured window: the time that the hypervisor gave to others (steal), the time
for which a control group's quota held programs back, and the time of programs that the harness had not started (foreign
load). docs/adr/foreign-load.md says why it is read this way.

A reading costs about 100 us. The harness's own processes are looked up before the window, in milliseconds."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Collection, Mapping, Sequence

import msgspec

from netdyno.measure.machine import cpu_quota, orphans, server_proc, server_processes
from netdyno.measure.machine.cpu_quota import Throttled
from netdyno.model.observation import MachineObservation

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_IDLE, _IOWAIT, _SOFTIRQ, _STEAL = 3, 4, 6, 7
"""Columns of a core in /proc/stat (proc_stat(5)); the others count work of some kind."""


class CoreTimes(msgspec.Struct, frozen=True):
    """The times of a core since boot. `idle_s` includes the time in which it was idle while a program waited for a
    disk. `softirq_s` is part of `busy_s`."""

    idle_s: float
    steal_s: float
    busy_s: float
    softirq_s: float


class MachineSnapshot(msgspec.Struct, frozen=True):
    """The machine at one moment. `stat` is /proc/stat as it is, `own_cpu_s` the time that the harness and all that it
    started have used so far, `throttled` the time for which control groups have held them back so far."""

    at_s: float
    stat: str
    own_cpu_s: float
    throttled: Throttled | None = None


def find_own_processes() -> tuple[int, ...]:
    """Find the living processes that this one has started, and their descendants."""
    return list_own_processes(server_proc.read_parents())


def list_own_processes(parents: Mapping[int, int]) -> tuple[int, ...]:
    """Return them by the parents of all processes. Not among them are orphans that this process inherited: what a
    program of the run has left to work on is charged to its contestant, or is foreign."""
    children = [pid for pid, parent in parents.items() if parent == os.getpid() and not orphans.is_inherited(pid)]
    return tuple(sorted(own for pid in children for own in (pid, *server_proc.find_descendants(pid, parents))))


def take(own: Sequence[int]) -> MachineSnapshot:
    """Read the machine now; `own` are the processes that count as the harness's, with those that have ended and were
    waited for. One that begins later counts once it has ended and was waited for."""
    return MachineSnapshot(
        at_s=time.monotonic(),
        stat=read_stat(),
        own_cpu_s=_sum_used_s(own),
        throttled=cpu_quota.sum_throttling(cpu_quota.find_own_stat_files()),
    )


def read_stat() -> str:
    """Return /proc/stat as it is now, which takes no longer however many processes are watched."""
    return server_proc.read_file("/proc/stat").decode("ascii")


def compute_observation(
    before: MachineSnapshot,
    after: MachineSnapshot,
    cores: Collection[int],
    without: Sequence[tuple[MachineSnapshot, MachineSnapshot]] = (),
) -> MachineObservation | None:
    """Return the window between two readings, on these cores, less the spans `without`; None where the kernel does not
    count each of the cores. Pure.

    Work is the wall-clock time less idle and stolen time, and not the sum of /proc/stat's own columns of work: those
    are sampled at each tick, while a kernel with CONFIG_NO_HZ counts idle time exactly (in 10 ms steps). The time to
    enter and leave idleness is neither idle time nor a process's, and so looks foreign."""
    whole = _count_span(before, after, cores)
    left_out = [_count_span(first, last, cores) for first, last in without]
    if whole is None or None in left_out:
        return None
    for span in filter(None, left_out):
        whole = _subtract(whole, span)
    foreign_s = whole.window_s * len(cores) - whole.idle_s - whole.steal_s - whole.own_s
    return MachineObservation(
        cores=len(cores),
        window_s=whole.window_s,
        steal_s=whole.steal_s,
        own_s=whole.own_s,
        foreign_s=max(0.0, foreign_s),
        switches=whole.switches,
        softirq_s=whole.softirq_s,
        throttled_s=None if whole.throttled is None else whole.throttled.seconds,
        throttled_periods=0 if whole.throttled is None else whole.throttled.periods,
    )


def compute_steal_s(before: str, after: str, cores: Collection[int]) -> float:
    """Return what the hypervisor took of these cores between two readings of /proc/stat, in steps of a tick. Pure."""
    first, last = parse_stat(before), parse_stat(after)
    return sum(last[core].steal_s - first[core].steal_s for core in cores if core in first and core in last)


def replace_softirqs(
    observed: MachineObservation, spans: Sequence[tuple[str, str]], part: float = 1.0
) -> MachineObservation:
    """Return an observation with the softirqs of a part of what /proc/stat counted over spans. Pure."""
    spent_s = dict.fromkeys(observed.softirq_s, 0.0)
    for before, after in spans:
        first, last = parse_stat(before), parse_stat(after)
        for core in spent_s:
            spent_s[core] += part * (last[core].softirq_s - first[core].softirq_s)
    return msgspec.structs.replace(observed, softirq_s=spent_s)


class _Span(msgspec.Struct, frozen=True):
    """What was counted between two snapshots."""

    window_s: float
    steal_s: float
    idle_s: float
    own_s: float
    switches: int
    softirq_s: dict[int, float]
    throttled: Throttled | None


def _count_span(before: MachineSnapshot, after: MachineSnapshot, cores: Collection[int]) -> _Span | None:
    first, last = parse_stat(before.stat), parse_stat(after.stat)
    if not all(core in first and core in last for core in cores):
        return None
    return _Span(
        window_s=after.at_s - before.at_s,
        steal_s=sum(last[core].steal_s - first[core].steal_s for core in cores),
        idle_s=sum(last[core].idle_s - first[core].idle_s for core in cores),
        own_s=after.own_cpu_s - before.own_cpu_s,
        switches=parse_switches(after.stat) - parse_switches(before.stat),
        softirq_s={core: last[core].softirq_s - first[core].softirq_s for core in sorted(cores)},
        throttled=_subtract_throttling(before.throttled, after.throttled),
    )


def _subtract(whole: _Span, part: _Span) -> _Span:
    return _Span(
        window_s=whole.window_s - part.window_s,
        steal_s=whole.steal_s - part.steal_s,
        idle_s=whole.idle_s - part.idle_s,
        own_s=whole.own_s - part.own_s,
        switches=whole.switches - part.switches,
        softirq_s={core: whole.softirq_s[core] - part.softirq_s[core] for core in whole.softirq_s},
        throttled=_subtract_throttling(part.throttled, whole.throttled),
    )


def _subtract_throttling(before: Throttled | None, after: Throttled | None) -> Throttled | None:
    if before is None or after is None:
        return None
    return Throttled(after.periods - before.periods, after.seconds - before.seconds)


def parse_stat(text: str) -> dict[int, CoreTimes]:
    """Parse each core of /proc/stat that is online, by its number. Pure. Kernels that hide the machine (gVisor) have
    zeros only; such a core is left out, as nothing is known of it."""
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
                *(count / _TICKS_PER_S for count in (idle, ticks[_STEAL], busy, ticks[_SOFTIRQ]))
            )
    return cores


def parse_switches(text: str) -> int:
    """Return the context switches since boot, on all cores: `ctxt` of /proc/stat. Pure."""
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("ctxt ")), 0)


def _sum_used_s(own: Sequence[int]) -> float:
    """Return the CPU time of this process, of its children that have ended, and of the living processes `own`. A
    process that ends between two readings moves from the living to the ended, with all that it used."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    living_s = sum(cpu.own_s + cpu.reaped_s for cpu in server_processes.read_cpu(own).values())
    return time.process_time() + ended.ru_utime + ended.ru_stime + living_s
