"""Where the better of two changes along a factor: hand-made cases, and how often intervals and verdicts hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from netdyno.kit.statistics.flips import Flips, LevelContrasts, flips

LEVELS = (10.0, 30.0, 100.0, 300.0, 1000.0)
BLOCKS = 8
RUNS = 600


def measured(truth: list[float], noise: NDArray[np.float64]) -> LevelContrasts:
    """The true contrast of each level and a block's own noise there."""
    return {
        level: {block: truth[number] + row[number] for block, row in enumerate(noise)}
        for number, level in enumerate(LEVELS)
    }


def line(root: float, slope: float) -> list[float]:
    """Contrasts that go through 0 at `root`, in a straight line on a logarithmic axis."""
    return [slope * math.log(level / root) for level in LEVELS]


def drawn(random: np.random.Generator, heavy: bool, blocks: int = BLOCKS) -> NDArray[np.float64]:
    """What a block adds at all levels, and at each."""
    if heavy:
        return 0.03 * (random.standard_t(4, size=(blocks, 1)) + random.standard_t(4, size=(blocks, len(LEVELS))))
    return 0.04 * (random.normal(size=(blocks, 1)) + random.normal(size=(blocks, len(LEVELS))))


def still(truth: list[float]) -> Flips:
    return flips(measured(truth, np.linspace(-0.01, 0.01, BLOCKS)[:, None].repeat(len(LEVELS), 1)), log=True)


def test_a_flip_is_found_between_two_levels_with_an_interval_around_it() -> None:
    result = still(line(60.0, -0.3))
    assert result.verdict == "flip"
    (crossing,) = result.crossings
    assert (crossing.before, crossing.after, crossing.rising) == (30.0, 100.0, False)
    assert crossing.place == pytest.approx(60.0, rel=1e-6)
    assert 30 < crossing.interval.low < 60 < crossing.interval.high < 100
    assert [point.side for point in result.points] == [1, 1, -1, -1, -1]


def test_the_winner_that_is_the_same_everywhere_never_flips() -> None:
    result = still([0.3, 0.2, 0.1, 0.2, 0.3])
    assert (result.verdict, result.crossings) == ("none", ())
    assert all(point.side == 1 for point in result.points)


def test_two_flips_are_two() -> None:
    result = still([0.3, -0.1, -0.2, -0.1, 0.3])
    assert [(crossing.before, crossing.after, crossing.rising) for crossing in result.crossings] == [
        (10.0, 30.0, False),
        (300.0, 1000.0, True),
    ]


def test_equals_and_too_few_blocks_are_open() -> None:
    assert still([0.0, 0.001, 0.0, -0.001, 0.0]).verdict == "open"
    few = measured(line(60.0, 0.3), np.zeros((4, len(LEVELS))))
    result = flips(few, log=True)
    assert result.verdict == "open"
    assert {point.interval for point in result.points} == {None}


def test_the_intervals_of_all_levels_hold_together() -> None:
    blocks = {block: 0.1 * (-1) ** block for block in range(10)}
    widths = []
    for levels in (1, 5):
        interval = flips({float(number): blocks for number in range(1, levels + 1)}, log=False).points[0].interval
        assert interval is not None
        widths.append(interval.high - interval.low)
    # Student's t of 9 degrees of freedom leaves out 5% beyond 2.262, and 1% beyond 3.250.
    assert widths[1] / widths[0] == pytest.approx(3.250 / 2.262, rel=1e-3)


def test_a_winner_that_is_doubtful_at_one_level_is_open() -> None:
    assert still([0.3, 0.2, 0.001, 0.2, 0.3]).verdict == "open"


def test_means_that_go_to_and_fro_within_a_bracket_cross_once() -> None:
    result = still([-0.2, 0.002, -0.002, 0.002, 0.2])
    (crossing,) = result.crossings
    assert (crossing.before, crossing.after, crossing.rising) == (10.0, 1000.0, True)
    assert crossing.interval.low < crossing.place < crossing.interval.high


def test_on_an_axis_that_is_not_logarithmic_the_middle_is_another() -> None:
    contrasts = {level: {block: (level - 500) / 1000 + 0.001 * block for block in range(6)} for level in (100.0, 900.0)}
    result = flips(contrasts, log=False)
    assert result.crossings[0].place == pytest.approx(497.5)


@pytest.mark.parametrize("heavy", [False, True])
def test_the_interval_of_a_crossing_holds_the_truth_in_95_of_100_flips(heavy: bool) -> None:
    random = np.random.default_rng(7)
    held = crossings = 0
    for _ in range(RUNS):
        root = math.exp(random.uniform(math.log(20), math.log(500)))
        result = flips(measured(line(root, 0.15), drawn(random, heavy)), log=True)
        for crossing in result.crossings:
            crossings += 1
            held += crossing.interval.low <= root <= crossing.interval.high
    assert crossings > 0.8 * RUNS
    assert held / crossings > 0.93


@pytest.mark.parametrize("heavy", [False, True])
def test_a_flip_of_equals_is_found_in_5_of_100_at_most(heavy: bool) -> None:
    random = np.random.default_rng(11)
    results = [flips(measured([0.0] * 5, drawn(random, heavy)), log=True) for _ in range(RUNS)]
    assert sum(result.verdict != "open" for result in results) <= 0.05 * RUNS
