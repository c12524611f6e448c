"""Which cores the server gets and which the generator. Pure but for `choose`, which asks the kernel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from netdyno.model import Pinning

_CPUS = Path("/sys/devices/system/cpu")


def choose() -> Pinning:
    """Split the cores this process may use (sched_getaffinity(2), so a container's or taskset's limit is kept)."""
    allowed = sorted(os.sched_getaffinity(0))
    return split({cpu: siblings(cpu) for cpu in allowed})


def siblings(cpu: int) -> str:
    """The kernel's list of the hardware threads that share this CPU's physical core, itself included ("0,4")."""
    try:
        return (_CPUS / f"cpu{cpu}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(cpu)  # not told (some containers hide it): taken as a core of its own


def split(core_of: Mapping[int, str]) -> Pinning:
    """Lower half of the physical cores to the server, upper half to the generator; hardware threads of one physical
    core stay on one side unless there is only that one core."""
    cpus = sorted(core_of)
    if len(cpus) < 2:
        return Pinning(server=(), generator=(), note="not pinned: server and generator share the only core")
    cores = sorted({core_of[cpu] for cpu in cpus}, key=lambda core: min(c for c in cpus if core_of[c] == core))
    if len(cores) == 1:
        half = len(cpus) // 2
        note = "server and generator pinned to hardware threads of the same physical core"
        return Pinning(server=tuple(cpus[:half]), generator=tuple(cpus[half:]), note=note)
    lower = set(cores[: len(cores) // 2])
    server = tuple(cpu for cpu in cpus if core_of[cpu] in lower)
    generator = tuple(cpu for cpu in cpus if core_of[cpu] not in lower)
    note = f"server pinned to {_cores(server)}, generator to {_cores(generator)}; the harness is not pinned"
    return Pinning(server=server, generator=generator, note=note)


def _cores(cpus: tuple[int, ...]) -> str:
    return f"core{'s' if len(cpus) > 1 else ''} {','.join(map(str, cpus))}"
