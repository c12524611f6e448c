"""How throughput grew with the cores of the server, or with a knob of a user's own. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from netdyno.analysis.found.notices import Scaling, Speedup
from netdyno.analysis.notices.knobs import group_siblings
from netdyno.analysis.ranking.cells import average_blocks
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.model.base import Name
from netdyno.model.levels import level_key, level_words
from netdyno.model.metrics import METRICS
from netdyno.model.trial import Trial

FACTOR = "server-cores"
Throughputs = Mapping[int, Mapping[int, float]]
"""Messages per second by number of cores, then by block."""


class ScalingPoint(msgspec.Struct, frozen=True):
    """A point of a contestant's scaling: the contestant, its other levels, the knob (empty for cores), the number."""

    contestant: Name
    other_levels: Name
    knob: Name
    number: int


def find_scaling(part: ScenarioTrials) -> tuple[Scaling, ...]:
    """Return how each contestant scaled, where it was measured on one core (or at level 1 of a knob) and on more. None
    where a schedule decides the throughput: in an open loop, and in rounds."""
    if part.scenario.scheduled:
        return ()
    scalings = (
        _describe_scaling(*key, throughputs, limited)
        for key, (throughputs, limited) in sorted(_collect_throughputs(part).items())
        if 1 in throughputs and 1 not in limited
    )
    return tuple(scaling for scaling in scalings if scaling is not None)


def _collect_throughputs(part: ScenarioTrials) -> dict[tuple[str, str, str], tuple[Throughputs, frozenset[int]]]:
    """Return throughputs by contestant, its other levels and the knob, and the numbers at which the generator was at
    its limit with any contestant."""
    saturated = {cell.level for cell in part.saturated}
    throughputs: dict[tuple[str, str, str], dict[int, dict[int, float]]] = {}
    limited: dict[tuple[str, str, str], set[int]] = {}
    siblings = _find_places(part)
    for trial, load in part.ranked:
        figure = METRICS["throughput"].value(trial, load)
        for point in (*_find_cores(part, trial), *siblings.get(trial.contestant, ())):
            key = point.contestant, ", ".join(filter(None, (point.other_levels, _describe_levels(trial)))), point.knob
            if figure:
                throughputs.setdefault(key, {}).setdefault(point.number, {})[trial.block] = figure
            if level_key(trial.levels) in saturated:
                limited.setdefault(key, set()).add(point.number)
    return {key: (by_count, frozenset(limited.get(key, ()))) for key, by_count in throughputs.items()}


def _describe_levels(trial: Trial) -> str:
    return ", ".join(level_words(*level) for level in trial.levels.items() if level[0] != FACTOR)


def _find_cores(part: ScenarioTrials, trial: Trial) -> Iterator[ScalingPoint]:
    if FACTOR in part.scenario.factors and (cores := _count_cores(trial)):
        yield ScalingPoint(trial.contestant, "", "", cores)


def _find_places(part: ScenarioTrials) -> dict[str, list[ScalingPoint]]:
    """Return the places of each sibling whose knob has numbers alone, by its name. The group is called as its first."""
    places: dict[str, list[ScalingPoint]] = {}
    servers = {program.name: program.own for program in part.about if program.own}
    for (_, knob, at), levels in group_siblings(servers).items():
        if _are_counts(levels.values()):
            for name, level in levels.items():
                places.setdefault(name, []).append(ScalingPoint(next(iter(levels)), at, knob, int(level)))
    return places


def _are_counts(levels: Iterable[str]) -> bool:
    return all(level.isdecimal() and int(level) > 0 for level in levels)


def _count_cores(trial: Trial) -> int | None:
    """Return the cores of the server; None where it had all there were, of an unknown number."""
    cores = trial.levels[FACTOR]
    if isinstance(cores, int):
        return cores
    return len(trial.pinning.server) or None if trial.pinning else None


def _describe_scaling(
    contestant: str, at: str, knob: str, throughputs: Throughputs, limited: frozenset[int]
) -> Scaling | None:
    """Return None where no block has a throughput on one core and on more."""
    shared = {cores: _compute_ratios(throughputs, [cores]) for cores in sorted(throughputs) if cores > 1}
    averaged = {
        cores: average_blocks({block: ratios[cores] for block, ratios in by_block.items()}, geometric=True)
        for cores, by_block in shared.items()
    }
    speedups = tuple(
        Speedup(cores, ratio, "at least" if cores in limited else "") for cores, ratio in averaged.items() if ratio
    )
    if not speedups:
        return None
    most = max(map(len, shared.values()))
    exact = [entry.cores for entry in speedups if not entry.bound and 2 * len(shared[entry.cores]) >= most]
    blocks = _compute_ratios(throughputs, exact) if exact else {}
    serial = {block: fit_amdahl(ratios) for block, ratios in blocks.items()}
    losses = {block: fit_gunther(ratios) for block, ratios in blocks.items()} if len(exact) > 1 else {}
    return Scaling(
        contestant=contestant,
        other_levels=at,
        speedups=speedups,
        serial=average_blocks(serial, geometric=False),
        contention=average_blocks({block: loss.contention for block, loss in losses.items()}, geometric=False),
        coherency=average_blocks({block: loss.coherency for block, loss in losses.items()}, geometric=False),
        knob=knob,
    )


def _compute_ratios(throughputs: Throughputs, cores: Sequence[int]) -> dict[int, dict[int, float]]:
    """Return the speedups of each block that has a throughput on one core and on all of `cores`."""
    return {
        block: {count: throughputs[count][block] / single for count in cores}
        for block, single in sorted(throughputs[1].items())
        if all(block in throughputs[count] for count in cores)
    }


class Gunther(NamedTuple):
    """The two losses of Gunther's law, as shares of one core's time: `contention` waits for what is shared (a lock, a
    queue), `coherency` is paid to every other core (a cache line that travels)."""

    contention: float
    coherency: float


def fit_amdahl(speedups: Mapping[int, float]) -> float:
    """Return the serial share s of Amdahl's law, S(n) = n / (1 + s (n - 1)) (AFIPS 1967), by least squares of n / S(n)
    over the numbers of cores above 1. `speedups`: throughput on n cores over that on one. Below 0: it grew faster than
    in proportion. Raises ValueError without any number above 1."""
    if not speedups or min(speedups) < 2:
        raise ValueError(f"Amdahl's law needs speedups on more than one core, got those on {sorted(speedups)}")
    (share,) = _solve({cores: (cores - 1.0,) for cores in speedups}, speedups)
    return share


def fit_gunther(speedups: Mapping[int, float]) -> Gunther:
    """Return the losses of Gunther's universal scalability law, S(n) = n / (1 + a (n - 1) + b n (n - 1)) (Guerrilla
    Capacity Planning, 2007, chapter 4), as `fit_amdahl` does. Raises ValueError with fewer than two numbers above 1."""
    if len(speedups) < 2 or min(speedups) < 2:
        raise ValueError(f"Gunther's law needs speedups on two numbers of cores above 1, got {sorted(speedups)}")
    return Gunther(*_solve({cores: (cores - 1.0, cores * (cores - 1.0)) for cores in speedups}, speedups))


def _solve(terms: Mapping[int, tuple[float, ...]], speedups: Mapping[int, float]) -> list[float]:
    """Return the factors of `terms` whose sum is closest to n / S(n) - 1, the loss relative to an ideal speedup."""
    losses = [cores / speedup - 1 for cores, speedup in speedups.items()]
    solution, *_ = np.linalg.lstsq(np.array([terms[cores] for cores in speedups]), np.array(losses), rcond=None)
    return [float(factor) for factor in solution]
