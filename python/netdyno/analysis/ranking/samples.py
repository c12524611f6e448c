"""The figures by which a scenario is judged, from one trial or several by its metric. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netdyno.analysis.capacity import fill as capacity
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.kit.statistics.stats import BlockLevel, Samples
from netdyno.model.levels import level_key
from netdyno.model.metrics import METRICS, TrialWithLoad
from netdyno.question.capacity import CAPACITY


def collect_samples(part: ScenarioTrials) -> Mapping[str, Samples]:
    """Return the figures by contestant, block and level; contestants without any are left out."""
    if part.scenario.metric == CAPACITY:
        return capacity.collect_samples(part)
    return collect_metric(part.ranked, part.scenario.metric)


def collect_metric(ranked: Sequence[TrialWithLoad], metric: str) -> dict[str, Samples]:
    """Return the figures of a metric that each trial has by itself."""
    by_name: dict[str, dict[BlockLevel, float]] = {}
    for trial, load in ranked:
        figure = METRICS[metric].value(trial, load)
        if figure is not None and figure > 0:
            by_name.setdefault(trial.contestant, {})[trial.block, level_key(trial.levels)] = figure
    return {name: by_name[name] for name in sorted(by_name)}
