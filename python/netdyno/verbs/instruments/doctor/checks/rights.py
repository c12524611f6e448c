"""Checks of this user's rights and of the tools."""

from __future__ import annotations

from netdyno.verbs.instruments.doctor.finding import Opinion, check
from netdyno.verbs.instruments.doctor.system import System

_CONNECTIONS = 10_000
_SPARE = 64
_MOST_FOR_EACH = 3
"""The descriptors of a connection in the servers that need most (descriptors_per_client in server.json)."""


@check("descriptors", "An experiment with more connections than descriptors is refused before its first trial.")
def descriptors(system: System) -> Opinion:
    """The hard RLIMIT_NOFILE; the harness raises the soft one by itself."""
    hard = system.hard_descriptors
    limit = "no limit" if hard == float("inf") else f"{hard:.0f} per program"
    observed = f"{limit}, for {_CONNECTIONS} connections"
    needed = _MOST_FOR_EACH * _CONNECTIONS + _SPARE
    fix = f"ulimit -n {needed} (as root, or by LimitNOFILE or limits.conf)"
    if hard >= needed:
        return Opinion(observed, "good")
    return Opinion(observed, "could be better" if hard >= _CONNECTIONS + _SPARE else "bad", fix)


@check(
    "real-time priority",
    "Without it the generator waits behind others for its core, and is late: send lag, invalid trials.",
)
def realtime(system: System) -> Opinion:
    """SCHED_FIFO for the generator (docs/adr/realtime-generator.md)."""
    if not system.pinning.generator:
        return Opinion("not used: the generator has no core of its own", "unknown")
    if system.pinning.realtime:
        return Opinion("the generator may have it", "good")
    fix = "a line `USER - rtprio 2` in /etc/security/limits.conf (a container: --ulimit rtprio=2)"
    return Opinion("the generator may not have it", "could be better", fix)


@check("io_uring", "Without it, servers over io_uring are skipped.")
def io_uring(system: System) -> Opinion:
    """A ring as those servers ask for it (question/contestants/kernel.py)."""
    why_not = system.why_no_uring()
    if not why_not:
        return Opinion("available", "good")
    observed, _, fix = why_not.partition(": ")
    return Opinion(f"not available: {observed}", "could be better", fix or "a kernel of that version")


@check("perf", "No figure needs perf; it shows where a contestant spends its CPU time.")
def perf(system: System) -> Opinion:
    """perf(1), and the access of this user by kernel.perf_event_paranoid (perf_event_open(2))."""
    if not system.has_program("perf"):
        return Opinion("not installed", "could be better", "apt-get install linux-perf (Ubuntu: linux-tools-generic)")
    level = system.text("/proc/sys/kernel/perf_event_paranoid")
    if not level:
        return Opinion("not here: the kernel has no perf events", "unknown")
    counters = "" if system.paths("/sys/bus/event_source/devices", "cpu*") else ", without the CPU's own counters"
    observed = f"installed{counters}"
    if system.is_root or int(level) <= 1:
        return Opinion(observed, "good")
    observed = f"{observed}; kernel.perf_event_paranoid is {level}"
    return Opinion(observed, "could be better", "sysctl -w kernel.perf_event_paranoid=1")
