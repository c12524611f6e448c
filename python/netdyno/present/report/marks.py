"""The scales, the colours and the spoken text of the figures that an experiment requests.

All panels of a figure have the same scale. A colour is a contestant's, as everywhere in the report; other values have a
shade or a marker. A figure that the source published is a hollow diamond."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter

from netdyno.analysis.found.cells import Estimate
from netdyno.analysis.found.charts import Chart, ChartPanel, Spot
from netdyno.kit import quantities
from netdyno.model.claim import CONTESTANT
from netdyno.model.figure import Figure
from netdyno.model.metrics import METRICS, RATE, Metric
from netdyno.present.prose import figures, loss
from netdyno.present.report import theme
from netdyno.present.report.drawing import (
    format_short_duration,
    format_short_memory,
    format_short_number,
    set_linear_ticks,
    set_log_ticks,
)
from netdyno.present.report.panels import Styles
from netdyno.present.report.theme import ContestantStyle

SHADES = (0.92, 0.42, 0.14)
"""Opacity of the first bars of a group; beyond them the range is divided evenly. Outlines are always whole."""
MOST_SPOKEN = 12
"""Values that the text of a panel lists; all stand in the table under the figure."""
_TICKS: Mapping[Callable[[float], str], tuple[Callable[[float], str], tuple[float, ...]]] = {
    quantities.duration: (format_short_duration, ()),
    quantities.rate: (format_short_number, ()),
    quantities.memory: (format_short_memory, (2.0**10, 2.0**20, 2.0**30)),
    quantities.share: (quantities.share, ()),
}
"""The format of ticks by the format of values, and the scales in which they are round."""


class Extent(msgspec.Struct, frozen=True):
    """The range of a metric's figures over all panels; a logarithmic axis has values above 0 only."""

    low: float
    high: float

    @staticmethod
    def derive(chart: Chart, number: int) -> Extent:
        values = list(_list_values(chart, number))
        positive = [value for value in values if value > 0]
        return Extent(min(positive, default=1.0), max(values, default=1.0) or 1.0)

    def limits(self, *, log: bool, room: float = 0.05) -> tuple[float, float]:
        """Return the limits of the axis: `room` is the share of it that stays free above the greatest figure."""
        if not log:
            return 0.0, self.high / (1 - room)
        span = max(math.log(self.high / self.low), math.log(2))
        return self.low * math.exp(-0.06 * span), self.high * math.exp(span * (0.02 + room / (1 - room)))


def _list_values(chart: Chart, number: int) -> Iterator[float]:
    for spot in chart.spots:
        estimate = spot.estimates[number]
        if estimate is not None:
            yield estimate.value
            yield from estimate.points
            if estimate.interval:
                yield from (estimate.interval.low, estimate.interval.high)
    if number == 0:
        yield from (figure.value for chart_panel in chart.panels for figure in chart_panel.published)


def set_metric_ticks(axis: Axis, metric: Metric, limits: tuple[float, float], *, log: bool) -> None:
    """Set ticks in the metric's unit."""
    write, scales = _TICKS.get(metric.unit.speak, (quantities.three_digits, ()))
    if log:
        set_log_ticks(axis, *limits)
    else:
        set_linear_ticks(axis, limits[1], scales)
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value) if value else "0"))


def name_metric(metric: Metric, *, log: bool = False) -> str:
    unit = ", messages per second" if metric.unit is RATE else ""
    return f"{metric.title}{unit}{' (log scale)' if log else ''}"


def is_drawable(estimate: Estimate | None, *, log: bool) -> bool:
    return estimate is not None and (estimate.value > 0 or not log)


def choose_style(chart: Chart, spot: Spot, styles: Styles) -> tuple[ContestantStyle, int]:
    """Return the colour and marker of a spot, and the number of its shade or dash: contestants have colours, levels
    shades. An unsafe contestant has another dash than those beside it."""
    style = styles[spot.contestant]
    if not chart.figure.across or chart.figure.across == CONTESTANT:
        return style, int(spot.contestant in chart.unsafe)
    number = chart.across.index(spot.coordinates[chart.figure.across])
    return style._replace(shape=number % len(theme.SHAPES)), number


def shade(number: int, count: int) -> float:
    if count <= len(SHADES):
        return SHADES[number]
    return SHADES[0] + (SHADES[-1] - SHADES[0]) * number / (count - 1)


def set_metric_axis(axes: Axes, chart: Chart, room: float) -> None:
    """Put the metric on x."""
    metric, log = METRICS[chart.figure.metric], chart.figure.log
    limits = Extent.derive(chart, 0).limits(log=log, room=room)
    if log:
        axes.set_xscale("log")
    axes.set_xlim(*limits)
    set_metric_ticks(axes.xaxis, metric, limits, log=log)
    axes.set_xlabel(name_metric(metric, log=log))
    axes.grid(axis="x")


def draw_published(axes: Axes, xs: Sequence[float], ys: Sequence[float], edge: str = theme.INK, line: str = "") -> None:
    """Draw published figures."""
    axes.plot(
        xs,
        ys,
        line,
        color=edge,
        linewidth=0.8,
        marker="D",
        markersize=5,
        markerfacecolor=theme.PAPER,
        markeredgecolor=edge,
        markeredgewidth=1.1,
        zorder=5,
    )


# --- in words ----------------------------------------------------------------------------------------------------


def format_loss(figure: Figure, spot: Spot) -> str:
    """Return the share lost, if any, to stand beside a figure; the mark alone where the share is what is drawn."""
    mark = f" {loss.MARK}" if spot.above else ""
    if not spot.lost or figure.metric == "lost":
        return mark
    return f", {quantities.share(spot.lost)} lost{mark}"


def describe_panel(chart: Chart, chart_panel: ChartPanel) -> str:
    """Describe a panel for readers who do not see it."""
    figure, metric = chart.figure, METRICS[chart.figure.metric]
    where = f", {panel_title}" if (panel_title := figures.name_panel(chart_panel)) else ""
    title = f"{figure.title}{where}. {metric.heading}"
    values = [(spot, spot.value.value) for spot in chart_panel.spots if spot.value]
    if not values:
        return f"{title}: no figure."
    if len(values) > MOST_SPOKEN:
        values = [min(values, key=lambda pair: pair[1]), max(values, key=lambda pair: pair[1])]
        title = f"{title}, least and greatest"
    text = "; ".join(_describe_spot(chart, spot, value) for spot, value in values)
    return f"{title}: {text}. The table under the figure has all values."


def _describe_spot(chart: Chart, spot: Spot, value: float) -> str:
    figure = chart.figure
    place = ", ".join(
        figures.name_of(name, spot.coordinates[name], chart.unsafe) for name in (figure.along, figure.across) if name
    )
    return f"{METRICS[figure.metric].speak(value)} ({place}{format_loss(figure, spot)})"
