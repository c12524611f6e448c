"""What netdyno-load and client contestants print (protocol/load-result.md, protocol/client.md)."""

from __future__ import annotations

from typing import Literal

from netdyno.model.base import Frozen


class Distribution(Frozen):
    """One HDR histogram with the figures read most often. Empty histograms have count 0 and zeros."""

    count: int
    mean: float
    p50: int
    p90: int
    p99: int
    p999: int
    max: int
    histogram: str


class Latency(Frozen):
    response_ns: Distribution
    service_ns: Distribution


class Requests(Frozen):
    sent: int
    completed: int
    per_second: float


class Connections(Frozen):
    """Over the whole life of the generator, but for `in_window`: those that came to stand within the window, none where
    connections stay (0 in runs stored before there was the key)."""

    attempted: int
    established: int
    refused: int
    timed_out: int
    reset: int
    other: int
    in_window: int = 0


class Messages(Frozen):
    """Over the whole life of the generator, warm-up and drain included. `late`: timed answers that came after the
    timeout, which are not lost (runs stored before there was the key read as 0)."""

    sent: int
    expected: int
    received: int
    lost: int
    duplicated: int
    reordered: int
    corrupt: int
    late: int = 0


class Bytes(Frozen):
    sent: int
    received: int
    expected: int


class GeneratorThread(Frozen):
    cpu_user_s: float
    cpu_system_s: float
    spun_s: float


class Generator(Frozen, kw_only=True):
    """`spun_s`: of the two CPU times, what went into looking out for messages (docs/adr/wake-early.md).
    `socket_drops`: datagrams that the generator's own sockets had no room for. `cores`: those it may use. `busiest`:
    the share of a core that its busiest thread used, without the lookout (both 0 in runs stored before the keys)."""

    cpu_user_s: float
    cpu_system_s: float
    spun_s: float
    cores_used: float
    cores: int = 0
    busiest: float = 0.0
    max_rss_bytes: int
    threads: tuple[GeneratorThread, ...]
    socket_drops: int = 0


class TimeSeries(Frozen):
    """One value per interval of the measured window; a percentile is 0 where the interval completed nothing."""

    interval_ns: int
    completed: tuple[int, ...]
    p50_ns: tuple[int, ...]
    p99_ns: tuple[int, ...]
    errors: tuple[int, ...]


class Audit(Frozen):
    """One check of one trial. `passed` false strikes the trial out; `detail` says with which figures."""

    name: str
    passed: bool
    detail: str


class Plan(Frozen):
    """What the generator was asked for."""

    url: str
    workload: str
    arrivals: Literal["closed", "constant", "poisson"]
    depth: int
    rate_hz: float | None
    connections: int
    size: int
    threads: int
    audience: Literal["others", "all"]
    seed: int
    warmup_s: float
    duration_s: float
    timeout_s: float
    round_s: float = 0.0
    look_every_s: float = 0.0
    send_buffer: int = 0
    requests_per_connection: int | None = None
    slow_readers: int = 0


class ClientReport(Frozen):
    """What a client contestant says beside the figures of a load (protocol/client.md): its failures by stage, over the
    whole life; `recovered` counts connections that stood again after one. `tick_lag_ns` is how late a 10 ms timer of
    the application's loop came."""

    resolve_failed: int
    connect_refused: int
    connect_timed_out: int
    connect_other: int
    response_timeout: int
    closed: int
    reset: int
    protocol: int
    recovered: int
    tick_lag_ns: Distribution


class LoadResult(Frozen, kw_only=True):
    """`client` is there where a client contestant was the load, and None where the generator was. `receive_lag_ns`: of
    a sample of the messages; None in runs stored before the key, empty where the kernel did not say.
    `connection_mean_ns`: one value for each connection; None in runs stored before the key, empty of a client
    contestant."""

    version: int
    plan: Plan
    requests: Requests
    latency: Latency
    send_lag_ns: Distribution
    receive_lag_ns: Distribution | None = None
    connections: Connections
    connect_ns: Distribution
    connection_mean_ns: Distribution | None = None
    messages: Messages
    bytes: Bytes
    generator: Generator
    errors: dict[str, int]
    timeseries: TimeSeries
    audits: tuple[Audit, ...]
    client: ClientReport | None = None
