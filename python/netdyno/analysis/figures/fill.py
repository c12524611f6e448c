"""From a stored run to the figures that its experiment asks for. Pure: the same run gives the same figures.

A spot's value is the geometric mean over its blocks of what each trial gave, as in the claims that are judged by the
same metric; of shares, and where a value is 0, it is the plain mean. What was not run is not drawn: a smaller grid than
the file's is no fault."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from netdyno.analysis import loss as losses
from netdyno.analysis import measured
from netdyno.analysis.claims.evidence import coordinates, is_in
from netdyno.analysis.findings import Chart, ChartPanel, Estimate, Missing, Spot
from netdyno.analysis.split import Part
from netdyno.model import outcomes
from netdyno.model.base import type_level
from netdyno.model.claim import CONTESTANT
from netdyno.model.figure import SCENARIO, Figure, Published
from netdyno.model.load_result import LoadResult
from netdyno.model.metrics import METRICS, Metric
from netdyno.model.trial import Trial
from netdyno.statistics import stats
from netdyno.statistics.stats import Interval

Place = tuple[type_level, ...]
"""The values of all coordinates that a figure draws, in the order of Figure.drawn."""
Counted = tuple[Trial, LoadResult]


def charts(figures: Sequence[Figure], parts: Sequence[Part]) -> tuple[Chart, ...]:
    """In the order of the figures. Who is unsafe is drawn where the experiment names it, and marked
    (docs/adr/unranked.md)."""
    by_name = {part.scenario.name: part for part in parts}
    return tuple(
        _chart(figure, {cells.scenario: by_name[cells.scenario] for cells in figure.cells}) for figure in figures
    )


def where(trial: Trial) -> dict[str, type_level]:
    """All coordinates of a trial's cell in a figure."""
    return {**coordinates(trial), SCENARIO: trial.scenario}


def _chart(figure: Figure, parts: Mapping[str, Part]) -> Chart:
    """`parts`: of the figure's scenarios, each once."""
    trials = [one for part in parts.values() for one in part.drawn()]
    planned = _by_place(figure, [one for one in trials if any(is_in(cells, one) for cells in figure.cells)])
    found = [_measured(figure, parts, METRICS[name]) for name in (figure.metric, *figure.below)]
    values = {name: _values(figure, name, parts, planned) for name in figure.drawn}
    order = sorted(planned, key=lambda place: [values[name].index(one) for name, one in _pairs(figure, place)])
    spots = [_spot(figure, parts, place, planned[place], [one.get(place, ()) for one in found]) for place in order]
    panels: dict[Place, list[Spot]] = {}
    for spot in spots:
        panels.setdefault(tuple(spot.at[name] for name in figure.panels), []).append(spot)
    unsafe = tuple(
        sorted({spot.contestant for spot in spots}.intersection(*(part.why_unsafe for part in parts.values())))
    )
    return Chart(
        figure=figure,
        along=values[figure.along],
        across=values.get(figure.across, (None,)),
        panels=tuple(_panel(figure, at, of, unsafe) for at, of in panels.items()),
        blocks=min((len(spot.value.points) for spot in spots if spot.value), default=0),
        loss_bounds=tuple(dict.fromkeys(part.scenario.loss_bound for part in parts.values())),
        unsafe=unsafe,
        elsewhere=sum(
            not any(_stands_in(one, dict(zip(figure.panels, at, strict=True))) for at in panels)
            for one in figure.published
        ),
    )


def _panel(figure: Figure, at: Place, spots: Sequence[Spot], unsafe: tuple[str, ...]) -> ChartPanel:
    here = dict(zip(figure.panels, at, strict=True))
    published = [one for one in figure.published if _stands_in(one, here)]
    # In the order of the spots' own coordinates, so that the two can be matched.
    whole = [replace(one, at={name: {**here, **one.at}[name] for name in figure.drawn}) for one in published]
    return ChartPanel(at=here, spots=tuple(spots), published=tuple(whole), unsafe=unsafe)


def _stands_in(one: Published, panel: Mapping[str, type_level]) -> bool:
    """Without a value of a panel's coordinate it stands in all of them."""
    return all(one.at.get(name, value) == value for name, value in panel.items())


def _pairs(figure: Figure, place: Place) -> list[tuple[str, type_level]]:
    return list(zip(figure.drawn, place, strict=True))


# --- which trials stand where ------------------------------------------------------------------------------------


def _by_place(figure: Figure, trials: Sequence[Trial]) -> dict[Place, list[Trial]]:
    found: dict[Place, list[Trial]] = {}
    for trial in trials:
        found.setdefault(_place(figure, trial), []).append(trial)
    return found


def _place(figure: Figure, trial: Trial) -> Place:
    at = where(trial)
    return tuple(at[name] for name in figure.drawn)


def _measured(figure: Figure, parts: Mapping[str, Part], metric: Metric) -> dict[Place, list[Counted]]:
    """The trials that a metric is read from, in the order of their blocks."""
    found: dict[Place, list[Counted]] = {}
    for cells in figure.cells:
        counted = measured.each_once(parts[cells.scenario].drawn(), metric.statuses)
        for trial, load in sorted(counted, key=lambda one: one[0].block):
            if is_in(cells, trial) and metric.of(trial, load) is not None:
                found.setdefault(_place(figure, trial), []).append((trial, load))
    return found


def _values(
    figure: Figure, name: str, parts: Mapping[str, Part], planned: Mapping[Place, object]
) -> tuple[type_level, ...]:
    """The values of a coordinate that were run: as the figure names them, else as the experiment does, contestants by
    name (an experiment may say `*`)."""
    number = figure.drawn.index(name)
    seen = {place[number] for place in planned}
    if name == SCENARIO:
        known: list[type_level] = [cells.scenario for cells in figure.cells]
    elif name == CONTESTANT:
        known = [*figure.cells[0].at.get(name, ()), *sorted(map(str, seen))]
    else:
        named = [cells.at.get(name, parts[cells.scenario].scenario.factors.get(name, ())) for cells in figure.cells]
        known = [value for values in named for value in values] + sorted(seen, key=str)
    return tuple(dict.fromkeys(value for value in known if value in seen))


# --- one spot ----------------------------------------------------------------------------------------------------


def _spot(
    figure: Figure,
    parts: Mapping[str, Part],
    place: Place,
    planned: Sequence[Trial],
    counted: Sequence[Sequence[Counted]],
) -> Spot:
    metrics = [METRICS[name] for name in (figure.metric, *figure.below)]
    estimates = [_estimate(metric, of) for metric, of in zip(metrics, counted, strict=True)]
    used = counted[0]
    part = parts[planned[0].scenario]
    loss = losses.of_cell(used, part.scenario, part.seed) if used else None
    return Spot(
        at=dict(_pairs(figure, place)),
        contestant=planned[0].contestant,
        estimates=tuple(estimates),
        missing=None if estimates[0] else _missing(planned),
        trials=len(used),
        planned=len({trial.block for trial in planned}),
        set_aside=sum(trial.status not in outcomes.RANKED for trial, _ in used),
        lost=loss.lost.value if loss else None,
        above=loss.above if loss else False,
    )


def _estimate(metric: Metric, counted: Sequence[Counted]) -> Estimate | None:
    """Over the blocks of one cell; None where none has the figure."""
    points = {trial.block: metric.of(trial, load) for trial, load in counted}
    return estimate(metric, {block: one for block, one in points.items() if one is not None})


def estimate(metric: Metric, points: Mapping[int, float]) -> Estimate | None:
    """The mean of a metric over blocks with its interval; None without a point."""
    if not points:
        return None
    geometric = metric.scale == "ratio" and min(points.values()) > 0
    there, back = (math.log, math.exp) if geometric else (float, float)
    pairs = stats.pairs_of({(block, ""): there(one) for block, one in points.items()})
    found = stats.mean_interval(pairs)
    interval = found and Interval(back(found.low), back(found.high))
    return Estimate(back(stats.log_ratio(pairs)), interval, tuple(points.values()))


def _missing(planned: Sequence[Trial]) -> Missing:
    """What became of most of its trials."""
    causes = Counter((trial.status, measured.set_aside(trial)) for trial in planned if trial.status != "valid")
    if not causes:
        return Missing(None, None)
    ((status, cause), _), *_ = causes.most_common()
    return Missing(status, cause)
