"""What a trial observes, made up: consistent in itself, and changed at one place where a test wants it wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from netdyno.kit.statistics.histogram import Histogram
from netdyno.model.load_result import (
    Audit,
    Bytes,
    Connections,
    Distribution,
    Generator,
    Latency,
    LoadPlan,
    LoadResult,
    Messages,
    Requests,
    TimeSeries,
)
from netdyno.model.observation import Lateness, MachineObservation, Relayed, RelayTotals, ServerObservation
from netdyno_client import recorder

MS = 1_000_000
SLOT_S = 0.1
STEADY = (100,) * 10
"""A thousand messages a second, for a second."""

RELAYED = Relayed(
    frames_in=1000,
    bytes_in=60_000,
    frames_out=900,
    bytes_out=54_000,
    lost=90,
    queue_full=8,
    overflowed=0,
    refused=0,
    under_way=2,
    unread=0,
)
MACHINE = MachineObservation(cores=2, window_s=1.0, steal_s=0.0, own_s=0.5, foreign_s=0.0, switches=0)
TOTALS = {"requests": 1000, "bytes_in": 31_000, "bytes_out": 31_000, "connections": 10, "protocol_errors": 0}
"""What the server of the steady load says at its end."""


def changed(whole: Any, path: str, value: object) -> Any:
    """The same with another value at a path such as "latency.service_ns.p50"."""
    name, _, rest = path.partition(".")
    new = changed(getattr(whole, name), rest, value) if rest else value
    if isinstance(whole, msgspec.Struct):
        return msgspec.structs.replace(whole, **{name: new})
    return whole._replace(**{name: new})


def distribution(count: int, value_ns: int) -> Distribution:
    """The same value so many times."""
    made = Histogram()
    for _ in range(count):
        made.record(value_ns)
    return recorder.distribution(made)


def load(
    completed: Sequence[int] = STEADY,
    *,
    p50_ns: Sequence[int] = (),
    arrivals: Literal["closed", "constant", "poisson"] = "closed",
    service_ns: int = 10 * MS,
    connections: int = 10,
    size: int = 31,
    url: str = "tcp://127.0.0.1:7000",
    duration_s: float | None = None,
    audits: Iterable[Audit] = (),
) -> LoadResult:
    """Make a result with this many messages completed in each 100 ms of the window, each after the same time."""
    count = sum(completed)
    window_s = duration_s or SLOT_S * len(completed)
    times = distribution(count, service_ns)
    return LoadResult(
        version=1,
        plan=LoadPlan(
            url=url,
            workload="echo",
            arrivals=arrivals,
            depth=1,
            rate_hz=None if arrivals == "closed" else count / window_s,
            connections=connections,
            size=size,
            threads=1,
            audience="others",
            seed=1,
            warmup_s=0.0,
            duration_s=window_s,
            timeout_s=1.0,
        ),
        requests=Requests(sent=count, completed=count, per_second=count / window_s, due=count),
        latency=Latency(response_ns=times, service_ns=times),
        send_lag_ns=distribution(count, 0),
        connections=Connections(
            attempted=connections, established=connections, refused=0, timed_out=0, reset=0, other=0
        ),
        connect_ns=distribution(connections, service_ns),
        messages=Messages(
            **dict.fromkeys(("due", "sent", "expected", "received"), count),
            **dict.fromkeys(("unsent", "lost", "duplicated", "reordered", "corrupt"), 0),
        ),
        bytes=Bytes(sent=count * size, received=count * size, expected=count * size),
        generator=Generator(
            cpu_user_s=0.0,
            cpu_system_s=0.3 * window_s,
            spun_s=0.0,
            cores_used=0.3,
            max_rss_bytes=1 << 20,
            threads=(),
        ),
        errors={},
        timeseries=TimeSeries(
            interval_ns=int(SLOT_S * 1e9),
            completed=tuple(completed),
            p50_ns=tuple(p50_ns) or (service_ns,) * len(completed),
            p99_ns=(service_ns,) * len(completed),
            errors=(0,) * len(completed),
        ),
        audits=tuple(audits),
    )


def observed(cpu_s: float = 0.3, window_s: float = 1.0, harness_cpu_s: float = 0.001) -> ServerObservation:
    """A server of one thread, over the window."""
    return ServerObservation(
        cpu_user_s=cpu_s,
        cpu_system_s=0.0,
        rss_peak_bytes=1 << 20,
        threads=1,
        voluntary_switches=0,
        involuntary_switches=0,
        run_queue_wait_s=0.0,
        window_s=window_s,
        harness_cpu_s=harness_cpu_s,
        totals={},
    )


def relay(p999_ns: int = 200_000, **of_one_way: int) -> RelayTotals:
    """A relay that was so late with one frame in a thousand."""
    late = Lateness(mean=50_000.0, p50=30_000, p90=60_000, p99=100_000, p999=p999_ns, max=90 * MS)
    there = msgspec.structs.replace(RELAYED, **of_one_way)
    return RelayTotals(
        a_to_b=there, b_to_a=RELAYED, late_ns=late, seconds=1.0, cpu_user_s=0.1, cpu_system_s=0.1, run_queue_wait_s=0.0
    )


def machine(**fields: float) -> MachineObservation:
    """Two cores for a second, on which no other process runs."""
    return msgspec.structs.replace(MACHINE, **fields)


def named(audits: Iterable[Audit], name: str) -> Audit:
    """The one of that name."""
    (named_audit,) = [audit for audit in audits if audit.name == name]
    return named_audit
