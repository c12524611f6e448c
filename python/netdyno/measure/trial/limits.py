"""The limits of a trial, which `plausible` compares its figures with."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Sequence

from netdyno.measure.audits.plausible import TrialResources
from netdyno.measure.audits.requested_work import RequestedWork
from netdyno.measure.machine.links.network import find_rate_hz
from netdyno.measure.machine.pinning import count_server_cores
from netdyno.model.contestant import OF_FRAMEWORKS
from netdyno.model.observation import Pinning
from netdyno.model.options import Settings


def find_limits(
    settings: Settings, pinning: Pinning, *, load_elsewhere: bool = False, overruns_s: Sequence[float] = ()
) -> TrialResources:
    """Return the limits of a cell, with these cores on this machine, or with those of the load on another.
    `overruns_s`: the time after the end of each of its slices at which the last answer came."""
    all_cores = len(os.sched_getaffinity(0))
    load_cores = (len(pinning.generator) or all_cores) * settings.client_hosts
    return TrialResources(
        server_cores=count_server_cores(pinning),
        generator_cores=load_cores,
        all_cores=all_cores + (load_cores if load_elsewhere else 0),
        copies_hz=measure_bytes_hz(),
        rate_hz=find_rate_hz(settings) if settings.is_apart else None,
        delay_s=settings.link_delay_s if settings.is_impaired else 0.0,
        overrun_s=sum(overruns_s),
    )


def find_requested_work(settings: Settings) -> RequestedWork:
    """Return the least work of a request: the server's own part and the part that the request asks for
    (protocol/WIRE.md). Only some workloads have a service time."""
    return RequestedWork(
        service_s=settings.service_time_in_all_s if settings.workload in ("rpc", "http", *OF_FRAMEWORKS) else 0.0,
        burns=settings.server.get("service-kind") == "cpu",
        at_a_time=settings.speakers,
    )


SIZES = (32 << 10, 256 << 10, 2 << 20)
"""Bytes: the first size fits into a first cache, the second into a second one, the third hardly into either. The
fastest counts."""
REPEATS = 50


@functools.cache
def measure_bytes_hz() -> float:
    """Measure, once and in some milliseconds, the bytes per second that one core copies at most: the best of many short
    copies, so that a core that is busy or taken away meanwhile does not lower it."""
    return max(size / _measure_shortest_s(size) for size in SIZES)


def _measure_shortest_s(size: int) -> float:
    source, target = bytes(size), memoryview(bytearray(size))
    times_ns = []
    for _ in range(REPEATS):
        began = time.perf_counter_ns()
        target[:] = source  # memmove(3)
        times_ns.append(time.perf_counter_ns() - began)
    return max(min(times_ns), 1) / 1e9
