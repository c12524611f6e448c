"""Latency over the offered rate, with the objective, each contestant's capacity and the knee of its curve; and the same
as a table. No HTML here."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from netdyno.analysis.found.capacity import CapacityCurve, CapacityFindings, RatePoint
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit import quantities
from netdyno.present.prose.capacity import find_main_reason, format_rate
from netdyno.present.report import theme
from netdyno.present.report.curves import DASHES
from netdyno.present.report.drawing import (
    Panel,
    draw_limit,
    finish,
    format_short_number,
    open_panel,
    set_duration_axis,
    set_log_ticks,
)
from netdyno.present.report.panels import FACTOR_AXES, Styles
from netdyno.present.report.report_table import ReportTable, make_cell, make_sortable
from netdyno.present.report.theme import ContestantStyle

PANEL_HEIGHT = 3.6
FAINT = 0.35
"""Opacity of a marker where the objective failed in most trials."""
PERCENTILES = ("p50", "p99", "p99.9")
"""Lines of a contestant that has a panel of its own."""
LOG_SPAN = 8
"""The ratio of the rates from which their axis is logarithmic."""
ROOM = 1.25
"""The ratio by which the axis of times goes beyond what is drawn."""
CapacityPoint = tuple[float, float, bool]
"""A rate, a time in nanoseconds, and whether the objective held."""


class CapacityView(msgspec.Struct, frozen=True):
    note: str
    panels: tuple[Panel, ...]
    table: ReportTable


def make_view(findings: ScenarioFindings, styles: Styles, name: str) -> CapacityView | None:
    """Return the section; None for a scenario of another metric."""
    capacity = findings.capacity
    if capacity is None:
        return None
    groups: dict[str, list[CapacityCurve]] = {}
    for curve in capacity.curves:
        groups.setdefault(curve.level, []).append(curve)
    panels = [
        _draw_panel(capacity, level, curves, styles, f"{name}-capacity{number}")
        for number, (level, curves) in enumerate(groups.items())
        if any(_list_points(curve) for curve in curves)
    ]
    return CapacityView(note=_describe_drawing(capacity), panels=tuple(panels), table=_tabulate_points(capacity))


def _describe_drawing(findings: CapacityFindings) -> str:
    return (
        f"Dashed: across, the objective, {findings.objective.text}; upright, the capacity, up to which it is met. "
        "Faint: rates at which it failed in most trials. A stroke across a curve: its knee (Kneedle)."
    )


# --- one panel --------------------------------------------------------------------------------------------------------


class CurveLine(msgspec.Struct, frozen=True):
    """One curve of a panel; `label` stands at its end, empty where the legend has it."""

    points: tuple[CapacityPoint, ...]
    style: ContestantStyle
    dash: int
    label: str


def _draw_panel(
    findings: CapacityFindings, level: str, curves: Sequence[CapacityCurve], styles: Styles, name: str
) -> Panel:
    lines = _list_percentile_lines(curves[0], styles) if len(curves) == 1 else _list_contestant_lines(curves, styles)
    rates = sorted({point.rate_hz for curve in curves for point in curve.points})
    with open_panel(height=PANEL_HEIGHT) as axes:
        set_offered_rate_axis(axes, rates)
        for line in lines:
            _draw_line(axes, line)
        for curve in curves:
            _mark_capacity(axes, curve, styles[curve.contestant])
        set_duration_axis(axes, "response time" if len(curves) == 1 else f"response time {findings.figure}")
        low, high = axes.get_ylim()
        limit = findings.limit_ns
        axes.set_ylim(min(low, limit or low) / ROOM, max(high, limit or high) * ROOM)
        if limit is not None:
            draw_limit(axes, findings.objective.text, limit, theme.INK, (5, 3))
        return finish(axes, level, _describe_panel(findings, level, curves), name)


def set_offered_rate_axis(axes: Axes, rates: Sequence[float]) -> None:
    """Set round ticks: a search comes to rates that are not, and near each other."""
    log = rates[-1] > LOG_SPAN * rates[0]
    if log:
        axes.set_xscale("log")
        set_log_ticks(axes.xaxis, rates[0], rates[-1])
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_short_number(value)))
    axes.set_xlabel(f"{FACTOR_AXES['rate']}{' (log scale)' if log else ''}")


def _list_percentile_lines(curve: CapacityCurve, styles: Styles) -> list[CurveLine]:
    """Return the percentiles of a lone contestant, which show how its distribution widens."""
    style = styles[curve.contestant]
    lines = []
    for number, name in enumerate(PERCENTILES):
        points = tuple(
            (point.rate_hz, value, _is_held(point))
            for point in curve.points
            if (value := (point.p50_ns, point.p99_ns, point.p999_ns)[number]) is not None
        )
        if points:
            lines.append(CurveLine(points, style._replace(shape=number), number, name))
    return lines


def _list_contestant_lines(curves: Sequence[CapacityCurve], styles: Styles) -> list[CurveLine]:
    """Return the lines of several contestants: the figure of the objective."""
    return [CurveLine(points, styles[curve.contestant], 0, "") for curve in curves if (points := _list_points(curve))]


def _list_points(curve: CapacityCurve) -> tuple[CapacityPoint, ...]:
    return tuple(
        (point.rate_hz, point.latency_ns, _is_held(point)) for point in curve.points if point.latency_ns is not None
    )


def _is_held(point: RatePoint) -> bool:
    return point.held > point.failed


def _draw_line(axes: Axes, line: CurveLine) -> None:
    colour, marker = line.style.stand_in, theme.SHAPES[line.style.shape].matplotlib
    xs, ys = [rate_hz for rate_hz, _, _ in line.points], [value for _, value, _ in line.points]
    axes.plot(xs, ys, linestyle=(0, DASHES[line.dash] or None), color=colour, zorder=3)
    for held, opacity in ((True, 1.0), (False, FAINT)):
        chosen = [(x, y) for x, y, point_held in line.points if point_held == held]
        if chosen:
            across, up = zip(*chosen, strict=True)
            axes.plot(across, up, linestyle="", marker=marker, color=colour, alpha=opacity, zorder=4)
    if line.label:
        x, y, _ = line.points[-1]
        # Neighbours meet where an overload fills the whole window.
        place = (5, 5 * (line.dash - 1))
        axes.annotate(line.label, (x, y), xytext=place, textcoords="offset points", va="center", color=colour)


def _mark_capacity(axes: Axes, curve: CapacityCurve, style: ContestantStyle) -> None:
    """Mark the capacity and the knee."""
    if curve.capacity_hz is not None:
        axes.axvline(curve.capacity_hz, color=style.stand_in, linestyle=(0, (4, 2)), linewidth=1.1, alpha=0.8)
    knees = [(x, y) for x, y, _ in _list_points(curve) if x == curve.knee_hz]
    for x, y in knees:
        axes.plot(
            [x], [y], linestyle="", marker="|", markersize=17, markeredgewidth=2.2, color=style.stand_in, zorder=5
        )


def _describe_panel(findings: CapacityFindings, level: str, curves: Sequence[CapacityCurve]) -> str:
    contestants = "; ".join(_describe_curve(findings, curve) for curve in curves)
    where = f", {level}" if level else ""
    return (
        f"Response time over the offered rate{where}; objective {findings.objective.text}. {contestants}. "
        "The table under the figure has all values."
    )


def _describe_curve(findings: CapacityFindings, curve: CapacityCurve) -> str:
    points = _list_points(curve)
    if not points:
        return f"{curve.contestant}: no figure"
    ends = " to ".join(
        f"{quantities.duration(value)} at {format_rate(rate_hz)}" for rate_hz, value, _ in (points[0], points[-1])
    )
    capacity = f"capacity {_format_capacity(curve)}"
    knee = f", knee at {format_rate(curve.knee_hz)}" if curve.knee_hz is not None else ", no knee"
    return f"{curve.contestant}: {findings.figure} {ends}, {capacity}{knee}"


def _format_capacity(curve: CapacityCurve) -> str:
    if curve.capacity_hz is None:
        return "unknown"
    bound = "at least " if curve.at_least else "at most " if curve.below else ""
    return f"{bound}{quantities.rate(curve.capacity_hz)}"


# --- the same as a table ----------------------------------------------------------------------------------------------


def _tabulate_points(findings: CapacityFindings) -> ReportTable:
    headings = (
        *("contestant", "load", "offered, messages per second", "held", "failed", "not counted"),
        *("response p50", "p99", "p99.9", "why it did not hold"),
    )
    rows = (_make_row(curve, point) for curve in findings.curves for point in curve.points)
    return ReportTable(headings, tuple(rows))


def _make_row(curve: CapacityCurve, point: RatePoint) -> tuple[str, ...]:
    knee = " (knee)" if point.rate_hz == curve.knee_hz else ""
    times = (point.p50_ns, point.p99_ns, point.p999_ns)
    return (
        *(curve.contestant, curve.level or quantities.DASH),
        make_sortable(f"{format_rate(point.rate_hz)}{knee}", point.rate_hz),
        *(str(point.held), str(point.failed), str(point.silent)),
        *(make_cell(value, quantities.duration) for value in times),
        find_main_reason(point.whys),
    )
