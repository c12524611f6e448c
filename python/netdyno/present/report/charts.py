"""The view of a figure that an experiment requests: legend, panels and the same as a table. No HTML here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from netdyno.analysis.found.charts import Chart, ChartPanel, Spot
from netdyno.kit import quantities
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS
from netdyno.model.base import type_level
from netdyno.model.claim import CONTESTANT
from netdyno.model.figure import Published
from netdyno.model.metrics import METRICS
from netdyno.present.prose import figures, loss
from netdyno.present.report import theme
from netdyno.present.report.bars import draw_bars
from netdyno.present.report.curves import draw_curves, format_dashes
from netdyno.present.report.drawing import Panel
from netdyno.present.report.heat import ColourScale, HeatPanel, tabulate_surface
from netdyno.present.report.ladder import draw_ladder
from netdyno.present.report.marks import shade
from netdyno.present.report.panels import Styles
from netdyno.present.report.report_table import ReportTable, make_cell, make_sortable
from netdyno.present.report.views import format_with_interval

PUBLISHED_WORDS = "published (their machine)"
_DRAW: Mapping[str, Callable[[Chart, ChartPanel, Styles, str], Panel]] = {
    "bars": draw_bars,
    "ladder": draw_ladder,
    "curves": draw_curves,
}


class LegendEntry(msgspec.Struct, frozen=True):
    """An entry of a legend: a contestant's mark, or a shade (`opacity`), or a marker; `dash` is that of its line, None
    where it has none. `contestant` is empty for a group, and where no contestant is meant."""

    text: str
    contestant: str = ""
    opacity: float | None = None
    shape: int | None = None
    dash: str | None = None


class ChartView(msgspec.Struct, frozen=True):
    anchor: str
    chart: Chart
    note: str
    gaps: tuple[str, ...]
    """Contestants without a figure: which, where and why."""
    keys: tuple[LegendEntry, ...]
    published: str
    """The legend's name for the source's figures; empty where there are none."""
    marked: bool
    has_excluded: bool
    hatched: bool
    loss_bound: str
    panels: tuple[Panel, ...]
    surfaces: tuple[HeatPanel, ...]
    scale: tuple[str, str, str] | None
    metric: str
    table: ReportTable
    row_headers: int


def make_view(chart: Chart, styles: Styles, anchor: str) -> ChartView:
    figure = chart.figure
    is_surface = figure.kind == "surface"
    scale = ColourScale(chart)
    draw = _DRAW.get(figure.kind)
    return ChartView(
        anchor=anchor,
        chart=chart,
        note=_describe_drawing(chart),
        gaps=figures.list_gaps(chart),
        keys=tuple(_list_keys(chart)),
        published=PUBLISHED_WORDS if any(chart_panel.published for chart_panel in chart.panels) else "",
        marked=any(spot.above for spot in chart.spots),
        has_excluded=is_surface and any(spot.excluded for spot in chart.spots),
        hatched=is_surface and any(spot.value is None for spot in chart.spots),
        loss_bound=" or ".join(map(quantities.share, chart.loss_bounds)),
        panels=tuple(
            draw(chart, chart_panel, styles, f"{anchor}-p{number}")
            for number, chart_panel in enumerate(_find_drawable(chart))
        )
        if draw
        else (),
        surfaces=tuple(tabulate_surface(chart, chart_panel, scale) for chart_panel in chart.panels)
        if is_surface
        else (),
        scale=scale.legend() if is_surface else None,
        metric=METRICS[figure.metric].title,
        table=_tabulate_spots(chart),
        row_headers=len(figure.drawn),
    )


def _find_drawable(chart: Chart) -> list[ChartPanel]:
    """Return the panels in which anything is to be seen."""
    return [
        chart_panel
        for chart_panel in chart.panels
        if chart_panel.published or any(spot.value for spot in chart_panel.spots)
    ]


# --- what stands over the panels ---------------------------------------------------------------------------------


def _describe_drawing(chart: Chart) -> str:
    """Describe what is drawn, and how certain it is."""
    metric = METRICS[chart.figure.metric]
    mean = "mean" if metric.scale == "share" else "geometric mean"
    sentences = [f"{metric.heading}, {mean} over blocks."]
    if metric.latency and any(spot.lost for spot in chart.spots):
        sentences.append("Only messages that arrived have a response time.")
    if any(spot.value and spot.value.interval for spot in chart.spots):
        drawn = "Whiskers: 95% intervals over blocks. Faint dots: the single blocks."
        sentences.append("The table has the intervals." if chart.figure.kind == "surface" else drawn)
    if 0 < chart.blocks < FEWEST_BLOCKS:
        few = "One block" if chart.blocks == 1 else f"Only {chart.blocks} blocks in some cells"
        sentences.append(f"{few}: no interval{'' if chart.blocks == 1 else ' there'}.")
    if chart.figure.kind == "ladder":
        sentences.append("The lowest comes first.")
    sentences += [f"{name} is UNSAFE, and in no ranking." for name in chart.unsafe]
    if chart.elsewhere:
        sentences.append(
            f"{quantities.plural(chart.elsewhere, 'published figure')} for what was not run here: not drawn."
        )
    return " ".join(sentences)


def _list_keys(chart: Chart) -> list[LegendEntry]:
    """Return the entries of the legend: the values that stand at one place of the axis."""
    figure = chart.figure
    if figure.kind in ("surface", "ladder") or not figure.across:
        return []
    names = [
        (value, figures.name_of(figure.across, value, chart.unsafe)) for value in chart.across if value is not None
    ]
    if figure.across == CONTESTANT:
        return [LegendEntry(text, contestant=str(value)) for value, text in names]
    if figure.kind == "bars" and not figure.log:
        return [LegendEntry(text, opacity=shade(number, len(names))) for number, (_, text) in enumerate(names)]
    dashes = [format_dashes(number) if figure.kind == "curves" else None for number in range(len(names))]
    return [
        LegendEntry(text, shape=number % len(theme.SHAPES), dash=dashes[number])
        for number, (_, text) in enumerate(names)
    ]


# --- the same as a table -----------------------------------------------------------------------------------------


def _tabulate_spots(chart: Chart) -> ReportTable:
    """Return every cell of the figure, also what could not be drawn of it."""
    figure = chart.figure
    lossy = any(spot.lost is not None for spot in chart.spots)
    published = {tuple(entry.at.items()): entry for chart_panel in chart.panels for entry in chart_panel.published}
    titles = [METRICS[name].title for name in (figure.metric, *figure.below)]
    headings = (
        *figure.drawn,
        *titles,
        *((PUBLISHED_WORDS,) if published else ()),
        *(("lost",) if lossy else ()),
        "trials",
    )
    rows = [_make_row(chart, spot, published, lossy=lossy) for spot in chart.spots]
    measured = {tuple(spot.coordinates.items()) for spot in chart.spots}
    only_published = [entry for place, entry in published.items() if place not in measured]
    return ReportTable(headings, (*rows, *(_make_published_row(chart, entry, lossy=lossy) for entry in only_published)))


def _make_row(
    chart: Chart, spot: Spot, published: Mapping[tuple[tuple[str, type_level], ...], Published], *, lossy: bool
) -> tuple[str, ...]:
    figure = chart.figure
    names = [figures.name_of(name, spot.coordinates[name], chart.unsafe) for name in figure.drawn]
    metrics = [METRICS[name] for name in (figure.metric, *figure.below)]
    texts = [
        quantities.DASH
        if estimate is None
        else make_sortable(format_with_interval(estimate, metric.speak), estimate.value)
        for estimate, metric in zip(spot.estimates, metrics, strict=True)
    ]
    if spot.missing:
        texts[0] = figures.explain_missing(spot)
    source_figure = published.get(tuple(spot.coordinates.items()))
    mark = f" {loss.MARK}" if spot.above else ""
    lost = make_cell(spot.lost, lambda share: f"{quantities.share(share)}{mark}")
    excluded = f", {spot.excluded} invalid or faulty" if spot.excluded else ""
    return (
        *names,
        *texts,
        *((make_cell(source_figure.value if source_figure else None, metrics[0].speak),) if published else ()),
        *((lost,) if lossy else ()),
        f"{spot.trials} of {spot.planned}{excluded}",
    )


def _make_published_row(chart: Chart, published: Published, *, lossy: bool) -> tuple[str, ...]:
    """Return the row of a figure that only the source measured."""
    figure = chart.figure
    names = [figures.name_of(name, published.at[name], chart.unsafe) for name in figure.drawn]
    dashes = [quantities.DASH] * (1 + len(figure.below))
    return (
        *names,
        *dashes,
        make_cell(published.value, METRICS[figure.metric].speak),
        *((quantities.DASH,) if lossy else ()),
        "not run",
    )
