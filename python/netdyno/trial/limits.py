"""What a trial has at the most, so that `plausible` can hold its figures against it."""

from __future__ import annotations

import os

from netdyno.audits.plausible import Limits
from netdyno.machine import memory_speed
from netdyno.machine.links.network import rate_hz
from netdyno.machine.pinning import server_cores
from netdyno.model.observation import Pinning
from netdyno.model.options import Settings


def limits(wanted: Settings, pinning: Pinning, *, load_elsewhere: bool = False) -> Limits:
    """Of a cell, with these cores on this machine, or those of the load on another."""
    all_cores = len(os.sched_getaffinity(0))
    of_load = (len(pinning.generator) or all_cores) * wanted.client_hosts
    return Limits(
        server_cores=server_cores(pinning),
        generator_cores=of_load,
        all_cores=all_cores + (of_load if load_elsewhere else 0),
        copies_hz=memory_speed.bytes_hz(),
        rate_hz=rate_hz(wanted) if wanted.is_apart else None,
        delay_s=wanted.link_delay_s if wanted.is_impaired else 0.0,
        service_s=service_s(wanted),
    )


def service_s(wanted: Settings) -> float:
    """What a request takes in the server at least: the server's own part and that which the request asks for
    (protocol/WIRE.md). The other workloads have none."""
    return wanted.service_time_in_all_s if wanted.workload in ("rpc", "http") else 0.0
