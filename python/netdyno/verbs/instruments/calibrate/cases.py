"""The cases of the card: a programme for the server, a load, and the readings of a right generator. Data and pure
functions. Server and generator count the same messages: a load has no warm-up, or the server leaves out as many answers
as it has."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from netdyno.kit.statistics import hdr
from netdyno.kit.statistics.stats import Floats
from netdyno.model.load_result import Distribution, LoadResult
from netdyno.verbs.instruments.calibrate import truths
from netdyno.verbs.instruments.calibrate.done import ServerTotals
from netdyno.verbs.instruments.calibrate.scores import (
    QUANTILES,
    CalibrationScore,
    read_percentile,
    score_count,
    score_part,
    score_rate,
    score_time,
)

STALL_S = 1.0
STALLED_PERCENTILES = ("p90", "p99", "p99.9")
SUMS = 50_000
KEPT_SHORT_DELAY = 0.1
"""A server that asks the clock all the while keeps a delay of 50 us; 5 us are some of its loop's turns."""
WAY_NS = 40_000
"""The time that the kernel may take to carry a message there and back, at the median: it does so within the two calls
of send. On a virtual machine whose cores were each shared by four programs it was 15 to 25 us."""
GRID_BOUND = 0.1
"""The largest distance of an arrival of constant gaps from its place at the 99th percentile, in gaps."""


class CalibrationCase(msgspec.Struct, frozen=True):
    """One trial. Its name is unique and goes before the names of its scores. `program` is the server's name."""

    name: str
    about: str
    server: tuple[str, ...]
    load: tuple[str, ...]
    judge: Callable[[LoadResult, ServerTotals], tuple[CalibrationScore, ...]]
    warmup: str = "0ms"
    program: str = "calibration"
    workload: str = "lines"
    """An answer is a line, so the server knows one message from the next."""


def score_response_times(load: LoadResult, done: ServerTotals) -> tuple[CalibrationScore, ...]:
    """Score the response times against what the server really did to the same messages, and what the machine did to
    both programs meanwhile. The server's own punctuality is scored first, as everything else stands on it."""
    programmed, actual = _decode_values(done.delay_programmed_ns), _decode_values(done.delay_actual_ns)
    begin, end = load.plan.warmup_s * 1e9, (load.plan.warmup_s + load.plan.duration_s) * 1e9
    due = np.linspace(begin, end, len(actual), endpoint=False, dtype=np.float64)
    generator, server = done.list_pauses("generator"), done.list_pauses("server")
    programmed_p99 = truths.select_rank(truths.shift_past_pauses(due + programmed, server) - due, QUANTILES["p99"])
    expected = truths.simulate_readings(due, actual, generator, server)
    read = load.latency.response_ns
    return (
        score_time("server kept its programme, p99", programmed_p99, read_percentile(done.delay_actual_ns, "p99")),
        *(
            score_time(name, truths.select_rank(expected, QUANTILES[name]), read_percentile(read, name))
            for name in ("p50", "p99", "p99.9")
        ),
    )


def _decode_values(distribution: Distribution) -> Floats:
    """The recorded values, in an order that has nothing to do with time."""
    if not distribution.count:
        return np.empty(0)
    recorded = hdr.decode(distribution.histogram)
    values = np.repeat(recorded.highest.astype(np.float64), recorded.counts.astype(np.int64))
    return np.random.default_rng(1).permutation(values)


def score_delay(load: LoadResult, done: ServerTotals) -> tuple[CalibrationScore, ...]:
    """Score a delay that is not long beside the way. The reading above it is stated; held to a bound is the rest of the
    reading after all that was measured on the way is taken off: the generator's two lags and the server's own wait to
    read. A generator that reads too much without a lag that shows it leaves too much, and one that reads too little
    leaves less than nothing."""
    programmed, delay = read_percentile(done.delay_programmed_ns, "p50"), read_percentile(done.delay_actual_ns, "p50")
    read = read_percentile(load.latency.response_ns, "p50")
    punctuality = score_time("server kept its programme, p50", programmed, delay, KEPT_SHORT_DELAY)
    reading = CalibrationScore(
        name="p50",
        unit="ns",
        rule="stated",
        truth=delay,
        measured=read,
        service=read_percentile(load.latency.service_ns, "p50"),
    )
    lags = _find_lags(load)
    if not (lags and done.read_lag_ns and done.read_lag_ns.count):
        return (punctuality, reading)  # this kernel does not tell when messages arrive
    on_the_way = (*lags, done.read_lag_ns, done.delay_actual_ns)
    return (
        punctuality,
        reading,
        score_part("- send and receive lag", delay, _estimate_median_of_sum(*lags)),
        score_part("- the server's wake-up", delay, read_percentile(done.read_lag_ns, "p50")),
        score_part("- the rest, the kernel's", delay, read - _estimate_median_of_sum(*on_the_way), most=WAY_NS),
    )


def _find_lags(load: LoadResult) -> tuple[Distribution, ...]:
    """The generator's lags that its response times contain; none where one of them is not known."""
    if load.latency.clock == "kernel":
        return (load.send_lag_ns,)
    if load.receive_lag_ns is None or not load.receive_lag_ns.count:
        return ()
    return (load.send_lag_ns, load.receive_lag_ns)


def _estimate_median_of_sum(*distributions: Distribution) -> float:
    """Estimate the median of a sum of independent times."""
    random = np.random.default_rng(1)
    drawn = [random.choice(_decode_values(distribution), SUMS) for distribution in distributions]
    return truths.select_rank(np.sum(drawn, axis=0), 0.5)


def score_stall(load: LoadResult, done: ServerTotals) -> tuple[CalibrationScore, ...]:
    """Score a stall of all messages: S - (1-q)T at three percentiles."""
    return _score_stall(load, done, STALLED_PERCENTILES, 1.0)


def score_connection_stall(load: LoadResult, done: ServerTotals) -> tuple[CalibrationScore, ...]:
    """Score a stall of one connection: the others' messages are in the distribution, too."""
    return _score_stall(load, done, ("p99", "p99.9"), 1 / load.plan.connections)


def _score_stall(
    load: LoadResult, done: ServerTotals, percentiles: tuple[str, ...], share: float
) -> tuple[CalibrationScore, ...]:
    if not done.stalls:
        return (score_count("stalls carried out", 1, 0),)
    stall_ns, window_ns = done.stalls[0].actual_ns, load.plan.duration_s * 1e9
    return tuple(
        score_time(
            name,
            truths.stall_percentile(stall_ns, window_ns, QUANTILES[name], share),
            read_percentile(load.latency.response_ns, name),
            service=read_percentile(load.latency.service_ns, name),
        )
        for name in percentiles
    )


def score_messages(load: LoadResult, done: ServerTotals) -> tuple[CalibrationScore, ...]:
    """Score the counts. A corrupted answer is no answer: it counts as lost, too (protocol/load-result.md)."""
    messages = load.messages
    is_invalid = any(audit.name == "verification" and not audit.passed for audit in load.audits)
    return (
        score_count("lost (with corrupted)", done.lost + done.corrupted, messages.lost),
        score_count("duplicated", done.duplicated, messages.duplicated),
        score_count("corrupted", done.corrupted, messages.corrupt),
        score_count("sent", done.arrived, messages.sent),
        score_count("the trial is invalid", 1, int(is_invalid)),
    )


def score_rates(load: LoadResult, done: ServerTotals) -> tuple[CalibrationScore, ...]:
    """Score the rate at which messages came to the server, and the rate that the generator reports."""
    requested_hz = load.plan.rate_hz or 0.0
    arrived_hz = 1e9 * (done.arrived - 1) / done.arrivals_span_ns if done.arrivals_span_ns else 0.0
    reported_hz = load.requests.sent / load.plan.duration_s
    return (
        score_rate("arrived", requested_hz, arrived_hz),
        score_rate("said to be sent", arrived_hz, reported_hz),
    )


def score_poisson_gaps(load: LoadResult, done: ServerTotals) -> tuple[CalibrationScore, ...]:
    """Score exponential gaps: Anderson-Darling with the requested rate, at the 1% level."""
    statistic = truths.compare_with_exponential(done.arrivals_ns, load.plan.rate_hz or 0.0)
    return (
        CalibrationScore(
            name="gaps exponential, A²", unit="statistic", rule="at most", truth=truths.AD_CRITICAL, measured=statistic
        ),
    )


def score_equal_gaps(load: LoadResult, done: ServerTotals) -> tuple[CalibrationScore, ...]:
    """Score equal gaps: on the grid, and different from exponential ones, so that the test of those is seen to
    refuse."""
    requested_hz = load.plan.rate_hz or 0.0
    off = truths.measure_off_grid(
        done.arrivals_ns, requested_hz, 0.99, done.list_pauses("generator"), done.list_pauses("server")
    )
    statistic = truths.compare_with_exponential(done.arrivals_ns, requested_hz)
    critical = truths.AD_CRITICAL
    return (
        CalibrationScore(
            name="off the grid, p99, in gaps", unit="share", rule="at most", truth=GRID_BOUND, measured=off
        ),
        CalibrationScore(
            name="gaps not exponential, A²", unit="statistic", rule="at least", truth=critical, measured=statistic
        ),
    )


def _format_open_load(connections: int, rate_hz: int, duration: str, *more: str) -> tuple[str, ...]:
    return ("-c", str(connections), "--rate", str(rate_hz), "--duration", duration, *more)


def _make_delayed_case(name: str, about: str, delay: str) -> CalibrationCase:
    """A case of 1000 messages a second, 500 of them before the window. Few wait on one of 400 connections, so hardly
    any answer is held back by an earlier one."""
    server = ("--delay", delay, "--warm-up", "500")
    return CalibrationCase(
        name, about, server, _format_open_load(400, 1000, "4s"), score_response_times, warmup="500ms"
    )


def _make_short_case() -> CalibrationCase:
    """A case of 700 messages a second, 350 of them before the window: none comes when another is due."""
    server = ("--delay", "constant:50us", "--warm-up", "350", "--arrival-times")
    about = "every answer after 50 µs, and what comes on top of it"
    return CalibrationCase(
        "constant 50 µs", about, server, _format_open_load(20, 700, "2s"), score_delay, warmup="500ms"
    )


# A stall begins just before a message is due, so that the formula holds for whole messages: with n of them in the
# window, the one at rank qn is due (1-q)T after the stall began. Large ones take a while to come.
_STALL = ("--stall", "at=1999ms,for=1s")
_STALL_OF_LARGE = ("--stall", "at=1996ms,for=1s")
_STALL_OF_ONE = ("--stall", "at=1999ms,for=1s,connection=1")
_SOCKETS = "64KiB"
_WINDOW = "4s"
_FAULTS = ("--lose", "97", "--corrupt", "83", "--duplicate", "89")

CASES = (
    _make_delayed_case("constant 200 ms", "every answer after 200 ms", "constant:200ms"),
    _make_delayed_case("bimodal 10, 100 ms", "98.5% after 10 ms, the others after 100 ms", "bimodal:10ms,100ms,0.985"),
    _make_delayed_case(
        "exponential 20 ms", "exponentially distributed delays with a mean of 20 ms", "exponential:20ms"
    ),
    _make_short_case(),
    CalibrationCase(
        "stall", "the server stops for 1 s of 4 s", _STALL, _format_open_load(10, 1000, _WINDOW), score_stall
    ),
    CalibrationCase(
        "stall, full sockets",
        "the same with messages of 256 KiB through socket buffers of 64 KiB",
        (*_STALL_OF_LARGE, "--receive-buffer", _SOCKETS, "--read-buffer", "256KiB"),
        _format_open_load(1, 25, _WINDOW, "--size", "256KiB", "--send-buffer", _SOCKETS),
        score_stall,
    ),
    CalibrationCase(
        "stall, one connection",
        "one of 10 connections stops for 1 s",
        _STALL_OF_ONE,
        _format_open_load(10, 1000, _WINDOW),
        score_connection_stall,
    ),
    CalibrationCase(
        "faults",
        "of 4000 answers every 97th is lost, every 83rd corrupted, every 89th sent twice",
        _FAULTS,
        _format_open_load(20, 2000, "2s", "--timeout", "1s"),
        score_messages,
    ),
    CalibrationCase(
        "faults, UDP",
        "the same with datagrams",
        _FAULTS,
        _format_open_load(20, 2000, "2s", "--timeout", "1s"),
        score_messages,
        program="calibration-udp",
        workload="echo",
    ),
    CalibrationCase("rate", "5000 messages a second", (), _format_open_load(20, 5000, "2s"), score_rates),
    CalibrationCase(
        "Poisson arrivals",
        "250 messages a second at random times",
        ("--record-arrivals", "1000"),
        _format_open_load(100, 250, _WINDOW, "--arrivals", "poisson"),
        score_poisson_gaps,
    ),
    CalibrationCase(
        "constant arrivals",
        "100 messages a second at equal gaps",
        ("--record-arrivals", "1000"),
        _format_open_load(100, 100, _WINDOW),
        score_equal_gaps,
    ),
)
