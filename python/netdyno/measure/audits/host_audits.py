"""Audits of several hosts that make one load, against each other. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netdyno.kit import quantities
from netdyno.measure.audits.stationary import MISSED, answered_often, stalled
from netdyno.model.load_result import Audit, LoadResult, Part

START_SHARE = 0.01
"""The share of the window by which the starts of its hosts may differ, so that their sums are of one window."""
SLOWER = 2.0
SLOWER_NS = 200_000
"""The most by which a host's median response time may exceed that of the fastest host, as a ratio and a time on top:
each has the same share of the same load, so a larger difference comes from the host, or its way."""


def common_start(within_ns: Mapping[str, float], window_s: float) -> Audit:
    """Check that all hosts began together. `within_ns`: by host, the distance that it may have had from the common
    moment, by its clock as measured before the window and after it."""
    most = sum(sorted(within_ns.values())[-2:])
    limit = START_SHARE * window_s * 1e9
    detail = f"the hosts of the load began within {quantities.duration(most)} of each other"
    return Audit(name="common_start", passed=most <= limit, detail=f"{detail} (limit {quantities.duration(limit)})")


def client_slower(parts: Sequence[Part]) -> Audit:
    """Check that no host of the load has much longer response times than another. A host without an answer has none."""
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
    """Check that no host of the load stood still while others were answered. While none is, the server stands still."""
    stalls, not_judged = [], []
    for host, load in by_host.items():
        audit = stalled(load, "loopback", whole)
        if load.requests.completed == 0 and whole.requests.completed >= MISSED * len(by_host):
            # Without any answer, `answered_often` cannot judge it.
            stalls.append(f"{host} got no answer at all while other hosts did")
        elif not audit.passed:
            stalls.append(f"{host} stalled while other hosts did not: {audit.detail}")
        elif not answered_often(load):
            not_judged.append(f"{host}: {audit.detail}")
    detail = "; ".join([*stalls, *not_judged]) or "no host stalled while others did not"
    return Audit(name="client_stalled", passed=not stalls, detail=detail)
