"""The results that netdyno-load and client contestants print (protocol/load-result.md, protocol/client.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from netdyno.kit.statistics.histogram import Histogram
from netdyno.model.base import Frozen, Number, Whole
from netdyno.model.contestant import OF_FRAMEWORKS

WriteDue = Literal["each", "joined"]
"""The way in which due messages are sent: each by itself, or all of a connection in one call."""
ReplyClock = Literal["kernel", "generator"]
"""The end of a response time: the kernel's arrival of every reply, or the generator's reading of it."""
Start = Literal["together", "at-once"]
"""The moment from which a client sends: when all connects have ended, or as soon as it is connected."""

PERCENTILES: Mapping[float, str] = {50: "p50", 90: "p90", 99: "p99", 99.9: "p999"}
"""The percentiles that a result has (lib/measure/distribution.hpp), and their fields. Metrics, columns and rows follow
from this. The field of a new one is `Whole | None = None`: older results do not have it."""


class Distribution(Frozen, kw_only=True):
    """One HDR histogram with the figures read most often. Empty histograms have count 0 and zeros."""

    count: Whole
    mean: Number
    p50: Whole
    p90: Whole
    p99: Whole
    p999: Whole
    max: Whole
    histogram: str

    def find_percentile(self, percent: float) -> float:
        """Return the value (ns) that this many percent do not exceed: from the field, or else the histogram."""
        value = getattr(self, PERCENTILES.get(percent, ""), None)
        if value is not None:
            return float(value)
        from netdyno.kit.statistics import hdr  # with numpy, which reading an experiment does not need

        return hdr.percentile(hdr.decode(self.histogram), percent)


def name_percentile(percent: float) -> str:
    """Return the name of a percentile of the response time, as metrics and objectives have it: "p99.9"."""
    return f"p{percent:g}"


def summarise(histogram: Histogram, mean: float) -> Distribution:
    """Return a histogram as it stands in a result; `mean` is that of the values before they were rounded."""
    *values, largest = histogram.percentiles(*PERCENTILES, 100)
    figures = dict(zip(PERCENTILES.values(), values, strict=True))
    return Distribution(count=histogram.count, mean=mean, max=largest, histogram=histogram.encode(), **figures)


class Latency(Frozen, kw_only=True):
    """The response and service times. Client contestants end theirs with their own reading."""

    clock: ReplyClock = "generator"
    response_ns: Distribution
    service_ns: Distribution


class Requests(Frozen):
    """The requests of the measured window. `due`: messages planned for it; None where a client does not count them."""

    sent: Whole
    completed: Whole
    per_second: Number
    due: Whole | None = None


class Connections(Frozen):
    """The connections over the whole life of the generator, except `in_window`: those established within the window, 0
    where connections stay. `closed_after_reply`: those that the server closed when it might, and that were
    reconnected."""

    attempted: Whole
    established: Whole
    refused: Whole
    timed_out: Whole
    reset: Whole
    other: Whole
    in_window: Whole = 0
    closed_after_reply: Whole = 0


class Messages(Frozen):
    """The messages over the whole life of the generator, warm-up and drain included. `due`: planned to be sent;
    `unsent`: due and never sent; both None where a client does not count them. `late`: timed answers that came after
    the timeout, which are not lost."""

    sent: Whole
    expected: Whole
    received: Whole
    lost: Whole
    duplicated: Whole
    reordered: Whole
    corrupt: Whole
    late: Whole = 0
    due: Whole | None = None
    unsent: Whole | None = None


class ForeignFault(Frozen):
    """A fault of a foreign server, in words for people, with its count and what it counts."""

    what: str
    count: int
    counted: Literal["messages", "replies", "connects", "connections"] | None = msgspec.field(default=None, name="of")


class Replies(Frozen):
    """The replies of a foreign server (protocol/load-result.md), over the whole life; statuses of http by their
    number. `bodies`: length, and hash where it was verified, of the first body of each path (at most 100)."""

    unexpected: int
    resent: int
    statuses: dict[str, int]
    faults: tuple[ForeignFault, ...]
    other_faults: int
    bodies: dict[str, str] = msgspec.field(default_factory=dict)


class FirstExchange(Frozen):
    r"""What the first connection sent first, and what came back, as \r\n and \xHH write it."""

    sent: str
    received: str


class Tls(Frozen):
    """The encryption of connections: whether certificates were verified, and the handshakes over the whole life."""

    verified: bool
    reuse: bool
    protocol: str
    cipher: str
    resumed: Whole
    handshake_ns: Distribution


class Bytes(Frozen):
    sent: Whole
    received: Whole
    expected: Whole


class GeneratorThread(Frozen):
    cpu_user_s: Number
    cpu_system_s: Number
    spun_s: Number


class Generator(Frozen, kw_only=True):
    """The resources of the generator. `spun_s`: the part of the two CPU times that it spent spinning, before a message
    is due (docs/adr/wake-early.md). `socket_drops`: datagrams for which the generator's own sockets had no room.
    `cores`: the cores that it may use. `busiest`: the share of a core of its busiest thread, without spinning."""

    cpu_user_s: Number
    cpu_system_s: Number
    spun_s: Number
    cores_used: Number
    cores: Whole = 0
    busiest: Number = 0.0
    max_rss_bytes: Whole
    threads: tuple[GeneratorThread, ...]
    socket_drops: Whole = 0


class TimeSeries(Frozen, omit_defaults=True):
    """One value per interval of the measured window; where the interval completed nothing, a percentile is None.
    `histograms`: only in a part of a load, so that percentiles can be computed for the sum."""

    interval_ns: Annotated[int, msgspec.Meta(ge=1_000_000, le=10**12)]
    completed: tuple[Whole, ...]
    p50_ns: tuple[Whole | None, ...]
    p99_ns: tuple[Whole | None, ...]
    errors: tuple[Whole, ...]
    histograms: tuple[str, ...] = ()


class Part(Frozen):
    """The part of a load that one of several hosts made; its other figures are in the sums. The response times of a
    host without an answer are None."""

    host: str
    connections: Whole
    completed: Whole
    p50_ns: Whole | None
    p99_ns: Whole | None
    cores_used: Number


class Audit(Frozen):
    """One check of one trial. `passed` false makes the trial invalid; `detail` has the figures."""

    name: str
    passed: bool
    detail: str


STAMP_SIZE = 28
"""The bytes of the shortest stamp (protocol/WIRE.md)."""


class LoadPlan(Frozen):
    """The plan that the generator was given."""

    url: str
    workload: str
    arrivals: Literal["closed", "constant", "poisson"]
    depth: Whole
    rate_hz: Number | None
    connections: Whole
    size: Whole
    threads: Whole
    audience: Literal["others", "all"]
    seed: int
    warmup_s: Number
    duration_s: Number
    timeout_s: Number
    round_s: Number = 0.0
    look_every_s: Number = 0.0
    write_due: WriteDue = "each"
    spin: Literal["off", "auto", "on"] = "on"
    most_in_flight: Whole | None = None
    count: Whole | None = None
    send_buffer: Whole = 0
    requests_per_connection: Whole | None = None
    reconnects: bool = False
    slow_readers: Whole = 0
    busy_connections: Whole | None = None
    start: Start = "together"

    @property
    def request_size(self) -> int:
        """The bytes of a request that `size` counts: in `web` and `grpc` it counts those of a reply,
        and a request has a stamp."""
        return min(self.size, STAMP_SIZE) if self.workload in OF_FRAMEWORKS else self.size


class Step(Frozen):
    """A part of the window with one requested rate, or with a ramp from one rate to another. `late`: those of
    `completed` that came after the timeout."""

    from_hz: Number
    to_hz: Number
    begins_s: Number
    seconds: Number
    sent: Whole
    completed: Whole
    per_second: Number
    errors: Whole
    response_ns: Distribution
    late: Whole = 0


class Chunks(Frozen):
    """The chunks of streams, each a server-sent event: how many a stream has (`per_stream`), how many came within the
    window (`completed`), and how late those were that were due in it. `early`: those that came before they were due,
    over the whole life."""

    per_stream: Whole
    every_s: Number
    completed: Whole
    early: Whole
    late_ns: Distribution


class WriteOnly(Frozen):
    """The clients that write and never read: those that wrote all of their `messages_each` and met no error, those that
    lost their connection before, and the messages that the former wrote, by the second from the burst of connects until
    the last client had left. The server need not have read any of them."""

    messages_each: Whole
    every_s: Number
    finished: Whole
    failed: Whole
    per_second: Number


class ClientReport(Frozen):
    """The report of a client contestant beside the figures of a load (protocol/client.md): its failures by stage, over
    the whole life; `recovered` counts connections that were established again after one. `tick_lag_ns` is the lateness
    of a 10 ms timer of the application's loop."""

    resolve_failed: Whole
    connect_refused: Whole
    connect_timed_out: Whole
    connect_other: Whole
    response_timeout: Whole
    closed: Whole
    reset: Whole
    protocol: Whole
    recovered: Whole
    tick_lag_ns: Distribution


class LoadResult(Frozen, kw_only=True):
    """The result of one load. `client`: set where a client contestant made the load, None where the generator did.
    `receive_lag_ns`: of a sample of the messages; empty where the kernel gave no arrival times, or where these end the
    times (`latency.clock`). `connection_mean_ns`: one value for each connection; empty for a client contestant.
    `replies`: only for a foreign server, over TLS
    and over WebSocket, `tls` only over TLS. `first_exchange`: only where no reply was right. `steps`: only where the
    rate changed. `write_only`: only where no client reads. `chunks`: only where replies are streams. `parts`: only
    where several hosts made the load. `instrument`: the foreign load program that measured these figures
    (docs/adr/instruments.md); unset where netdyno's own did. `began_ns`: the beginning of the window by this machine's
    CLOCK_MONOTONIC; 0 where it has none."""

    version: Whole
    plan: LoadPlan
    began_ns: Whole = 0
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
    errors: dict[str, Whole]
    timeseries: TimeSeries
    audits: tuple[Audit, ...]
    replies: Replies | msgspec.UnsetType = msgspec.UNSET
    tls: Tls | msgspec.UnsetType = msgspec.UNSET
    first_exchange: FirstExchange | msgspec.UnsetType = msgspec.UNSET
    steps: tuple[Step, ...] | msgspec.UnsetType = msgspec.UNSET
    write_only: WriteOnly | msgspec.UnsetType = msgspec.UNSET
    chunks: Chunks | msgspec.UnsetType = msgspec.UNSET
    client: ClientReport | None = None
    parts: tuple[Part, ...] | msgspec.UnsetType = msgspec.UNSET
    instrument: str | msgspec.UnsetType = msgspec.UNSET
