"""Grouped bars: a group for each place of the axis, a bar for each value of the other coordinate there."""

from __future__ import annotations

from matplotlib.axes import Axes

from netdyno.analysis.found.cells import Estimate
from netdyno.analysis.found.charts import Chart, ChartPanel, Spot
from netdyno.model.metrics import METRICS
from netdyno.present.prose import figures
from netdyno.present.report import theme
from netdyno.present.report.drawing import Panel, draw_dots, draw_ring, finish, open_panel
from netdyno.present.report.marks import (
    choose_style,
    describe_panel,
    draw_published,
    format_loss,
    is_drawable,
    set_metric_axis,
    shade,
)
from netdyno.present.report.panels import Styles
from netdyno.present.report.theme import ContestantStyle

BAR_INCHES, GROUP_INCHES, AXIS_INCHES = 0.21, 0.14, 0.62
LABEL_OF_BAR = 0.22
"""The share of the axis that the label of a bar takes."""


def draw_bars(chart: Chart, chart_panel: ChartPanel, styles: Styles, name: str) -> Panel:
    """Draw horizontal bars, those of one place of the axis together: names and figures have room beside them."""
    groups = [
        [spot for spot in chart_panel.spots if spot.coordinates[chart.figure.along] == value] for value in chart.along
    ]
    groups = [group for group in groups if group]
    count = sum(map(len, groups))
    with open_panel(AXIS_INCHES + BAR_INCHES * count + GROUP_INCHES * len(groups)) as axes:
        row, ticks = 0.0, []
        for group in groups:
            for number, spot in enumerate(group):
                _draw_bar(axes, row + number, chart, chart_panel, spot, styles)
            ticks.append(row + (len(group) - 1) / 2)
            row += len(group) + GROUP_INCHES / BAR_INCHES
        axes.set_ylim(row - GROUP_INCHES / BAR_INCHES - 0.35, -0.65)
        names = [
            figures.name_of(chart.figure.along, group[0].coordinates[chart.figure.along], chart.unsafe)
            for group in groups
        ]
        axes.set_yticks(ticks, names)
        axes.tick_params(axis="y", length=0, labelcolor=theme.INK)
        axes.spines["left"].set_visible(chart.figure.log is False)
        set_metric_axis(axes, chart, room=0.2)
        return finish(axes, figures.name_panel(chart_panel), describe_panel(chart, chart_panel), name)


def _draw_bar(axes: Axes, row: float, chart: Chart, chart_panel: ChartPanel, spot: Spot, styles: Styles) -> None:
    style, number = choose_style(chart, spot, styles)
    published = next((figure.value for figure in chart_panel.published if figure.at == spot.coordinates), None)
    estimate = spot.value
    if estimate is None or not is_drawable(estimate, log=chart.figure.log):
        text = figures.name_missing_status(spot) or METRICS[chart.figure.metric].speak(0.0)
        axes.annotate(
            text, (0, row), (4, 0), ("axes fraction", "data"), "offset points", va="center", color=theme.MUTED, size=8
        )
    else:
        _draw_shape(axes, row, estimate, style, shade(number, len(chart.across)), log=chart.figure.log)
        label = METRICS[chart.figure.metric].speak(estimate.value) + format_loss(chart.figure, spot)
        axes.annotate(
            label,
            (_find_label_start(axes, estimate, published), row),
            (11 if spot.above else 6, 0),
            textcoords="offset points",
            va="center",
            size=8,
            color=style.ink,
        )
        if spot.above:
            draw_ring(axes, estimate.value, row, style)
    if published is not None:
        draw_published(axes, [published], [row])


def _find_label_start(axes: Axes, estimate: Estimate, published: float | None) -> float:
    """Return where a bar's label begins: right of all its drawing, and of the published mark where that is near."""
    end = max([estimate.value, *estimate.points, *([estimate.interval.high] if estimate.interval else [])])
    if published is None or published <= end:
        return end
    x = axes.get_xaxis_transform().transform
    width = x((axes.get_xlim()[1], 0))[0] - x((axes.get_xlim()[0], 0))[0]
    near = x((published, 0))[0] - x((end, 0))[0] < LABEL_OF_BAR * width
    return published if near else end


def _draw_shape(
    axes: Axes, row: float, estimate: Estimate, style: ContestantStyle, opacity: float, *, log: bool
) -> None:
    colour = style.stand_in
    if log:  # a bar without a 0 has no length: the value itself is marked
        axes.plot([axes.get_xlim()[0], estimate.value], [row, row], color=theme.RULE, linewidth=0.8, zorder=1)
        axes.plot([estimate.value], [row], marker=theme.SHAPES[style.shape].matplotlib, color=colour, zorder=3)
    else:
        axes.barh(row, estimate.value, height=0.8, color=colour, alpha=opacity, zorder=2)
        axes.barh(row, estimate.value, height=0.8, fill=False, edgecolor=colour, linewidth=0.9, zorder=2.5)
    _draw_whisker(axes, row, estimate, style)


def _draw_whisker(axes: Axes, row: float, estimate: Estimate, style: ContestantStyle) -> None:
    """Draw the interval along x, and the value of each block."""
    draw_dots(axes, estimate.points, [row] * len(estimate.points), style.ink, 0.35, 2.0)
    if estimate.interval is not None:
        ends = [estimate.interval.low, estimate.interval.high]
        axes.plot(ends, [row, row], "-", color=theme.PAPER, linewidth=3.2, alpha=0.75, zorder=3.4)
        axes.plot(ends, [row, row], "|-", color=style.ink, linewidth=1.1, markersize=5, zorder=3.5)
