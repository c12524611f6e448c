"""Find where along one factor the better of two sides changes, from the levels that were run. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

from netdyno.analysis.found.flips import FlipFound, Pursuit
from netdyno.analysis.ranking.samples import collect_metric
from netdyno.analysis.trials.ground import find_usable_cores
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.kit.statistics import stats
from netdyno.kit.statistics.bisection import Bounds, bisect
from netdyno.kit.statistics.block_counts import FLIP_LOOKS
from netdyno.kit.statistics.flips import flips
from netdyno.kit.statistics.stats import BlockLevel, Samples
from netdyno.model.experiment import Flip, Scenario
from netdyno.model.levels import level_key, level_words, place
from netdyno.model.metrics import METRICS
from netdyno.question import flips as plan

LOG_FROM = 8
"""The least ratio of levels that is drawn on a logarithmic axis, as in the figures of the report."""


def has_several_levels(scenario: Scenario, factor: str) -> bool:
    """Return whether a scenario has several levels of the factor, and these lie on an axis."""
    levels = scenario.factors.get(factor, ())
    return len(levels) > 1 and all(place(level) is not None for level in levels)


Contrasts = dict[float, dict[int, float]]
"""The contrasts by place and block."""


def _contrast(
    part: ScenarioTrials, factor: str, metric: str, first: Sequence[str], second: Sequence[str]
) -> dict[tuple[str, ...], Contrasts]:
    """Contrast the first side with the second, by the levels of the other factors, in blocks where all members of both
    have a figure, and where all could use equally many cores (docs/adr/same-cores.md)."""
    sign = 1.0 if METRICS[metric].better == "higher" else -1.0
    samples = collect_metric(part.ranked, metric)
    levels = {level_key(trial.levels): trial.levels for trial, _ in part.ranked}
    first_logs, second_logs = (_compute_mean_logs(samples, names) for names in (first, second))
    uneven = _find_uneven(part, (*first, *second))
    by_fixed: dict[tuple[str, ...], Contrasts] = {}
    for block, key in sorted(first_logs.keys() & second_logs.keys()):
        values = levels[key]
        fixed = tuple(level_words(name, value) for name, value in values.items() if name != factor)
        position = place(values[factor])
        if position is not None and key not in uneven:
            by_fixed.setdefault(fixed, {}).setdefault(position, {})[block] = sign * (
                first_logs[block, key] - second_logs[block, key]
            )
    return by_fixed


def _find_uneven(part: ScenarioTrials, names: Sequence[str]) -> set[str]:
    """Return the keys of the levels at which the contestants could not all use equally many cores."""
    usable = find_usable_cores(part.scenario, [trial for trial, _ in part.ranked], part.about, part.cores_allowed)
    numbers: dict[str, set[frozenset[int]]] = {}
    for name in names:
        for level, cores in usable.get(name, {}).items():
            numbers.setdefault(level, set()).add(cores)
    return {level for level, cores in numbers.items() if len(cores) > 1}


def _list_uneven_places(part: ScenarioTrials, factor: str, names: Sequence[str]) -> tuple[float, ...]:
    levels = {level_key(trial.levels): trial.levels for trial, _ in part.ranked}
    places = {place(levels[key][factor]) for key in _find_uneven(part, names)}
    return tuple(sorted(position for position in places if position is not None))


def _compute_mean_logs(samples: Mapping[str, Samples], names: Sequence[str]) -> dict[BlockLevel, float]:
    """Return the mean logarithm over the members of a side, where all have a figure."""
    members = [samples.get(name, {}) for name in names]
    shared = set[BlockLevel].intersection(*(set(member) for member in members)) if members else set[BlockLevel]()
    return {cell: sum(math.log(member[cell]) for member in members) / len(members) for cell in shared}


def find_flips(
    part: ScenarioTrials, factor: str, first: str, second: str, metric: str | None = None
) -> tuple[FlipFound, ...]:
    """Find the flips for each combination of the other factors in which both were measured. The metric is the
    question's own unless given."""
    name = metric or part.scenario.metric
    positions = [position for level in part.scenario.factors[factor] if (position := place(level)) is not None]
    log = min(positions) > 0 and max(positions) / min(positions) > LOG_FROM
    bounded, uneven = (
        list_places(part, factor, (first, second)) for list_places in (_list_bounded, _list_uneven_places)
    )
    return tuple(
        FlipFound(
            part.scenario.name,
            factor,
            name,
            _are_durations(part.scenario, factor),
            first,
            second,
            fixed,
            log,
            flips(by_level, log=log),
            bounded,
            uneven,
        )
        for fixed, by_level in _contrast(part, factor, name, (first,), (second,)).items()
    )


def follow_flip(flip: Flip, part: ScenarioTrials, significance: float = stats.SIGNIFICANCE) -> FlipFound:
    """Return the state of the run's search for a flip."""
    sides = [plan.select_side(flip, name, part.contestants) for name in (flip.first, flip.second)]
    contrasts = _contrast(part, flip.along, flip.metric, *sides).get((), {})
    low, high = (place(end) or 0.0 for end in (flip.low, flip.high))
    bounds = Bounds(low, high, flip.within, part.scenario.most_blocks or FLIP_LOOKS[-1])
    bisection = bisect(
        contrasts, _count_blocks(part, flip.along), bounds, partial(plan.find_middle, flip), significance
    )
    return FlipFound(
        flip.scenario,
        flip.along,
        flip.metric,
        _are_durations(part.scenario, flip.along),
        flip.first,
        flip.second,
        (),
        log=True,
        flips=bisection.flips,
        bounded=_list_bounded(part, flip.along, (*sides[0], *sides[1])),
        uneven=_list_uneven_places(part, flip.along, (*sides[0], *sides[1])),
        pursuit=Pursuit(flip.within, bisection.narrow, bisection.next_levels, bisection.needed),
    )


def _count_blocks(part: ScenarioTrials, factor: str) -> dict[float, int]:
    """Count the blocks that had each level, whatever the outcome of its trials."""
    blocks: dict[float, set[int]] = {}
    for trial in part.trials:
        position = place(trial.levels[factor])
        if position is not None:
            blocks.setdefault(position, set()).add(trial.block)
    return {position: len(numbers) for position, numbers in blocks.items()}


def _list_bounded(part: ScenarioTrials, factor: str, names: Sequence[str]) -> tuple[float, ...]:
    """Return the places where a trial of the contestants shows only the generator's limit."""
    places = {
        place(trial.levels[factor]) for trial in part.trials if trial.contestant in names and trial.status == "censored"
    }
    return tuple(sorted(position for position in places if position is not None))


def _are_durations(scenario: Scenario, factor: str) -> bool:
    return any(isinstance(level, str) for level in scenario.factors[factor])
