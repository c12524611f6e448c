"""A ladder: a rung for each place of the axis, the least figure first, with what was lost beside it."""

from __future__ import annotations

import math

from matplotlib.axes import Axes

from netdyno.analysis.findings import Chart, ChartPanel, Spot
from netdyno.base import quantities
from netdyno.model.metrics import METRICS
from netdyno.present.prose import figures, loss
from netdyno.present.report import theme
from netdyno.present.report.drawing import Panel, finish, panel, ring
from netdyno.present.report.marks import axis_across, drawable, hollow, look_of, spoken
from netdyno.present.report.panels import Looks, estimates

RUNG_INCHES, AXIS_INCHES = 0.44, 0.62


def rungs(chart: Chart, of: ChartPanel) -> list[Spot]:
    """The least figure first, then what only the source has a figure of. The rest is named under the figure."""
    told = [spot for spot in of.spots if drawable(spot.value, log=chart.figure.log)]
    published = {tuple(one.at.items()): one.value for one in of.published}
    only = [spot for spot in of.spots if spot not in told and tuple(spot.at.items()) in published]
    measured = sorted(told, key=lambda spot: spot.value.value if spot.value else math.inf)
    return [*measured, *sorted(only, key=lambda spot: published[tuple(spot.at.items())])]


def ladder(chart: Chart, of: ChartPanel, looks: Looks, name: str) -> Panel:
    """A rung for each: its name, its figure and its loss stand over a line that is the whole width of the axis."""
    steps = rungs(chart, of)
    lossy = any(spot.lost is not None for spot in chart.spots)
    with panel(AXIS_INCHES + RUNG_INCHES * len(steps)) as axes:
        axis_across(axes, chart, room=0.05)
        for row, spot in enumerate(steps):
            axes.axhline(row, color=theme.RULE, linewidth=0.9, zorder=1)
            look = look_of(chart, spot, looks)[0]
            _rung_text(axes, row, chart, spot, look, lossy=lossy)
            one = spot.value
            if one is not None and drawable(one, log=chart.figure.log):
                estimates(axes, [one.value], [row], [one], look, along="x")
                if spot.above:
                    ring(axes, one.value, row, look)
            hollow(axes, *_published_at(of, spot, row))
        axes.set_ylim(len(steps) - 0.6, -0.75)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        return finish(axes, figures.title(of), spoken(chart, of), name)


def _published_at(of: ChartPanel, spot: Spot, row: float) -> tuple[list[float], list[float]]:
    xs = [one.value for one in of.published if one.at == spot.at]
    return xs, [row] * len(xs)


def _rung_text(axes: Axes, row: float, chart: Chart, spot: Spot, look: theme.Look, *, lossy: bool) -> None:
    figure = chart.figure

    def say(text: str, x: float, align: str, colour: str = look.ink, weight: str = "normal") -> None:
        axes.annotate(
            text, (x, row), (0, 8), ("axes fraction", "data"), "offset points", ha=align, color=colour, weight=weight
        )

    say(figures.name_of(figure.along, spot.at[figure.along], chart.unsafe), 0, "left")
    if spot.value is None:
        say(figures.missing_word(spot), 1, "right", theme.MUTED)
        return
    say(METRICS[figure.metric].speak(spot.value.value), 0.79 if lossy else 1, "right")
    if spot.lost is not None:
        text = f"{quantities.share(spot.lost)} lost{f' {loss.MARK}' if spot.above else ''}"
        say(text, 1, "right", *((look.ring, "bold") if spot.above else (theme.MUTED,)))
