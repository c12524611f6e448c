"""The audit `plausible`: no figure of a trial is impossible. Pure functions.

Figures that are counted twice, in different places, must agree; and none may exceed what the link, the memory, the
cores and the clock allow, whatever the software is. Every limit is one that nothing can pass, not one that nothing has
passed: a trial that comes near to it is fast, and one that passes it is wrong. docs/adr/plausible.md derives them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import msgspec

from netdyno.kit.statistics import hdr
from netdyno.kit.statistics.histogram import HistogramError
from netdyno.model import burst, transports
from netdyno.model.load_result import PERCENTILES, Audit, Distribution, LoadResult, Replies
from netdyno.model.observation import ServerObservation

ROUND_TRIP_NS = 1000
"""The least time for two programs with two system calls each, and twice through the kernel's network: 10 us and more on
fast machines."""
MESSAGE_CPU_S = 20e-9
"""The least cost of one message on each side: it is made or found in a stream, stamped or checked (a checksum over 28
bytes or more), and counted, in more than 50 instructions; those of the kernel not counted."""
ENOUGH_MESSAGES = 100
"""Fewer messages may all fall outside the moments at which the CPU is read."""
COPY_MARGIN = 2.0
"""A factor over the fastest copy that was measured (measure/trial/limits.py): a kernel may copy with better
instructions."""
CLOCK_SHARE, CLOCK_S = 0.05, 0.03
"""The most by which CPU times may exceed the window: they are read a little before it and a little after it, and some
count in ticks of 10 ms."""
ARITHMETIC = 1e-6
"""The share of a figure that rounding may take."""
HISTOGRAM_SHARE, HISTOGRAM_NS = 0.002, 1.0
"""Two steps of a histogram."""
LINK_SHARE, LINK_S = 0.02, 0.01
"""The most by which a link may exceed its rate: a token bucket lets a millisecond's worth go at once, and frames that
were late leave after those that were due before them."""
LATE_END_S = 2.0
"""The longest time after the last message's timeout at which an answer may still be read."""

ETHERNET_BYTES, IP_BYTES, TCP_BYTES, UDP_BYTES = 14, 20, 20, 8
"""Headers without options (IEEE 802.3 without its checksum, RFC 791, RFC 9293, RFC 768): no frame has less."""
MTU = 1500


class TrialResources(msgspec.Struct, frozen=True):
    """The resources of a trial. Cores of each side and of both together; `copies_hz`: bytes per second that one of them
    copies; of the link, bits per second (None where it is not limited) and the delay each way; `overrun_s`: the time
    after the slices of the window in which their last answers came, and CPU still counts."""

    server_cores: int
    generator_cores: int
    all_cores: int
    copies_hz: float
    rate_hz: int | None = None
    delay_s: float = 0.0
    overrun_s: float = 0.0


class FigureLimit(NamedTuple):
    """A figure and the most that it can be."""

    what: str
    value: float
    most: float

    @property
    def broken(self) -> bool:
        """Whether the figure exceeds its limit, or either is NaN."""
        return not self.value <= self.most


def plausible(load: LoadResult, server: ServerObservation | None, limits: TrialResources) -> Audit:
    """Check that the accounts agree and the limits hold. The detail names every impossible figure, or else the figure
    nearest to its limit. Nothing is checked of a server whose process is not known."""
    try:
        agreeing, held = list(accounts(load, server)), list(physical(load, server, limits))
    except HistogramError as error:
        return Audit(name="plausible", passed=False, detail=f"a histogram cannot be read: {error}")
    broken = [
        f"{bound.what}: {_format_figure(bound.value)}, at most {_format_figure(bound.most)}"
        for bound in (*agreeing, *held)
        if bound.broken
    ]
    nearest = max(held, key=lambda bound: bound.value / bound.most if bound.most else 0.0)
    kept = (
        f"{len(agreeing)} accounts agree, {len(held)} limits hold; nearest to its limit: {nearest.what}, "
        f"{_format_figure(nearest.value)} of {_format_figure(nearest.most)}"
    )
    return Audit(name="plausible", passed=not broken, detail="; ".join(broken) or kept)


def _format_figure(value: float) -> str:
    """Format with seven digits, and without an exponent where there are more before the point."""
    return f"{value:.7g}" if abs(value) < 1e7 else f"{value:.0f}"


def accounts(load: LoadResult, server: ServerObservation | None = None) -> Iterator[FigureLimit]:
    """Yield the figures that are counted twice, in different places."""
    yield from counts(load)
    yield from populations(load)
    yield from distributions(load)
    if server is not None and server.tick_lag_ns is not None:
        yield from _check_distribution("lag of the server's timer", server.tick_lag_ns)


def physical(load: LoadResult, server: ServerObservation | None, limits: TrialResources) -> Iterator[FigureLimit]:
    """Yield the figures that the machine and the link limit."""
    yield from times(load, limits)
    yield from work(load, server, limits)
    yield from transfer(load, limits)


# --- accounts ----------------------------------------------------------------------------------------------------


def counts(load: LoadResult) -> Iterator[FigureLimit]:
    """Check that nothing is answered that was not sent, and that figures counted in several places are the same in
    all."""
    window, life, connections = load.requests, load.messages, load.connections
    timed = load.latency.response_ns.count
    yield FigureLimit("messages sent in the window, of those sent at all", window.sent, life.sent)
    yield FigureLimit("messages timed, of those sent in the window", timed, window.sent)
    before = max(life.sent - window.sent, 0)
    yield FigureLimit(
        "messages answered in the window, of those timed in it or sent before it", window.completed, timed + before
    )
    if load.plan.arrivals == "closed":
        under_way = load.plan.connections * load.plan.depth + life.late
        yield FigureLimit(
            "messages answered in the window, of those timed in it or under way at its start",
            window.completed,
            timed + under_way,
        )
    slots = sum(load.timeseries.completed)
    yield FigureLimit(
        "messages answered in all intervals, off from those of the window", abs(slots - window.completed), 0
    )
    difference = abs(window.per_second * load.plan.duration_s - window.completed)
    room = ARITHMETIC * (window.completed + 1)
    yield FigureLimit("messages per second times the window, off from those answered in it", difference, room)
    arrived = life.received - life.duplicated
    yield FigureLimit("replies without repeated ones, of those expected", arrived, life.expected)
    yield FigureLimit("messages lost, off from those missing", abs(life.lost - (life.expected - arrived)), 0)
    failed = connections.refused + connections.timed_out + connections.reset + connections.other
    difference = abs(connections.attempted - failed - connections.established)
    yield FigureLimit("connections, off from those that did not fail", difference, 0)
    if (requests := load.plan.requests_per_connection) is not None:
        yield FigureLimit(
            "messages sent, of those that the connections may carry", life.sent, connections.established * requests
        )
        yield FigureLimit("connections of the window, of all", connections.in_window, connections.established)
    yield FigureLimit(
        "bytes of the messages sent, of all bytes sent", life.sent * load.plan.request_size, load.bytes.sent
    )
    yield FigureLimit(
        "bytes of the replies, of all bytes received", life.received * load.plan.size, load.bytes.received
    )
    used = load.generator.cpu_user_s + load.generator.cpu_system_s
    difference = abs(load.generator.cores_used * load.plan.duration_s - used)
    yield FigureLimit(
        "CPU of the generator (s), off from its cores used times the window", difference, ARITHMETIC * (used + 1)
    )


def populations(load: LoadResult) -> Iterator[FigureLimit]:
    """Check that no part of a population is larger than the whole (protocol/load-result.md, Populations)."""
    window, life, errors = load.requests, load.messages, load.errors
    if window.due is not None and life.due is not None and life.unsent is not None:
        yield FigureLimit("messages sent, of those due", life.sent, life.due)
        yield FigureLimit(
            "messages never sent, off from those due and missing", abs(life.due - life.sent - life.unsent), 0
        )
        yield FigureLimit("messages due in the window, of those due at all", window.due, life.due)
        yield FigureLimit("messages sent in the window, of those due in it", window.sent, window.due)
        yield FigureLimit("messages without an answer in time, of those due", errors.get("timeout", 0), life.due)
    if load.client is None:  # a client counts first attempts as connections, and every failure as an error
        yield FigureLimit(
            "messages answered too late, of those without an answer in time", life.late, errors.get("timeout", 0)
        )
        ended = sum(errors.get(how, 0) for how in ("closed_by_server", "reset", "protocol"))
        yield FigureLimit("connections that ended early, of those established", ended, load.connections.established)
    if not isinstance(load.replies, Replies):
        return
    arrived = life.received + load.replies.unexpected
    totals = {
        "messages": life.due,
        "replies": arrived + life.corrupt,
        "connects": load.connections.attempted,
        "connections": load.connections.established,
        None: None,
    }
    for fault in load.replies.faults:
        if (most := totals[fault.counted]) is not None:
            yield FigureLimit(f"{fault.counted} with the fault {fault.what!r}, of all", fault.count, most)
    if load.replies.statuses:
        difference = abs(sum(load.replies.statuses.values()) - arrived)
        yield FigureLimit("replies by their statuses, off from those that came", difference, 0)


def distributions(load: LoadResult) -> Iterator[FigureLimit]:
    """Check that percentiles rise and match their histogram. The response time of a message is its service time plus
    its send lag, so it is no less than the service time at any percentile, and the means add up."""
    response, service, lag = load.latency.response_ns, load.latency.service_ns, load.send_lag_ns
    named = {"response time": response, "service time": service, "send lag": lag, "connect time": load.connect_ns}
    if load.client is not None:
        named["lag of the timer"] = load.client.tick_lag_ns
    for name, distribution in named.items():
        yield from _check_distribution(name, distribution)
    yield FigureLimit("service times, off from response times in number", abs(service.count - response.count), 0)
    for name in ("p50", "p90", "p99", "p999", "max", "mean"):
        most = getattr(response, name) * (1 + HISTOGRAM_SHARE) + HISTOGRAM_NS
        yield FigureLimit(f"{name} of the service time (ns), of the response time's", getattr(service, name), most)
    if lag.count == response.count:
        difference = abs(response.mean - service.mean - lag.mean)
        room = HISTOGRAM_SHARE * response.mean + HISTOGRAM_NS
        yield FigureLimit("mean response time (ns), off from mean service time and send lag", difference, room)


def _check_distribution(name: str, distribution: Distribution) -> Iterator[FigureLimit]:
    rising = (0, *map(distribution.find_percentile, PERCENTILES), distribution.max)
    falls = sum(low > high for low, high in pairwise(rising))
    yield FigureLimit(f"percentiles of the {name} that lie below a lower one", falls, 0)
    yield FigureLimit(f"mean {name} (ns), of the longest", distribution.mean, distribution.max)
    yield FigureLimit(f"mean {name} (ns) below 0", -distribution.mean, 0)
    histogram = hdr.decode(distribution.histogram)
    if distribution.count == 0:
        return
    yield FigureLimit(
        f"values of the {name}, off from those in its histogram", abs(histogram.count - distribution.count), 0
    )
    for percent, stated in ((50, distribution.p50), (99, distribution.p99), (100, distribution.max)):
        difference = abs(hdr.percentile(histogram, percent) - stated)
        room = HISTOGRAM_SHARE * stated + HISTOGRAM_NS
        yield FigureLimit(f"{percent}% of the {name} (ns), off from its histogram", difference, room)


# --- limits ------------------------------------------------------------------------------------------------------


def times(load: LoadResult, limits: TrialResources) -> Iterator[FigureLimit]:
    """Check that nothing is answered sooner than the link and the kernel allow, or after the load has ended."""
    plan = load.plan
    patience_s = burst.find_patience_s(plan.timeout_s, plan.duration_s, has_burst=bool(load.steps))
    yield FigureLimit(
        "longest response time (s)",
        load.latency.response_ns.max / 1e9,
        plan.duration_s + patience_s + LATE_END_S,
    )
    if (soonest_connect := _find_shortest_ns(load.connect_ns)) is not None:
        both_ways = 2e9 * limits.delay_s * (1 - HISTOGRAM_SHARE)
        yield FigureLimit("both ways over the link (ns), of the shortest connect time", both_ways, soonest_connect)
    if (soonest := _find_shortest_ns(load.latency.service_ns)) is None:
        return
    both_ways = 2e9 * limits.delay_s * (1 - HISTOGRAM_SHARE)
    yield FigureLimit("a round trip through the kernel (ns), of the shortest service time", ROUND_TRIP_NS, soonest)
    yield FigureLimit("both ways over the link (ns), of the shortest service time", both_ways, soonest)
    if plan.arrivals == "closed":
        turns = plan.duration_s / plan.round_s + 2 if plan.round_s else plan.duration_s * 1e9 / soonest + 1
        most = plan.connections * plan.depth * turns + load.messages.late
        yield FigureLimit(
            "messages that a closed loop answers, each after the one before", load.requests.completed, most
        )


def work(load: LoadResult, server: ServerObservation | None, limits: TrialResources) -> Iterator[FigureLimit]:
    """Check that no side uses more CPU than there is, and that every message costs some."""
    generated = load.generator.cpu_user_s + load.generator.cpu_system_s
    loaded_s = load.plan.duration_s + limits.overrun_s
    yield FigureLimit("CPU of the generator (s)", generated, _limit_cpu(limits.generator_cores, loaded_s))
    # Spinning is timed by the clock, so it includes the time in which other programs had the core.
    spinning_most = generated + CLOCK_SHARE * load.plan.duration_s + CLOCK_S
    yield FigureLimit("CPU of spinning (s), of all of the generator's", load.generator.spun_s, spinning_most)
    least = load.requests.completed * MESSAGE_CPU_S if load.requests.completed >= ENOUGH_MESSAGES else 0.0
    yield FigureLimit("least CPU that the messages cost (s), of the CPU of the generator", least, generated)
    if server is not None:
        served_s = server.window_s + limits.overrun_s
        yield FigureLimit("CPU of the server (s)", server.cpu_s, _limit_cpu(limits.server_cores, served_s))
        if limits.server_cores + limits.generator_cores > limits.all_cores:
            window_s = max(served_s, loaded_s)
            yield FigureLimit("CPU of both sides (s)", generated + server.cpu_s, _limit_cpu(limits.all_cores, window_s))
        yield FigureLimit("least CPU that the messages cost (s), of the CPU of the server", least, server.cpu_s)


def _limit_cpu(cores: int, window_s: float) -> float:
    return cores * window_s * (1 + CLOCK_SHARE) + CLOCK_S


def transfer(load: LoadResult, limits: TrialResources) -> Iterator[FigureLimit]:
    """Check that there are no more bytes than memory copies, nor more bits than the link carries. Messages that were
    answered in the window crossed the link at most the longest service time before its start or after its end."""
    if load.messages.sent == 0:
        return
    replies = load.messages.received / load.messages.sent  # in a chat, one for each recipient
    window_s = load.plan.duration_s + 2 * load.latency.service_ns.max / 1e9
    up, down = load.requests.completed, load.requests.completed * replies
    # At least one copy out of the kernel for each receiver; into the kernel, one copy may serve many.
    copied = up * load.plan.request_size + down * load.plan.size
    copies = COPY_MARGIN * limits.all_cores * limits.copies_hz * window_s
    yield FigureLimit("bytes that are copied out of the kernel", copied, copies)
    if limits.rate_hz is None:
        return
    most = limits.rate_hz * (window_s * (1 + LINK_SHARE) + LINK_S)
    for way, messages, size in (("to the server", up, load.plan.request_size), ("back", down, load.plan.size)):
        yield FigureLimit(f"bits on their way {way} over the link", 8 * _count_wire_bytes(load, messages, size), most)


def _count_wire_bytes(load: LoadResult, messages: float, size: int) -> float:
    """Return the least bytes of so many messages in frames: full segments of a stream, or a datagram each."""
    transport = transports.of_url(load.plan.url)
    payload = messages * size
    if transport is not None and transport.datagrams:
        return payload + messages * (ETHERNET_BYTES + IP_BYTES + UDP_BYTES)
    headers = IP_BYTES + TCP_BYTES
    return payload * (1 + (ETHERNET_BYTES + headers) / (MTU - headers))


def _find_shortest_ns(times: Distribution) -> float | None:
    """Return the upper end of the histogram's first step; None where nothing was timed."""
    if times.count == 0:
        return None
    steps = hdr.decode(times.histogram).highest
    return float(steps[0]) if len(steps) else None
