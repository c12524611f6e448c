"""Where along one factor of a question the better of two sides changes, from the levels that were run. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

from netdyno.analysis.flips.found import FlipFound, Pursuit
from netdyno.analysis.ground import usable_cores
from netdyno.analysis.samples import of_metric
from netdyno.analysis.split import Part
from netdyno.experiment import flips as plan
from netdyno.model.experiment import Flip, Scenario
from netdyno.model.levels import level_key, level_words, place
from netdyno.model.metrics import METRICS
from netdyno.statistics import stats
from netdyno.statistics.bisection import Bisection, Bounds, bisect
from netdyno.statistics.block_counts import FLIP_LOOKS
from netdyno.statistics.flips import flips
from netdyno.statistics.stats import Cell, Samples

LOG_FROM = 8
"""The least span of levels that is laid out on a logarithmic axis, as in the figures of the report."""


def can_be_asked(scenario: Scenario, factor: str) -> bool:
    """Whether it has several levels of the factor, and these lie on an axis."""
    levels = scenario.factors.get(factor, ())
    return len(levels) > 1 and all(place(level) is not None for level in levels)


Contrasts = dict[float, dict[int, float]]
"""By place and block."""


def _contrasts(
    part: Part, factor: str, metric: str, first: Sequence[str], second: Sequence[str]
) -> dict[tuple[str, ...], Contrasts]:
    """By the levels of the other factors: how much better the first side is, in blocks where all of both sides have a
    figure, and where all could use equally many cores (docs/adr/same-cores.md)."""
    sign = 1.0 if METRICS[metric].better == "higher" else -1.0
    samples = of_metric(part.ranked, metric)
    levels = {level_key(trial.levels): trial.levels for trial, _ in part.ranked}
    ours, theirs = (_of_side(samples, names) for names in (first, second))
    uneven = _uneven(part, (*first, *second))
    found: dict[tuple[str, ...], Contrasts] = {}
    for block, key in sorted(ours.keys() & theirs.keys()):
        values = levels[key]
        fixed = tuple(level_words(other, value) for other, value in values.items() if other != factor)
        at = place(values[factor])
        if at is not None and key not in uneven:
            found.setdefault(fixed, {}).setdefault(at, {})[block] = sign * (ours[block, key] - theirs[block, key])
    return found


def _uneven(part: Part, names: Sequence[str]) -> set[str]:
    """Return the keys of the levels at which these could not all use equally many cores."""
    usable = usable_cores(part.scenario, [trial for trial, _ in part.ranked], part.about, part.cores_allowed)
    numbers: dict[str, set[frozenset[int]]] = {}
    for name in names:
        for level, cores in usable.get(name, {}).items():
            numbers.setdefault(level, set()).add(cores)
    return {level for level, several in numbers.items() if len(several) > 1}


def _uneven_places(part: Part, factor: str, names: Sequence[str]) -> tuple[float, ...]:
    levels = {level_key(trial.levels): trial.levels for trial, _ in part.ranked}
    places = {place(levels[key][factor]) for key in _uneven(part, names)}
    return tuple(sorted(at for at in places if at is not None))


def _of_side(samples: Mapping[str, Samples], names: Sequence[str]) -> dict[Cell, float]:
    """The mean logarithm of its members, where all have a figure."""
    members = [samples.get(name, {}) for name in names]
    shared = set[Cell].intersection(*(set(one) for one in members)) if members else set[Cell]()
    return {cell: sum(math.log(one[cell]) for one in members) / len(members) for cell in shared}


def found(part: Part, factor: str, first: str, second: str, metric: str | None = None) -> tuple[FlipFound, ...]:
    """One for each combination of the other factors in which both were measured. The metric is the question's own
    unless said."""
    name = metric or part.scenario.metric
    asked = [at for level in part.scenario.factors[factor] if (at := place(level)) is not None]
    log = min(asked) > 0 and max(asked) / min(asked) > LOG_FROM
    bounded, uneven = (of(part, factor, (first, second)) for of in (_bounded, _uneven_places))
    return tuple(
        FlipFound(
            part.scenario.name,
            factor,
            name,
            _durations(part.scenario, factor),
            first,
            second,
            fixed,
            log,
            flips(by_level, log=log),
            bounded,
            uneven,
        )
        for fixed, by_level in _contrasts(part, factor, name, (first,), (second,)).items()
    )


def pursued(flip: Flip, part: Part, level: float = stats.LEVEL) -> FlipFound:
    """What a flip that the run goes after has come to."""
    sides = [plan.side(flip, name, part.contestants) for name in (flip.first, flip.second)]
    contrasts = _contrasts(part, flip.along, flip.metric, *sides).get((), {})
    found = bisected(flip, contrasts, _tried(part, flip.along), part.scenario.most_blocks or FLIP_LOOKS[-1], level)
    return FlipFound(
        flip.scenario,
        flip.along,
        flip.metric,
        _durations(part.scenario, flip.along),
        flip.first,
        flip.second,
        (),
        log=True,
        flips=found.flips,
        bounded=_bounded(part, flip.along, (*sides[0], *sides[1])),
        uneven=_uneven_places(part, flip.along, (*sides[0], *sides[1])),
        pursuit=Pursuit(flip.within, found.narrow, found.wanted, found.needed),
    )


def bisected(
    flip: Flip, contrasts: Mapping[float, Mapping[int, float]], tried: Mapping[float, int], most: int, level: float
) -> Bisection:
    """The bisection of a flip with these contrasts."""
    low, high = (place(end) or 0.0 for end in (flip.low, flip.high))
    return bisect(contrasts, tried, Bounds(low, high, flip.within, most), partial(plan.middle, flip), level)


def _tried(part: Part, factor: str) -> dict[float, int]:
    """How many blocks had each level, whatever came of its trials."""
    blocks: dict[float, set[int]] = {}
    for trial in part.trials:
        at = place(trial.levels[factor])
        if at is not None:
            blocks.setdefault(at, set()).add(trial.block)
    return {at: len(numbers) for at, numbers in blocks.items()}


def _bounded(part: Part, factor: str, names: Sequence[str]) -> tuple[float, ...]:
    """Where a trial of these says only how fast the generator is."""
    places = {
        place(trial.levels[factor]) for trial in part.trials if trial.contestant in names and trial.status == "censored"
    }
    return tuple(sorted(at for at in places if at is not None))


def _durations(scenario: Scenario, factor: str) -> bool:
    return any(isinstance(level, str) for level in scenario.factors[factor])
