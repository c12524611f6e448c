"""What a claim can be about: the closed list of metrics, each with its unit and whose trials have it.

Figures of trials are per trial, for a claim is judged within blocks. Figures of code have no spread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from netdyno.analysis import measured
from netdyno.base import quantities
from netdyno.model import transports
from netdyno.model.contestant import CodeSize
from netdyno.model.load_result import LoadResult
from netdyno.model.observation import ServerObservation
from netdyno.model.outcomes import rate_kept
from netdyno.model.trial import Status, Trial

Scale = Literal["ratio", "share"]
"""How two figures are compared: by their ratio, which needs values above 0, or by their difference."""


@dataclass(frozen=True)
class Metric:
    """`of` gives the figure of a trial, None where it was not measured; `of_code` that of a contestant's source."""

    title: str
    speak: Callable[[float], str]
    of: Callable[[Trial, LoadResult], float | None] | None = None
    of_code: Callable[[CodeSize], float] | None = None
    scale: Scale = "ratio"
    latency: bool = False
    """Of the messages that came back: what was lost does not enter it."""
    better: Literal["higher", "lower"] = "lower"
    struck_out_too: bool = False
    """It counts what audits strike a trial out for, so that such a trial has the figure as well."""

    @property
    def statuses(self) -> tuple[Status, ...]:
        """Of the trials that it is read from."""
        return measured.MEASURED if self.struck_out_too else measured.VALID


def _server(figure: Callable[[ServerObservation], float]) -> Callable[[Trial, LoadResult], float | None]:
    return lambda trial, _: None if trial.server is None else figure(trial.server)


def _per_message(amount: Callable[[ServerObservation], float]) -> Callable[[Trial, LoadResult], float | None]:
    def figure(trial: Trial, load: LoadResult) -> float | None:
        completed = load.requests.completed
        return amount(trial.server) / completed if trial.server is not None and completed else None

    return figure


def _connected(_: Trial, load: LoadResult) -> float | None:
    attempted = load.connections.attempted
    return load.connections.established / attempted if attempted else None


def _achieved(_: Trial, load: LoadResult) -> float | None:
    return load.requests.per_second / load.plan.rate_hz if load.plan.rate_hz else None


def _moved(_: Trial, load: LoadResult) -> float | None:
    """Sent and received by the clients: each message is once sent and comes to each of its recipients."""
    messages = load.messages
    return load.requests.per_second * (1 + messages.expected / messages.sent) if messages.sent else None


def _count(value: float) -> str:
    return quantities.three_digits(value) if value < 1000 else f"{value:,.0f}"


METRICS: Mapping[str, Metric] = {
    "throughput": Metric("throughput", quantities.rate, lambda _, load: load.requests.per_second, better="higher"),
    "kept": Metric(
        "share of the offered rate that was kept",
        quantities.share,
        lambda _, load: rate_kept(load),
        scale="share",
        better="higher",
    ),
    "moved": Metric("messages sent and received", quantities.rate, _moved, better="higher"),
    "mean": Metric(
        "mean response time", quantities.duration, lambda _, load: load.latency.response_ns.mean, latency=True
    ),
    "p50": Metric(
        "median response time", quantities.duration, lambda _, load: float(load.latency.response_ns.p50), latency=True
    ),
    "p90": Metric(
        "90th-percentile response time",
        quantities.duration,
        lambda _, load: float(load.latency.response_ns.p90),
        latency=True,
    ),
    "p99": Metric(
        "99th-percentile response time",
        quantities.duration,
        lambda _, load: float(load.latency.response_ns.p99),
        latency=True,
    ),
    "cpu": Metric(
        "server CPU per message",
        quantities.duration,
        _per_message(lambda server: 1e9 * (server.cpu_user_s + server.cpu_system_s)),
    ),
    "switches": Metric(
        "context switches per message",
        quantities.three_digits,
        _per_message(lambda server: server.voluntary_switches + server.involuntary_switches),
    ),
    "memory": Metric(
        "peak memory of the server", quantities.memory, _server(lambda server: float(server.rss_peak_bytes))
    ),
    "lost": Metric(
        "share of messages lost", quantities.share, lambda _, load: transports.share_lost(load), scale="share"
    ),
    "connected": Metric(
        "share of connections established",
        quantities.share,
        _connected,
        scale="share",
        better="higher",
        struck_out_too=True,
    ),
    "achieved": Metric(
        "share of the offered rate that was answered", quantities.share, _achieved, scale="share", better="higher"
    ),
    "lines": Metric("lines of the server's code", _count, of_code=lambda code: float(code.lines)),
    "complexity": Metric("cyclomatic complexity of the server's code", _count, of_code=lambda code: code.complexity),
}
"""By the name that a claim uses. Times are nanoseconds here, and durations such as "40ms" in the file."""

TIMES = frozenset(name for name, metric in METRICS.items() if metric.speak is quantities.duration)
