"""Hosts of a cluster as they describe themselves."""

from __future__ import annotations

from netdyno.measure.cluster.clocks import Offset
from netdyno.measure.cluster.described import Description, Host


def host(
    role: str, address: str = "", *, is_busy: bool = False, realtime: bool = True, boot: str = "", harness: str = ""
) -> Host:
    """Its name is its role."""
    description = Description(
        host="h",
        role=role,
        cores=(1, 2),
        kernel="6.1",
        inside="10.0.0.2",
        realtime=realtime,
        is_busy=is_busy,
        boot=boot,
        harness=harness,
    )
    clock = Offset(offset_ns=0, round_trip_ns=1)
    return Host(address=address or f"tls://{role}:8787", name=role, clock=clock, description=description, links={})
