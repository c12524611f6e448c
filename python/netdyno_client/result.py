"""The result of a client contestant (protocol/load-result.md and protocol/client.md), and the same for people."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from netdyno.kit.statistics.histogram import Histogram
from netdyno.model.load_result import (
    PERCENTILES,
    Audit,
    Bytes,
    ClientReport,
    Connections,
    Distribution,
    Generator,
    GeneratorThread,
    Latency,
    LoadPlan,
    LoadResult,
    Messages,
    Requests,
    name_percentile,
)
from netdyno_client.journal import Failure, Journal
from netdyno_client.plan import ClientPlan
from netdyno_client.recorder import distribution

LITTLE_TOLERANCE = 0.05
ENOUGH_MESSAGES = 100


class Cpu(msgspec.Struct, frozen=True):
    """CPU time of a process, in seconds."""

    user_s: float = 0.0
    system_s: float = 0.0

    def __sub__(self, before: Cpu) -> Cpu:
        return Cpu(self.user_s - before.user_s, self.system_s - before.system_s)


def load_result(plan: ClientPlan, journal: Journal, cpu: Cpu, tick_lag: Histogram) -> LoadResult:
    """Make the result of a complete journal. `cpu` is that of the window."""
    recorder, messages, failures = journal.recorder, journal.messages, journal.failures
    window_s = plan.duration_ns / 1e9
    generator = Generator(
        cpu_user_s=cpu.user_s,
        cpu_system_s=cpu.system_s,
        spun_s=0.0,  # a closed loop waits for no moment
        cores_used=(cpu.user_s + cpu.system_s) / window_s,
        max_rss_bytes=read_peak_rss(),
        threads=(GeneratorThread(cpu_user_s=cpu.user_s, cpu_system_s=cpu.system_s, spun_s=0.0),),
        cores=len(os.sched_getaffinity(0)),
        busiest=(cpu.user_s + cpu.system_s) / window_s,
    )
    return LoadResult(
        version=1,
        plan=_make_plan(plan),
        began_ns=journal.recorder.window.start,
        requests=Requests(
            due=recorder.sent_in_window,  # a request is due when it can be sent
            sent=recorder.sent_in_window,
            completed=recorder.completed_in_window,
            per_second=recorder.completed_in_window / window_s,
        ),
        latency=Latency(response_ns=distribution(recorder.response), service_ns=distribution(recorder.service)),
        send_lag_ns=distribution(recorder.send_lag),
        connections=_build_connections(journal),
        connect_ns=distribution(journal.connect),
        messages=Messages(
            due=messages.sent,
            sent=messages.sent,
            unsent=0,
            expected=messages.expected,
            received=messages.received,
            lost=messages.lost,
            duplicated=messages.duplicated,
            reordered=messages.reordered,
            corrupt=messages.corrupt,
            late=0,  # after the timeout an instance disconnects
        ),
        bytes=Bytes(sent=messages.bytes_sent, received=messages.bytes_received, expected=messages.bytes_expected),
        generator=generator,
        errors={
            "timeout": failures[Failure.RESPONSE_TIMEOUT],
            "closed_by_server": failures[Failure.CLOSED],
            "reset": failures[Failure.RESET],
            "protocol": failures[Failure.PROTOCOL],
        },
        timeseries=recorder.slots.timeseries(),
        audits=run_audits(plan, journal, generator),
        client=ClientReport(
            **{failure.value: failures[failure] for failure in Failure},
            recovered=journal.recovered,
            tick_lag_ns=distribution(tick_lag),
        ),
        receive_lag_ns=distribution(Histogram()),  # not read from the kernel here
        connection_mean_ns=distribution(Histogram()),  # not kept by connection
    )


def _make_plan(plan: ClientPlan) -> LoadPlan:
    return LoadPlan(
        url=str(plan.url),
        workload=plan.workload,
        arrivals="closed",
        depth=plan.depth,
        start="at-once" if plan.speaks_at_once else "together",
        rate_hz=None,
        connections=plan.connections,
        size=plan.size,
        threads=1,
        audience="others",
        seed=plan.seed,
        warmup_s=plan.warmup_ns / 1e9,
        duration_s=plan.duration_ns / 1e9,
        timeout_s=plan.timeout_ns / 1e9,
        most_in_flight=plan.depth,
    )


def _build_connections(journal: Journal) -> Connections:
    """Return the counts of first attempts; one neither refused nor too slow is `other`, as is an unresolved name."""
    first = journal.first_attempts
    established, refused = first[None], first[Failure.CONNECT_REFUSED]
    timed_out = first[Failure.CONNECT_TIMED_OUT]
    other = first.total() - established - refused - timed_out
    return Connections(
        attempted=first.total(), established=established, refused=refused, timed_out=timed_out, reset=0, other=other
    )


def read_peak_rss() -> int:
    """VmHWM. (getrusage's ru_maxrss keeps the size of the process that called exec: getrusage(2).)"""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


# --- audits (loadgen/report/audits.cpp) -----------------------------------------------------------------------------


def run_audits(plan: ClientPlan, journal: Journal, generator: Generator) -> tuple[Audit, ...]:
    """Run the generator's checks under the same names, and `window`."""
    return (
        _audit_verification(journal),
        _audit_bytes(journal),
        _audit_connections(plan, journal),
        Audit(name="achieved_rate", passed=True, detail="closed loop: no rate was requested"),
        _audit_little(plan, journal),
        # A generator must not be the limit, but a client is the program under test.
        Audit(
            name="generator",
            passed=True,
            detail=f"the client is what is measured: {generator.cores_used:.2f} cores used",
        ),
        _audit_window(plan, journal),
    )


def _audit_verification(journal: Journal) -> Audit:
    messages, broken_streams = journal.messages, journal.failures[Failure.PROTOCOL]
    clean = not (messages.lost or messages.duplicated or messages.reordered or messages.corrupt or broken_streams)
    return Audit(
        name="verification",
        passed=clean and messages.received > 0,
        detail=f"{messages.received} replies verified; lost {messages.lost}, duplicated {messages.duplicated}, "
        f"reordered {messages.reordered}, corrupt {messages.corrupt}; streams broken {broken_streams}",
    )


def _audit_bytes(journal: Journal) -> Audit:
    received, expected = journal.messages.bytes_received, journal.messages.bytes_expected
    return Audit(name="bytes", passed=received == expected, detail=f"received {received}, expected {expected}")


def _audit_connections(plan: ClientPlan, journal: Journal) -> Audit:
    connections = _build_connections(journal)
    ended_early = journal.failures[Failure.CLOSED] + journal.failures[Failure.RESET]
    unresolved = journal.first_attempts[Failure.RESOLVE_FAILED]
    reason = ": the name of the server was not resolved" if unresolved else ""
    return Audit(
        name="connections",
        passed=connections.established == plan.connections and ended_early == 0,
        detail=f"established {connections.established} of {plan.connections} (refused {connections.refused}, "
        f"timed out {connections.timed_out}, reset {connections.reset}, other {connections.other}{reason}); "
        f"ended early {ended_early}",
    )


def _audit_little(plan: ClientPlan, journal: Journal) -> Audit:
    """Check Little's law, N = X * R, with figures of different origins: N is integrated over time from the count of
    requests alone, and in a closed loop known beforehand; X counts completions; R comes from each one's stamps. A
    window that a signal cut short counts as far as it went."""
    recorder = journal.recorder
    completed = recorder.completed_in_window
    if completed < ENOUGH_MESSAGES:
        return Audit(name="little", passed=True, detail=f"{completed} messages are too few to judge")
    window_s = (journal.end - recorder.window.start) / 1e9
    rate = completed / window_s
    service_s, response_s = recorder.completed_service_ns / completed / 1e9, recorder.response.mean() / 1e9
    in_flight = recorder.in_flight_ns / 1e9 / window_s
    kept_in_flight = float(plan.depth * journal.first_attempts[None])
    # Requests under way at either end of the window stand in one figure and not in the other; the slowest weigh most.
    tolerance = LITTLE_TOLERANCE + min(0.5, recorder.service.find_percentile(99.9) / 1e9 / window_s)

    def agree(count: float, product: float) -> bool:
        return abs(count - product) <= tolerance * max(count, product)

    return Audit(
        name="little",
        passed=agree(in_flight, rate * service_s) and agree(kept_in_flight, rate * response_s),
        detail=f"N {in_flight:.4f} in flight, X*R {rate * service_s:.4f} ({rate:.1f}/s * {service_s * 1e6:.1f} us); "
        f"N {kept_in_flight:g} kept in flight, X*R {rate * response_s:.4f} (response); "
        f"tolerance {tolerance * 100:.1f}%",
    )


def _audit_window(plan: ClientPlan, journal: Journal) -> Audit:
    is_whole = journal.has_reached_end()
    detail = (
        f"{plan.duration_ns / 1e9:g} s, as requested"
        if is_whole
        else "a signal ended the run before the end of the window"
    )
    return Audit(name="window", passed=is_whole, detail=detail)


# --- for people ---------------------------------------------------------------------------------------------------


def format_failures(journal: Journal) -> str:
    """ "response_timeout 3, recovered 2"; "none"."""
    counts = [(failure.value, journal.failures[failure]) for failure in Failure] + [("recovered", journal.recovered)]
    return ", ".join(f"{name} {count}" for name, count in counts if count) or "none"


def format_summary(plan: ClientPlan, result: LoadResult, failures: str, tick_lag: Distribution) -> str:
    """Return a screen of figures, without the newline at its end."""
    connections, messages, requests, used = result.connections, result.messages, result.requests, result.generator
    load_text = f"{plan.workload} of {plan.size} B over {plan.connections} connections"
    due = f"of {requests.due} due: sent {requests.sent}, answered {result.latency.response_ns.count}"
    lines = [
        f"{result.plan.url}: {load_text}, closed loop, {plan.depth} in flight each",
        "",
        f"{requests.per_second:.1f} messages/s: {requests.completed} answered in {result.plan.duration_s:g} s; {due}",
        "",
        " " * 14 + "".join(f"{name:>11}" for name in (*map(name_percentile, PERCENTILES), "max", "mean")),
        _format_row("response*", result.latency.response_ns),
        _format_row("service", result.latency.service_ns),
        _format_row("connect", result.connect_ns),
        _format_row("tick lag", tick_lag),
        "* closed loop: a stalled server gets fewer requests, so stalls hardly show here",
        "",
        f"connections   {connections.established} of {plan.connections} established at once",
        (
            f"messages      lost {messages.lost}, duplicated {messages.duplicated}, reordered {messages.reordered}, "
            f"corrupt {messages.corrupt}"
        ),
        f"failures      {failures}",
        f"client        {used.cores_used:.2f} cores, peak memory {used.max_rss_bytes / (1 << 20):.1f} MiB",
    ]
    lines += [f"INVALID  {audit.name}: {audit.detail}" for audit in result.audits if not audit.passed]
    return "\n".join(lines)


def _format_row(name: str, times: Distribution) -> str:
    if times.count == 0:
        return f"{name:<14}{'none':>11}"
    figures = (*map(times.find_percentile, PERCENTILES), times.max, times.mean)
    return f"{name:<14}" + "".join(f"{_format_time(figure):>11}" for figure in figures)


def _format_time(ns: float) -> str:
    for size, unit, digits in ((1e9, "s", 2), (1e6, "ms", 2), (1e3, "us", 1)):
        if ns >= size:
            return f"{ns / size:.{digits}f} {unit}"
    return f"{ns:.0f} ns"
