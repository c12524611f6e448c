"""The binding of the programs of a trial to the cores that topology.split gives them, and their priority."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from netdyno.measure.machine import topology
from netdyno.measure.machine.process import REALTIME_PRIORITY
from netdyno.measure.machine.topology import format_cores
from netdyno.model.experiment import Placement
from netdyno.model.observation import Pinning


def choose() -> Pinning:
    """Split the cores that this process has. Where only one is left, this process keeps to it, as does all that it
    starts."""
    machine = topology.read()
    pinning = topology.split(machine)
    if not pinning.server and machine.alike != machine.processors:
        # Programs that are not pinned run wherever this process may: else a server of many threads would work on cores
        # that the record denies it, and use more CPU time than its own cores give.
        os.sched_setaffinity(0, [processor.cpu for processor in machine.alike])
    return prioritise(pinning, may_run_realtime())


def list_usable_cores() -> tuple[int, ...]:
    """Return the cores that this process has and its CPU quota fills, of all kinds."""
    return tuple(processor.cpu for processor in topology.read().usable)


def place_canary(cores: Sequence[int], *, is_load: bool, realtime: bool) -> Pinning:
    """Return the cores of both sides of the canary on a host whose programs are one side of a trial: the cores of
    these. Where that is a single core, the other side has all others that this process may use, and where there are
    none, the same core."""
    machine = topology.read()
    if len(cores) > 1:
        physical = topology.group_by_core(processor for processor in machine.processors if processor.cpu in cores)
        server, generator = map(topology.list_cpus, topology.split_cores(physical))
    else:
        side_cores = tuple(cores)
        other_cores = (
            tuple(processor.cpu for processor in machine.processors if processor.cpu not in side_cores) or side_cores
        )
        server, generator = (other_cores, side_cores) if is_load else (side_cores, other_cores)
    return Pinning(server=server, generator=generator, note="", realtime=realtime and server != generator)


def may_run_realtime(priority: int = REALTIME_PRIORITY) -> bool:
    """Return whether this process may use SCHED_FIFO at a priority (sched(7): CAP_SYS_NICE, or RLIMIT_RTPRIO of so
    much). Only a trial shows it, as a container may give root without the capability."""
    before, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except PermissionError:
        return False
    os.sched_setscheduler(0, before, parameters)
    return True


@contextmanager
def keep_punctual(cores: Sequence[int] = (), *, realtime: bool) -> Iterator[None]:
    """Keep this process, within the block, to its own cores, where it has some, and run it before everything of normal
    priority, where that is allowed: so it reads at the ends of a window in time, also beside a server with thousands of
    threads. Programs that it starts do not run before others.

    Reap nothing within it: the kernel loops in wait4 (d_invalidate of /proc/PID, Linux 6.18) while another process
    removes the same directory entries, which at a lower priority may never get to run."""
    with _keep_to_cores(cores):
        if not realtime:
            yield
            return
        before, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(REALTIME_PRIORITY))
        try:
            yield
        finally:
            # Only root may clear the flag (sched(7)); once it is cleared, programs started later run as before.
            flag = 0 if os.geteuid() == 0 else os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(0, before | flag, parameters)


@contextmanager
def _keep_to_cores(cores: Sequence[int]) -> Iterator[None]:
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
    """Let the generator run before everything else on its own cores, so that the machine's noise does not disturb its
    clock. Never on a core that it shares with the server. Pure."""
    if not pinning.generator:
        return pinning
    how = (
        "generator at real-time priority"
        if allowed
        else "generator at normal priority, as this user may not use real-time (ulimit -r 2 in limits.conf, or root)"
    )
    return msgspec.structs.replace(pinning, realtime=allowed, note=f"{pinning.note}; {how}")


def choose_relay_cores(pinning: Pinning) -> tuple[int, ...]:
    """Return the core of a link's relay: the last of the generator's. The time that it takes there shows in the send
    lag and never makes the server slower, which is what is compared. Pure."""
    return pinning.generator[-1:]


def describe_relay_cores(pinning: Pinning) -> str:
    """Describe the core of a link's relay, for people. Pure."""
    cores = choose_relay_cores(pinning)
    if not cores:
        return "not pinned"
    how = "at real-time priority, above the generator's" if pinning.realtime else "at normal priority"
    return f"core {cores[0]}, which is one of the generator's, {how}"


def count_server_cores(pinning: Pinning) -> int:
    """Count the cores of a server: those that it is pinned to, or all that this process has."""
    return len(pinning.server) or len(list_usable_cores())


def count_generator_cores(pinning: Pinning) -> int:
    """Count the cores of the generator, in the same way."""
    return len(pinning.generator) or len(list_usable_cores())


def narrow(pinning: Pinning) -> Pinning:
    """Keep only the first core of each side. Pure."""
    server, generator = pinning.server[:1], pinning.generator[:1]
    if (server, generator) == (pinning.server, pinning.generator):
        return pinning
    note = f"{pinning.note}; of each side only the first core is used"
    return msgspec.structs.replace(pinning, server=server, generator=generator, note=note)


def apply_placement(pinning: Pinning, placement: Placement) -> Pinning:
    """Return the cores of the programs of a trial: separate cores, as this run has them, or all of these for both
    sides. The generator then has the server's priority, as the server would starve below it. Pure."""
    cores = tuple(sorted({*pinning.server, *pinning.generator}))
    if placement == "apart" or not cores:
        return pinning
    harness = f"harness on {format_cores(pinning.harness)}" if pinning.harness else "the harness is not pinned"
    note = f"server and generator share {format_cores(cores)}; {harness}; generator at normal priority"
    return msgspec.structs.replace(pinning, server=cores, generator=cores, realtime=False, note=note)


def give_server(pinning: Pinning, most: int | str) -> Pinning:
    """Return the pinning with at most so many of the server's cores, its first ones, or with all. Pure."""
    if not isinstance(most, int) or most >= len(pinning.server):
        return pinning
    server = pinning.server[:most]
    note = f"{pinning.note}; of the server's only {format_cores(server)}"
    return msgspec.structs.replace(pinning, server=server, note=note)
