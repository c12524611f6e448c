"""Counters that correlate with a ranking: a table for each pair, a line for each counter that differs between the two,
with a bar from "the same" on one logarithmic scale. No HTML here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

from netdyno.analysis.found.notices import Difference, Why
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit import quantities
from netdyno.model.experiment import Scenario
from netdyno.model.metrics import METRICS
from netdyno.present.prose import associations
from netdyno.present.report.report_table import make_cell, make_sortable, sort_by_low
from netdyno.present.report.scale import RatioScale, Tick


class Bar(msgspec.Struct, frozen=True):
    """A bar of `width` from `start`, and its interval where it has one, in percent of the picture's width."""

    start: float
    width: float
    low: float | None
    high: float | None


class CounterRow(msgspec.Struct, frozen=True):
    """A counter. `bar` is None where the two have no ratio, as one of them is 0."""

    counter: str
    worse: str
    better: str
    change: str
    interval: str
    bar: Bar | None


class PairView(msgspec.Struct, frozen=True):
    worse: str
    better: str
    text: str
    lines: tuple[CounterRow, ...]


class AssociationsView(msgspec.Struct, frozen=True):
    """All pairs on one scale; the bars begin at `same_at`."""

    pairs: tuple[PairView, ...]
    ticks: tuple[Tick, ...]
    same_at: float


def make_view(findings: ScenarioFindings) -> AssociationsView | None:
    """Return the section; None where no two are proven different."""
    if not findings.whys:
        return None
    scale = RatioScale(list(_list_ends(findings.whys)))
    return AssociationsView(
        pairs=tuple(_make_pair(why, findings.scenario, scale) for why in findings.whys),
        ticks=scale.ticks(),
        same_at=scale.to_percent(1.0),
    )


def _list_ends(whys: Sequence[Why]) -> Iterator[float]:
    """Yield the ends of all bars and intervals."""
    for why in whys:
        for difference in why.differences:
            if difference.relative:
                interval = difference.comparison.interval
                yield difference.comparison.ratio
                yield from (interval.low, interval.high) if interval else ()


def _make_pair(why: Why, scenario: Scenario, scale: RatioScale) -> PairView:
    lines = tuple(_make_line(difference, scale) for difference in why.differences)
    return PairView(why.worse, why.better, associations.explain_pair(why, scenario), lines)


def _make_line(difference: Difference, scale: RatioScale) -> CounterRow:
    counter, comparison = METRICS[difference.counter], difference.comparison
    change = associations.format_effect(difference.counter, comparison.ratio, relative=difference.relative)
    interval = associations.format_effect_interval(difference.counter, comparison, relative=difference.relative)
    return CounterRow(
        counter=counter.title,
        worse=make_cell(difference.worse, counter.speak),
        better=make_cell(difference.better, counter.speak),
        change=make_sortable(change, comparison.ratio),
        interval=sort_by_low(interval or quantities.DASH, comparison.interval),
        bar=_make_bar(difference, scale) if difference.relative and math.isfinite(comparison.ratio) else None,
    )


def _make_bar(difference: Difference, scale: RatioScale) -> Bar:
    interval = difference.comparison.interval
    start, end = sorted((scale.to_percent(1.0), scale.to_percent(difference.comparison.ratio)))
    low, high = (scale.to_percent(interval.low), scale.to_percent(interval.high)) if interval else (None, None)
    return Bar(start, round(end - start, 2), low, high)
