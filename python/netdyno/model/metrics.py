"""The catalogue of everything measurable: the name, unit and better side of each metric, and how it is read from a
trial or from a contestant's source. Comparisons, charts and explanations use these by name.

Times are nanoseconds here; a figure of a trial is that of its measured window, unless stated otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from netdyno.base import quantities
from netdyno.model import outcomes, transports
from netdyno.model.contestant import CodeSize
from netdyno.model.load_result import Bytes, Distribution, LoadResult
from netdyno.model.observation import ServerObservation
from netdyno.model.outcomes import rate_kept
from netdyno.model.transports import SERVER_ADDRESS
from netdyno.model.trial import Status, Trial

Scale = Literal["ratio", "share"]
"""The way to compare two figures: by their ratio, which needs values above 0, or by their difference."""
AtLimit = Literal["exact", "at_least", "at_most", "unknown"]
"""The meaning of a closed loop's figure for the server where the generator was at its limit."""
Counted = tuple[Trial, LoadResult]
Figure = Callable[[Trial, LoadResult], float | None]
"""The figure of one trial; None where it was not measured."""


@dataclass(frozen=True)
class Unit:
    """A unit. `speak` formats a value for people."""

    name: str
    speak: Callable[[float], str]


def _format_count(value: float) -> str:
    return quantities.three_digits(value) if value < 1000 else f"{value:,.0f}"


RATE = Unit("messages/s", quantities.rate)
SHARE = Unit("share", quantities.share)
TIME = Unit("ns", quantities.duration)
TIME_PER_MESSAGE = Unit("ns/message", quantities.duration)
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


@dataclass(frozen=True)
class Metric:
    """A metric. The figure of a trial is `amount` divided by `per`; that of several trials is the sum of the amounts
    over the sum of `per`. `short` is its heading where there is little room."""

    title: str
    unit: Unit
    amount: Figure | None = None
    per: Callable[[Trial, LoadResult], float] = _return_one
    of_code: Callable[[CodeSize], float] | None = None
    better: Literal["higher", "lower"] = "lower"
    latency: bool = False
    """Whether it covers only the messages that came back, without lost ones."""
    lossy: bool = False
    """Whether a trial has it only over a transport that may lose messages."""
    struck_out_too: bool = False
    """Whether invalid trials have it too, because it counts the very events that make a trial invalid."""
    short: str = ""
    at_limit: AtLimit = "unknown"
    """The result of a faster generator where this one is at its limit: this figure, this or more, this or less, or
    unknown. A faster generator makes more requests and adds less delay to response times; the cost of a message and the
    memory of a server are the server's own."""
    is_upper_bound: bool = False
    """Whether it overestimates, so that it can show that something is small and never that it is large."""

    def of(self, trial: Trial, load: LoadResult) -> float | None:
        """Return the figure of one trial; None where it was not measured, or is of code."""
        if self.lossy and not transports.may_lose(load):
            return None
        return self.over([(trial, load)])

    def over(self, trials: Iterable[Counted]) -> float | None:
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

    @property
    def scale(self) -> Scale:
        return "share" if self.unit is SHARE else "ratio"

    @property
    def is_time(self) -> bool:
        """Whether a value of it is written as a duration, such as "40ms"."""
        return self.unit in (TIME, TIME_PER_MESSAGE)

    @property
    def statuses(self) -> tuple[Status, ...]:
        """The statuses of the trials that have it."""
        return outcomes.MEASURED if self.struck_out_too else outcomes.VALID


# --- what a metric is per --------------------------------------------------------------------------------------------


def _count_completed(_: Trial, load: LoadResult) -> float:
    return float(load.requests.completed)


def _count_thousands(_: Trial, load: LoadResult) -> float:
    return load.requests.completed / 1000


def _count_sent(_: Trial, load: LoadResult) -> float:
    return float(load.messages.sent)


def _read_response_times(amount: Callable[[Distribution], float]) -> Figure:
    """Return a figure of the response times. It is None where no message of the window was answered: the response time
    is unknown then, and 0 would be the best."""
    return lambda _, load: amount(load.latency.response_ns) if load.latency.response_ns.count else None


def _read_server_cpu(trial: Trial, _: LoadResult) -> float:
    return 1e9 * trial.server.cpu_s if trial.server else 0.0


# --- what it counts --------------------------------------------------------------------------------------------------


def _read_server(amount: Callable[[ServerObservation], float]) -> Figure:
    return lambda trial, _: None if trial.server is None else amount(trial.server)


def _read_threads(amount: Callable[[ServerObservation], float]) -> Figure:
    """Return a figure of counts that the kernel keeps for each thread. It is None where threads ended before they were
    read: even the number of those that came and went between two readings is unknown."""
    return lambda trial, _: None if trial.server is None or trial.server.threads_unread else amount(trial.server)


def _read_kernel(*names: str, setup: bool = False) -> Figure:
    """Return the figure that sums counters of the kernel (machine/server_proc.py) over the window; with `setup` over
    the connects too. It is None where one of them was not read. They are those of the network namespace: over the
    loopback, of all programs in it."""
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


def _read_connection_means(amount: Callable[[Distribution], float]) -> Figure:
    """Return a figure of the connections' mean response times, None where the load did not keep connections apart."""
    return lambda _, load: (
        amount(load.connection_mean_ns) if load.connection_mean_ns and load.connection_mean_ns.count else None
    )


def _read_bytes(way: Callable[[Bytes], int]) -> Figure:
    """Return the figure of the bytes of the load's whole life, per message that it sent; the audit `server_totals`
    compares them with the server's own count."""
    return lambda _, load: float(way(load.bytes))


def _read_moved_rate(_: Trial, load: LoadResult) -> float | None:
    """Return the messages per second that the clients sent and received: each message is sent once and received by each
    of its recipients."""
    messages = load.messages
    return load.requests.per_second * (1 + messages.expected / messages.sent) if messages.sent else None


def _declare_response_time(title: str, value: Callable[[Distribution], float], short: str = "") -> Metric:
    return Metric(title, TIME, _read_response_times(value), latency=True, short=short, at_limit="at_most")


# --- the catalogue ---------------------------------------------------------------------------------------------------

METRICS: Mapping[str, Metric] = {
    "throughput": Metric(
        "throughput",
        RATE,
        lambda _, load: load.requests.per_second,
        better="higher",
        short="throughput",
        at_limit="at_least",
    ),
    "capacity": Metric("capacity", RATE, better="higher", short="capacity"),
    "kept": Metric(
        "share of the offered rate that was kept",
        SHARE,
        lambda _, load: rate_kept(load),
        better="higher",
        short="rate kept",
        at_limit="at_least",
    ),
    "achieved": Metric(
        "share of the offered rate that was answered",
        SHARE,
        lambda _, load: load.requests.per_second,
        lambda _, load: load.plan.rate_hz or 0.0,
        better="higher",
        struck_out_too=True,
        at_limit="exact",
    ),
    "moved": Metric("messages sent and received", RATE, _read_moved_rate, better="higher", at_limit="at_least"),
    "mean": _declare_response_time("mean response time", lambda times: times.mean, short="mean"),
    "p50": _declare_response_time("median response time", lambda times: float(times.p50), short="p50"),
    "p90": _declare_response_time("90th-percentile response time", lambda times: float(times.p90)),
    "p99": _declare_response_time("99th-percentile response time", lambda times: float(times.p99), short="p99"),
    # A variation of delay is a time (RFC 3393).
    "jitter": Metric(
        "99th percentile less the median of the response time",
        TIME,
        _read_response_times(lambda times: float(times.p99 - times.p50)),
        latency=True,
    ),
    "connection-spread": Metric(
        "99th percentile over the median of the connections' mean response times",
        TIMES,
        _read_connection_means(lambda means: float(means.p99)),
        lambda _, load: float(load.connection_mean_ns.p50) if load.connection_mean_ns else 0.0,
        short="spread",
    ),
    "lost": Metric(
        "share of messages lost",
        SHARE,
        lambda _, load: None if load.instrument else float(load.messages.lost),
        lambda _, load: float(load.messages.expected),
        lossy=True,
    ),
    "connected": Metric(
        "share of connections established",
        SHARE,
        lambda _, load: float(load.connections.established),
        lambda _, load: float(load.connections.attempted),
        better="higher",
        struck_out_too=True,
        at_limit="exact",
    ),
    "cpu": Metric(
        "server CPU per message",
        TIME_PER_MESSAGE,
        _read_server(lambda server: 1e9 * server.cpu_s),
        _count_completed,
        short="CPU",
        at_limit="exact",
    ),
    "cpu-used": Metric(
        "server CPU used",
        CORES,
        _read_server(lambda server: server.cpu_s),
        lambda trial, _: trial.server.window_s if trial.server else 0.0,
        short="CPU used",
        at_limit="at_least",
    ),
    # How CPU time divides is known by ticks of 10 ms only; the sum is exact.
    "cpu-user": Metric(
        "server CPU in user space per message",
        TIME_PER_MESSAGE,
        _read_server(lambda server: 1e9 * server.cpu_user_s),
        _count_completed,
    ),
    "cpu-system": Metric(
        "server CPU in the kernel per message",
        TIME_PER_MESSAGE,
        _read_server(lambda server: 1e9 * server.cpu_system_s),
        _count_completed,
    ),
    "softirq": Metric("softirqs on its cores per message", TIME_PER_MESSAGE, _read_softirq, _count_completed),
    "run-queue": Metric(
        "server wait for a core per message",
        TIME_PER_MESSAGE,
        _read_threads(lambda server: 1e9 * server.run_queue_wait_s),
        _count_completed,
    ),
    "switches": Metric(
        "server context switches per message",
        PER_MESSAGE,
        _count_switches,
        _count_completed,
    ),
    "switching": Metric(
        "share of its CPU that the server's context switches took at most",
        SHARE,
        _bound_switching,
        _read_server_cpu,
        is_upper_bound=True,
    ),
    "lock-wait": Metric(
        "share of the response time that broadcasts wait for the lock of the registry",
        SHARE,
        _read_lock_wait,
        lambda _, load: load.latency.response_ns.mean,
    ),
    "voluntary": Metric(
        "voluntary switches per message",
        PER_MESSAGE,
        _read_threads(lambda server: server.voluntary_switches),
        _count_completed,
    ),
    "involuntary": Metric(
        "involuntary switches per 1,000 messages",
        PER_THOUSAND,
        _read_threads(lambda server: server.involuntary_switches),
        _count_thousands,
    ),
    "memory": Metric(  # VmHWM; of several processes PSS and what each had more at its peak (ServerObservation)
        "peak memory of the server",
        SIZE,
        _read_server(lambda server: float(server.rss_peak_bytes)),
        short="memory",
        at_limit="exact",
    ),
    "threads": Metric("threads of the server", THREADS, _read_server(lambda server: float(server.threads))),
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
    "lines": Metric("lines of code", COUNT, of_code=lambda code: float(code.lines)),
    "complexity": Metric("cyclomatic complexity of the code", COUNT, of_code=lambda code: code.complexity),
}

CLAIMED = (
    "throughput",
    "kept",
    "moved",
    "mean",
    "p50",
    "p90",
    "p99",
    "jitter",
    "connection-spread",
    "cpu",
    "cpu-used",
    "switches",
    "switching",
    "lock-wait",
    "memory",
    "lost",
    "connected",
    "achieved",
    "lines",
    "complexity",
)
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
