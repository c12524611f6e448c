"""A surface as a table of coloured cells, one scale for all of its panels. No HTML here."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from netdyno.analysis.found.charts import Chart, ChartPanel, Spot
from netdyno.kit import quantities
from netdyno.model.base import type_level
from netdyno.model.figure import Figure, Published
from netdyno.model.metrics import METRICS
from netdyno.present.prose import figures, loss
from netdyno.present.report.panels import FACTOR_AXES
from netdyno.present.report.theme import HEAT_STEPS


class HeatCell(msgspec.Struct, frozen=True):
    """A cell. `step` is its colour, None where there is no figure. `tip` is its full text, `mark` the mark of its loss,
    `has_excluded` whether trials in it are invalid or faulty, `published` the source's figure there."""

    text: str
    step: int | None
    tip: str
    mark: str = ""
    has_excluded: bool = False
    published: str = ""


class HeatRow(msgspec.Struct, frozen=True):
    label: str
    cells: tuple[HeatCell, ...]


class HeatPanel(msgspec.Struct, frozen=True):
    """Rows from the top: the greatest level of `across` first, as on an axis."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[HeatRow, ...]
    along: str
    across: str
    published: tuple[str, ...]
    """Each published figure with its place."""


class ColourScale:
    """A scale from the least to the greatest value of any panel, linear or logarithmic, in steps of colour."""

    def __init__(self, chart: Chart) -> None:
        values = [spot.value.value for spot in chart.spots if spot.value]
        self._log = chart.figure.log
        values = [value for value in values if value > 0 or not self._log]
        self._low, self._high = min(values, default=0.0), max(values, default=0.0)
        self._speak = METRICS[chart.figure.metric].speak

    def step(self, value: float) -> int:
        """Return the colour of a value, that of the nearest end beyond the scale."""
        low, high, place = (self._place(number) for number in (self._low, self._high, max(value, self._low)))
        return round((HEAT_STEPS - 1) * ((place - low) / (high - low) if high > low else 0.5))

    def _place(self, value: float) -> float:
        return math.log(value) if self._log else value

    def legend(self) -> tuple[str, str, str]:
        """Return the values of the first, the middle and the last colour."""
        middle = math.sqrt(self._low * self._high) if self._log else (self._low + self._high) / 2
        return self._speak(self._low), self._speak(middle), self._speak(self._high)


def tabulate_surface(chart: Chart, chart_panel: ChartPanel, scale: ColourScale) -> HeatPanel:
    figure = chart.figure
    along, across = _list_values(chart, figure.along), _list_values(chart, figure.across)
    ringed = {_find_nearest_cell(published, figure, along, across): published for published in chart_panel.published}
    by_place = {(spot.coordinates[figure.along], spot.coordinates[figure.across]): spot for spot in chart_panel.spots}
    rows = [
        HeatRow(
            _format_value(figure.across, y),
            tuple(_make_cell(chart, scale, by_place.get((x, y)), ringed.get((x, y)), x, y) for x in along),
        )
        for y in across
    ]
    numeric = all(isinstance(value, int | float) for value in across)
    return HeatPanel(
        title=figures.name_panel(chart_panel),
        columns=tuple(_format_value(figure.along, x) for x in along),
        rows=tuple(reversed(rows) if numeric else rows),
        along=FACTOR_AXES.get(figure.along, figure.along),
        across=FACTOR_AXES.get(figure.across, figure.across),
        published=tuple(
            _describe_published(published, figure, _find_nearest_cell(published, figure, along, across))
            for published in chart_panel.published
        ),
    )


def _list_values(chart: Chart, name: str) -> list[type_level]:
    values = chart.along if name == chart.figure.along else chart.across
    return [value for value in values if value is not None]


def _format_value(name: str, value: type_level) -> str:
    """Format a value that stands beside the name of its axis."""
    return str(value) if isinstance(value, int | float) else figures.name_of(name, value)


def _make_cell(
    chart: Chart, scale: ColourScale, spot: Spot | None, published: Published | None, x: type_level, y: type_level
) -> HeatCell:
    figure, speak = chart.figure, METRICS[chart.figure.metric].speak
    place = f"{figures.name_of(figure.along, x)}, {figures.name_of(figure.across, y)}"
    source_figure = speak(published.value).removesuffix("/s") if published else ""
    if spot is None or spot.value is None:
        why = figures.explain_missing(spot) if spot else "not run"
        return HeatCell("", None, f"{place}: {why}", published=source_figure)
    texts = [speak(spot.value.value), f"{spot.trials} of {quantities.plural(spot.planned, 'trial')}"]
    if spot.lost is not None:
        texts.append(f"{quantities.share(spot.lost)} lost")
    if spot.excluded:
        texts.append(f"{spot.excluded} invalid or faulty")
    return HeatCell(
        text=speak(spot.value.value).removesuffix("/s"),
        step=scale.step(spot.value.value),
        tip=f"{place}: {', '.join(texts)}",
        mark=loss.MARK if spot.above else "",
        has_excluded=spot.excluded > 0,
        published=source_figure,
    )


def _find_nearest_cell(
    published: Published, figure: Figure, along: Sequence[type_level], across: Sequence[type_level]
) -> tuple[type_level, type_level] | None:
    """Return the measured cell that a published figure is drawn in; None where it is beyond the grid."""
    x, y = (
        _find_nearest_level(published.at[figure.along], along),
        _find_nearest_level(published.at[figure.across], across),
    )
    return None if x is None or y is None else (x, y)


def _find_nearest_level(value: type_level, levels: Sequence[type_level]) -> type_level | None:
    if value in levels:
        return value
    numbers = [level for level in levels if not isinstance(level, str)]
    if isinstance(value, str) or not numbers or not min(numbers) <= value <= max(numbers):
        return None
    return min(numbers, key=lambda level: abs(level - value))


def _describe_published(published: Published, figure: Figure, drawn: tuple[type_level, type_level] | None) -> str:
    """Describe a published figure, and where it is drawn if that is not its own place."""
    own_place = (published.at[figure.along], published.at[figure.across])
    place = " and ".join(
        figures.name_of(name, value) for name, value in zip((figure.along, figure.across), own_place, strict=True)
    )
    text = f"{METRICS[figure.metric].speak(published.value)} at {place}"
    if drawn is None:
        return f"{text} (beyond what was run here)"
    return text if drawn == own_place else f"{text} (ringed: the nearest that was run here)"
