"""The processors of this machine: which of them this process may use, what they have in common, and which of them each
side of a trial gets. Sources: Documentation/admin-guide/cputopology.rst and Documentation/ABI/stable/sysfs-devices-node
of the kernel, proc_pid_status(5). All files are read below one folder, which tests replace by recorded machines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import msgspec

from netdyno.kit import quantities
from netdyno.kit.files import read_if_there
from netdyno.measure.machine import cpu_quota
from netdyno.model.observation import Pinning

ROOT = Path("/")
_CPU = "sys/devices/system/cpu"
ALIKE = 0.8
"""Cores of one kind have at least this share of the speed of its fastest. Favoured cores of a kind are up to 8% faster
than its others; slow kinds reach at most three quarters of the fast ones."""


class Processor(msgspec.Struct, frozen=True, order=True):
    """A hardware thread. `core`: all threads of its physical core. `kind`: 0 is the fastest kind of core here."""

    cpu: int
    core: tuple[int, ...]
    package: int
    node: int
    kind: int


Core = tuple[Processor, ...]
"""The threads of a physical core that may be used."""


class Topology(NamedTuple):
    """`processors`: those that this process may use and that are online. `isolated`: those of the machine that the
    scheduler leaves alone (isolcpus=). `quota`: how many cores' time the control groups leave, None: all."""

    processors: tuple[Processor, ...]
    isolated: frozenset[int]
    quota: float | None

    @property
    def usable(self) -> tuple[Processor, ...]:
        """The processors to use: none that is isolated unless this process has no others, and no more than the quota
        fills, but at least one: on more, all stand still as soon as the quota is used up. The fastest come first, and
        one thread of each core."""
        free = [thread for thread in self.processors if thread.cpu not in self.isolated] or list(self.processors)
        if self.quota is None or self.quota >= len(free):
            return tuple(free)
        cpus = {thread.cpu for thread in free}
        nth = {thread.cpu: sum(cpu in cpus for cpu in thread.core if cpu < thread.cpu) for thread in free}
        free.sort(key=lambda thread: (thread.kind, nth[thread.cpu], thread.node, thread.cpu))
        return tuple(sorted(free[: max(1, int(self.quota))]))

    @property
    def alike(self) -> tuple[Processor, ...]:
        """The usable ones of the fastest kind that has two physical cores or more; all where none has."""
        usable = self.usable
        for kind in sorted({processor.kind for processor in usable}):
            same = [processor for processor in usable if processor.kind == kind]
            if len(group_by_core(same)) >= 2:
                return tuple(same)
        return usable


def read(root: Path | None = None) -> Topology:
    """Read the machine below `root`, by default ROOT."""
    root = ROOT if root is None else root
    allowed = _read_allowed(root)
    nodes = {
        cpu: int(path.name[len("node") :])
        for path in (root / "sys/devices/system/node").glob("node[0-9]*")
        for cpu in parse_list(read_if_there(path / "cpulist"))
    }
    kinds = _read_kinds(root, allowed)
    return Topology(
        processors=tuple(
            Processor(
                cpu=cpu,
                core=parse_list(read_if_there(root / _CPU / f"cpu{cpu}/topology/thread_siblings_list")) or (cpu,),
                package=int(read_if_there(root / _CPU / f"cpu{cpu}/topology/physical_package_id") or 0),
                node=nodes.get(cpu, 0),
                kind=kinds[cpu],
            )
            for cpu in allowed
        ),
        isolated=frozenset(parse_list(read_if_there(root / _CPU / "isolated"))),
        quota=cpu_quota.find_tightest_quota(lambda path: read_if_there(root / path.lstrip("/"))),
    )


def split(machine: Topology) -> Pinning:
    """Return the cores of each side, and the reason. Pure. No physical core is on both sides unless there is only one;
    both have one kind of core, each stays on one NUMA node, and the harness keeps a core of its own from three on."""
    cores = group_by_core(machine.alike)
    if len(machine.alike) < 2:
        note = "; ".join(["not pinned: server and generator share the only core", *_list_exclusions(machine)])
        return Pinning(server=(), generator=(), note=note)
    spare = group_by_core(processor for processor in machine.usable if processor not in machine.alike)
    harness_cores = spare[:1] or (cores[:1] if len(cores) >= 3 else [])
    sides = split_cores([core for core in cores if core not in harness_cores])
    server, generator, harness = (list_cpus(part) for part in (*sides, harness_cores))
    sentence = f"server pinned to {format_cores(server)}, generator to {format_cores(generator)}"
    sentence += f", harness to {format_cores(harness)}" if harness else "; the harness is not pinned"
    shared = ["hardware threads of the same physical core"] if len(cores) == 1 else []
    note = "; ".join([sentence, *shared, *_describe_nodes(machine, sides), *_list_exclusions(machine)])
    return Pinning(server=server, generator=generator, harness=harness, note=note)


def split_cores(cores: Sequence[Core]) -> tuple[Sequence[Core], Sequence[Core]]:
    """Return the cores of server and generator: halves of a NUMA node, the odd core for the generator, or a node each,
    the larger for the generator; the split that gives the smaller side most. The sides share a package where that costs
    no core. A single core has its threads split."""
    cores = [(thread,) for thread in cores[0]] if len(cores) == 1 else cores
    nodes: dict[int, list[Core]] = {}
    for core in cores:
        nodes.setdefault(core[0].node, []).append(core)
    halves = [(node[: len(node) // 2], node[len(node) // 2 :]) for node in nodes.values()]
    pairs = [
        (min(two_nodes, key=len), max(reversed(two_nodes), key=len)) for two_nodes in combinations(nodes.values(), 2)
    ]
    return max([*halves, *pairs], key=lambda sides: (min(map(len, sides)), len(_collect_packages(sides)) == 1))


def group_by_core(processors: Iterable[Processor]) -> list[Core]:
    """Return the physical cores of some hardware threads, by their lowest numbers."""
    cores: dict[tuple[int, ...], list[Processor]] = {}
    for thread in sorted(processors):
        cores.setdefault(thread.core, []).append(thread)
    return [tuple(threads) for threads in cores.values()]


def list_cpus(cores: Iterable[Core]) -> tuple[int, ...]:
    """Return the numbers of their threads, sorted."""
    return tuple(sorted(thread.cpu for core in cores for thread in core))


def parse_list(text: str) -> tuple[int, ...]:
    """Read the kernel's list format ("0,2-3"), with the steps of taskset(1) ("0-6:2"); none of an empty text."""
    cpus: list[int] = []
    for part in filter(None, text.split(",")):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        cpus += range(int(first), int(last or first) + 1, int(step or 1))
    return tuple(cpus)


def format_list(cpus: Sequence[int]) -> str:
    """Write sorted numbers as taskset(1) reads them: "0-3,8", and "0-6:2" where three or more are as far apart."""
    parts: list[str] = []
    left = list(cpus)
    while left:
        step = left[1] - left[0] if len(left) > 1 else 1
        count = 1
        while count < len(left) and left[count] - left[count - 1] == step:
            count += 1
        if step > 1 and count == 2:
            count = 1
        span = f"{left[0]}-{left[count - 1]}" if count > 1 else f"{left[0]}"
        parts.append(f"{span}:{step}" if count > 1 and step > 1 else span)
        left = left[count:]
    return ",".join(parts)


def format_cores(cpus: Sequence[int]) -> str:
    """Format them for a sentence: "core 3", "cores 0-3,8"."""
    return f"core{'s' if len(cpus) > 1 else ''} {format_list(cpus)}"


def _describe_nodes(machine: Topology, sides: Sequence[Sequence[Core]]) -> list[str]:
    if len({processor.node for processor in machine.alike}) < 2:
        return []
    server, generator = (side[0][0].node for side in sides)
    if server == generator:
        return [f"both on NUMA node {server}"]
    packages = "of one package" if len(_collect_packages(sides)) == 1 else "of two packages"
    return [f"a NUMA node each, {server} and {generator}, {packages}"]


def _list_exclusions(machine: Topology) -> list[str]:
    """List what was left out and for which reason."""
    reasons = []
    slower = group_by_core(processor for processor in machine.usable if processor not in machine.alike)
    if slower:
        reasons.append(f"one kind of core: {quantities.plural(len(slower), 'slower one')} left out")
    elif len({processor.kind for processor in machine.alike}) > 1:
        reasons.append("cores of different kinds, as no kind has two")
    used = {processor.cpu for processor in machine.usable}
    if machine.isolated & used:
        reasons.append("isolated cores: threads stay where they begin")
    elif machine.isolated:
        reasons.append(f"isolated {format_cores(sorted(machine.isolated))} left out (taskset -c asks for them)")
    if machine.quota is not None:
        reasons.append(f"a CPU quota leaves {machine.quota:g} cores' time")
    return reasons


def _collect_packages(sides: Sequence[Sequence[Core]]) -> set[int]:
    return {core[0].package for side in sides for core in side}


def _read_allowed(root: Path) -> tuple[int, ...]:
    """Read the online processors that this process may use. Cpus_allowed_list holds what cpusets and taskset leave,
    processors that are offline included."""
    for line in read_if_there(root / "proc/self/status").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            offline = parse_list(read_if_there(root / _CPU / "offline"))
            return tuple(cpu for cpu in parse_list(line.partition(":")[2].strip()) if cpu not in offline)
    return tuple(sorted(os.sched_getaffinity(0)))  # the kernel hides it (gVisor)


def _read_kinds(root: Path, cpus: Sequence[int]) -> dict[int, int]:
    """Return the kind of each processor. The kernel shows it for Intel's hybrids by two performance counter units
    (intel-hybrid in the documentation of perf), for others by cpu_capacity; without both, the highest clock decides."""
    slow = set(parse_list(read_if_there(root / "sys/devices/cpu_atom/cpus")))
    if slow and read_if_there(root / "sys/devices/cpu_core/cpus"):
        return _rank_speeds({cpu: 1 if cpu in slow else 2 for cpu in cpus})
    for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"):
        speeds = {cpu: int(read_if_there(root / _CPU / f"cpu{cpu}" / name) or 0) for cpu in cpus}
        if all(speeds.values()) and len(set(speeds.values())) > 1:
            return _rank_speeds(speeds)
    return dict.fromkeys(cpus, 0)


def _rank_speeds(speeds: Mapping[int, int]) -> dict[int, int]:
    fastest: list[int] = []
    for speed in sorted(set(speeds.values()), reverse=True):
        if not fastest or speed < ALIKE * fastest[-1]:
            fastest.append(speed)
    return {cpu: sum(speed < ALIKE * speed_of_kind for speed_of_kind in fastest) for cpu, speed in speeds.items()}
