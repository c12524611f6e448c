"""From a stored run to the figures that its experiment asks for. Pure: the same run gives the same figures.

A spot's value is the geometric mean over its blocks of the figures of the trials, as in claims on the same metric; of
shares, and where a value is 0, it is the plain mean. Cells that were not run are not drawn: a smaller grid than the
file's is no fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from netdyno.analysis.claims.evidence import is_in, read_coordinates
from netdyno.analysis.found.cells import Estimate
from netdyno.analysis.found.charts import Chart, ChartPanel, Missing, Spot
from netdyno.analysis.ranking import loss as losses
from netdyno.analysis.ranking.cells import average_blocks
from netdyno.analysis.trials import measured
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.model import outcomes
from netdyno.model.base import type_level
from netdyno.model.claim import CONTESTANT
from netdyno.model.figure import SCENARIO, Figure, Published
from netdyno.model.metrics import METRICS, Metric, TrialWithLoad
from netdyno.model.trial import Trial

DrawnPlace = tuple[type_level, ...]
"""The values of all coordinates that a figure draws, in the order of Figure.drawn."""


def build_charts(figures: Sequence[Figure], parts: Sequence[ScenarioTrials]) -> tuple[Chart, ...]:
    """Fill the charts, in the order of the figures. An unsafe contestant is drawn where the experiment names it, and
    marked (docs/adr/unranked.md)."""
    by_name = {part.scenario.name: part for part in parts}
    return tuple(
        _fill_chart(figure, {cells.scenario: by_name[cells.scenario] for cells in figure.cells}) for figure in figures
    )


def _fill_chart(figure: Figure, parts: Mapping[str, ScenarioTrials]) -> Chart:
    """Fill a chart. `parts`: those of the figure's scenarios, each once."""
    trials = [trial for part in parts.values() for trial in part.drawn()]
    planned = _group_by_place(figure, [trial for trial in trials if any(is_in(cells, trial) for cells in figure.cells)])
    measured_by_metric = [_group_measured(figure, parts, METRICS[name]) for name in (figure.metric, *figure.below)]
    values = {name: _list_values(figure, name, parts, planned) for name in figure.drawn}
    order = sorted(
        planned, key=lambda place: [values[name].index(value) for name, value in _pair_with_names(figure, place)]
    )
    spots = [
        _fill_spot(figure, parts, place, planned[place], [counted.get(place, ()) for counted in measured_by_metric])
        for place in order
    ]
    panels: dict[DrawnPlace, list[Spot]] = {}
    for spot in spots:
        panels.setdefault(tuple(spot.coordinates[name] for name in figure.panels), []).append(spot)
    unsafe = tuple(
        sorted({spot.contestant for spot in spots}.intersection(*(part.why_unsafe for part in parts.values())))
    )
    return Chart(
        figure=figure,
        along=values[figure.along],
        across=values.get(figure.across, (None,)),
        panels=tuple(
            _fill_panel(figure, panel_place, panel_spots, unsafe) for panel_place, panel_spots in panels.items()
        ),
        blocks=min((len(spot.value.points) for spot in spots if spot.value), default=0),
        loss_bounds=tuple(dict.fromkeys(part.scenario.loss_bound for part in parts.values())),
        unsafe=unsafe,
        elsewhere=sum(
            not any(
                _is_in_panel(published, dict(zip(figure.panels, panel_place, strict=True))) for panel_place in panels
            )
            for published in figure.published
        ),
    )


def _fill_panel(figure: Figure, place: DrawnPlace, spots: Sequence[Spot], unsafe: tuple[str, ...]) -> ChartPanel:
    coordinates_of_panel = dict(zip(figure.panels, place, strict=True))
    published = [item for item in figure.published if _is_in_panel(item, coordinates_of_panel)]
    # In the order of the spots' own coordinates, so that the two can be matched.
    whole = [
        replace(item, at={name: {**coordinates_of_panel, **item.at}[name] for name in figure.drawn})
        for item in published
    ]
    return ChartPanel(coordinates=coordinates_of_panel, spots=tuple(spots), published=tuple(whole), unsafe=unsafe)


def _is_in_panel(published: Published, panel: Mapping[str, type_level]) -> bool:
    """Return whether a published figure is in a panel; without a value of a panel's coordinate it is in all of them."""
    return all(published.at.get(name, value) == value for name, value in panel.items())


def _pair_with_names(figure: Figure, place: DrawnPlace) -> list[tuple[str, type_level]]:
    return list(zip(figure.drawn, place, strict=True))


# --- the places of trials ----------------------------------------------------------------------------------------


def _group_by_place(figure: Figure, trials: Sequence[Trial]) -> dict[DrawnPlace, list[Trial]]:
    by_place: dict[DrawnPlace, list[Trial]] = {}
    for trial in trials:
        by_place.setdefault(_place(figure, trial), []).append(trial)
    return by_place


def _place(figure: Figure, trial: Trial) -> DrawnPlace:
    place = {**read_coordinates(trial), SCENARIO: trial.scenario}
    return tuple(place[name] for name in figure.drawn)


def _group_measured(
    figure: Figure, parts: Mapping[str, ScenarioTrials], metric: Metric
) -> dict[DrawnPlace, list[TrialWithLoad]]:
    """Return the trials from which a metric is read, in the order of their blocks."""
    by_place: dict[DrawnPlace, list[TrialWithLoad]] = {}
    for cells in figure.cells:
        counted = measured.select_distinct(parts[cells.scenario].drawn(), metric.statuses)
        for trial, load in sorted(counted, key=lambda counted_trial: counted_trial[0].block):
            if is_in(cells, trial) and metric.value(trial, load) is not None:
                by_place.setdefault(_place(figure, trial), []).append((trial, load))
    return by_place


def _list_values(
    figure: Figure, name: str, parts: Mapping[str, ScenarioTrials], planned: Mapping[DrawnPlace, object]
) -> tuple[type_level, ...]:
    """Return the values of a coordinate that were run, in the order of the figure, else of the experiment; contestants
    by name (an experiment may say `*`)."""
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


def _fill_spot(
    figure: Figure,
    parts: Mapping[str, ScenarioTrials],
    place: DrawnPlace,
    planned: Sequence[Trial],
    counted: Sequence[Sequence[TrialWithLoad]],
) -> Spot:
    metrics = [METRICS[name] for name in (figure.metric, *figure.below)]
    estimates = [_estimate_cell(metric, place_counted) for metric, place_counted in zip(metrics, counted, strict=True)]
    used = counted[0]
    part = parts[planned[0].scenario]
    loss = losses.summarise_cell(used, part.scenario) if used else None
    return Spot(
        coordinates=dict(_pair_with_names(figure, place)),
        contestant=planned[0].contestant,
        estimates=tuple(estimates),
        missing=None if estimates[0] else _explain_missing(planned),
        trials=len(used),
        planned=len({trial.block for trial in planned}),
        excluded=sum(trial.status not in outcomes.RANKED for trial, _ in used),
        lost=METRICS["lost"].pooled(used) if loss else None,
        above=loss.above if loss else False,
    )


def _estimate_cell(metric: Metric, counted: Sequence[TrialWithLoad]) -> Estimate | None:
    """Estimate a metric over the blocks of one cell; None where none has the figure."""
    points = {trial.block: metric.value(trial, load) for trial, load in counted}
    return estimate(metric, {block: figure for block, figure in points.items() if figure is not None})


def estimate(metric: Metric, points: Mapping[int, float]) -> Estimate | None:
    """Return the mean of a metric over blocks with its interval; None without a point."""
    geometric = metric.scale == "ratio" and min(points.values(), default=0) > 0
    return average_blocks(points, geometric=geometric)


def _explain_missing(planned: Sequence[Trial]) -> Missing:
    """Return the outcome of most of its trials."""
    causes = Counter(
        (trial.status, measured.find_exclusion_cause(trial)) for trial in planned if trial.status != "valid"
    )
    if not causes:
        return Missing(None, None)
    ((status, cause), _), *_ = causes.most_common()
    return Missing(status, cause)
