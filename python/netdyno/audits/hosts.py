"""What several hosts that make one load say of each other. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netdyno.audits.stationary import MISSED, answered_often, stalled
from netdyno.base import quantities
from netdyno.model.load_result import Audit, LoadResult, Part

START_SHARE = 0.01
"""Of the window, how far apart its hosts may begin it, so that what is added up is of one window."""
SLOWER = 2.0
SLOWER_NS = 200_000
"""How much longer half of a host's answers may take than those of the fastest, as a ratio, and beside that: each has
the same share of the same load, so what is more is the host's, or its way's."""


def common_start(within_ns: Mapping[str, float], window_s: float) -> Audit:
    """All hosts began together: `within_ns` says of each how far from the common moment it may have been, by its clock
    as it was found before the window and after it."""
    most = sum(sorted(within_ns.values())[-2:])
    limit = START_SHARE * window_s * 1e9
    detail = f"the hosts of the load began within {quantities.duration(most)} of each other"
    return Audit(name="common_start", passed=most <= limit, detail=f"{detail} (limit {quantities.duration(limit)})")


def client_slower(parts: Sequence[Part]) -> Audit:
    """No host of the load has much longer response times than another. One without an answer has none."""
    timed = [(part.p50_ns, part.host) for part in parts if part.completed > 0 and part.p50_ns is not None]
    if not timed:
        return Audit(name="client_slower", passed=True, detail="no host has a response time")
    (fastest_ns, fastest), (slowest_ns, slowest) = min(timed), max(timed)
    passed = slowest_ns <= SLOWER * fastest_ns + SLOWER_NS
    detail = (
        f"median response times from {quantities.duration(fastest_ns)} on {fastest} to "
        f"{quantities.duration(slowest_ns)} on {slowest}"
    )
    return Audit(name="client_slower", passed=passed, detail=detail)


def client_stalled(by_host: Mapping[str, LoadResult], whole: LoadResult) -> Audit:
    """No host of the load stood still while others were answered. While nobody is, it is the server that does."""
    told, not_judged = [], []
    for host, load in by_host.items():
        found = stalled(load, "loopback", whole)
        if load.requests.completed == 0 and whole.requests.completed >= MISSED * len(by_host):
            # So that nothing tells how often it would have been.
            told.append(f"{host} got no answer at all while other hosts did")
        elif not found.passed:
            told.append(f"{host} stalled while other hosts did not: {found.detail}")
        elif not answered_often(load):
            not_judged.append(f"{host}: {found.detail}")
    detail = "; ".join([*told, *not_judged]) or "no host stalled while others did not"
    return Audit(name="client_stalled", passed=not told, detail=detail)
