"""Intervals that hold at every look, and a count that may be asked for at any time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from netdyno.statistics import looks, stats
from netdyno.statistics.block_counts import GATE_LOOKS
from netdyno.statistics.stats import Floats, Interval, Pairs


def pairs(log_ratios: Floats) -> Pairs:
    numbers = np.arange(len(log_ratios))
    return Pairs(numbers, np.zeros_like(numbers), log_ratios)


def drawn(blocks: int, seed: int = 1, mean: float = 0.0) -> Floats:
    return np.random.default_rng(seed).normal(mean, 0.05, size=blocks)


def test_there_is_a_look_at_each_number_of_blocks_that_was_fixed_and_at_no_other() -> None:
    for blocks in (5, 6, 8, 9, 30, 300):
        intervals = list(looks.looks(pairs(drawn(blocks)), 0.05))
        assert len(intervals) == sum(count <= blocks for count in GATE_LOOKS)
    between = [looks.held(pairs(drawn(20)[:blocks]), 0.05) for blocks in (13, 14, 19, 20)]
    assert between[0] == between[1] == between[2] != between[3]


def test_a_look_is_the_interval_of_its_blocks_with_its_share_of_the_level() -> None:
    *_, last = looks.looks(pairs(drawn(13)), 0.05)
    assert last == stats.mean_interval(pairs(drawn(13)), 0.05 / len(GATE_LOOKS))


def test_what_is_left_is_within_every_look_unless_they_contradict_each_other() -> None:
    several = list(looks.looks(pairs(drawn(30)), 0.05))
    left = looks.held(pairs(drawn(30)), 0.05)
    assert left == Interval(max(look.low for look in several), min(look.high for look in several))
    moved = np.concatenate([drawn(6) / 100, drawn(7, mean=3.0)])
    assert looks.held(pairs(moved), 0.05) == list(looks.looks(pairs(moved), 0.05))[-1]


def test_who_ends_at_the_look_that_suits_gets_an_interval_without_the_truth_in_few_of_the_runs() -> None:
    random = np.random.default_rng(1)
    level, runs, missed, of_one = 0.2, 400, 0, 0
    for _ in range(runs):
        ratios = pairs(random.normal(0, 0.1, size=68))
        missed += any(not interval.low <= 0 <= interval.high for interval in looks.looks(ratios, level))
        of_one += any(
            not interval.low <= 0 <= interval.high
            for count in GATE_LOOKS[:7]
            if (interval := stats.mean_interval(pairs(ratios.log_ratios[:count]), level)) is not None
        )
    assert missed / runs <= level
    assert of_one / runs > 1.5 * level, "an interval that is made for one look"


@pytest.mark.parametrize(("more", "fewer"), [(3, 0), (6, 3), (0, 20), (10, 10)])
def test_what_chance_may_bring_about_is_not_more_often(more: int, fewer: int) -> None:
    assert not looks.more_often(more, fewer, 0.05)


@pytest.mark.parametrize(("more", "fewer"), [(9, 0), (20, 4)])
def test_what_chance_does_not_is(more: int, fewer: int) -> None:
    assert looks.more_often(more, fewer, 0.05)


def test_asked_after_every_time_it_errs_no_more_often_than_it_may() -> None:
    random, level, errors = np.random.default_rng(2), 0.2, 0
    for _ in range(500):
        steps = np.cumsum(random.integers(2, size=60))
        errors += any(looks.more_often(int(more), count - int(more), level) for count, more in enumerate(steps, 1))
    assert 0 < errors / 500 <= level


def test_the_likelihood_ratio_is_that_of_any_share() -> None:
    """2^n m! f! / (n + 1)! is the integral of p^m (1 - p)^f over all p, by that of half."""
    shares = np.linspace(0, 1, 100_001)
    integral = float(np.mean(shares**7 * (1 - shares) ** 2)) * 2**9
    assert integral == pytest.approx(2**9 / (math.comb(9, 7) * 10), rel=1e-3)
    assert looks.more_often(7, 2, 1.001 / integral)
    assert not looks.more_often(7, 2, 0.999 / integral)
