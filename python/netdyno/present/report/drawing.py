"""Small, theme-aware SVG panels, drawn with matplotlib: no colour, no font and no size is fixed in them."""

from __future__ import annotations

import io
import itertools
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import matplotlib as mpl
import msgspec
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from netdyno.kit import quantities
from netdyno.kit.escape import harmless_lines
from netdyno.present.report import theme

PANEL_INCHES = (4.5, 3.0)
SVG_DPI = 72
"""The resolution in which matplotlib writes SVG, and so must lay out."""
PAD = 3.0
"""Points around the labels of each axes."""
FIRST_LEFT, FIRST_RIGHT = 0.3, 0.98
"""Shares of the width between which axes stand while their labels are measured: few become narrower."""
LETTER_SHARE = 0.02
"""The share of an axis that a letter of a tick's label takes; two are left between labels."""
APART_SHARE = 0.025
"""The share of an axis between two intervals at one level."""
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "netdyno",
    "text.parse_math": False,  # a $ in a name is a $
    "path.simplify": False,  # it would drop the dots, which are lines without a length
    "font.size": 9,
    "axes.edgecolor": theme.MUTED,
    "axes.labelcolor": theme.MUTED,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.color": theme.INK,
    "xtick.color": theme.MUTED,
    "ytick.color": theme.MUTED,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "grid.color": theme.RULE,
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.5,
    "lines.markersize": 5.5,
}


class Panel(msgspec.Struct, frozen=True):
    """One finished figure: a title, an SVG, and the same in words for readers who do not see it."""

    title: str
    svg: str
    alt: str


@contextmanager
def open_panel(height: float = PANEL_INCHES[1]) -> Iterator[Axes]:
    """Yield axes in the house style; `finish` turns them into a Panel inside the context."""
    with stack([height]) as (axes,):
        yield axes


@contextmanager
def stack(heights: Sequence[float]) -> Iterator[tuple[Axes, ...]]:
    """Yield several such axes, one below the other over the same x. Heights are in inches, labels included."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(PANEL_INCHES[0], sum(heights)), dpi=SVG_DPI)
        figure.subplots_adjust(left=FIRST_LEFT, right=FIRST_RIGHT)
        FigureCanvasSVG(figure)
        figure.patch.set_visible(False)
        rows = figure.subplots(len(heights), 1, squeeze=False, sharex=True, height_ratios=list(heights))[:, 0]
        for axes in rows:
            axes.patch.set_visible(False)
        yield tuple(rows)


def finish(axes: Axes, title: str, alt: str, name: str) -> Panel:
    """Return the panel as inline SVG. `name` makes its ids unique in the page."""
    out = io.StringIO()
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    canvas = figure.canvas
    assert isinstance(canvas, FigureCanvasSVG)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a name that these fonts lack, or that leaves no room for more
        _make_room(figure)
        canvas.print_svg(out, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))  # type: ignore[no-untyped-call]
    return Panel(title, embed_svg(out.getvalue(), alt, name), alt)


def _make_room(figure: Figure) -> None:
    """Place a column of axes so that their labels fit, as matplotlib's constrained layout does. That always measures
    every text twice; this does so only where axes have become narrower: labels inside then stick out further."""
    measured = figure.axes[0].bbox.width
    if _place_axes(figure) < measured:
        _place_axes(figure)


def _place_axes(figure: Figure) -> float:
    """Place axes by their present labels: the widest decide the sides, and the heights keep their ratio. Return the
    width of the axes."""
    width, height = figure.bbox.size
    inner = np.array([axes.bbox.extents for axes in figure.axes])
    boxes = [axes.get_tightbbox(_make_ruler(), for_layout_only=True) or axes.bbox for axes in figure.axes]
    outer = np.array([box.extents for box in boxes])
    left, below, right, above = (PAD + np.abs(outer - inner)).T
    shares = inner[:, 3] - inner[:, 1]
    heights = (height - (below + above).sum()) * shares / shares.sum()
    across = width - left.max() - right.max()
    if min(across, *heights) <= 0:
        return math.inf
    top = height
    for axes, tall, over, under in zip(figure.axes, heights, above, below, strict=True):
        axes.set_position((left.max() / width, (top - over - tall) / height, across / width, tall / height))
        top -= over + tall + under
    return float(across)


@cache
def _make_ruler() -> RendererSVG:
    """Return the renderer that measures: matplotlib keeps sizes of texts by renderer, and figures share many texts."""
    return RendererSVG(*PANEL_INCHES, io.StringIO())  # type: ignore[no-untyped-call]


def embed_svg(svg: str, alt: str, name: str) -> str:
    """Make a matplotlib file part of a page: no header, no fixed size or font, ids of its own that begin with `name`, a
    text alternative. It takes half as much text, as a page has a hundred of them."""
    root = ElementTree.fromstring(harmless_lines(svg))
    for element in root.iter():
        element.tag = _drop_namespace(element.tag)
        element.text, element.tail = (element.text or "").strip(), "\n"
        element.attrib = {_drop_namespace(key): _shorten(key, value) for key, value in element.attrib.items()}
        if element.get("transform", "").startswith(("rotate(0 ", "rotate(-0 ")):
            del element.attrib["transform"]
    _rename_ids(root, name)
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": harmless_lines(alt)}
    _join_children(root)
    return theme.replace_stand_ins(ElementTree.tostring(root, encoding="unicode"))


def _drop_namespace(name: str) -> str:
    """Return a name as HTML knows it, which has no namespaces."""
    return name.rpartition("}")[2]


def _shorten(key: str, value: str) -> str:
    """Return the value of an attribute without a font, with two decimals of a point, which are finer than a screen."""
    value = re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), value)
    if key == "style":
        value = re.sub(r"font: (?:\w+ )*?([\d.]+)px [^;]*", r"font-size: \1px", value)
        return re.sub(r"font-family: [^;]*;? ?", "", value)
    if key == "d":
        value = re.sub(r"\s*([A-Za-z])\s*", r"\1", value).strip()
        return re.sub(r"M([-\d.]+ [-\d.]+)L\1(?![\d.])", r"M\1h0", value)
    return value


def _rename_ids(root: Element, name: str) -> None:
    """Drop the ids to which nothing refers, and shorten the others."""
    short: dict[str, str] = {}

    def rename(reference: re.Match[str]) -> str:
        return reference[1] + short.setdefault(reference[2], f"{name}-{len(short)}")

    for element in root.iter():
        element.attrib = {key: re.sub(r"(\A#|url\(#)(\w+)", rename, value) for key, value in element.attrib.items()}
    for element in root.iter():
        if (old := element.attrib.pop("id", "")) in short:
            element.set("id", short[old])


def _join_children(parent: Element) -> None:
    """Dissolve groups that have no attributes, and write the style of markers in a row once."""
    children: list[Element] = []
    for child in parent:
        _join_children(child)
        children += child if child.tag == "g" and not child.attrib else [child]
    parent[:] = []
    for style, row in itertools.groupby(children, lambda child: child.get("style") if child.tag == "use" else None):
        markers = list(row)
        group = parent
        if style and len(markers) > 1:
            group = SubElement(parent, "g", style=style)
            for marker in markers:
                del marker.attrib["style"]
        group.extend(markers)


# --- axes --------------------------------------------------------------------------------------------------------


def set_rate_axis(axes: Axes) -> None:
    """Put messages per second on y, from 0: a difference must look as large as it is."""
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_short_number(value)))
    axes.set_ylabel("messages per second")
    axes.grid(axis="y")


def set_share_axis(axes: Axes, label: str) -> None:
    """Put a share of all messages as a percentage on y, from 0."""
    axes.set_ylim(bottom=0, top=max(axes.get_ylim()[1], 1e-6))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: quantities.share(value)))
    axes.set_ylabel(label)
    axes.grid(axis="y")


def draw_dots(axes: Axes, xs: Sequence[float], ys: Sequence[float], colour: str, opacity: float, size: float) -> None:
    """Draw many small dots as one line of round ends: a page with thousands stays small. `size` is in points."""
    x = [value for place in xs for value in (place, place, math.nan)]
    y = [value for place in ys for value in (place, place, math.nan)]
    axes.plot(x, y, "-", color=colour, alpha=opacity, linewidth=size, solid_capstyle="round", zorder=2)


def draw_ring(axes: Axes, x: float, y: float, style: theme.ContestantStyle, *, small: bool = False) -> None:
    """Draw the mark of a loss above the bound, around what is drawn there of a contestant."""
    size, width = (6.0, 0.8) if small else (11.5, 1.3)
    axes.plot(
        [x],
        [y],
        marker="o",
        markersize=size,
        markerfacecolor="none",
        markeredgecolor=style.ring,
        markeredgewidth=width,
        zorder=4,
    )


def draw_limit(axes: Axes, text: str, height: float, colour: str, dashes: tuple[int, int]) -> None:
    """Draw a line across the axes, whose limits are final, and name it at the end and on the side of it where the
    fewest curves and points are. Where it is beyond the limits, name it at that edge."""
    low, high = axes.get_ylim()
    arrow = "↑ " if height > high else "↓ " if height < low else ""
    height = min(max(height, low), high)
    label = axes.annotate(arrow + text, (0, height), (0, 0), ("axes fraction", "data"), "offset points", color=colour)

    def count_crossings(place: tuple[str, str]) -> int:
        label.xy = (0.99 if place[0] == "right" else 0.01, height)
        label.set(ha=place[0], va=place[1], y=1 if place[1] == "bottom" else -1)
        box = label.get_window_extent(_make_ruler()).padded(PAD)
        crossings = 0
        for line in axes.lines:
            path = line.get_path().transformed(line.get_transform())
            are_points = line.get_linestyle() == "None"
            crossings += box.count_contains(path.vertices) if are_points else path.intersects_bbox(box, filled=False)
        return crossings

    sides = ("top",) if arrow == "↑ " else ("bottom",) if arrow else ("bottom", "top")
    count_crossings(min(itertools.product(("right", "left"), sides), key=count_crossings))
    if not arrow:
        axes.axhline(height, color=colour, linestyle=(0, dashes), linewidth=1)


def set_duration_axis(axes: Axes, label: str) -> None:
    """Put nanoseconds on a logarithmic y, ticks at 1, 2, 5 when the range is short."""
    axes.set_yscale("log")
    set_log_ticks(axes.yaxis, *axes.get_ylim())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_short_duration(value)))
    axes.set_ylabel(f"{label} (log scale)")
    axes.grid(axis="y")


def set_log_ticks(axis: Axis, low: float, high: float) -> None:
    """Set ticks at the decades of a logarithmic axis, at 1, 2, 5 when the range is short; nothing between them."""
    subs = (1.0, 2.0, 5.0) if math.log10(high / low) < 2.5 else (1.0,)
    axis.set_major_locator(LogLocator(base=10, subs=subs))
    axis.set_minor_formatter(NullFormatter())
    axis.set_minor_locator(NullLocator())


def set_linear_ticks(axis: Axis, top: float, scales: Sequence[float] = ()) -> None:
    """Set ticks at a handful of round values from 0 to `top`, in the largest scale that it fills (1024 for KiB)."""
    scale = max((scale for scale in scales if scale <= top), default=1.0)
    ticks = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(0, top / scale)
    axis.set_major_locator(FixedLocator([scale * tick for tick in ticks if 0 <= tick * scale <= top * 1.001]))


def spread_places(axes: Axes, levels: Sequence[float], places: Sequence[float], number: int, count: int) -> list[float]:
    """Return where line `number` of `count` stands at these places on x: beside the others, so that no interval lies
    on another, and nearer to its level than to the next."""
    log = axes.get_xscale() == "log"
    scaled = sorted({math.log(level) if log else level for level in levels})
    gaps = [high - low for low, high in itertools.pairwise(scaled)] or [0.0]
    step = min(APART_SHARE * (scaled[-1] - scaled[0]), 0.6 * min(gaps) / count)
    shift = step * (number - (count - 1) / 2)
    return [place * math.exp(shift) if log else place + shift for place in places]


def set_level_ticks(axes: Axes, values: Sequence[float], label: str, *, log: bool | None = None) -> None:
    """Set the measured levels as the only ticks, without those that have no room; logarithmic as `log` says, by default
    where they span more than a factor of eight."""
    if log is None:
        log = min(values) > 0 and max(values) / min(values) > 8
    if log:
        axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(_select_with_room(sorted(values), log=log)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_short_number(value)))
    axes.set_xlabel(f"{label} (log scale)" if axes.get_xscale() == "log" else label)


def _select_with_room(values: Sequence[float], *, log: bool) -> list[float]:
    """Return those of rising values that have room for a label, the ends first."""
    places = [math.log(value) if log else value for value in values]
    letters = 2 + max(len(format_short_number(value)) for value in values)
    room = LETTER_SHARE * letters * (places[-1] - places[0])
    kept = [len(values) - 1]
    for number in range(len(values) - 2, -1, -1):
        if places[kept[-1]] - places[number] >= room and (number == 0 or places[number] - places[0] >= room):
            kept.append(number)
    return [values[number] for number in reversed(kept)]


def set_nines_axis(axes: Axes) -> None:
    """Put percentiles on the axis log 1/(1-q), out to 99.99: each step to the right is ten times rarer."""
    ticks = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99)
    axes.set_xlim(0, count_nines(99.99) + 0.05)
    axes.xaxis.set_major_locator(FixedLocator([count_nines(percent) for percent in ticks]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * (1 - 10**-value):.6g}"))
    axes.set_xlabel("percentile of messages (log scale)")


def count_nines(percent: float) -> float:
    return -math.log10(1 - percent / 100)


def format_short_number(value: float) -> str:
    """Format a tick: 20k, 1.5M."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def format_short_duration(nanoseconds: float) -> str:
    """Format a tick: 200 µs."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if nanoseconds >= size * 0.9999:
            return f"{nanoseconds / size:g} {unit}"
    return quantities.duration(nanoseconds)


def format_short_memory(size_bytes: float) -> str:
    """Format a tick: 64 MiB."""
    for size, unit in ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB")):
        if size_bytes >= size:
            return f"{size_bytes / size:.3g} {unit}"
    return f"{size_bytes:g} B"
