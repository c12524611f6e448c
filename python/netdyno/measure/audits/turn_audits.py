"""Checks of a trial that was run in turns with others (docs/adr/turns.md). Pure functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from netdyno.measure.audits.of_trial import STEAL_FLOOR_S
from netdyno.model.load_result import Audit
from netdyno.model.observation import MachineObservation

IDLE_SHARE = 0.01
"""The share of a core that a contestant may use while others have their slices."""
IDLE_FLOOR_S = 0.002
"""The CPU that its threads and connections may use to fall asleep after their own slice."""
BACKLOG_SHARE = 0.2
"""The share of a slice's length after its end in which the last answer may come, beyond the time of one request."""

THREAD_SLICE_S = 0.0007
"""The CPU time after which Linux lets another thread go first, on one core; longer on more (kernel/sched/fair.c,
sysctl_sched_base_slice)."""
MOST_SCALING_CORES = 8
"""The number of cores up to which it grows."""

FOREIGN_SHARE = 0.01
"""The share of the server's core time in a slice that one foreign program may use there. The requests that wait for a
core meanwhile are then no more than the one in a hundred that p99 leaves out."""
LOST_SHARE = 0.1
"""The share of it from which on a slice is lost: where no try is left, its turn is then dropped for all."""
MOST_STOLEN = 0.05
"""The share of the cores' time in a turn, retried slices included, above which it is dropped for all."""


def is_free(foreign_s: float, slice_s: float, server_cores: int) -> bool:
    """Whether the server's cores were its own in a slice in which one foreign program ran on them for `foreign_s`."""
    return foreign_s <= FOREIGN_SHARE * slice_s * server_cores


def is_lost(foreign_s: float, slice_s: float, server_cores: int) -> bool:
    """Whether one foreign program, or a pause, took so much of a slice that it says little about the server."""
    return foreign_s > LOST_SHARE * slice_s * server_cores


def is_stolen(whole: MachineObservation | None) -> bool:
    """Whether the hypervisor took so much of a turn, retried slices included, that those without a tick of it say
    little: the kernel counts it in steps of 10 ms, so it is in slices that show none, too."""
    return whole is not None and whole.steal_s > max(MOST_STOLEN * whole.cores * whole.window_s, STEAL_FLOOR_S)


def turns(kept: int, planned: int, dropped: int) -> Audit:
    """Check that enough turns were left to the contestants of a group."""
    why = ", because other programs took the cores" if dropped else ""
    detail = f"{kept} of {planned} turns count; netdyno dropped {dropped} for all contestants{why}"
    return Audit(name="turns", passed=kept == planned, detail=detail)


def turns_of_group(disturbed: str) -> Audit:
    """The audit `turns` of a trial whose group is run again because another trial of it was disturbed."""
    return Audit(name="turns", passed=False, detail=f"the trial of {disturbed} in the same turns was disturbed")


def side_by_side(contestant: str, busy_s: float, others_s: float) -> Audit:
    """Check that a contestant kept still while others had slices of `others_s` seconds in all."""
    limit_s = max(IDLE_SHARE * others_s, IDLE_FLOOR_S)
    detail = (
        f"{contestant} and its load used {busy_s * 1e3:.1f} ms of CPU in the slices of others "
        f"(limit {limit_s * 1e3:.1f} ms)"
    )
    return Audit(name="side_by_side", passed=busy_s <= limit_s, detail=detail)


def backlog(overruns_s: Sequence[float], slice_s: float, request_s: float) -> Audit:
    """Check that the server kept up with an open loop's rate. Otherwise a queue grows until a slice ends and is empty
    when the next begins, while a whole window would show how long it becomes. `overruns_s`: the time after each slice's
    end at which its last answer came; `request_s`: the least time of one request in the server."""
    late_s = statistics.median(overruns_s)
    limit_s = request_s + BACKLOG_SHARE * slice_s
    detail = (
        f"the last answers of a slice of {slice_s * 1e3:.0f} ms came {late_s * 1e3:.1f} ms after its end "
        f"(limit {limit_s * 1e3:.1f} ms)"
    )
    return Audit(name="backlog", passed=late_s <= limit_s, detail=detail)


def rotation(threads: int, server_cores: int, cores: int, measured_s: float) -> Audit:
    """Check that a slice lets each thread of a saturated server go first once (docs/adr/settled-slices.md). Those that
    wait for it make p99: in less time, it depends on the moment at which the slice lies."""
    rotation_s = threads / server_cores * compute_thread_slice_s(cores)
    detail = (
        f"{threads} threads on {server_cores} of {cores} cores run once each within {rotation_s * 1e3:.0f} ms "
        f"(limit {measured_s * 1e3:.0f} ms, a slice)"
    )
    return Audit(name="rotation", passed=rotation_s <= measured_s, detail=detail)


def compute_thread_slice_s(cores: int) -> float:
    """Return the CPU time after which a thread lets others go first, on a machine of so many cores. Pure."""
    return THREAD_SLICE_S * (1 + int(math.log2(min(cores, MOST_SCALING_CORES))))
