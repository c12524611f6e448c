"""Curves over the levels of a factor, and further metrics below them over the same axis."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from matplotlib.axes import Axes

from netdyno.analysis.found.charts import Chart, ChartPanel, Spot
from netdyno.model.base import type_level
from netdyno.model.metrics import METRICS, Metric
from netdyno.present.prose import figures
from netdyno.present.report import theme
from netdyno.present.report.drawing import Panel, draw_ring, finish, set_level_ticks, spread_places, stack
from netdyno.present.report.marks import (
    Extent,
    choose_style,
    describe_panel,
    draw_published,
    is_drawable,
    name_metric,
    set_metric_ticks,
)
from netdyno.present.report.panels import FACTOR_AXES, Styles, draw_estimates
from netdyno.present.report.theme import ContestantStyle

CURVE_INCHES, BELOW_INCHES = 2.75, 1.35
TITLE_LETTERS = 50
"""The most letters of a line over the curves, which begins beside the labels of y: a longer one leaves the panel."""
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1.5, 1.5), (6, 2, 1.5, 2))
"""Lengths of strokes and gaps, in widths of the line; the first line is whole."""


def format_dashes(number: int) -> str:
    """Return the dashes of a line as SVG has them; empty for a whole line."""
    return " ".join(f"{2 * length:g}" for length in DASHES[number % len(DASHES)])


def draw_curves(chart: Chart, chart_panel: ChartPanel, styles: Styles, name: str) -> Panel:
    """Draw a line for each value of `across`, broken where there is no figure; under it the further metrics."""
    figure = chart.figure
    metrics = [METRICS[metric_name] for metric_name in (figure.metric, *figure.below)]
    with stack([CURVE_INCHES, *[BELOW_INCHES] * len(figure.below)]) as rows:
        for number, (axes, metric) in enumerate(zip(rows, metrics, strict=True)):
            log = figure.log and number == 0
            _set_level_axis(axes, chart, last=axes is rows[-1])
            limits = Extent.derive(chart, number).limits(log=log)
            if log:
                axes.set_yscale("log")
            for value in chart.across:
                line = [
                    spot for spot in chart_panel.spots if not figure.across or spot.coordinates[figure.across] == value
                ]
                _draw_line(axes, chart, line, number, styles)
                if number == 0 and line:
                    style = choose_style(chart, line[0], styles)[0]
                    _draw_published_line(axes, chart, chart_panel, value, style)
            axes.set_ylim(*limits)
            set_metric_ticks(axes.yaxis, metric, limits, log=log)
            axes.set_title(wrap_title(metric, log=log), loc="left", fontsize=9, color=theme.MUTED)
            axes.grid(axis="y")
        return finish(rows[0], figures.name_panel(chart_panel), describe_panel(chart, chart_panel), name)


def wrap_title(metric: Metric, *, log: bool) -> str:
    """Return the name of a metric, in several lines where it is longer than a panel is wide."""
    return textwrap.fill(name_metric(metric, log=log), TITLE_LETTERS)


def _set_level_axis(axes: Axes, chart: Chart, *, last: bool) -> None:
    figure = chart.figure
    levels = [float(value) for value in chart.along]
    set_level_ticks(axes, levels, FACTOR_AXES.get(figure.along, figure.along), log=figure.x_log)
    axes.tick_params(axis="x", labelbottom=last)
    if not last:
        axes.set_xlabel("")


def _draw_line(axes: Axes, chart: Chart, line: Sequence[Spot], number: int, styles: Styles) -> None:
    log = chart.figure.log and number == 0
    for run in _split_at_gaps(chart, line, lambda spot: is_drawable(spot.estimates[number], log=log)):
        style, dash = choose_style(chart, run[0], styles)
        drawn = [estimate for spot in run if (estimate := spot.estimates[number]) is not None]
        xs = [_shift_place(chart, spot, axes) for spot in run]
        draw_estimates(
            axes, xs, [estimate.value for estimate in drawn], drawn, style, line=(0, DASHES[dash % len(DASHES)] or None)
        )
        for x, spot, estimate in zip(xs, run, drawn, strict=True):
            if spot.above:
                draw_ring(axes, x, estimate.value, style)


def _split_at_gaps(chart: Chart, line: Sequence[Spot], is_drawn: Callable[[Spot], bool]) -> list[list[Spot]]:
    """Return the parts of a line between gaps: levels at which this line has no figure."""
    by_level = {spot.coordinates[chart.figure.along]: spot for spot in line if is_drawn(spot)}
    parts: list[list[Spot]] = [[]]
    for level in chart.along:
        if level in by_level:
            parts[-1].append(by_level[level])
        elif parts[-1]:
            parts.append([])
    return [part for part in parts if part]


def _shift_place(chart: Chart, spot: Spot, axes: Axes) -> float:
    """Return the place on x, a little beside those of the other lines, so that intervals stay readable."""
    x = float(spot.coordinates[chart.figure.along])
    if not chart.figure.across or len(chart.along) == 1:
        return x
    levels = [float(value) for value in chart.along]
    number = chart.across.index(spot.coordinates[chart.figure.across])
    return spread_places(axes, levels, [x], number, len(chart.across))[0]


def _draw_published_line(
    axes: Axes, chart: Chart, chart_panel: ChartPanel, value: type_level | None, style: ContestantStyle
) -> None:
    figure = chart.figure
    points = [point for point in chart_panel.published if not figure.across or point.at[figure.across] == value]
    points.sort(key=lambda point: float(point.at[figure.along]))
    draw_published(
        axes,
        [float(point.at[figure.along]) for point in points],
        [point.value for point in points],
        edge=style.stand_in,
        line=":",
    )
