"""How the programs of a trial are bound to the cores that topology.split gives them, and at which priority."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from netdyno.machine import topology
from netdyno.machine.process import REALTIME_PRIORITY
from netdyno.machine.topology import cores_words
from netdyno.model.experiment import Placement
from netdyno.model.observation import Pinning


def choose() -> Pinning:
    """Split the cores that this process has. Where only one is left, it keeps to that, and so does all that it
    starts."""
    machine = topology.read()
    pinning = topology.split(machine)
    if not pinning.server and machine.alike != machine.processors:
        # What is not pinned runs wherever this process may: else a server of many threads works on cores that it is
        # said not to have, and uses more CPU time than they give.
        os.sched_setaffinity(0, [one.cpu for one in machine.alike])
    return prioritise(pinning, may_run_realtime())


def choose_one_core_each() -> Pinning:
    """For a server and a generator of one thread each, so that it is known which core each of them runs on."""
    return narrow(choose())


def usable_cores() -> tuple[int, ...]:
    """Return the cores that this process has and its CPU quota fills, of all kinds."""
    return tuple(one.cpu for one in topology.read().usable)


def of_one_side(cores: Sequence[int], *, is_load: bool, realtime: bool) -> Pinning:
    """Where both sides of the canary are on a host whose programs are one side of a trial: on the cores of these. Where
    that is a single one, the other side has whatever else this process may use, and where nothing is, the same."""
    machine = topology.read()
    if len(cores) > 1:
        physical = topology.cores_of(one for one in machine.processors if one.cpu in cores)
        server, generator = map(topology.cpus_of, topology.split_cores(physical))
    else:
        own = tuple(cores)
        others = tuple(one.cpu for one in machine.processors if one.cpu not in own) or own
        server, generator = (others, own) if is_load else (own, others)
    return Pinning(server=server, generator=generator, note="", realtime=realtime and server != generator)


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
def punctual(cores: Sequence[int] = (), *, realtime: bool) -> Iterator[None]:
    """Within it, this process keeps to its own cores, where it has some, and runs before everything of normal priority,
    where that is allowed: what it reads at the ends of a window is then read there, also beside a server with thousands
    of threads. What it starts does not run before others.

    Nothing is reaped within it: the kernel goes round and round in wait4 (d_invalidate of /proc/PID, Linux 6.18) while
    somebody else takes the same directory entries away, who at a lower priority may never come to it."""
    with _on_cores(cores):
        if not realtime:
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


@contextmanager
def _on_cores(cores: Sequence[int]) -> Iterator[None]:
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


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
    harness = f"harness on {cores_words(pinning.harness)}" if pinning.harness else "the harness is not pinned"
    note = f"server and generator share {cores_words(cores)}; {harness}; generator at normal priority"
    return msgspec.structs.replace(pinning, server=cores, generator=cores, realtime=False, note=note)


def give_server(pinning: Pinning, most: int | str) -> Pinning:
    """Return the same with so many of the server's cores, its first ones, or with all of them. Pure."""
    if not isinstance(most, int) or most >= len(pinning.server):
        return pinning
    server = pinning.server[:most]
    note = f"{pinning.note}; of the server's only {cores_words(server)}"
    return msgspec.structs.replace(pinning, server=server, note=note)
