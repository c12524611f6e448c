"""The rule that ends the blocks of a comparison: it looks at widths, for a while, and not at signs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from netdyno.kit.statistics import precision, stats
from netdyno.kit.statistics.block_counts import EARLIEST_END, FIRST_LOOK, LOOKS
from netdyno.kit.statistics.stats import Pairs


def pairs_of(differences: list[float]) -> Pairs:
    count = len(differences)
    return Pairs(np.arange(count), np.zeros(count, dtype=np.int64), np.array(differences))


def first_settled(differences: list[float], width: float) -> int:
    """After how many blocks the rule ends, 0 for never."""
    counts = range(1, len(differences) + 1)
    return next((count for count in counts if precision.settled(pairs_of(differences[:count]), width)), 0)


def noisy(seed: int, count: int, spread: float, mean: float = 0.0) -> list[float]:
    return [float(value) for value in np.random.default_rng(seed).normal(mean, spread, count)]


def test_a_half_width_is_how_far_the_interval_goes_from_its_middle_as_a_factor() -> None:
    pairs = pairs_of(noisy(1, 9, 0.1))
    interval = stats.mean_interval(pairs)
    assert interval is not None
    low, high = math.exp(interval.low), math.exp(interval.high)
    assert precision.half_width(pairs) == pytest.approx(high / math.sqrt(low * high) - 1)
    assert precision.half_width(pairs) == pytest.approx(math.sqrt(low * high) / low - 1)
    assert precision.half_width(pairs_of([0.1] * 4)) == math.inf


def test_which_is_called_a_does_not_matter() -> None:
    differences = noisy(2, 30, 0.1)
    assert first_settled(differences, 0.05) == first_settled([-value for value in differences], 0.05) > EARLIEST_END


def test_even_without_any_noise_it_takes_the_first_look_and_those_after_it() -> None:
    assert first_settled([0.0] * 20, 0.01) == EARLIEST_END == FIRST_LOOK + LOOKS - 1


def test_an_interval_must_be_narrow_at_looks_in_succession() -> None:
    """A rough beginning, then quiet: the rule ends just so many looks after the first narrow one."""
    differences = [0.2 * (-1) ** block for block in range(10)] + [0.0] * 40
    first = next(
        count
        for count in range(FIRST_LOOK, len(differences))
        if precision.is_narrow(pairs_of(differences[:count]), 0.06)
    )
    assert first > FIRST_LOOK
    assert first_settled(differences, 0.06) == first + LOOKS - 1


def test_one_wide_look_among_the_last_begins_the_count_again() -> None:
    quiet = [0.001 * (-1) ** block for block in range(EARLIEST_END - 1)]
    settled = [*quiet, 0.001]
    assert precision.settled(pairs_of(settled), 0.02)
    upset = [*quiet, 0.3]
    assert not precision.settled(pairs_of(upset), 0.02)
    assert not precision.settled(pairs_of([*upset, *([0.0] * (LOOKS - 1))]), 0.02)


def test_signs_that_happen_to_agree_do_not_end_the_blocks() -> None:
    """The same scatter, once about nothing and once about a mean that the test would nearly take for a difference: the
    intervals are equally narrow, and only the first is at its end."""
    scatter = [0.05 * (-1) ** block for block in range(EARLIEST_END)]
    agreeing = [0.05 + value for value in scatter]
    counts = range(FIRST_LOOK, EARLIEST_END + 1)
    width = 1.15 * max(precision.half_width(pairs_of(agreeing[:count])) for count in counts)
    assert precision.settled(pairs_of(scatter), width)
    assert not precision.settled(pairs_of(agreeing), width)


def test_the_cautious_width_does_not_know_the_signs() -> None:
    differences = noisy(4, 12, 0.1, mean=0.2)
    turned = [difference * (-1) ** number for number, difference in enumerate(differences)]
    first, second = (precision.half_about_none(np.array(signed)) for signed in (differences, turned))
    assert first == pytest.approx(second)
    assert first > math.log1p(precision.half_width(pairs_of(differences)))


def test_a_difference_beyond_doubt_need_not_be_none() -> None:
    clear = noisy(3, EARLIEST_END, 0.01, mean=0.7)
    assert precision.half_about_none(np.full(EARLIEST_END, 0.7)) > math.log1p(0.05)
    assert precision.settled(pairs_of(clear), 0.05)


def test_a_block_counts_once_however_many_levels_it_has() -> None:
    blocks = np.repeat(np.arange(EARLIEST_END - 1), 3)
    levels = np.tile(np.arange(3), EARLIEST_END - 1)
    assert not precision.settled(Pairs(blocks, levels, np.zeros(len(blocks))), 0.05)
