"""The machine's disturbances: how often trials were retried, for what, and whether some contestants were hit more than
others. Pure functions of trials that were judged by outcomes.judge_run."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from netdyno.analysis.found.notices import Retried, RetriedSlices, Retries
from netdyno.model import outcomes
from netdyno.model.levels import level_key
from netdyno.model.trial import Slice, Trial

SHUFFLES = 2_000
"""The number of shuffles of the test; the smallest p is 1 / (SHUFFLES + 1)."""


def summarise_retries(trials: Sequence[Trial], seed: int) -> Retries:
    """Count the retries over all scenarios, the twins of the A/A control included."""
    places: dict[tuple[int, str, str, str, bool], list[Trial]] = {}
    for trial in trials:
        place = (trial.block, trial.scenario, level_key(trial.levels), trial.contestant, trial.twin)
        places.setdefault(place, []).append(trial)
    disturbed = [[trial for trial in tries if outcomes.is_disturbed(trial)] for tries in places.values()]
    causes = Counter(audit.name for tries in disturbed for trial in tries for audit in outcomes.disturbances(trial))
    by_contestant: dict[str, list[int]] = {}
    groups: dict[tuple[int, str, str], list[tuple[str, int]]] = {}
    slices_of_groups: dict[tuple[int, str, str], list[tuple[str, int]]] = {}
    slices: dict[str, RetriedSlices] = {}
    programs: Counter[str] = Counter()
    turns_dropped: set[tuple[tuple[int, str, str], int, int]] = set()
    for tries in places.values():
        first, again = tries[0], max(trial.attempt for trial in tries) - 1
        if first.status != "skipped":
            by_contestant.setdefault(first.contestant, []).append(again)
            group = (first.block, first.scenario, level_key(first.levels))
            groups.setdefault(group, []).append((first.contestant, again))
            disturbed_slices = [part for trial in tries for part in _list_retried_slices(trial)]
            slices_of_groups.setdefault(group, []).append((first.contestant, len(disturbed_slices)))
            turns_dropped |= {(group, trial.attempt, turn) for trial in tries for turn in _list_dropped_turns(trial)}
            programs.update(part.foreign_program for part in disturbed_slices)
            before = slices.get(first.contestant, RetriedSlices(0, 0))
            slices[first.contestant] = RetriedSlices(
                before.again + len(disturbed_slices),
                before.slices + sum(len(trial.slices) for trial in tries),
            )
    cells = {name: len(retries) for name, retries in by_contestant.items()}
    return Retries(
        tries=sum(map(sum, by_contestant.values())),
        cells=len({place[1:] for place, tries in places.items() if any(map(outcomes.is_disturbed, tries))}),
        by_contestant={name: Retried(sum(retries), len(retries)) for name, retries in sorted(by_contestant.items())},
        causes=dict(causes.most_common()),
        p=_test_chance(list(groups.values()), cells, seed),
        given_up=sum(outcomes.is_disturbed(tries[-1]) for tries in places.values()),
        slices_by_contestant=dict(sorted(slices.items())),
        slices_again=dict(programs.most_common()),
        slices_p=_test_chance(list(slices_of_groups.values()), cells, seed),
        turns_dropped=len(turns_dropped),
    )


def _list_retried_slices(trial: Trial) -> list[Slice]:
    """Return the slices of a trial that were followed by another in the same turn."""
    return [part for part, following in itertools.pairwise(trial.slices) if part.turn == following.turn]


def _list_dropped_turns(trial: Trial) -> set[int]:
    """Return the turns of which no slice was kept."""
    return {part.turn for part in trial.slices} - {part.turn for part in trial.slices if part.kept}


def _test_chance(groups: Collection[Sequence[tuple[str, int]]], cells: Mapping[str, int], seed: int) -> float | None:
    """Return the p of a permutation test: within a block and load the contestants ran in random order, so that each is
    equally likely to have met the neighbour. The statistic is the largest distance of a contestant's mean from that of
    all. None where nothing was retried."""
    if not any(again for group in groups for _, again in group):
        return None
    names = sorted(cells)
    counts = np.array([cells[name] for name in names], dtype=np.float64)
    randomness = np.random.default_rng(seed)

    def furthest(totals: np.ndarray) -> float:
        return float(np.max(np.abs(totals / counts - totals.sum() / counts.sum())))

    observed = np.zeros(len(names))
    shuffled = np.zeros((SHUFFLES, len(names)))
    for group in groups:
        columns = [names.index(name) for name, _ in group]
        again = np.array([count for _, count in group], dtype=np.float64)
        np.add.at(observed, columns, again)
        if again.any():
            drawn = randomness.permuted(np.tile(again, (SHUFFLES, 1)), axis=1)
            for column, drawn_counts in zip(columns, drawn.T, strict=True):
                shuffled[:, column] += drawn_counts
    beyond = sum(furthest(totals) >= furthest(observed) - 1e-12 for totals in shuffled)
    return (1 + beyond) / (1 + SHUFFLES)
