"""A server as all of its processes: which of them are read, and what their readings add up to (docs/adr/processes.md).

The CPU time of each process is read. Of many, the other files are read of the first one and of some that stand for the
rest, as to read all would take longer than the harness may work within a window. Memory is read outside of windows
only: the kernel walks the page tables of a process for it (smaps_rollup)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from netdyno.measure.machine import server_proc
from netdyno.measure.machine.server_proc import ProcessSnapshot, ServerReading, parse_status_number

MOST_PROCESSES_READ = 50
"""In a server with more processes, its first one and a random choice of the others stand for all of them."""

_MEMORY_FILES = ("/memfd:", "/dev/shm/")
_BLOCK_BYTES = 512
"""The unit of st_blocks (stat(3type))."""


class Origin(NamedTuple):
    """The processes whose descendants serve: `first`, which the ready line names, the `keeper` under which it was
    started, 0 for a server that was found running, and processes `elsewhere` that have its sockets open, as behind a
    daemon that starts containers."""

    first: int
    keeper: int = 0
    elsewhere: tuple[int, ...] = ()


class Family(msgspec.Struct, frozen=True):
    """The processes of a server: the first one and those of the others that are read, and those of which only the CPU
    time is. `threads`: those that are read of a single process with too many. The `keeper` is not the server's, but
    what it has reaped is."""

    read: tuple[int, ...]
    unread: tuple[int, ...] = ()
    threads: tuple[str, ...] = ()
    keeper: int = 0

    @property
    def pids(self) -> tuple[int, ...]:
        return self.read + self.unread

    @property
    def is_sample(self) -> bool:
        """Whether some threads or processes stand for others."""
        return bool(self.unread or self.threads)


class FamilySnapshot(NamedTuple):
    """The processes of a server at one moment, the CPU seconds of those that were not read, by process, and of the
    orphans that its keeper has reaped."""

    read: dict[int, ProcessSnapshot]
    unread_cpu_s: dict[int, float]
    orphans_s: float = 0.0


class ProcessCpu(NamedTuple):
    """The CPU seconds of a process, and of the children that it has waited for."""

    own_s: float
    reaped_s: float = 0.0


class Edges(NamedTuple):
    """The CPU seconds of each process of a server at the two ends of what is measured."""

    start: dict[int, float]
    end: dict[int, float]


class ProcessMemory(NamedTuple):
    """The kernel's texts on the memory of a process: /proc/PID/status and /proc/PID/smaps_rollup."""

    status: bytes
    rollup: bytes


def find_members(origin: Origin) -> tuple[int, ...]:
    """Find the processes of a server that are there now, after its first one."""
    kept = server_proc.find_family(origin.keeper)[1:] if origin.keeper else ()
    members = (pid for root in _list_roots(origin, kept) for pid in server_proc.find_family(root))
    return tuple(dict.fromkeys((origin.first, *kept, *members)))


def list_members(origin: Origin, parents: Mapping[int, int]) -> tuple[int, ...]:
    """Return the processes of a server by the parents of all processes. Pure."""
    kept = server_proc.find_descendants(origin.keeper, parents) if origin.keeper else ()
    roots = _list_roots(origin, kept)
    members = (pid for root in roots for pid in (root, *server_proc.find_descendants(root, parents)))
    return tuple(dict.fromkeys((origin.first, *kept, *members)))


def _list_roots(origin: Origin, kept: Collection[int]) -> tuple[int, ...]:
    """Return the processes whose families are the server's beside those that its keeper has."""
    return origin.elsewhere if origin.first in kept else (origin.first, *origin.elsewhere)


def choose(origin: Origin) -> Family:
    """Find the processes of a server and choose those that are read. Raises OSError when its first one is gone."""
    first, *others = find_members(origin)
    if not others:
        return Family((first,), threads=server_proc.choose_threads(first), keeper=origin.keeper)
    if len(others) < MOST_PROCESSES_READ:
        return Family((first, *others), keeper=origin.keeper)
    chosen = random.Random(first).sample(others, MOST_PROCESSES_READ - 1)
    return Family((first, *chosen), tuple(set(others) - set(chosen)), keeper=origin.keeper)


def take(family: Family) -> FamilySnapshot:
    """Read a server now. Raises OSError when its first process is gone; others may have ended."""
    first, *others = family.read
    snapshots = {first: server_proc.take(first, family.threads)}
    for pid in others:
        with suppress(OSError):
            snapshots[pid] = server_proc.take(pid)
    orphans_s = server_proc.read_reaped_s(family.keeper) if family.keeper else 0.0
    return FamilySnapshot(snapshots, read_own_cpu_s(family.unread), orphans_s)


def take_last(family: Family, origin: Origin) -> FamilySnapshot:
    """Read a server at the end of a window, with the processes that have begun since the family was chosen. Raises
    OSError when its first process is gone."""
    taken = take(family)
    known = {*family.pids}
    begun = [pid for pid in find_members(origin) if pid not in known]
    for pid in begun[:MOST_PROCESSES_READ]:
        with suppress(OSError):
            taken.read[pid] = server_proc.take(pid)
    return taken._replace(unread_cpu_s=taken.unread_cpu_s | read_own_cpu_s(begun[MOST_PROCESSES_READ:]))


def read_own_cpu_s(pids: Iterable[int]) -> dict[int, float]:
    """Read the CPU seconds of each process that has not ended."""
    used_s: dict[int, float] = {}
    for pid in pids:
        with suppress(OSError):
            used_s[pid] = time.clock_gettime(server_proc.cpu_clock(pid))
    return used_s


def sum_readings(taken: FamilySnapshot) -> ServerReading:
    """Add up the processes of a server. Pure. The ticks are of the processes that were read; an unread one is taken to
    have as many threads as the others have on average."""
    first, *others = (server_proc.understand(snapshot) for snapshot in taken.read.values())
    readings = (first, *others)
    of_unread = len(taken.unread_cpu_s) * sum(reading.threads for reading in others) / len(others) if others else 0
    return msgspec.structs.replace(
        first,
        cpu_s=sum(reading.cpu_s for reading in readings) + sum(taken.unread_cpu_s.values()),
        reaped_s=sum(reading.reaped_s for reading in readings),
        user_ticks=sum(reading.user_ticks for reading in readings),
        system_ticks=sum(reading.system_ticks for reading in readings),
        rss_peak_bytes=sum(reading.rss_peak_bytes for reading in readings),
        threads=sum(reading.threads for reading in readings) + round(of_unread),
        tasks={tid: task for reading in readings for tid, task in reading.tasks.items()},
    )


def compute_measured_s(
    before: Mapping[int, ProcessCpu], at_edges: Edges, after: Mapping[int, ProcessCpu], measured_share: float
) -> float:
    """Return the CPU seconds that a server used in a window, or in the measured part of a slice: all that it used
    between the readings around that, without what its processes used outside of it. Of processes that began or ended
    meanwhile, which were not read at its edges, it is its share of the time. Pure."""
    own_before_s = {pid: cpu.own_s for pid, cpu in before.items()}
    own_after_s = {pid: cpu.own_s for pid, cpu in after.items()}
    at_start = {pid: used_s for pid, used_s in at_edges.start.items() if pid in own_after_s}
    outside_s = sum_own_used_s(own_before_s, at_start) + sum_own_used_s(at_edges.end, own_after_s)
    used_s = sum_used_s(before, after)
    of_others_s = used_s - sum_own_used_s(own_before_s, own_after_s)
    return max(0.0, used_s - outside_s - of_others_s * (1 - measured_share))


def sum_own_used_s(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """Return the CPU seconds that processes used between two readings. One that has ended cannot be read and counts 0.
    Pure."""
    return sum(after[pid] - read_s for pid, read_s in before.items() if pid in after)


def sum_used_s(first: Mapping[int, ProcessCpu], last: Mapping[int, ProcessCpu]) -> float:
    """Return the CPU seconds that processes used between two readings. Pure.

    A process that has ended and was waited for left all that it had used to its parent, also what it had used before
    the first reading; what was not waited for is lost with it."""
    own_s = sum(now.own_s - first.get(pid, _NONE).own_s for pid, now in last.items())
    reaped_s = sum(now.reaped_s - first.get(pid, _NONE).reaped_s for pid, now in last.items())
    of_ended_s = sum(then.own_s + then.reaped_s for pid, then in first.items() if pid not in last)
    return own_s + max(0.0, reaped_s - of_ended_s)


_NONE = ProcessCpu(0.0)
KEEPER = 0
"""The key of what a keeper has reaped."""


def list_cpu(taken: FamilySnapshot) -> Mapping[int, ProcessCpu]:
    """Return the CPU seconds of each process of a snapshot. Pure."""
    used = {pid: ProcessCpu(used_s) for pid, used_s in taken.unread_cpu_s.items()} | {
        KEEPER: ProcessCpu(0.0, taken.orphans_s)
    }
    for pid, snapshot in taken.read.items():
        reading = server_proc.understand(snapshot)
        used[pid] = ProcessCpu(reading.cpu_s, reading.reaped_s)
    return used


def read_cpu(pids: Iterable[int], keeper: int = 0) -> dict[int, ProcessCpu]:
    """Read the CPU seconds of each process that has not ended, and of the children that it has waited for; of a keeper
    only these."""
    used: dict[int, ProcessCpu] = {}
    for pid in pids:
        with suppress(OSError):
            own_s = time.clock_gettime(server_proc.cpu_clock(pid))
            used[pid] = ProcessCpu(own_s, server_proc.read_reaped_s(pid))
    if keeper:
        with suppress(OSError):
            used[KEEPER] = ProcessCpu(0.0, server_proc.read_reaped_s(keeper))
    return used


def read_peak_memory(family: Family) -> int:
    """Return the peak memory of a server so far, in bytes: see compute_peak_memory. Raises OSError when its first
    process is gone."""
    first, *others = family.read
    if not others:
        return server_proc.read_peak_memory(first)
    memories = [_read_memory(first)]
    for pid in others:
        with suppress(OSError):  # it has ended
            memories.append(_read_memory(pid))
    return compute_peak_memory(memories, len(family.pids))


def read_memory_files(pids: Iterable[int]) -> int:
    """Return the bytes of files in memory (memfd_create(2), shm_open(3)) that processes have open and not mapped: they
    are in the memory of none of them. A file counts once."""
    sizes: dict[tuple[int, int], int] = {}
    mapped = 0
    for pid in pids:
        with suppress(OSError):  # it has ended, or is another user's
            for path in [path for path, link in server_proc.read_links(pid) if link.startswith(_MEMORY_FILES)]:
                status = Path(path).stat()
                sizes[status.st_dev, status.st_ino] = _BLOCK_BYTES * status.st_blocks
            mapped += 1024 * parse_status_number(server_proc.read_file(f"/proc/{pid}/status"), b"RssShmem")
    return max(0, sum(sizes.values()) - mapped)


def _read_memory(pid: int) -> ProcessMemory:
    """Read the memory of a process; without smaps_rollup where that is forbidden or missing. Raises OSError when the
    process is gone."""
    status = server_proc.read_file(f"/proc/{pid}/status")
    try:
        return ProcessMemory(status, server_proc.read_file(f"/proc/{pid}/smaps_rollup"))
    except (PermissionError, FileNotFoundError):
        return ProcessMemory(status, b"")


def compute_peak_memory(memories: Sequence[ProcessMemory], processes: int) -> int:
    """Return the peak memory of a server of so many processes, of which these were read, the first one first. Pure.

    It is what they hold now, a page once however many of them share it (Pss, proc_pid_smaps(5)), and by how much the
    peak of each (VmHWM) was above that. Pss divides pages of files among the programs of others, too, so those of the
    process with most of them count in full: for one process this is VmHWM. What processes held that have ended is not
    in it. Where the kernel does not report the parts of Pss, it is the sum of VmHWM."""

    def sum_up(figure: Callable[[ProcessMemory], int]) -> float:
        first, *others = map(figure, memories)
        return first + (sum(others) * (processes - 1) / len(others) if others else 0)

    if not all(b"Pss_File:" in memory.rollup for memory in memories):
        return 1024 * round(sum_up(lambda memory: parse_status_number(memory.status, b"VmHWM")))
    files = max(
        sum_up(lambda memory: parse_status_number(memory.rollup, b"Pss_File")),
        *(parse_status_number(memory.status, b"RssFile") for memory in memories),
    )
    return 1024 * round(sum_up(_sum_kib_without_files) + files)


def _sum_kib_without_files(memory: ProcessMemory) -> int:
    """Return what a process holds beside the pages of files, and what it held more at its peak."""
    held = parse_status_number(memory.rollup, b"Pss") - parse_status_number(memory.rollup, b"Pss_File")
    return held + parse_status_number(memory.status, b"VmHWM") - parse_status_number(memory.status, b"VmRSS")
