"""The catalogue of everything measurable: the name, unit and better side of each metric, and how it is read from a
trial or from a contestant's source. Comparisons, charts and explanations use these by name.

Times are nanoseconds here; a figure of a trial is that of its measured window, unless stated otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec

from netdyno.kit import quantities
from netdyno.model import burst, outcomes, transports
from netdyno.model.contestant import CodeSize
from netdyno.model.load_result import (
    PERCENTILES,
    Bytes,
    Chunks,
    Distribution,
    LoadResult,
    Messages,
    Tls,
    WriteOnly,
    name_percentile,
)
from netdyno.model.observation import QuotaUse, ServerObservation, Starting
from netdyno.model.outcomes import rate_kept
from netdyno.model.transports import SERVER_ADDRESS
from netdyno.model.trial import Status, Trial

Scale = Literal["ratio", "share"]
"""The way to compare two figures: by their ratio, which needs values above 0, or by their difference."""
AtLimit = Literal["exact", "at_least", "at_most", "unknown"]
"""The meaning of a closed loop's figure for the server where the generator was at its limit."""
TrialWithLoad = tuple[Trial, LoadResult]
FigureOfTrial = Callable[[Trial, LoadResult], float | None]
"""The figure of one trial; None where it was not measured."""


class Unit(msgspec.Struct, frozen=True):
    """A unit. `speak` formats a value for people."""

    name: str
    speak: Callable[[float], str]


def _format_count(value: float) -> str:
    return quantities.three_digits(value) if value < 1000 else f"{value:,.0f}"


RATE = Unit("messages/s", quantities.rate)
SHARE = Unit("share", quantities.share)
TIME = Unit("ns", quantities.duration)
TIME_PER_MESSAGE = Unit("ns/message", quantities.duration)
TIME_PER_CHUNK = Unit("ns/chunk", quantities.duration)
SIZE = Unit("bytes", quantities.memory)
SIZE_PER_MESSAGE = Unit("bytes/message", quantities.memory)
COUNT = Unit("1", _format_count)
THREADS = Unit("1", quantities.three_digits)
CORES = Unit("cores", lambda value: f"{quantities.three_digits(value)} cores")
TIMES = Unit("1", lambda value: f"{quantities.TIMES}{quantities.three_digits(value)}")
PER_MESSAGE = Unit("1/message", quantities.three_digits)
PER_THOUSAND = Unit("1/1000 messages", quantities.three_digits)
PER_THOUSAND_CONNECTS = Unit("1/1000 connects", quantities.three_digits)


def _return_one(_: Trial, __: LoadResult) -> float:
    return 1.0


class Percentile(msgspec.Struct, frozen=True):
    """A percentile of a distribution that each trial has, or has not (None)."""

    percent: float
    read: Callable[[Trial, LoadResult], Distribution | None]
    has_interval: bool = True
    """Whether it is resampled over blocks, for an interval."""


class Metric(msgspec.Struct, frozen=True):
    """A metric. The figure of a trial is `amount` divided by `per`; that of several trials is the sum of the amounts
    over the sum of `per`. So is that of a cell, unless it is the `largest` of its trials, or a `percentile`: then it is
    that of the merged histograms, and no mean of percentiles. `short` is its heading where there is little room."""

    title: str
    unit: Unit
    amount: FigureOfTrial | None = None
    per: Callable[[Trial, LoadResult], float] = _return_one
    percentile: Percentile | None = None
    largest: bool = False
    of_cells: bool = False
    """Whether it is one of the figures of a cell: of a contestant at a level, over the valid trials of all blocks."""
    claimed: bool = False
    """Whether claims can name it."""
    of_code: Callable[[CodeSize], float] | None = None
    better: Literal["higher", "lower"] = "lower"
    latency: bool = False
    """Whether it covers only the messages that came back, without lost ones."""
    lossy: bool = False
    """Whether a trial has it only over a transport that may lose messages."""
    invalid_too: bool = False
    """Whether invalid trials have it too, because it counts the very events that make a trial invalid."""
    short: str = ""
    at_limit: AtLimit = "unknown"
    """The result of a faster generator where this one is at its limit: this figure, this or more, this or less, or
    unknown. A faster generator makes more requests and adds less delay to response times; the cost of a message and the
    memory of a server are the server's own."""
    is_upper_bound: bool = False
    """Whether it overestimates, so that it can show that something is small and never that it is large."""
    least_ratio: float = 1.0
    least_amount: float = 0.0
    """The least change, as a ratio and in its unit, that matters to a choice; a scenario's margin may ask for more."""

    def value(self, trial: Trial, load: LoadResult) -> float | None:
        """Return the figure of one trial; None where it was not measured, or is of code."""
        if self.lossy and not transports.may_lose(load):
            return None
        return self.pooled([(trial, load)])

    def pooled(self, trials: Iterable[TrialWithLoad]) -> float | None:
        """Return the figure of these trials together; None where one of them does not have it."""
        if self.amount is None:
            return None
        amounts, base = 0.0, 0.0
        for trial, load in trials:
            amount = self.amount(trial, load)
            if amount is None:
                return None
            amounts += amount
            base += self.per(trial, load)
        return amounts / base if base > 0 else None

    def speak(self, value: float) -> str:
        """Format a value with its unit."""
        return self.unit.speak(value)

    def describe_least_change(self, margin: float) -> str:
        """Describe the least change that matters to a choice where a scenario's margin, a ratio, is this."""
        ratio = quantities.share(max(margin, self.least_ratio) - 1)
        return f"{ratio} and {self.speak(self.least_amount).replace('.00', '')}" if self.least_amount else ratio

    @property
    def heading(self) -> str:
        """The title as a sentence begins."""
        return f"{self.title[0].upper()}{self.title[1:]}"

    @property
    def scale(self) -> Scale:
        return "share" if self.unit is SHARE else "ratio"

    @property
    def how_of_cells(self) -> Literal["largest", "merged", "mean"]:
        """The way from the figures of trials to that of a cell. "merged": of all messages alike."""
        if self.largest:
            return "largest"
        return "merged" if self.percentile is not None or self.latency else "mean"

    @property
    def is_time(self) -> bool:
        """Whether a value of it is written as a duration, such as "40ms"."""
        return self.unit in (TIME, TIME_PER_MESSAGE, TIME_PER_CHUNK)

    @property
    def statuses(self) -> tuple[Status, ...]:
        """The statuses of the trials that have it."""
        return outcomes.MEASURED if self.invalid_too else outcomes.VALID


# --- what a metric is per --------------------------------------------------------------------------------------------


def _count_completed(_: Trial, load: LoadResult) -> float:
    return float(load.requests.completed)


def _count_thousands(_: Trial, load: LoadResult) -> float:
    return load.requests.completed / 1000


def _count_sent(_: Trial, load: LoadResult) -> float:
    return float(load.messages.sent)


def _count_answered(_: Trial, load: LoadResult) -> float:
    return float(load.latency.response_ns.count)


def _read_server_cpu(trial: Trial, _: LoadResult) -> float:
    return 1e9 * trial.server.cpu_s if trial.server else 0.0


# --- what it counts --------------------------------------------------------------------------------------------------


def _read_server(amount: Callable[[ServerObservation], float]) -> FigureOfTrial:
    return lambda trial, _: None if trial.server is None else amount(trial.server)


def _read_quota_use(amount: Callable[[QuotaUse], float]) -> FigureOfTrial:
    return lambda trial, _: amount(trial.server.quota_use) if trial.server and trial.server.quota_use else None


def _read_threads(amount: Callable[[ServerObservation], float]) -> FigureOfTrial:
    """Return a figure of counts that the kernel keeps for each thread. It is None where threads ended before they were
    read: even the number of those that came and went between two readings is unknown."""
    return lambda trial, _: None if trial.server is None or trial.server.threads_unread else amount(trial.server)


def _read_kernel(*names: str, setup: bool = False) -> FigureOfTrial:
    """Return the figure that sums counters of the kernel (measure/machine/server_proc.py) over the window; with
    `setup` over the connects too. It is None where one of them was not read. They are those of the network namespace:
    over the loopback, of all programs in it."""
    keys = [phase + name for name in names for phase in (("setup.", "") if setup else ("",))]
    return lambda trial, _: float(sum(trial.kernel[key] for key in keys)) if trial.kernel.keys() >= set(keys) else None


_SENT_PACKETS = _read_kernel("OutSegs", "UdpOutDatagrams")
_ALL_PACKETS = _read_kernel("OutSegs", "UdpOutDatagrams", "InSegs", "UdpInDatagrams")


def _count_packets(trial: Trial, load: LoadResult) -> float | None:
    """Count the TCP segments and UDP datagrams between both ends, in both directions. Where both ends are in one
    namespace, all packets are sent there; over a link the counters are those of the server's end, and the incoming
    packets are the rest."""
    server_alone = f"//{SERVER_ADDRESS}:" in load.plan.url
    return (_ALL_PACKETS if server_alone else _SENT_PACKETS)(trial, load)


def _read_softirq(trial: Trial, _: LoadResult) -> float | None:
    """Return the nanoseconds in softirqs on the server's cores, or on all where it was not pinned. None where the load
    ran on them too: then they cannot be assigned to a side."""
    if trial.pinning is not None and trial.pinning.is_shared:
        return None
    seen = trial.machine.softirq_s if trial.machine is not None else {}
    cores = trial.pinning.server if trial.pinning is not None and trial.pinning.server else tuple(seen)
    if not cores or any(core not in seen for core in cores):
        return None
    return 1e9 * sum(seen[core] for core in cores)


def _read_lock_wait(trial: Trial, _: LoadResult) -> float | None:
    """Return the nanoseconds per message over the server's whole life, from its last line; None where it does not count
    them."""
    totals = trial.server.totals if trial.server is not None else {}
    return totals["lock_wait_ns"] / totals["requests"] if "lock_wait_ns" in totals and totals["requests"] else None


_count_switches = _read_threads(lambda server: server.voluntary_switches + server.involuntary_switches)


def _bound_switching(trial: Trial, load: LoadResult) -> float | None:
    """Return an upper bound of the nanoseconds of a server's context switches. Each is charged with a round trip of the
    canary on one core, beside the trial: two switches and two messages. That is more than a switch among a thousand
    threads costs, whose stacks have left the caches. None where the canary did not measure that."""
    seen = [trial.canary.before, trial.canary.after] if trial.canary is not None else []
    rates = [reading.one_core_round_trips_per_second for reading in seen if reading is not None]
    fastest, switches = max(rates, default=0.0), _count_switches(trial, load)
    return switches * 1e9 / fastest if fastest and switches is not None else None


def _read_jitter(_: Trial, load: LoadResult) -> float | None:
    times = load.latency.response_ns
    return float(times.p99 - times.p50) if times.count else None


def _read_connection_spread(_: Trial, load: LoadResult) -> float | None:
    """Return the spread of the connections' mean response times, None where the load did not keep connections apart."""
    means = load.connection_mean_ns
    return means.p99 / means.p50 if means and means.count and means.p50 else None


def _read_connection_memory(trial: Trial, load: LoadResult) -> float | None:
    """Return the peak beyond that of the server before any client connected, per connection; None where that was not
    read."""
    if trial.server is None or not trial.server.rss_ready_bytes:
        return None
    return (trial.server.rss_peak_bytes - trial.server.rss_ready_bytes) / load.plan.connections


def _read_start(amount: Callable[[Starting], float]) -> FigureOfTrial:
    return lambda trial, _: amount(trial.starting) if trial.starting else None


def _count_unanswered(_: Trial, load: LoadResult) -> float | None:
    """Count the errors of the window; None where the load did not count the messages that were due in it. Their number
    over the whole life depends on the warm-up, which differs."""
    return float(sum(load.timeseries.errors)) if load.requests.due else None


def _read_bytes(way: Callable[[Bytes], int]) -> FigureOfTrial:
    """Return the figure of the bytes of the load's whole life, per message that it sent; the audit `server_totals`
    compares them with the server's own count."""
    return lambda _, load: float(way(load.bytes))


def _read_moved_rate(_: Trial, load: LoadResult) -> float | None:
    """Return the messages per second that the clients sent and received: each message is sent once and received by each
    of its recipients."""
    messages = load.messages
    return load.requests.per_second * (1 + messages.expected / messages.sent) if messages.sent else None


def _read_write_only(read: Callable[[WriteOnly], float]) -> FigureOfTrial:
    """Read a figure of clients that write and never read; None where all read."""
    return lambda _, load: read(load.write_only) if isinstance(load.write_only, WriteOnly) else None


def _read_chunk_lag(_: Trial, load: LoadResult) -> Distribution | None:
    """Return how late the chunks of streams came; None without streams."""
    return load.chunks.late_ns if isinstance(load.chunks, Chunks) and load.chunks.late_ns.count else None


def _read_chunk_cpu(trial: Trial, load: LoadResult) -> float | None:
    return 1e9 * trial.server.cpu_s if trial.server and isinstance(load.chunks, Chunks) else None


def _count_chunks(_: Trial, load: LoadResult) -> float:
    return float(load.chunks.completed) if isinstance(load.chunks, Chunks) else 0.0


def _read_send_lag(_: Trial, load: LoadResult) -> Distribution | None:
    """Return how late the generator sent; None where it does not report that."""
    return load.send_lag_ns if load.send_lag_ns.count else None


def _read_receive_lag(_: Trial, load: LoadResult) -> Distribution | None:
    """Return how late the generator read; None where the kernel did not say when replies came."""
    return load.receive_lag_ns if load.receive_lag_ns and load.receive_lag_ns.count else None


def _read_handshake(_: Trial, load: LoadResult) -> Distribution | None:
    """Return the time of the TLS handshakes of the load's whole life; None without TLS."""
    return load.tls.handshake_ns if isinstance(load.tls, Tls) and load.tls.handshake_ns.count else None


def _read_tick_lag(_: Trial, load: LoadResult) -> Distribution | None:
    """Return how late the event loop of a client contestant was, over its whole life; None for the generator."""
    return load.client.tick_lag_ns if load.client is not None else None


def _read_server_tick_lag(trial: Trial, _: LoadResult) -> Distribution | None:
    """Return how late the server's main loop was; None without the option `application-tick`."""
    return trial.server.tick_lag_ns if trial.server is not None else None


def _declare_response_time(percent: float) -> Metric:
    metric = _declare_latency("response", percent, lambda _, load: load.latency.response_ns)
    short = name_percentile(percent) if percent in (50, 99) else ""
    return msgspec.structs.replace(metric, short=short, at_limit="at_most", claimed=percent <= 99)


def _declare_service_time(percent: float) -> Metric:
    return _declare_latency("service", percent, lambda _, load: load.latency.service_ns)


def _declare_latency(kind: str, percent: float, times: Callable[[Trial, LoadResult], Distribution]) -> Metric:
    """Declare a percentile of times. It is None where no message of the window was answered: the time is unknown then,
    and 0 would be the best."""
    return Metric(
        f"{'median' if percent == 50 else f'{percent:g}th-percentile'} {kind} time",
        TIME,
        lambda trial, load: times(trial, load).find_percentile(percent) if times(trial, load).count else None,
        percentile=Percentile(percent, times),
        of_cells=True,
        latency=True,
    )


def _declare_lag(
    title: str, percent: float, distribution: Callable[[Trial, LoadResult], Distribution | None], ranked: str = ""
) -> Metric:
    """Declare a percentile of a time that is part of a latency, or beside it. `ranked`: its short heading, if servers
    are ranked by it."""
    return Metric(
        title,
        TIME,
        lambda trial, load: None if (lag := distribution(trial, load)) is None else lag.find_percentile(percent),
        percentile=Percentile(percent, distribution, has_interval=bool(ranked)),
        of_cells=True,
        short=ranked,
    )


def _declare_largest_lag(title: str, distribution: Callable[[Trial, LoadResult], Distribution | None]) -> Metric:
    return Metric(
        title,
        TIME,
        lambda trial, load: None if (lag := distribution(trial, load)) is None else float(lag.max),
        largest=True,
        of_cells=True,
    )


def _declare_share_of_messages(title: str, count: Callable[[Messages], int], base: Callable[[Messages], int]) -> Metric:
    """Declare a share of messages over a transport that may lose them, over the whole life of a trial."""
    return Metric(
        title,
        SHARE,
        lambda _, load: float(count(load.messages)),
        lambda _, load: float(base(load.messages)),
        of_cells=True,
        lossy=True,
    )


# --- the catalogue ---------------------------------------------------------------------------------------------------

METRICS: Mapping[str, Metric] = {
    "throughput": Metric(
        "throughput",
        RATE,
        lambda _, load: load.requests.per_second,
        of_cells=True,
        better="higher",
        short="throughput",
        at_limit="at_least",
        claimed=True,
    ),
    "capacity": Metric("capacity", RATE, better="higher", short="capacity"),
    "kept": Metric(
        "share of the offered rate that was kept",
        SHARE,
        lambda _, load: rate_kept(load),
        of_cells=True,
        better="higher",
        short="rate kept",
        at_limit="at_least",
        claimed=True,
    ),
    "achieved": Metric(
        "share of the offered rate that was answered",
        SHARE,
        lambda _, load: load.requests.per_second,
        lambda _, load: load.plan.rate_hz or 0.0,
        better="higher",
        invalid_too=True,
        at_limit="exact",
        claimed=True,
    ),
    "unanswered": Metric(
        "share of messages without a right answer in time",
        SHARE,
        _count_unanswered,
        lambda _, load: float(load.requests.due or 0),
        of_cells=True,
        short="unanswered",
        at_limit="at_most",
        claimed=True,
    ),
    "burst-goodput": Metric(
        "messages answered in time within the burst",
        RATE,
        lambda _, load: burst.compute_goodput(load),
        of_cells=True,
        better="higher",
        short="goodput",
        at_limit="at_least",
        claimed=True,
    ),
    "recovery": Metric(
        "time after the burst until p99 is as before",
        TIME,
        lambda _, load: burst.compute_recovery_ns(load),
        of_cells=True,
        short="recovery",
        at_limit="at_most",
        claimed=True,
    ),
    "moved": Metric(
        "messages sent and received", RATE, _read_moved_rate, better="higher", at_limit="at_least", claimed=True
    ),
    "mean": Metric(
        "mean response time",
        TIME,
        lambda _, load: load.latency.response_ns.mean * load.latency.response_ns.count,
        _count_answered,
        of_cells=True,
        latency=True,
        short="mean",
        at_limit="at_most",
        claimed=True,
    ),
    **{name_percentile(percent): _declare_response_time(percent) for percent in PERCENTILES},
    **{f"service-{name_percentile(percent)}": _declare_service_time(percent) for percent in PERCENTILES},
    # A variation of delay is a time (RFC 3393).
    "jitter": Metric(
        "99th percentile less the median of the response time",
        TIME,
        _read_jitter,
        latency=True,
        claimed=True,
    ),
    "connection-spread": Metric(
        "99th percentile over the median of the connections' mean response times",
        TIMES,
        _read_connection_spread,
        of_cells=True,
        short="spread",
        claimed=True,
    ),
    "chunk-lag-p50": _declare_lag("median lateness of the chunks of streams", 50, _read_chunk_lag, "late p50"),
    "chunk-lag-p99": _declare_lag("99th-percentile lateness of the chunks of streams", 99, _read_chunk_lag, "late p99"),
    "chunk-cpu": Metric(
        "server CPU per chunk",
        TIME_PER_CHUNK,
        _read_chunk_cpu,
        _count_chunks,
        of_cells=True,
        short="CPU per chunk",
        at_limit="exact",
    ),
    "handshake": _declare_lag("TLS handshake, median", 50, _read_handshake),
    "send-lag-p50": _declare_lag("how late the generator sends, median", 50, _read_send_lag),
    "send-lag-p99": _declare_lag("how late the generator sends, 99th percentile", 99, _read_send_lag),
    "send-lag-max": _declare_largest_lag("how late the generator sends, at most", _read_send_lag),
    "receive-lag-p50": _declare_lag("how late the generator reads, median", 50, _read_receive_lag),
    "receive-lag-p99": _declare_lag("how late the generator reads, 99th percentile", 99, _read_receive_lag),
    "receive-lag-max": _declare_largest_lag("how late the generator reads, at most", _read_receive_lag),
    "tick-lag-p99": _declare_lag("how late the event loop of a client is, 99th percentile", 99, _read_tick_lag),
    "server-tick-lag-p99": _declare_lag(
        "how late the main loop of the server is, 99th percentile", 99, _read_server_tick_lag
    ),
    "lost": Metric(
        "share of messages lost",
        SHARE,
        lambda _, load: None if load.instrument else float(load.messages.lost),
        lambda _, load: float(load.messages.expected),
        of_cells=True,
        lossy=True,
        claimed=True,
    ),
    "late": _declare_share_of_messages(
        "share of messages sent that came late", lambda messages: messages.late, lambda messages: messages.sent
    ),
    "duplicated": _declare_share_of_messages(
        "share of messages received that came twice",
        lambda messages: messages.duplicated,
        lambda messages: messages.received,
    ),
    "reordered": _declare_share_of_messages(
        "share of messages received out of order",
        lambda messages: messages.reordered,
        lambda messages: messages.received,
    ),
    "connected": Metric(
        "share of connections established",
        SHARE,
        lambda _, load: float(load.connections.established),
        lambda _, load: float(load.connections.attempted),
        better="higher",
        invalid_too=True,
        at_limit="exact",
        claimed=True,
    ),
    "finished": Metric(
        "share of clients that wrote all and met no error",
        SHARE,
        _read_write_only(lambda writes: float(writes.finished)),
        lambda _, load: float(load.plan.connections),
        better="higher",
        at_limit="exact",
        claimed=True,
    ),
    "written": Metric(
        "messages written that need not have been read",
        RATE,
        _read_write_only(lambda writes: writes.per_second),
        better="higher",
        at_limit="exact",
        claimed=True,
    ),
    "server-ended": Metric(
        "share of trials in which a client that left ended the server",
        SHARE,
        lambda trial, load: None if load.write_only is msgspec.UNSET else float(bool(trial.ended_by)),
        at_limit="exact",
    ),
    "ready": Metric(
        "time until the server is ready",
        TIME,
        _read_start(lambda start: 1e9 * start.ready_s),
        of_cells=True,
        short="ready",
        at_limit="exact",
        least_amount=1e6,  # less makes no difference to a person
    ),
    "first-answer": Metric(
        "time until the first answer",
        TIME,
        _read_start(lambda start: 1e9 * start.first_answer_s),
        of_cells=True,
        short="first answer",
        at_limit="exact",
        least_amount=1e6,
    ),
    "ready-cpu": Metric(
        "server CPU until it is ready",
        TIME,
        _read_start(lambda start: 1e9 * start.cpu_s),
        of_cells=True,
        short="init CPU",
        at_limit="exact",
    ),
    "ready-memory": Metric(
        "memory of the server when it is ready",
        SIZE,
        lambda trial, _: (trial.server.rss_ready_bytes or None) if trial.server else None,
        largest=True,
        of_cells=True,
        short="init memory",
        at_limit="exact",
        least_ratio=1.1,
        least_amount=2**20,
    ),
    "warm-up": Metric(  # docs/adr/warm-up.md
        "load until the cost of a message has settled",
        TIME,
        lambda trial, _: 1e9 * trial.warmup.measured_s if trial.warmup else None,
        of_cells=True,
    ),
    "cpu": Metric(
        "server CPU per message",
        TIME_PER_MESSAGE,
        _read_server(lambda server: 1e9 * server.cpu_s),
        _count_completed,
        of_cells=True,
        short="CPU",
        at_limit="exact",
        claimed=True,
    ),
    "cpu-used": Metric(
        "server CPU used",
        CORES,
        _read_server(lambda server: server.cpu_s),
        lambda trial, _: trial.server.window_s if trial.server else 0.0,
        short="CPU used",
        at_limit="at_least",
        claimed=True,
    ),
    "throttled": Metric(
        "share of the CPU quota's periods in which the server was stopped",
        SHARE,
        _read_quota_use(lambda use: use.throttled_periods),
        lambda trial, _: float(trial.server.quota_use.periods) if trial.server and trial.server.quota_use else 0.0,
        of_cells=True,
        short="throttled",
        at_limit="exact",
        claimed=True,
    ),
    # How CPU time divides is known by ticks of 10 ms only; the sum is exact.
    "cpu-user": Metric(
        "server CPU in user space per message",
        TIME_PER_MESSAGE,
        _read_server(lambda server: 1e9 * server.cpu_user_s),
        _count_completed,
        of_cells=True,
    ),
    "cpu-system": Metric(
        "server CPU in the kernel per message",
        TIME_PER_MESSAGE,
        _read_server(lambda server: 1e9 * server.cpu_system_s),
        _count_completed,
        of_cells=True,
    ),
    "softirq": Metric("softirqs on its cores per message", TIME_PER_MESSAGE, _read_softirq, _count_completed),
    "run-queue": Metric(
        "server wait for a core per message",
        TIME_PER_MESSAGE,
        _read_threads(lambda server: 1e9 * server.run_queue_wait_s),
        _count_completed,
        of_cells=True,
    ),
    "switches": Metric(
        "server context switches per message",
        PER_MESSAGE,
        _count_switches,
        _count_completed,
        of_cells=True,
        claimed=True,
    ),
    "switching": Metric(
        "share of its CPU that the server's context switches took at most",
        SHARE,
        _bound_switching,
        _read_server_cpu,
        is_upper_bound=True,
        claimed=True,
    ),
    "lock-wait": Metric(
        "share of the response time that broadcasts wait for the lock of the registry",
        SHARE,
        _read_lock_wait,
        lambda _, load: load.latency.response_ns.mean,
        claimed=True,
    ),
    "voluntary": Metric(
        "voluntary switches per message",
        PER_MESSAGE,
        _read_threads(lambda server: server.voluntary_switches),
        _count_completed,
        of_cells=True,
    ),
    "involuntary": Metric(
        "involuntary switches per 1,000 messages",
        PER_THOUSAND,
        _read_threads(lambda server: server.involuntary_switches),
        _count_thousands,
        of_cells=True,
    ),
    "memory": Metric(  # VmHWM; of several processes PSS and what each had more at its peak (ServerObservation)
        "peak memory of the server",
        SIZE,
        _read_server(lambda server: float(server.rss_peak_bytes)),
        largest=True,
        of_cells=True,
        short="memory",
        at_limit="exact",
        least_ratio=1.1,
        least_amount=2**20,  # two programs of one model differ by less
        claimed=True,
    ),
    "connection-memory": Metric(
        "peak memory of the server per connection", SIZE, _read_connection_memory, of_cells=True
    ),
    "threads": Metric(
        "threads of the server",
        THREADS,
        _read_server(lambda server: float(server.threads)),
        largest=True,
        of_cells=True,
    ),
    "generator-cores": Metric(
        "cores that the generator used", CORES, lambda _, load: load.generator.cores_used, of_cells=True
    ),
    "generator-cpu": Metric(
        "CPU of the generator per message",
        TIME_PER_MESSAGE,
        lambda _, load: 1e9 * (load.generator.cpu_user_s + load.generator.cpu_system_s),
        _count_completed,
        of_cells=True,
    ),
    "generator-memory": Metric(
        "peak memory of the generator",
        SIZE,
        lambda _, load: float(load.generator.max_rss_bytes),
        largest=True,
        of_cells=True,
    ),
    "bytes-in": Metric(
        "bytes to the server per message", SIZE_PER_MESSAGE, _read_bytes(lambda both: both.sent), _count_sent
    ),
    "bytes-out": Metric(
        "bytes from the server per message", SIZE_PER_MESSAGE, _read_bytes(lambda both: both.received), _count_sent
    ),
    "packets": Metric("segments and datagrams per message", PER_MESSAGE, _count_packets, _count_completed),
    "delayed-acks": Metric(
        "delayed ACKs per 1,000 messages", PER_THOUSAND, _read_kernel("DelayedACKs"), _count_thousands
    ),
    "retransmits": Metric(
        "retransmitted segments per 1,000 messages", PER_THOUSAND, _read_kernel("RetransSegs"), _count_thousands
    ),
    "timeouts": Metric("TCP timeouts per 1,000 messages", PER_THOUSAND, _read_kernel("TCPTimeouts"), _count_thousands),
    "no-room": Metric(
        "datagrams dropped at full sockets per 1,000 messages",
        PER_THOUSAND,
        _read_kernel("UdpRcvbufErrors"),
        _count_thousands,
    ),
    "listen-overflows": Metric(
        "overflows of the listen queue per 1,000 connects",
        PER_THOUSAND_CONNECTS,
        _read_kernel("ListenOverflows", setup=True),
        lambda _, load: load.connections.attempted / 1000,
    ),
    "lines": Metric("lines of code", COUNT, of_code=lambda code: float(code.lines), claimed=True),
    "complexity": Metric(
        "cyclomatic complexity of the code", COUNT, of_code=lambda code: code.complexity, claimed=True
    ),
}

CLAIMED = tuple(name for name, metric in METRICS.items() if metric.claimed)
"""The metrics of claims, and (except those of code) of the figures of an experiment. A claim is judged within blocks,
so these are figures of single trials; those of code have no spread."""

_SAME = (
    "delayed-acks",
    "retransmits",
    "listen-overflows",
    "switches",
    "run-queue",
    "lock-wait",
    "cpu",
    "memory",
    "threads",
)
WHYS: Mapping[str, str] = {name: name for name in _SAME} | {"loss": "lost"}
"""The metrics that may be reported beside a claim (`why`), by their name in the claim: figures over all trials of a
side."""

COUNTERS = (
    "cpu",
    "softirq",
    "voluntary",
    "involuntary",
    "run-queue",
    "packets",
    "delayed-acks",
    "retransmits",
    "timeouts",
    "no-room",
)
"""The metrics that may be reported to correlate with a ranking, in the order in which they are reported."""
