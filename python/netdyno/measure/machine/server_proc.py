"""The kernel's figures on a server over the measured window: differences between readings of /proc (proc(5)).

A reading takes the files as they are, which costs microseconds for a server of one thread and 10 to 30 us for each
further thread, so that of thousands only some are read. It is parsed when the window is over. The harness's own CPU is
recorded with the rest, and an audit holds it below 2% of a core. (Parsing takes more code than reading. Where a host
takes back the memory that a machine has not touched for half a second, that code costs tens of milliseconds, which were
most of the 2%.)"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from netdyno.model.observation import SERVER_DROPS, ServerObservation

_PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_CPUCLOCK_SCHED = 2  # include/linux/posix-timers_types.h: the clock of a process that counts nanoseconds on a CPU

KERNEL_COUNTERS: Mapping[str, tuple[str, ...]] = {
    "TcpExt": (
        "ListenOverflows",
        "ListenDrops",
        "TCPSynRetrans",
        "TCPTimeouts",
        "TCPLossProbes",
        "TCPLostRetransmit",
        "DelayedACKs",
        "TCPReqQFullDrop",
        "TCPReqQFullDoCookies",
        "TCPBacklogDrop",
        "TCPAbortOnMemory",
    ),
    "Tcp": ("InSegs", "OutSegs", "RetransSegs", "AttemptFails", "EstabResets", "InErrs", "OutRsts"),
    "Udp": ("InDatagrams", "OutDatagrams", "RcvbufErrors", "SndbufErrors", "InErrors", "NoPorts", "MemErrors"),
}
"""Counters of /proc/net/netstat and /proc/net/snmp that explain a slow or lossy trial, and what crossed the network.
Udp's are stored as "Udp…"."""


MOST_THREADS_READ = 200
"""In a server with more threads, its main thread and a random choice of the others stand for all of them."""


class ProcessSnapshot(msgspec.Struct, frozen=True):
    """The kernel's texts on a process at one moment. `tasks`: status and schedstat of each thread, or of those that
    were chosen."""

    at_s: float
    cpu_s: float
    stat: bytes
    status: bytes
    tasks: dict[str, tuple[bytes, bytes]]
    harness_cpu_s: float


class Kernel(NamedTuple):
    """The kernel's text of the counters of a network namespace at one moment, and the datagrams that the server's own
    sockets had dropped."""

    text: str
    socket_drops: int | None

    def counters(self) -> dict[str, int]:
        drops = {} if self.socket_drops is None else {SERVER_DROPS: self.socket_drops}
        return parse_counters(self.text) | drops


class ThreadCounters(NamedTuple):
    """One thread's counters since it began."""

    voluntary: int
    involuntary: int
    wait_ns: int


class ServerReading(msgspec.Struct, frozen=True):
    """The server at one moment. `cpu_s` is exact; the ticks (10 ms each) only say how it divides, and of processes that
    use less than some ticks they say little. `reaped_s`: the CPU seconds of children that have ended and were waited
    for, to 20 ms; the ticks include theirs."""

    at_s: float
    cpu_s: float
    user_ticks: int
    system_ticks: int
    rss_peak_bytes: int
    threads: int
    tasks: dict[int, ThreadCounters]
    harness_cpu_s: float
    reaped_s: float = 0.0


def choose_threads(pid: int) -> tuple[str, ...]:
    """Choose the threads to read, where there are too many to read all; else none. Raises OSError when the process is
    gone.

    The threads of a server with so many all do the same, one for each connection."""
    others = [name for name in _list_threads(f"{_PROC}/{pid}/task") if name != str(pid)]
    if len(others) < MOST_THREADS_READ:
        return ()
    return str(pid), *random.Random(pid).sample(others, MOST_THREADS_READ - 1)


def find_family(pid: int) -> tuple[int, ...]:
    """Find a process and all its descendants, as far as they are still there. They stand in a list of each thread
    (CONFIG_PROC_CHILDREN); of a process with many, the parents of all processes are read instead."""
    pids, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        pids.append(parent)
        try:
            waiting += find_children(parent, most_threads=MOST_THREADS_READ)
        except TooManyThreadsError:
            pids += find_descendants(parent, read_parents())
    return tuple(pids)


def find_children(pid: int, most_threads: float = float("inf")) -> list[int]:
    """Find the processes that a process has started or inherited, as far as they are still there
    (CONFIG_PROC_CHILDREN). Raises TooManyThreadsError."""
    pids: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
        tasks = _list_threads(f"{_PROC}/{pid}/task")
        if len(tasks) > most_threads:
            raise TooManyThreadsError
        for task in tasks:
            pids += map(int, read_file(f"{_PROC}/{pid}/task/{task}/children").split())
    return pids


class TooManyThreadsError(Exception):
    """A process has so many threads that their lists of children are not read."""


def find_descendants(root: int, parents: Mapping[int, int]) -> tuple[int, ...]:
    """Return all descendants of a process. Pure; `parents` maps each process to its parent."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    descended: list[int] = []
    waiting = [root]
    while waiting:
        begun = children.get(waiting.pop(), [])
        descended += begun
        waiting += begun
    return tuple(sorted(descended))


def read_parents() -> dict[int, int]:
    """Read the parent of each process that is visible here."""
    parents: dict[int, int] = {}
    with os.scandir(_PROC) as processes:
        for pid in (int(entry.name) for entry in processes if entry.name.isdigit()):
            try:
                stat = read_file(f"{_PROC}/{pid}/stat")
            except OSError:
                continue  # it has just ended, or is hidden as another user's: no child of ours
            parents[pid] = int(stat.rpartition(b")")[2].split()[1])
    return parents


def take(pid: int, chosen: Sequence[str] = ()) -> ProcessSnapshot:
    """Read a process now, with all of its threads or with the chosen ones. Raises OSError when it is gone."""
    harness_cpu_s = time.process_time()
    proc = f"{_PROC}/{pid}"
    stat = read_file(f"{proc}/stat")
    return ProcessSnapshot(
        at_s=time.monotonic(),
        cpu_s=time.clock_gettime(cpu_clock(pid)),
        stat=stat,
        status=read_file(f"{proc}/status"),
        tasks=_take_tasks(f"{proc}/task", chosen),
        harness_cpu_s=harness_cpu_s,
    )


def understand(taken: ProcessSnapshot) -> ServerReading:
    """Parse the figures of a snapshot. Pure."""
    stat = _split_stat(taken.stat)
    return ServerReading(
        at_s=taken.at_s,
        cpu_s=taken.cpu_s,
        user_ticks=int(stat[11]) + int(stat[13]),
        system_ticks=int(stat[12]) + int(stat[14]),
        rss_peak_bytes=1024 * parse_status_number(taken.status, b"VmHWM"),
        threads=int(stat[17]),
        tasks={int(tid): _parse_task(status, schedstat) for tid, (status, schedstat) in taken.tasks.items()},
        harness_cpu_s=taken.harness_cpu_s,
        reaped_s=_parse_reaped_s(stat),
    )


def read_reaped_s(pid: int) -> float:
    """Return the CPU seconds of the children that a process has waited for. Raises OSError when it is gone."""
    return _parse_reaped_s(_split_stat(read_file(f"{_PROC}/{pid}/stat")))


def _split_stat(stat: bytes) -> list[bytes]:
    """Split /proc/PID/stat from its third field on. The second, comm, may hold blanks and brackets: count from the last
    one (proc(5))."""
    return stat.rpartition(b")")[2].split()


def _parse_reaped_s(stat: Sequence[bytes]) -> float:
    """Parse cutime and cstime of /proc/PID/stat."""
    return (int(stat[13]) + int(stat[14])) / _TICKS_PER_S


def read_peak_memory(pid: int) -> int:
    """Return VmHWM of a process so far, in bytes. Raises OSError when it is gone."""
    return 1024 * parse_status_number(read_file(f"{_PROC}/{pid}/status"), b"VmHWM")


def cpu_clock(pid: int) -> int:
    """Return the id of a process's CPU clock, threads that have ended included: clock_getcpuclockid(3) in arithmetic,
    which Python does not offer. Nanoseconds, where utime and stime of /proc/PID/stat count ticks of 10 ms."""
    return (~pid << 3) | _CPUCLOCK_SCHED


def parse_status_number(status: bytes, key: bytes) -> int:
    """Return a number of /proc/PID/status, in the unit it has there; 0 where the kernel does not give it."""
    for line in status.splitlines():
        if line.startswith(key + b":"):
            return int(line.split()[1])
    return 0


def _list_threads(folder: str) -> list[str]:
    with os.scandir(folder) as threads:
        return [thread.name for thread in threads]


def _take_tasks(folder: str, chosen: Sequence[str]) -> dict[str, tuple[bytes, bytes]]:
    """Read each thread by itself: /proc/PID/schedstat and the switches of /proc/PID/status are those of the main thread
    alone."""
    tasks: dict[str, tuple[bytes, bytes]] = {}
    for name in chosen or _list_threads(folder):
        try:
            tasks[name] = (read_file(f"{folder}/{name}/status"), read_file(f"{folder}/{name}/schedstat"))
        except (FileNotFoundError, ProcessLookupError):
            continue  # this thread has just ended
    return tasks


def _parse_task(status: bytes, schedstat: bytes) -> ThreadCounters:
    times = schedstat.split()
    return ThreadCounters(
        voluntary=parse_status_number(status, b"voluntary_ctxt_switches"),
        involuntary=parse_status_number(status, b"nonvoluntary_ctxt_switches"),
        wait_ns=int(times[1]) if len(times) > 1 else 0,
    )


def read_file(path: str) -> bytes:
    """Read a file of /proc of up to 64 KiB in three system calls: pathlib and io cost more here than the kernel
    does."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 65536)
    finally:
        os.close(descriptor)


def compute_observation(
    before: ServerReading, after: ServerReading, totals: dict[str, int], main: int = 0
) -> ServerObservation:
    """Return the figures of the time between two readings. Pure.

    The counters of a thread that ended before `after` are gone with it. Where only some threads were read, those beside
    the main one, `main`, stand for all others."""
    tasks = {**before.tasks, **after.tasks}
    used = {tid: _subtract_task(before.tasks.get(tid), last) for tid, last in tasks.items()}
    threads = max(before.threads, after.threads)
    sampled = len(tasks) if main and len(tasks) < threads else 0
    threads_per_sample = (threads - 1) / (sampled - 1) if sampled > 1 else 1.0

    def all_threads(figure: Callable[[ThreadCounters], int]) -> float:
        return sum(figure(task) * (1.0 if tid == main else threads_per_sample) for tid, task in used.items())

    cpu_s = after.cpu_s - before.cpu_s
    user_share = _compute_user_share(before, after)
    return ServerObservation(
        cpu_user_s=cpu_s * user_share,
        cpu_system_s=cpu_s * (1 - user_share),
        rss_peak_bytes=after.rss_peak_bytes,
        threads=threads,
        voluntary_switches=round(all_threads(lambda task: task.voluntary)),
        involuntary_switches=round(all_threads(lambda task: task.involuntary)),
        run_queue_wait_s=all_threads(lambda task: task.wait_ns) / 1e9,
        window_s=after.at_s - before.at_s,
        harness_cpu_s=after.harness_cpu_s - before.harness_cpu_s,
        totals=totals,
        threads_unread=len(before.tasks.keys() - after.tasks.keys()),
        threads_sampled=sampled,
    )


def scale_to_part(
    whole: ServerObservation,
    *,
    switches_share: float,
    wait_share: float,
    cpu_s: float,
    window_s: float,
    harness_cpu_s: float,
) -> ServerObservation:
    """Return the figures of a part of the time of an observation: the CPU seconds that were read for it, and its shares
    of the switches and of the wait for a core. Pure."""
    user_share = whole.cpu_user_s / whole.cpu_s if whole.cpu_s else 0.0
    return msgspec.structs.replace(
        whole,
        cpu_user_s=cpu_s * user_share,
        cpu_system_s=cpu_s * (1 - user_share),
        voluntary_switches=round(whole.voluntary_switches * switches_share),
        involuntary_switches=round(whole.involuntary_switches * switches_share),
        run_queue_wait_s=whole.run_queue_wait_s * wait_share,
        window_s=window_s,
        harness_cpu_s=harness_cpu_s,
    )


def _subtract_task(first: ThreadCounters | None, last: ThreadCounters) -> ThreadCounters:
    if first is None:
        return last
    return ThreadCounters(
        last.voluntary - first.voluntary, last.involuntary - first.involuntary, last.wait_ns - first.wait_ns
    )


def _compute_user_share(before: ServerReading, after: ServerReading) -> float:
    """Return the share of the CPU time that was spent in user mode: by the window's ticks, or the whole life's if it
    had none."""
    user, system = after.user_ticks - before.user_ticks, after.system_ticks - before.system_ticks
    if user + system <= 0 or user < 0 or system < 0:  # a process of the server was lost with its ticks
        user, system = after.user_ticks, after.system_ticks
    return user / (user + system) if user + system else 0.0


def take_kernel(net: Path = _PROC / "net") -> str:
    """Read the counters of a network namespace since it began, for parse_counters: the namespace of the harness, or of
    the process to which `net` belongs."""
    return (read_file(f"{net}/netstat") + read_file(f"{net}/snmp")).decode("ascii")


def read_socket_drops(pid: int) -> int:
    """Count the datagrams that the UDP sockets of a process dropped since they were opened, mostly because their
    receive buffers were full. Raises OSError when the process is gone."""
    proc = _PROC / str(pid)
    inodes = {link[len("socket:[") : -1] for _, link in read_links(pid) if link.startswith("socket:[")}
    tables = [(proc / "net" / name).read_text() for name in ("udp", "udp6") if (proc / "net" / name).exists()]
    return sum(drops for table in tables for inode, drops in parse_sockets(table) if inode in inodes)


def count_descriptors(pids: Iterable[int]) -> int:
    """Count the files and sockets that processes have open (/proc/PID/fd, proc(5)); 0 of one that is gone."""
    count = 0
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):  # it has ended
            count += sum(1 for _ in (_PROC / str(pid) / "fd").iterdir())
    return count


def read_links(pid: int) -> Iterator[tuple[str, str]]:
    """Yield the path of each descriptor of a process, and what it stands for, such as "socket:[4711]". Raises OSError
    when the process is gone, or another user's."""
    with os.scandir(f"{_PROC}/{pid}/fd") as descriptors:
        for descriptor in descriptors:
            with suppress(FileNotFoundError):  # it has just been closed
                yield descriptor.path, os.readlink(descriptor.path)  # noqa: PTH115 - thousands


def parse_sockets(table: str) -> list[tuple[str, int]]:
    """Parse inode and drops of each socket in /proc/net/udp or udp6: the tenth and the last column (net/ipv4/udp.c).
    Pure."""
    rows = (line.split() for line in table.splitlines()[1:])
    return [(row[9], int(row[-1])) for row in rows]


def parse_counters(text: str) -> dict[str, int]:
    """Pick KERNEL_COUNTERS out of pairs of lines: names, then values, both led by the group. Pure.

    A counter that this kernel does not have is left out rather than shown as 0."""
    lines = text.splitlines()
    counters: dict[str, int] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        group, _, rest = names.partition(":")
        counted = dict(zip(rest.split(), values.partition(":")[2].split(), strict=False))
        prefix = "Udp" if group == "Udp" else ""
        counters.update(
            {prefix + name: int(counted[name]) for name in KERNEL_COUNTERS.get(group, ()) if name in counted}
        )
    return counters


def increase(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return the growth of each counter."""
    return {name: value - before.get(name, 0) for name, value in after.items()}
