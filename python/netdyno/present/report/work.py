"""The work behind a message, ready to print: traced calls and counters of each contestant."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from netdyno.analysis.found.cells import CellFigures, Estimate
from netdyno.analysis.found.notices import Work
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit import quantities
from netdyno.model.metrics import METRICS
from netdyno.present.report.report_table import ReportTable, make_cell, make_count

NAMES_SHOWN = 6
"""Columns for system calls by name; the rest is summed."""
SAME_BYTES = 0.01
"""Contestants whose bytes per message differ by no more than this share move the same."""


class WorkView(msgspec.Struct, frozen=True):
    """The work at one level. `same_bytes` is a sentence on whether all moved the same; `untraced` lists the contestants
    whose calls were not traced, and why."""

    level: str
    calls: ReportTable | None
    counted: ReportTable
    same_bytes: str
    untraced: tuple[str, ...]


def make_view(findings: ScenarioFindings) -> WorkView | None:
    """Return the section; None where no contestant was measured or traced at the level."""
    if not findings.work:
        return None
    traced = [work for work in findings.work if work.calls]
    return WorkView(
        level=findings.work[0].label,
        calls=_tabulate_calls(traced, findings) if traced else None,
        counted=_tabulate_counters(findings),
        same_bytes=_compare_bytes(findings.work),
        untraced=_explain_untraced(findings.work),
    )


# --- traced ------------------------------------------------------------------------------------------------------


def select_frequent_calls(work: Sequence[Work]) -> tuple[str, ...]:
    """Return the system calls to show by name: those that any contestant makes most often."""
    most: dict[str, float] = {}
    for entry in work:
        for name, per_message in entry.calls.items():
            most[name] = max(most.get(name, 0.0), per_message)
    return tuple(sorted(most, key=lambda name: (-most[name], name))[:NAMES_SHOWN])


def _tabulate_calls(work: Sequence[Work], findings: ScenarioFindings) -> ReportTable:
    names = select_frequent_calls(work)
    headings = (
        *("contestant", "system calls per message", *names, "all others"),
        *("of them in vain (EAGAIN)", "in futex per message, traced", "messages traced", "traced at", "measured at"),
    )
    return ReportTable(headings, tuple(_make_calls_row(entry, names, findings) for entry in work))


def _make_calls_row(work: Work, names: Sequence[str], findings: ScenarioFindings) -> tuple[str, ...]:
    traced = work.traced
    assert traced is not None  # it has calls
    remaining = sum(per_message for name, per_message in work.calls.items() if name not in names)
    in_vain = sum(call.again for call in traced.calls) / traced.messages
    futex = next((call.time_s for call in traced.calls if call.name == "futex"), 0.0)
    cell = findings.cell(work.contestant, work.level)
    return (
        work.contestant,
        make_cell(sum(work.calls.values()), quantities.three_digits),
        *(make_cell(work.calls.get(name, 0.0), quantities.three_digits) for name in names),
        make_cell(remaining, quantities.three_digits),
        make_cell(in_vain, quantities.three_digits),
        make_cell(1e9 * futex / traced.messages, quantities.duration),
        make_count(traced.messages),
        make_cell(traced.messages / traced.window_s, quantities.rate),
        make_cell(cell.value("throughput") if cell else None, quantities.rate),
    )


def _explain_untraced(work: Sequence[Work]) -> tuple[str, ...]:
    """Return each reason once, with the contestants that it concerns."""
    reasons: dict[str, list[str]] = {}
    for entry in work:
        if entry.traced is not None and entry.traced.reason:
            reasons.setdefault(entry.traced.reason, []).append(entry.contestant)
    if not reasons and not any(entry.calls for entry in work):
        return ("No system calls were traced in this run.",)
    return tuple(f"Not traced: {quantities.listed(names)} ({reason})." for reason, names in reasons.items())


# --- counted -----------------------------------------------------------------------------------------------------


def _tabulate_counters(findings: ScenarioFindings) -> ReportTable:
    headings = (
        *("contestant", "bytes in", "bytes out", "segments and datagrams", "CPU user", "CPU kernel"),
        *("softirqs on its cores", "switches voluntary", "switches involuntary per 1,000", "run-queue wait"),
    )
    return ReportTable(headings, tuple(_make_counters_row(entry, findings) for entry in findings.work))


def _make_counters_row(work: Work, findings: ScenarioFindings) -> tuple[str, ...]:
    cell = findings.cell(work.contestant, work.level)
    return (
        work.contestant,
        *(_format_number(figure) for figure in (work.bytes_in, work.bytes_out, work.packets)),
        *(_format_figure(cell, metric) for metric in ("cpu-user", "cpu-system")),
        make_cell(work.softirq_ns.value if work.softirq_ns else None, quantities.duration),
        *(_format_figure(cell, metric) for metric in ("voluntary", "involuntary", "run-queue")),
    )


def _format_figure(cell: CellFigures | None, metric: str) -> str:
    return make_cell(cell.value(metric) if cell else None, METRICS[metric].speak)


def _format_number(figure: Estimate | None) -> str:
    return make_cell(figure.value if figure else None, quantities.three_digits)


def _compare_bytes(work: Sequence[Work]) -> str:
    """Say whether all contestants move the same, by the bytes of a message each way."""
    bytes_each_way = [
        (entry.contestant, entry.bytes_in.value, entry.bytes_out.value)
        for entry in work
        if entry.bytes_in is not None and entry.bytes_out is not None
    ]
    if len(bytes_each_way) < 2:
        return ""
    into, out = [into for _, into, _ in bytes_each_way], [out for _, _, out in bytes_each_way]
    if all(max(values) - min(values) <= SAME_BYTES * max(values) for values in (into, out)):
        return (
            f"All contestants move the same: {quantities.three_digits(into[0])} bytes in and "
            f"{quantities.three_digits(out[0])} bytes out per message."
        )
    texts = (
        f"{name} {quantities.three_digits(bytes_in)} in and {quantities.three_digits(bytes_out)} out"
        for name, bytes_in, bytes_out in bytes_each_way
    )
    return f"Bytes per message differ: {'; '.join(texts)}."
