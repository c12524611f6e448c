"""Checks that can make a trial invalid, beside those of the generator on its own figures. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from netdyno.kit import quantities
from netdyno.model import outcomes, transports
from netdyno.model.load_result import Audit, LoadResult
from netdyno.model.observation import ForeignLoad, MachineObservation, Neighbour, RelayTotals, ServerObservation

HARNESS_CORE_SHARE = 0.02
HARNESS_FLOOR_S = 0.01
"""The CPU that two readings and a redraw may cost in all, however short the window: 2% of half a second."""

STEAL_SHARE = 0.02
"""A share of the time of all cores that the harness may use."""
STEAL_FLOOR_S = 0.025
"""Two ticks of /proc/stat and no third: they stand for less, and a shorter time cannot be distinguished from 0."""
FOREIGN_SHARE = 0.03
FOREIGN_MOST_CORES = 0.5
"""On a machine with many cores, the share alone would hide a process that never rests. docs/adr/foreign-load.md has the
measurements behind these bounds."""
FOREIGN_FLOOR_S = 0.03
"""Idle time is counted in ticks of 10 ms for each core, so that a short window says little of a little load."""
FOREIGN_SWITCH_S = 2e-6
"""The CPU time of the kernel itself at each context switch into idleness and out of it (1.3 us here)."""
NEIGHBOUR_FACTOR = 1.25
"""Beside a neighbour that stays, others may take this many times the most that it took: more is a burst."""


def died(how: str) -> Audit:
    """Check that the server neither ended by itself nor failed to start; `how` describes it, and is empty otherwise."""
    return Audit(name="died", passed=not how, detail=how or "the server ran until it was asked to end")


def killed(how: str) -> Audit:
    """Check that SIGKILL did not end the server, which a machine without memory sends."""
    return Audit(name="killed", passed=not how, detail=how or "the server was not killed")


def ready(how: str) -> Audit:
    """Check that the server was ready in time, which a busy machine can prevent."""
    return Audit(name="ready", passed=not how, detail=how or "the server was ready in time")


def left_behind(names: Sequence[str], more: int = 0) -> Audit:
    """Check that no program that the server had started outlived it. `names`: those that were ended with the trial;
    `more`: the number that a stand-in for the server has ended."""
    count = len(names) + more
    if not count:
        return Audit(name="left_behind", passed=True, detail="no program outlived the server")
    named = f": {quantities.listed(sorted(set(names)))}" if names else ""
    detail = f"{quantities.plural(count, 'program')} outlived the server and had to be ended{named}"
    return Audit(name="left_behind", passed=False, detail=detail)


def server_alive(check: LoadResult | None, check_error: str) -> Audit:
    """Check that at the end a fresh connection gets true answers. `check` is the closing check's result, or None; then
    `check_error` has the reason."""
    if check is None:
        return Audit(name="server_alive", passed=False, detail=f"the closing check failed: {check_error}")
    untrue = [
        audit.detail for audit in check.audits if audit.name in ("verification", "connections") and not audit.passed
    ]
    passed = check.messages.received > 0 and not untrue
    detail = f"a fresh connection got {check.messages.received} correct answers" if passed else "; ".join(untrue)
    return Audit(name="server_alive", passed=passed, detail=detail or "a fresh connection got no answer")


def no_totals() -> Audit:
    """The audit `server_totals` of a server of the user's own, which knows nothing of a contestant's contract."""
    detail = "not judged: your own server reports no totals to netdyno"
    return Audit(name="server_totals", passed=True, detail=detail)


def of_client(own: Sequence[Audit]) -> tuple[Audit, ...]:
    """Return a client contestant's own audits. The one about the generator always passes and says so, because here the
    client is compared and is not the instrument."""
    return tuple(
        _excuse(audit, "the client is what is compared") if audit.name == outcomes.ABOUT_THE_GENERATOR else audit
        for audit in own
    )


def on_shared_cores(own: Sequence[Audit], load: LoadResult) -> tuple[Audit, ...]:
    """Return the audits of a generator that shares its cores with the server. Its lags are reported and not judged:
    they include the wait for cores that the server has, as was requested. The limit of the generator is still
    judged."""
    cores, used = load.generator.cores, load.generator.cores_used
    if outcomes.busiest(load) >= outcomes.SATURATED or 0 < outcomes.SATURATED * cores <= used:
        return tuple(own)
    return tuple(
        _excuse(audit, "server and generator share cores", what="lags ")
        if audit.name == outcomes.ABOUT_THE_GENERATOR and not audit.passed
        else audit
        for audit in own
    )


def with_failed_connects(own: Sequence[Audit], load: LoadResult) -> tuple[Audit, ...]:
    """Return the audits of a load whose failed connects are measured: the established connections, some at least, make
    up the crowd, and none of them may end early."""
    ended_early = load.errors.get("closed_by_server", 0) + load.errors.get("reset", 0)
    crowd = load.connections.established > 1 and ended_early == 0
    return tuple(
        _excuse(audit, "failed connects are counted") if audit.name == "connections" and crowd else audit
        for audit in own
    )


def with_earlier(own: Sequence[Audit], earlier: Sequence[LoadResult]) -> tuple[Audit, ...]:
    """Replace audits of a load's replies that passed by those of earlier loads that failed."""
    failed = {
        audit.name: msgspec.structs.replace(audit, detail=f"before its load: {audit.detail}")
        for load in earlier
        for audit in load.audits
        if audit.name in outcomes.WRONG and not audit.passed
    }
    return tuple(failed.get(audit.name, audit) if audit.passed else audit for audit in own)


def server_totals(
    totals: Mapping[str, int], loads: Sequence[LoadResult], ended: str, *, failed_connects: bool = False
) -> Audit:
    """Check that the server's own count, printed as it ends, agrees with what the generators sent, received and opened.

    Bytes are compared only where no generator gave up on a message (bytes under way at a close count on one side), only
    for streams (a datagram to a group is sent once and received many times) that are not encrypted, and only where the
    load counts over its whole life, which a foreign load program does not. A client contestant connects again after a
    failure. With `failed_connects`, the server may have had connections that the client had given up; and tcpkali makes
    one more, to find its own address. More connections than the loads' are a stranger's (`strangers`), and so may be
    bytes and a malformed message for each of them."""
    problems: list[str] = [] if not ended else [f"it ended with {ended}"]
    if not totals:
        problems.append("no line of totals after SIGTERM")
    complete = all(map(_counts_every_byte, loads))
    may_have_more = failed_connects or any(load.instrument for load in loads)
    more = 0 if may_have_more else count_strangers(totals, loads)
    room = dict.fromkeys(_BYTES, math.inf) | {"protocol_errors": more} if more else {}
    if more or may_have_more:
        room["connections"] = math.inf
    expected = {"protocol_errors": 0, "connections": sum(map(_count_connections, loads))}
    if complete:
        expected["bytes_in"] = sum(load.bytes.sent for load in loads)
        if not any(load.plan.slow_readers for load in loads):  # their received bytes are not counted
            expected["bytes_out"] = sum(load.bytes.received for load in loads)
    problems += [
        f"{name}: server {totals[name]}, expected {value}"
        for name, value in expected.items()
        if name in totals and not 0 <= totals[name] - value <= room.get(name, 0)
    ]
    agreed = ", ".join(f"{name} {value}" for name, value in expected.items() if name in totals)
    return Audit(
        name="server_totals", passed=not problems, detail="; ".join(problems) or f"server and generator agree: {agreed}"
    )


def backend(questions: int, loads: Sequence[LoadResult]) -> Audit:
    """Check that the server asked its backend for each of its replies: one that waits by itself has no pool that could
    be exhausted. `questions`: the backend's own count."""
    replies = sum(load.messages.received for load in loads)
    detail = f"{replies} replies, and the backend was asked {quantities.plural(questions, 'time')}"
    return Audit(name="backend", passed=questions >= replies, detail=detail)


def _counts_every_byte(load: LoadResult) -> bool:
    """Whether the bytes of a load are those of the server's count."""
    return (
        not transports.may_lose(load)
        and not load.instrument
        and load.tls is msgspec.UNSET
        and load.messages.lost == 0
        and not any(load.errors.values())
    )


STRANGER_SHARE = 0.05
"""The share of a server's work that strangers may ask for: as much as two contestants may differ and still be equal."""
FEW_STRANGERS = 3
"""So many connections are little work, however few messages there were: a scanner of ports comes once."""
_BYTES = ("bytes_in", "bytes_out")


def count_strangers(totals: Mapping[str, int], loads: Sequence[LoadResult]) -> int:
    """Count the connections that reached the server beside those of the loads: none in a network of their own."""
    if any((transport := transports.of_url(load.plan.url)) and transport.private for load in loads):
        return 0
    ours = sum(map(_count_connections, loads))
    return max(0, totals.get("connections", ours) - ours)


def strangers(
    totals: Mapping[str, int], loads: Sequence[LoadResult], connected: Sequence[str], *, failed_connects: bool = False
) -> tuple[Audit, ...]:
    """Check that nothing but the loads used the server: that nothing did at all, and that it was little work.
    `connected`: the programs that were connected when the load had left. With `failed_connects`, or tcpkali, further
    connections are the load's own."""
    may_have_more = failed_connects or any(load.instrument for load in loads)
    more = 0 if may_have_more else count_strangers(totals, loads)
    named = f"; still connected: {quantities.listed(sorted(set(connected)))}" if connected else ""
    detail = f"{quantities.plural(more, 'connection')} that netdyno did not make reached the server{named}"
    messages = sum(load.messages.received for load in loads)
    size = sum(load.bytes.sent + load.bytes.received for load in loads)
    is_known = more and all(map(_counts_every_byte, loads)) and not any(load.plan.slow_readers for load in loads)
    more_bytes = sum(totals.get(name, 0) for name in _BYTES) - size if is_known else 0
    share = max(more / messages if messages and more > FEW_STRANGERS else 0.0, more_bytes / size if size else 0.0)
    return (
        Audit(name="strangers", passed=not more and not connected, detail=detail),
        Audit(
            name="stranger_load",
            passed=share <= STRANGER_SHARE,
            detail=f"{detail}: {share:.1%} of its work (limit {STRANGER_SHARE:.0%})",
        ),
    )


def _count_connections(load: LoadResult) -> int:
    """Count the connections over the whole life of a generator or client."""
    return load.connections.established + (load.client.recovered if load.client else 0)


def completed(load: LoadResult) -> Audit:
    """Check that some message was answered within the window: else there is no figure to believe or to doubt."""
    count = load.requests.completed
    return Audit(name="completed", passed=count > 0, detail=f"{count} messages were answered within the window")


def harness_quiet(server: ServerObservation) -> Audit:
    """Check that the harness itself used less than 2% of a core over the window, the live display included."""
    limit_s = max(HARNESS_CORE_SHARE * server.window_s, HARNESS_FLOOR_S)
    detail = (
        f"the harness used {server.harness_cpu_s * 1e3:.1f} ms of CPU over the window (limit {limit_s * 1e3:.1f} ms)"
    )
    return Audit(name="harness_quiet", passed=server.harness_cpu_s < limit_s, detail=detail)


WINDOW_SHARE = 0.1
WINDOW_FLOOR_S = 0.03
"""The most by which the time between two readings may differ from the window: a reading is late when the harness gets
no core."""


def observation(server: ServerObservation, duration_s: float, *, threads_end: bool = False) -> Audit:
    """Check that the server was read at both ends of the window, and every serving thread at its end. A machine that
    holds the harness up delays both readings; their difference then does not belong to the window, or is lost where a
    thread lives shorter than that. With `threads_end`, threads may end with their clients; their counts are then left
    out of the figures (metrics.py)."""
    if abs(server.window_s - duration_s) > max(WINDOW_SHARE * duration_s, WINDOW_FLOOR_S):
        detail = f"readings of the server were {server.window_s:.3f} s apart, and the window is {duration_s:g} s long"
        return Audit(name="observation", passed=False, detail=detail)
    unread = server.threads_unread
    detail = (
        f"{unread} of the server's threads had ended before the harness could read them: their switches are unknown"
        if unread
        else f"{server.threads_sampled} of {server.threads} threads were read at both ends of the window, as a sample"
        if server.threads_sampled
        else "every thread was read at both ends of the window"
    )
    return Audit(name="observation", passed=unread == 0 or threads_end, detail=detail)


def unobserved() -> Audit:
    """The audit `observation` of a server whose process is not known."""
    detail = "not judged: the server's process is unknown here, and so are its CPU and memory"
    return Audit(name="observation", passed=True, detail=detail)


def observed_in_part() -> Audit:
    """The audit `observation` where the load ended within the window, because every connection had ended early."""
    detail = "not judged: the load lost all connections before its window's end"
    return Audit(name="observation", passed=True, detail=detail)


LINK_LATE_SHARE = 0.1
LINK_LATE_S = 0.001
"""The most by which the relay of a link may be late with one frame in a thousand, as a share of the delay or a time,
whichever is more: this much of a latency may come from the relay, which a real link does not have."""


def link(relay: RelayTotals, delay_s: float) -> Audit:
    """Check that the link's frames left when they were due, and that none was dropped but by the requested loss or
    rate."""
    allowed_ns = max(LINK_LATE_SHARE * delay_s, LINK_LATE_S) * 1e9
    late = relay.late_ns
    there, back = relay.a_to_b, relay.b_to_a
    dropped = {
        "dropped by the full link": there.overflowed + back.overflowed,
        "dropped before the relay had read them": there.unread + back.unread,
        "refused at the other end": there.refused + back.refused,
    }
    problems = [f"{quantities.plural(count, 'frame')} {how}" for how, count in dropped.items() if count]
    if late.p999 > allowed_ns:
        problems.insert(0, f"one frame in a thousand left {quantities.duration(late.p999)} or more after it was due")
    frames = there.frames_out + back.frames_out
    kept = f"99.9% of {quantities.plural(frames, 'frame')} left within {quantities.duration(late.p999)} of their time"
    detail = f"{'; '.join(problems)} (allowed: {quantities.duration(allowed_ns)}, none dropped)" if problems else kept
    return Audit(name="link", passed=not problems, detail=detail)


class Allowed(NamedTuple):
    """The CPU time of its cores that a trial may lose to others in a window, or to its quota, in seconds."""

    steal_s: float
    foreign_s: float
    throttled_s: float


def allowed(machine: MachineObservation, window_s: float, neighbour: Neighbour | None = None) -> Allowed:
    """Return the limits in a window of this length, with the counted context switches, beside a `neighbour` that
    stays."""
    all_s = machine.cores * window_s
    foreign_s = max(min(FOREIGN_SHARE * all_s, FOREIGN_MOST_CORES * window_s), FOREIGN_FLOOR_S)
    expected_s = NEIGHBOUR_FACTOR * neighbour.most_cores * window_s if neighbour else 0.0
    return Allowed(
        steal_s=max(STEAL_SHARE * all_s, STEAL_FLOOR_S) + expected_s,
        foreign_s=foreign_s + FOREIGN_SWITCH_S * machine.switches + expected_s,
        throttled_s=STEAL_SHARE * all_s,
    )


def is_lost(
    machine: MachineObservation,
    window_s: float,
    policy: ForeignLoad,
    *,
    paced: bool,
    neighbour: Neighbour | None = None,
) -> bool:
    """Whether a part of a window has lost more to others than the whole window may, so that the rest is not worth the
    wait."""
    if policy == "count":
        return False
    most = allowed(machine, window_s, neighbour)
    foreign = not paced and machine.foreign_s > most.foreign_s + FOREIGN_FLOOR_S
    under_quota = neighbour is not None and neighbour.quota_cores > 0
    held_back = not under_quota and (machine.throttled_s or 0.0) > most.throttled_s
    return foreign or held_back or machine.steal_s > most.steal_s + STEAL_FLOOR_S


def foreign_load(
    machine: MachineObservation | None,
    policy: ForeignLoad,
    *,
    paced: bool = False,
    neighbour: Neighbour | None = None,
) -> tuple[Audit, ...]:
    """Check that the machine was the trial's own: the hypervisor stole no more than 2% of its cores' time, a quota held
    back no more than that, and others used no more than 3%, nor half a core, beside the kernel's own work at context
    switches. Empty where the kernel reports nothing.
    With "count" every audit passes. Foreign load is not judged over a link that the kernel paces, because its work on
    the link belongs to no process and looks foreign. Beside a `neighbour` that stays, the limits of steal and foreign
    load are higher by its share; a quota that stays is not judged."""
    if machine is None:
        return ()
    stolen_limit_s, foreign_limit_s, throttled_limit_s = allowed(machine, machine.window_s, neighbour)
    stolen = Audit(
        name="steal",
        passed=machine.steal_s <= stolen_limit_s,
        detail=f"the hypervisor took {_describe_loss(machine, machine.steal_s, stolen_limit_s)}",
    )
    foreign = Audit(
        name="foreign_load",
        passed=machine.foreign_s <= foreign_limit_s,
        detail=f"other programs used {_describe_loss(machine, machine.foreign_s, foreign_limit_s)}",
    )
    if paced and policy != "count":
        foreign = _excuse(foreign, "it includes the kernel's work of pacing the link")
    throttled = _audit_throttling(machine, throttled_limit_s)
    if neighbour and neighbour.quota_cores:
        throttled = tuple(_excuse(audit, "the quota stays") for audit in throttled)
    audits = (stolen, foreign, *throttled)
    return tuple(_excuse(audit, "it is only counted") for audit in audits) if policy == "count" else audits


def _audit_throttling(machine: MachineObservation, limit_s: float) -> tuple[Audit, ...]:
    """Audit the CPU quota; empty where no control group counts it. The count is exact, so it needs no floor, unlike
    steal, which is sampled."""
    if machine.throttled_s is None:
        return ()
    lost = _describe_loss(machine, machine.throttled_s, limit_s)
    periods = quantities.plural(machine.throttled_periods, "period")
    return (
        Audit(
            name="throttled",
            passed=machine.throttled_s <= limit_s,
            detail=f"the CPU quota of a control group stopped programs in {periods}, for {lost}",
        ),
    )


def _excuse(audit: Audit, why: str, what: str = "") -> Audit:
    return Audit(name=audit.name, passed=True, detail=f"{what}not judged, because {why}: {audit.detail}")


def _describe_loss(machine: MachineObservation, used_s: float, limit_s: float) -> str:
    cores = f"{machine.cores} cores" if machine.cores > 1 else "the only core"
    return (
        f"{used_s * 1e3:.0f} ms of the {machine.cores * machine.window_s * 1e3:.0f} ms of {cores} "
        f"(limit {limit_s * 1e3:.0f} ms)"
    )
