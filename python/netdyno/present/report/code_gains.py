"""What more code gains: a mark for each server of each question, by lines and by complexity. No HTML here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from netdyno.analysis.found.notices import CodeGain
from netdyno.present.prose import code_gains as words
from netdyno.present.report import theme
from netdyno.present.report.drawing import Panel, finish, format_short_number, open_panel
from netdyno.present.report.panels import Styles
from netdyno.present.report.report_table import ReportTable, make_sortable
from netdyno.present.report.scale import ROUND_RATIOS

LEAST_SPAN = math.log(2)
"""The least range of the gains: a few per cent must not fill the picture."""
TICKS_APART = 0.1
"""The least distance of ticks as a share of the axis."""
MEASURES: Mapping[str, Callable[[CodeGain], int]] = {
    "lines of code": lambda gain: gain.lines,
    "cyclomatic complexity": lambda gain: gain.complexity,
}


class CodeGainsView(msgspec.Struct, frozen=True):
    contestants: tuple[str, ...]
    panels: tuple[Panel, ...]
    table: ReportTable


def make_view(gains: Sequence[CodeGain], styles: Styles) -> CodeGainsView | None:
    """Return the section; None where no question compares servers of different length."""
    if not gains:
        return None
    return CodeGainsView(
        contestants=tuple(name for name in styles if any(gain.contestant == name for gain in gains)),
        panels=tuple(_draw(gains, styles, measure, f"gains{number}") for number, measure in enumerate(MEASURES)),
        table=ReportTable(words.HEADINGS, tuple(map(_make_row, gains))),
    )


def _draw(gains: Sequence[CodeGain], styles: Styles, measure: str, name: str) -> Panel:
    with open_panel() as axes:
        axes.axhline(1.0, color=theme.RULE, linewidth=0.9, zorder=1)
        for gain in gains:
            _draw_mark(axes, MEASURES[measure](gain), gain, styles[gain.contestant])
        _set_axes(axes, gains, measure)
        return finish(axes, "", words.describe_panel(gains, measure), name)


def _draw_mark(axes: Axes, place: float, gain: CodeGain, style: theme.ContestantStyle) -> None:
    if gain.interval is not None:
        axes.plot(
            [place] * 2, [gain.interval.low, gain.interval.high], "-", color=style.stand_in, linewidth=1, alpha=0.5
        )
    axes.plot(
        [place],
        [gain.gain],
        marker=theme.SHAPES[style.shape].matplotlib,
        color=style.stand_in,
        markerfacecolor=style.stand_in if gain.different else theme.PAPER,
        zorder=3,
    )


def _set_axes(axes: Axes, gains: Sequence[CodeGain], measure: str) -> None:
    logs = [math.log(gain.gain) for gain in gains]
    room = max(0.1 * (max(logs) - min(logs)), (LEAST_SPAN - max(logs) + min(logs)) / 2)
    limits = math.exp(min(logs) - room), math.exp(max(logs) + room)
    axes.set_yscale("log")
    axes.set_ylim(*limits)
    axes.yaxis.set_major_locator(FixedLocator(choose_ticks(*limits)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylabel(words.AXIS)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_short_number(value)))
    axes.set_xlabel(measure)
    axes.grid(axis="y")


def choose_ticks(low: float, high: float) -> list[float]:
    """Return no gain and the round ones that have room between, from the outside in."""
    ticks = [1.0]
    for ratio in sorted(ROUND_RATIOS, key=lambda ratio: -abs(math.log(ratio))):
        if low <= ratio <= high and all(
            abs(math.log(ratio / tick)) >= TICKS_APART * math.log(high / low) for tick in ticks
        ):
            ticks.append(ratio)
    return sorted(ticks)


def _make_row(gain: CodeGain) -> tuple[str, ...]:
    numbers: Mapping[int, float] = {3: gain.lines, 4: gain.complexity, 5: gain.gain} | (
        {6: gain.interval.low} if gain.interval else {}
    )
    return tuple(make_sortable(text, numbers.get(column)) for column, text in enumerate(words.make_row(gain)))
