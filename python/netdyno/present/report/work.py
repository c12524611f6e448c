"""The work behind a message, ready to print: what was traced and what was counted, contestant by contestant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from netdyno.analysis.findings import Cost, Estimate, ScenarioFindings, Work
from netdyno.base import quantities
from netdyno.present.report.tables import Table

NAMES_SHOWN = 6
"""Columns for system calls by name; the rest is summed."""
SAME_BYTES = 0.01
"""Contestants whose bytes per message differ by no more than this share move the same."""


@dataclass(frozen=True)
class WorkView:
    """`level` is where it was seen; `same_bytes` a sentence on whether all moved the same; `untraced` says whose calls
    were not traced, and why."""

    level: str
    calls: Table | None
    counted: Table
    same_bytes: str
    untraced: tuple[str, ...]


def view(findings: ScenarioFindings) -> WorkView | None:
    """None where nobody was measured or traced at the level."""
    if not findings.work:
        return None
    traced = [one for one in findings.work if one.calls]
    return WorkView(
        level=findings.work[0].label,
        calls=_calls(traced, findings) if traced else None,
        counted=_counted(findings),
        same_bytes=_same_bytes(findings.work),
        untraced=_untraced(findings.work),
    )


# --- traced ------------------------------------------------------------------------------------------------------


def most_frequent(work: Sequence[Work]) -> tuple[str, ...]:
    """The system calls that stand by name: those that anybody makes most often."""
    most: dict[str, float] = {}
    for one in work:
        for name, per_message in one.calls.items():
            most[name] = max(most.get(name, 0.0), per_message)
    return tuple(sorted(most, key=lambda name: (-most[name], name))[:NAMES_SHOWN])


def _calls(work: Sequence[Work], findings: ScenarioFindings) -> Table:
    names = most_frequent(work)
    headings = (
        *("contestant", "system calls per message", *names, "all others"),
        *("of them in vain (EAGAIN)", "in futex per message, traced", "messages traced", "traced at", "measured at"),
    )
    return Table(headings, tuple(_calls_row(one, names, findings) for one in work))


def _calls_row(one: Work, names: Sequence[str], findings: ScenarioFindings) -> tuple[str, ...]:
    traced = one.traced
    assert traced is not None  # it has calls
    others = sum(per_message for name, per_message in one.calls.items() if name not in names)
    in_vain = sum(call.again for call in traced.calls) / traced.messages
    futex = next((call.time_s for call in traced.calls if call.name == "futex"), 0.0)
    cell = findings.cell(one.contestant, one.level)
    return (
        one.contestant,
        quantities.three_digits(sum(one.calls.values())),
        *(quantities.three_digits(one.calls.get(name, 0.0)) for name in names),
        quantities.three_digits(others),
        quantities.three_digits(in_vain),
        quantities.duration(1e9 * futex / traced.messages),
        f"{traced.messages:,}",
        quantities.rate(traced.messages / traced.window_s),
        quantities.rate(cell.throughput.value) if cell else quantities.DASH,
    )


def _untraced(work: Sequence[Work]) -> tuple[str, ...]:
    """Each reason once, with those whom it concerns."""
    reasons: dict[str, list[str]] = {}
    for one in work:
        if one.traced is not None and one.traced.reason:
            reasons.setdefault(one.traced.reason, []).append(one.contestant)
    if not reasons and not any(one.calls for one in work):
        return ("No system calls were traced in this run.",)
    return tuple(f"Not traced: {quantities.listed(names)} ({reason})." for reason, names in reasons.items())


# --- counted -----------------------------------------------------------------------------------------------------


def _counted(findings: ScenarioFindings) -> Table:
    headings = (
        *("contestant", "bytes in", "bytes out", "segments and datagrams", "CPU user", "CPU kernel"),
        *("softirqs on its cores", "switches voluntary", "switches involuntary", "run-queue wait"),
    )
    return Table(headings, tuple(_counted_row(one, findings) for one in findings.work))


def _counted_row(one: Work, findings: ScenarioFindings) -> tuple[str, ...]:
    cell = findings.cell(one.contestant, one.level)
    return (
        one.contestant,
        *(_number(figure) for figure in (one.bytes_in, one.bytes_out, one.packets)),
        *_cost(cell.cost if cell else None, one.softirq_ns),
    )


def _cost(cost: Cost | None, softirq_ns: Estimate | None) -> tuple[str, ...]:
    softirq = quantities.DASH if softirq_ns is None else quantities.duration(softirq_ns.value)
    if cost is None:
        return (quantities.DASH, quantities.DASH, softirq, quantities.DASH, quantities.DASH, quantities.DASH)
    times = (cost.cpu_user_us, cost.cpu_system_us, cost.run_queue_wait_us)
    user, system, wait = (quantities.DASH if one is None else quantities.duration(1e3 * one.value) for one in times)
    return (user, system, softirq, _number(cost.voluntary_switches), _number(cost.involuntary_switches), wait)


def _number(figure: Estimate | None) -> str:
    return quantities.DASH if figure is None else quantities.three_digits(figure.value)


def _same_bytes(work: Sequence[Work]) -> str:
    """Whether the answers that were compared are answers to the same: by the bytes of a message, each way."""
    each = [
        (one.contestant, one.bytes_in.value, one.bytes_out.value)
        for one in work
        if one.bytes_in is not None and one.bytes_out is not None
    ]
    if len(each) < 2:
        return ""
    into, out = [into for _, into, _ in each], [out for _, _, out in each]
    if all(max(values) - min(values) <= SAME_BYTES * max(values) for values in (into, out)):
        return (
            f"All contestants move the same: {quantities.three_digits(into[0])} bytes in and "
            f"{quantities.three_digits(out[0])} bytes out per message."
        )
    told = (f"{name} {quantities.three_digits(a)} in and {quantities.three_digits(b)} out" for name, a, b in each)
    return f"Bytes per message differ: {'; '.join(told)}."
