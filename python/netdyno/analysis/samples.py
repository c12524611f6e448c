"""The figure that a scenario is judged by, of each contestant: where a metric comes from one trial and where from
several. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netdyno.analysis.capacity import fill as capacity
from netdyno.analysis.split import Part
from netdyno.experiment.capacity import CAPACITY
from netdyno.model.levels import level_key
from netdyno.model.metrics import METRICS, Counted
from netdyno.statistics.stats import Cell, Samples


def samples(part: Part) -> Mapping[str, Samples]:
    """By contestant, block and level; who has none at all is left out."""
    if part.scenario.metric == CAPACITY:
        return capacity.samples(part)
    return of_metric(part.ranked, part.scenario.metric)


def of_metric(ranked: Sequence[Counted], metric: str) -> dict[str, Samples]:
    """Of a metric that each trial has by itself."""
    found: dict[str, dict[Cell, float]] = {}
    for trial, load in ranked:
        figure = METRICS[metric].of(trial, load)
        if figure is not None and figure > 0:
            found.setdefault(trial.contestant, {})[trial.block, level_key(trial.levels)] = figure
    return {name: found[name] for name in sorted(found)}
