"""A ladder: a rung for each place of the axis, the least figure first, with its loss beside it."""

from __future__ import annotations

import math

from matplotlib.axes import Axes

from netdyno.analysis.found.charts import Chart, ChartPanel, Spot
from netdyno.kit import quantities
from netdyno.model.metrics import METRICS
from netdyno.present.prose import figures, loss
from netdyno.present.report import theme
from netdyno.present.report.drawing import Panel, draw_ring, finish, open_panel
from netdyno.present.report.marks import choose_style, describe_panel, draw_published, is_drawable, set_metric_axis
from netdyno.present.report.panels import Styles, draw_estimates

RUNG_INCHES, AXIS_INCHES = 0.44, 0.62


def list_rungs(chart: Chart, chart_panel: ChartPanel) -> list[Spot]:
    """Return the spots to draw: the least figure first, then what only the source measured. The rest is named below."""
    drawn = [spot for spot in chart_panel.spots if is_drawable(spot.value, log=chart.figure.log)]
    published = {tuple(figure.at.items()): figure.value for figure in chart_panel.published}
    only_published = [
        spot for spot in chart_panel.spots if spot not in drawn and tuple(spot.coordinates.items()) in published
    ]
    measured = sorted(drawn, key=lambda spot: spot.value.value if spot.value else math.inf)
    return [*measured, *sorted(only_published, key=lambda spot: published[tuple(spot.coordinates.items())])]


def draw_ladder(chart: Chart, chart_panel: ChartPanel, styles: Styles, name: str) -> Panel:
    """Draw a rung for each spot: its name, figure and loss stand over a line of the whole width of the axis."""
    steps = list_rungs(chart, chart_panel)
    lossy = any(spot.lost is not None for spot in chart.spots)
    with open_panel(AXIS_INCHES + RUNG_INCHES * len(steps)) as axes:
        set_metric_axis(axes, chart, room=0.05)
        for row, spot in enumerate(steps):
            axes.axhline(row, color=theme.RULE, linewidth=0.9, zorder=1)
            style = choose_style(chart, spot, styles)[0]
            _write_rung(axes, row, chart, spot, style, lossy=lossy)
            estimate = spot.value
            if estimate is not None and is_drawable(estimate, log=chart.figure.log):
                draw_estimates(axes, [estimate.value], [row], [estimate], style, along="x")
                if spot.above:
                    draw_ring(axes, estimate.value, row, style)
            draw_published(axes, *_find_published(chart_panel, spot, row))
        axes.set_ylim(len(steps) - 0.6, -0.75)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        return finish(axes, figures.name_panel(chart_panel), describe_panel(chart, chart_panel), name)


def _find_published(chart_panel: ChartPanel, spot: Spot, row: float) -> tuple[list[float], list[float]]:
    xs = [figure.value for figure in chart_panel.published if figure.at == spot.coordinates]
    return xs, [row] * len(xs)


def _write_rung(axes: Axes, row: float, chart: Chart, spot: Spot, style: theme.ContestantStyle, *, lossy: bool) -> None:
    figure = chart.figure

    def write(text: str, x: float, align: str, colour: str = style.ink, weight: str = "normal") -> None:
        axes.annotate(
            text, (x, row), (0, 8), ("axes fraction", "data"), "offset points", ha=align, color=colour, weight=weight
        )

    write(figures.name_of(figure.along, spot.coordinates[figure.along], chart.unsafe), 0, "left")
    if spot.value is None:
        write(figures.name_missing_status(spot), 1, "right", theme.MUTED)
        return
    write(METRICS[figure.metric].speak(spot.value.value), 0.79 if lossy else 1, "right")
    if spot.lost is not None:
        text = f"{quantities.share(spot.lost)} lost{f' {loss.MARK}' if spot.above else ''}"
        write(text, 1, "right", *((style.ring, "bold") if spot.above else (theme.MUTED,)))
