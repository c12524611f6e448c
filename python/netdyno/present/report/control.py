"""The section of the A/A control: its outcome in words, a mark for each comparison, and all of them as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
from matplotlib.ticker import FuncFormatter, MaxNLocator

from netdyno.analysis.found.control import AA, Control
from netdyno.kit import quantities
from netdyno.present.prose import aa
from netdyno.present.report import theme
from netdyno.present.report.drawing import Panel, finish, open_panel
from netdyno.present.report.report_table import ReportTable
from netdyno.present.report.views import make_comparison_row

AXIS_INCHES, ROW_INCHES = 0.75, 0.14
HEADINGS = (
    *("scenario", "load", "contestant", "first / twin", "95% interval"),
    *("blocks", "p", "p corrected", "different"),
)


class ControlView(msgspec.Struct, frozen=True):
    """`short` is for the top of the page; `panels` is empty where no pair was measured."""

    sentence: str
    short: str
    share: str
    alarm: bool
    panels: tuple[Panel, ...]
    table: ReportTable


def make_view(control: Control) -> ControlView:
    drawn = [pair for pair in control.comparisons if pair.comparison.pairs]
    return ControlView(
        sentence=aa.describe_control(control),
        short=aa.summarise_control(control),
        share=quantities.share(control.share),
        alarm=control.fails,
        panels=(_draw_forest(drawn, control),) if drawn else (),
        table=ReportTable(HEADINGS, tuple(_make_row(pair) for pair in control.comparisons)),
    )


def _make_row(pair: AA) -> tuple[str, ...]:
    return pair.scenario, pair.level, pair.contestant, *make_comparison_row(pair.comparison)


def _draw_forest(pairs: Sequence[AA], control: Control) -> Panel:
    """Draw a row for each comparison, the least ratio at the bottom; the table has their names."""
    rows = sorted((pair.comparison for pair in pairs), key=lambda comparison: comparison.ratio)
    with open_panel(AXIS_INCHES + ROW_INCHES * len(rows)) as axes:
        axes.axvline(1, color=theme.MUTED, linewidth=0.9, zorder=1)
        spans = [(row, comparison.interval) for row, comparison in enumerate(rows) if comparison.interval]
        xs = [end for _, span in spans for end in (span.low, span.high, math.nan)]
        ys = [float(row) for row, _ in spans for _ in range(3)]
        axes.plot(xs, ys, "-", color=theme.MUTED, linewidth=1.6)
        for colour, different in ((theme.INK, False), (theme.LOSS, True)):
            points = [
                (row, comparison.ratio)
                for row, comparison in enumerate(rows)
                if (comparison.p <= control.significance) == different
            ]
            axes.plot([x for _, x in points], [y for y, _ in points], "o", color=colour, markersize=4, zorder=3)
        axes.set_ylim(-0.8, len(rows) - 0.2)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: quantities.percent_change(ratio)))
        axes.set_xlabel("first name to second, change of the metric")
        axes.grid(axis="x")
        title = f"Each against itself, with its 95% interval; p up to {control.significance:.0%} by itself in colour"
        return finish(axes, title, aa.describe_control(control), "aa")
