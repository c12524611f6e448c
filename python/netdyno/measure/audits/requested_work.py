"""The audit `work`: the server did for each request what was requested (protocol/WIRE.md, Service time). A pure
function.

A server that sleeps instead of computing, or answers before the time is over, looks faster than all that are honest.
docs/adr/equal-work.md has the measurements behind the tolerances."""

from __future__ import annotations

from typing import NamedTuple

from netdyno.kit import quantities
from netdyno.kit.statistics import hdr
from netdyno.model.load_result import Audit, Distribution, LoadResult
from netdyno.model.observation import ServerObservation

CPU_SHARE = 0.9
"""The part of the requested CPU that must have been used: clocks of CPU time count in steps."""
TIMER_SHARE, TIMER_S = 0.1, 1e-3
"""The most by which a timer may end a service time too early: coarse ones by 5% (Qt), others by a millisecond
(Node)."""


class RequestedWork(NamedTuple):
    """The time that each request is to take in the server at least, whether it `burns` CPU for it, and the number of
    requests that it may work on at a time, each of which may lie in part before the window."""

    service_s: float
    burns: bool
    at_a_time: int


def work(load: LoadResult, server: ServerObservation | None, request: RequestedWork) -> Audit:
    """Check that no reply came before its service time was over, and that a server that is to compute used the CPU. The
    CPU of a server whose process is not known (None) is not judged."""
    if not request.service_s or load.latency.service_ns.count == 0:
        return Audit(name="work", passed=True, detail="no service time was requested")
    problems = [*_find_early(load.latency.service_ns, request.service_s)]
    requested_s = _compute_cpu_s(load, request)
    # A server that burns by the clock burns on while it waits for its core.
    if server is not None and server.cpu_s + server.run_queue_wait_s < CPU_SHARE * requested_s:
        problems.append(
            f"it used {quantities.duration(server.cpu_s * 1e9)} of CPU, and {load.requests.completed} requests of "
            f"{quantities.duration(request.service_s * 1e9)} take {quantities.duration(requested_s * 1e9)} or more"
        )
    detail = "; ".join(problems) or f"every request took {quantities.duration(request.service_s * 1e9)} or more"
    return Audit(name="work", passed=not problems, detail=detail)


def _compute_cpu_s(load: LoadResult, request: RequestedWork) -> float:
    """Return the CPU time that the requests of the window take, without those that may lie in part before it."""
    answered = min(load.requests.completed, load.requests.sent)
    return max(0, answered - request.at_a_time) * request.service_s if request.burns else 0.0


def _find_early(times: Distribution, service_s: float) -> list[str]:
    least_ns = 1e9 * max(service_s * (1 - TIMER_SHARE) - TIMER_S, 0.0)
    soonest_ns = float(hdr.decode(times.histogram).highest[0])
    if soonest_ns >= least_ns:
        return []
    soonest, requested = quantities.duration(soonest_ns), quantities.duration(service_s * 1e9)
    return [f"a reply came after {soonest}, and a request takes {requested}"]
