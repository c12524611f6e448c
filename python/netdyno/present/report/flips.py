"""The view of a flip that an experiment requests: the answer, a drawing of how much better one side is across the
factor, with the crossing as a band, and the same as a table. No HTML here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from netdyno.analysis.found.flips import FlipFound
from netdyno.kit import quantities
from netdyno.kit.statistics.flips import LevelContrast, Side
from netdyno.model.metrics import METRICS
from netdyno.present.prose import flips as prose
from netdyno.present.report import theme
from netdyno.present.report.charts import LegendEntry
from netdyno.present.report.drawing import Panel, finish, open_panel, set_level_ticks
from netdyno.present.report.panels import FACTOR_AXES, Styles
from netdyno.present.report.report_table import ReportTable, make_sortable, sort_by_low

NEITHER = "s"
"""The marker of a level at which neither side is proven better; a side has its own style."""
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
TIMES = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)
"""Ticks that say by how much a side is better: shares, and factors where there would be too many shares."""
MOST_TICKS = 4
"""Ticks on each side of "the same"."""


class FlipView(msgspec.Struct, frozen=True):
    anchor: str
    title: str
    verdict: str
    status: str
    """The status that colours its card: winner, equal or not_enough_blocks."""
    sentence: str
    note: str
    """The key to the drawing, in words."""
    keys: tuple[LegendEntry, ...]
    panels: tuple[Panel, ...]
    table: ReportTable


def make_view(flip: FlipFound, styles: Styles, anchor: str) -> FlipView:
    measured = [point for point in flip.flips.points if point.blocks]
    return FlipView(
        anchor=anchor,
        title=f"{flip.question}: {flip.first} or {flip.second}, by {prose.name_factor(flip)}",
        verdict=prose.summarise_flip(flip),
        status={"flip": "winner", "none": "equal", "open": "not_enough_blocks"}[flip.flips.verdict],
        sentence=f"{prose.describe_flip(flip)}.",
        note=_describe_drawing(flip),
        keys=tuple(
            LegendEntry(f"{name} is better", name if name in styles else "")
            for side, name in ((1, flip.first), (-1, flip.second))
            if any(point.side == side for point in measured)
        ),
        panels=(_draw_panel(flip, measured, styles, anchor),) if measured else (),
        table=ReportTable(prose.list_headings(flip), tuple(_list_rows(flip))),
    )


def _list_rows(flip: FlipFound) -> Iterator[tuple[str, ...]]:
    for point, (place, better_by, interval, *others) in zip(flip.flips.points, prose.list_rows(flip), strict=True):
        figures = (make_sortable(place, point.place), make_sortable(better_by, point.mean))
        yield (*figures, sort_by_low(interval, point.interval), *others)


def _describe_drawing(flip: FlipFound) -> str:
    looks = " and looks" if flip.pursuit else ""
    hollow = " Hollow: neither is proven better." if any(not point.side for point in flip.flips.points) else ""
    band = " Grey: the interval of the crossing." if flip.flips.crossings else ""
    return f"Whiskers: 95% intervals, corrected for all levels{looks}.{hollow}{band}"


def _draw_panel(flip: FlipFound, points: Sequence[LevelContrast], styles: Styles, name: str) -> Panel:
    with open_panel() as axes:
        places = [point.place for point in points]
        set_level_ticks(axes, places, FACTOR_AXES.get(flip.factor, prose.name_factor(flip)), log=flip.log)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda place, _: prose.format_place(flip, float(f"{place:.6g}"))))
        axes.axhline(0, color=theme.INK, linewidth=0.9, zorder=1.5)
        for crossing in flip.flips.crossings:
            axes.axvspan(
                *_widen_band(crossing.interval.low, crossing.interval.high), color=theme.MUTED, alpha=0.2, lw=0
            )
            axes.axvline(crossing.place, color=theme.MUTED, linestyle=(0, (3, 3)), linewidth=1)
        axes.plot(places, [point.mean for point in points], "-", color=theme.MUTED, linewidth=1, zorder=2)
        for point in points:
            _draw_mark(axes, point, *_choose_style(flip, point.side, styles))
        _set_contrast_axis(axes, points)
        for text, y, va in ((flip.first, 1.0, "bottom"), (flip.second, 0.0, "bottom")):
            axes.annotate(
                f"{'↑' if y else '↓'} {text} is better",
                (1, y),
                (0, 4 if y else 3),
                "axes fraction",
                "offset points",
                ha="right",
                va=va,
                color=theme.MUTED,
                size=8,
            )
        return finish(axes, "", _describe_panel(flip, points), name)


def _widen_band(low: float, high: float) -> tuple[float, float]:
    """Return the ends of a band, far enough apart to be seen."""
    return (low, high) if high > low else (low * 0.99, high * 1.01)


def _choose_style(flip: FlipFound, side: Side, styles: Styles) -> tuple[str, str]:
    """Return the colour and marker of the better side."""
    style = styles.get({1: flip.first, -1: flip.second, 0: ""}[side])
    if style is not None:
        return style.stand_in, theme.SHAPES[style.shape].matplotlib
    return (theme.INK, "o") if side else (theme.MUTED, NEITHER)


def _draw_mark(axes: Axes, point: LevelContrast, colour: str, marker: str) -> None:
    if point.interval is not None:
        ends = [point.interval.low, point.interval.high]
        axes.plot([point.place, point.place], ends, "-", color=colour, linewidth=2.2, alpha=0.75, zorder=2.5)
    full = "full" if point.side else "none"
    axes.plot([point.place], [point.mean], marker=marker, fillstyle=full, color=colour, zorder=3)


def _set_contrast_axis(axes: Axes, points: Sequence[LevelContrast]) -> None:
    """Scale y by the logarithm of the ratio, so that twice as good is as far from the same as half as good."""
    ends = [end for point in points for end in (point.mean, *_list_ends(point))]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = max(0.08 * (high - low), 0.005)
    low, high = low - 2 * room, high + room  # below, there is a line of words
    axes.set_ylim(low, high)
    reach = math.expm1(max(-low, high))
    places = [sign * math.log1p(tick) for tick in (0.0, *_list_ticks(reach)) for sign in (1.0, -1.0)]
    axes.yaxis.set_major_locator(FixedLocator([place for place in sorted(set(places)) if low <= place <= high]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(_format_tick))
    axes.set_ylabel("better by")
    axes.grid(axis="y")


def _list_ticks(reach: float) -> list[float]:
    """Return ticks up to `reach`: shares by which a side is better."""
    for step in STEPS:
        if reach / step <= MOST_TICKS:
            return [number * step for number in range(1, MOST_TICKS + 1)]
    inside = [times - 1 for times in TIMES if times - 1 <= reach]
    return inside[-1::-2] if len(inside) > MOST_TICKS else inside


def _format_tick(contrast: float, _: float) -> str:
    """Format a tick: by how much the better side is better, alike in both directions."""
    share = math.expm1(abs(contrast))
    return "0%" if share < 1e-9 else quantities.percent_change(1 + share).replace("+", "")


def _list_ends(point: LevelContrast) -> tuple[float, ...]:
    return (point.interval.low, point.interval.high) if point.interval else ()


def _describe_panel(flip: FlipFound, points: Sequence[LevelContrast]) -> str:
    where = [f"at {prose.format_place(flip, point.place)} {prose.format_change(point.mean)}" for point in points]
    metric = METRICS[flip.metric].title
    return (
        f"{prose.describe_flip(flip)}. "
        f"How much better {flip.first} is than {flip.second} by {metric}: {', '.join(where)}."
    )
