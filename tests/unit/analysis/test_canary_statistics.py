"""A machine that drifts by a factor of two: what the statistics find all the same, with the canary's audit.

What is true here: a is 15% faster than b, and b and c do not differ. Over the run the machine's speed wanders over a
range of two, between blocks and within them; in some blocks it falls to half of that for a few trials. Nothing is
timed: the figures are drawn, the trials are judged as a run judges them, and compared as the analysis compares them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import cache
from statistics import fmean, median
from typing import NamedTuple

import numpy as np
import pytest
from msgspec.structs import replace

from netdyno.kit.statistics import stats
from netdyno.kit.statistics.stats import Comparison, Samples
from netdyno.model.trial import Trial
from tests.support.builders.made_canary import judge_canary, reading, trial

RATIO = 1.15
TRUE = {"a": RATIO, "b": 1.0, "c": 1.0}
LEVELS = ("10", "100", "1000")
BLOCKS = 14
RUNS = 40
NOISE = 0.015
"""Of a trial, on a machine that stays the same; as the logarithm."""
CANARY_NOISE = 0.05
"""Of a reading."""
SHARE_OF_BAD_BLOCKS = 0.4
LONGEST_SLUMP = 3
"""Trials that a machine at half of its speed lasts."""


class Drawn(NamedTuple):
    trials: list[Trial]
    figures: Mapping[tuple[int, int], float]
    """The metric of each trial, by block and position."""


def draw(seed: int) -> Drawn:
    """A run in its order. The machine's speed is that between two trials; a trial has what lies around it."""
    random = np.random.default_rng(seed)
    phase = random.uniform(0, 2 * math.pi)
    trials: list[Trial] = []
    figures: dict[tuple[int, int], float] = {}
    for block in range(1, BLOCKS + 1):
        cells = list(itertools.product(TRUE, LEVELS))
        random.shuffle(cells)
        turns = (block + np.linspace(0, 1, len(cells) + 1)) / BLOCKS
        wander = math.log(2) / 2 * np.sin(phase + 2 * math.pi * turns)  # from 1/sqrt(2) to sqrt(2)
        machine = wander + _slump(random, len(cells) + 1)
        seen = [reading(math.exp(log + random.normal(0, CANARY_NOISE))) for log in machine]
        for position, (name, level) in enumerate(cells):
            attempt = trial(block, position, seen[position], seen[position + 1], contestant=str(name))
            trials.append(replace(attempt, levels={"connections": str(level)}))
            speed = (machine[position] + machine[position + 1]) / 2 + random.normal(0, NOISE)
            figures[block, position] = TRUE[str(name)] * math.exp(speed)
    return Drawn(trials, figures)


def _slump(random: np.random.Generator, readings: int) -> stats.Floats:
    """In some blocks, half of the speed for a few readings; as logarithms."""
    slump = np.zeros(readings)
    if random.random() < SHARE_OF_BAD_BLOCKS:
        start = int(random.integers(0, readings - LONGEST_SLUMP))
        slump[start : start + int(random.integers(1, LONGEST_SLUMP + 1))] = -math.log(2)
    return slump


def compared(drawn: Drawn, trials: Sequence[Trial]) -> dict[tuple[str, str], Comparison]:
    samples: dict[str, dict[stats.BlockLevel, float]] = {name: {} for name in TRUE}
    for attempt in trials:
        if attempt.status == "valid":
            samples[attempt.contestant][attempt.block, str(attempt.levels["connections"])] = drawn.figures[
                attempt.block, attempt.position
            ]
    given: Mapping[str, Samples] = samples
    raw = [stats.compare(first, second, given) for first, second in itertools.combinations(TRUE, 2)]
    return {(comparison.a, comparison.b): comparison for comparison in stats.corrected(raw, stats.SIGNIFICANCE)}


@cache
def with_audit() -> list[dict[tuple[str, str], Comparison]]:
    return [compared(drawn, judge_canary(drawn.trials)) for drawn in map(draw, range(RUNS))]


@cache
def without_audit() -> list[dict[tuple[str, str], Comparison]]:
    return [compared(drawn, drawn.trials) for drawn in map(draw, range(RUNS))]


def error(runs: Sequence[dict[tuple[str, str], Comparison]]) -> float:
    """Of the ratio of a to b, as a root mean square over runs; of its logarithm."""
    return math.sqrt(fmean(math.log(comparisons["a", "b"].ratio / RATIO) ** 2 for comparisons in runs))


def test_the_machine_does_drift_by_a_factor_of_two() -> None:
    for seed in range(5):
        drawn = draw(seed)
        of_b = [drawn.figures[attempt.block, attempt.position] for attempt in drawn.trials if attempt.contestant == "b"]
        assert max(of_b) / min(of_b) > 1.8


def test_a_difference_is_found_and_its_ratio_is_true() -> None:
    enough = [comparisons["a", "b"] for comparisons in with_audit() if comparisons["a", "b"].decidable]
    assert len(enough) >= RUNS - 2
    assert all(comparison.different for comparison in enough)
    ratios = [comparisons["a", "b"].ratio for comparisons in with_audit()]
    assert median(ratios) == pytest.approx(RATIO, rel=0.015)
    assert error(with_audit()) < 0.04
    covered = [span.low <= RATIO <= span.high for comparison in enough if (span := comparison.interval) is not None]
    assert sum(covered) >= 0.85 * RUNS


def test_a_tie_stays_a_tie() -> None:
    """Different by chance: at most one in twenty of the runs, and so no more than five of forty."""
    assert sum(comparisons["b", "c"].different for comparisons in with_audit()) <= 5


def test_without_the_audit_the_same_runs_are_further_from_the_truth() -> None:
    assert error(without_audit()) > 2 * error(with_audit())
    assert not all(comparisons["a", "b"].different for comparisons in without_audit())


def test_no_contestant_has_more_invalid_trials_than_another() -> None:
    invalid = dict.fromkeys(TRUE, 0)
    for drawn in map(draw, range(RUNS)):
        for attempt in judge_canary(drawn.trials):
            invalid[attempt.contestant] += attempt.status == "struck_out"
    whole = sum(invalid.values())
    assert 0.02 * RUNS * BLOCKS * 9 < whole < 0.2 * RUNS * BLOCKS * 9
    for count in invalid.values():
        assert abs(count - whole / 3) < 4 * math.sqrt(whole * 2 / 9)
