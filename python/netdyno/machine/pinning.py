"""Which cores the server gets and which the generator. Pure but for what asks the kernel, or tells it: `choose` and its
helpers, `usable_cores`, `of_one_side` and `server_cores`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from netdyno.machine import cpu_quota
from netdyno.machine.process import REALTIME_PRIORITY
from netdyno.model.experiment import Placement
from netdyno.model.observation import Pinning

_CPUS = Path("/sys/devices/system/cpu")


def choose() -> Pinning:
    """Split the cores that this process has. Where its quota leaves it a single one, it keeps to that, and so does all
    that it starts."""
    return prioritise(_with_quota(_kept(split(_siblings()))), may_run_realtime())


def choose_one_core_each() -> Pinning:
    """For a server and a generator of one thread each, so that it is known which core each of them runs on."""
    return prioritise(_with_quota(_kept(narrow(split(_siblings())))), may_run_realtime())


def usable_cores() -> tuple[int, ...]:
    """The cores that this process has: those that it may use (sched_getaffinity(2), so a container's or taskset's limit
    is kept), and of these as many as the CPU quota of its control groups fills."""
    return tuple(sorted(_siblings()))


def _siblings() -> dict[int, str]:
    allowed = {cpu: siblings(cpu) for cpu in sorted(os.sched_getaffinity(0))}
    return within_quota(allowed, cpu_quota.quota_cores())


def within_quota(core_of: Mapping[int, str], quota: float | None) -> dict[int, str]:
    """As many whole cores as a quota fills, and at least one: on more, all stand still as soon as it is used up. First
    one hardware thread of each physical core. Pure."""
    if quota is None:
        return dict(core_of)
    cpus = sorted(core_of)
    nth = {cpu: sum(core_of[before] == core_of[cpu] for before in cpus[:place]) for place, cpu in enumerate(cpus)}
    kept = sorted(cpus, key=lambda cpu: (nth[cpu], cpu))[: max(1, int(quota))]
    return {cpu: core_of[cpu] for cpu in sorted(kept)}


def _kept(pinning: Pinning) -> Pinning:
    """The same. Programs that are not pinned run on all cores of this process, which must be no more than are counted:
    else a server of many threads works on cores that it is said not to have, and uses more CPU time than they give."""
    if not pinning.server and (usable := usable_cores()) != tuple(sorted(os.sched_getaffinity(0))):
        os.sched_setaffinity(0, usable)
    return pinning


def _with_quota(pinning: Pinning) -> Pinning:
    quota = cpu_quota.quota_cores()
    if quota is None:
        return pinning
    note = f"{pinning.note}; the CPU quota of a control group leaves {quota:g} cores' time"
    return msgspec.structs.replace(pinning, note=note)


def of_one_side(cores: Sequence[int], *, is_load: bool, realtime: bool) -> Pinning:
    """Where both sides of the canary are on a host whose programs are one side of a trial: on the cores of these. Where
    that is a single one, the other side has whatever else this process may use, and where nothing is, the same."""
    if len(cores) > 1:
        found = split({cpu: siblings(cpu) for cpu in cores})
    else:
        own = tuple(cores)
        others = tuple(sorted(os.sched_getaffinity(0).difference(own))) or own
        server, generator = (others, own) if is_load else (own, others)
        found = Pinning(server=server, generator=generator, note="")
    return msgspec.structs.replace(found, realtime=realtime and found.server != found.generator)


def may_run_realtime(priority: int = REALTIME_PRIORITY) -> bool:
    """Whether this process may use SCHED_FIFO at a priority (sched(7): CAP_SYS_NICE, or RLIMIT_RTPRIO of so much). Only
    trying tells, as a container may give root without the capability."""
    before, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except PermissionError:
        return False
    os.sched_setscheduler(0, before, parameters)
    return True


@contextmanager
def punctual(*, allowed: bool) -> Iterator[None]:
    """Within it, this process runs before everything of normal priority, where that is allowed: what it reads at the
    ends of a window is then read there, also beside a server with thousands of threads. What it starts does not.

    Nothing is reaped within it: the kernel goes round and round in wait4 (d_invalidate of /proc/PID, Linux 6.18) while
    somebody else takes the same directory entries away, who at a lower priority may never come to it."""
    if not allowed:
        yield
        return
    before, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(REALTIME_PRIORITY))
    try:
        yield
    finally:
        # The flag may be taken back by root only (sched(7)); without it set, what is started later is as before.
        kept = 0 if os.geteuid() == 0 else os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, before | kept, parameters)


def prioritise(pinning: Pinning, allowed: bool) -> Pinning:
    """Let the generator run before everything else on cores of its own, so that its clock is not the machine's noise.
    Never on a core that it shares with the server. Pure."""
    if not pinning.generator:
        return pinning
    how = (
        "generator at real-time priority"
        if allowed
        else "generator at normal priority, as this user may not use real-time (ulimit -r 2 in limits.conf, or root)"
    )
    return msgspec.structs.replace(pinning, realtime=allowed, note=f"{pinning.note}; {how}")


def relay_cores(pinning: Pinning) -> tuple[int, ...]:
    """Where the relay of a link runs: on the last of the generator's cores. What it takes there shows in the send lag
    and never makes the server slower, which is what is compared. Pure."""
    return pinning.generator[-1:]


def relay_note(pinning: Pinning) -> str:
    """Where the relay of a link runs, for people. Pure."""
    cores = relay_cores(pinning)
    if not cores:
        return "not pinned"
    how = "at real-time priority, above the generator's" if pinning.realtime else "at normal priority"
    return f"core {cores[0]}, which is one of the generator's, {how}"


def server_cores(pinning: Pinning) -> int:
    """How many cores a server has: those that it is pinned to, or all that this process has."""
    return len(pinning.server) or len(usable_cores())


def generator_cores(pinning: Pinning) -> int:
    """The same of the generator."""
    return len(pinning.generator) or len(usable_cores())


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


def narrow(pinning: Pinning) -> Pinning:
    """Only the first core of each side. Pure."""
    server, generator = pinning.server[:1], pinning.generator[:1]
    if (server, generator) == (pinning.server, pinning.generator):
        return pinning
    note = f"{pinning.note}; of each side only the first core is used"
    return msgspec.structs.replace(pinning, server=server, generator=generator, note=note)


def apply_placement(pinning: Pinning, placement: Placement) -> Pinning:
    """Return where the programs of a trial run: on cores apart, as this run has them, or both on all of these, the
    generator then at the server's priority, which would starve below it. Pure."""
    cores = tuple(sorted({*pinning.server, *pinning.generator}))
    if placement == "apart" or not cores:
        return pinning
    note = f"server and generator share {_cores(cores)}; the harness is not pinned; generator at normal priority"
    return Pinning(server=cores, generator=cores, note=note)


def give_server(pinning: Pinning, most: int | str) -> Pinning:
    """Return the same with so many of the server's cores, its first ones, or with all of them. Pure."""
    if not isinstance(most, int) or most >= len(pinning.server):
        return pinning
    server = pinning.server[:most]
    note = f"{pinning.note}; of the server's only {_cores(server)}"
    return msgspec.structs.replace(pinning, server=server, note=note)


def _cores(cpus: tuple[int, ...]) -> str:
    return f"core{'s' if len(cpus) > 1 else ''} {','.join(map(str, cpus))}"
