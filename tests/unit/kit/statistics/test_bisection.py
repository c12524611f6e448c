"""Which levels a flip is looked for at: the dialogue of a bisection, and what it comes to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from netdyno.kit.statistics.bisection import PATIENCE, Bisection, Bounds, bisect
from netdyno.kit.statistics.block_counts import FLIP_LOOKS

BOUNDS = Bounds(1, 1000, 1.5, FLIP_LOOKS[-1])


def middle(low: float, high: float) -> float | None:
    result = float(round(math.sqrt(low * high)))
    return result if low < result < high else None


def dialogue(truth: Callable[[float], float], bounds: Bounds = BOUNDS, spread: float = 0.01) -> Iterator[Bisection]:
    """Each answer, with a block more at the levels that it wants."""
    random = np.random.default_rng(5)
    contrasts: dict[float, dict[int, float]] = {}
    tried = Counter[float]()
    levels: tuple[float, ...] = (bounds.low, bounds.high)
    for block in range(1, 1000):
        for level in levels:
            tried[level] += 1
            contrasts.setdefault(level, {})[block] = truth(level) + spread * float(random.normal())
        bisection = bisect(contrasts, tried, bounds, middle)
        yield bisection
        levels = bisection.next_levels
        if not levels:
            return
    pytest.fail("it does not end")


def end(truth: Callable[[float], float], bounds: Bounds = BOUNDS, spread: float = 0.01) -> Bisection:
    *_, last = dialogue(truth, bounds, spread)
    return last


def test_it_begins_at_the_ends_and_halves_the_bracket_that_has_the_crossing() -> None:
    requests = [bisection.next_levels for bisection in dialogue(lambda level: math.copysign(0.2, level - 50))]
    order = list(dict.fromkeys(level for levels in requests for level in levels))
    assert order[:5] == [1, 1000, 32, 179, 76]
    (crossing,) = end(lambda level: math.copysign(0.2, level - 50)).flips.crossings
    assert crossing.rising
    assert crossing.interval.low < 50 < crossing.interval.high <= 1.5 * crossing.interval.low


def test_no_level_is_measured_more_once_it_is_decided() -> None:
    last = end(lambda level: math.copysign(0.2, level - 50))
    assert {point.blocks for point in last.flips.points} == {FLIP_LOOKS[0]}


def test_a_level_on_the_crossing_waits_and_the_ends_come_nearer() -> None:
    bisection = end(lambda level: 0.2 * math.log(level / 32))
    (crossing,) = bisection.flips.crossings
    assert crossing.interval.low < 32 < crossing.interval.high
    assert next(point.blocks for point in bisection.flips.points if point.place == 32) < FLIP_LOOKS[-1]
    assert crossing.interval.high / crossing.interval.low < 4


def test_levels_that_tell_nothing_are_measured_to_the_most_and_no_more() -> None:
    bisection = end(lambda _: 0.0)
    assert bisection.flips.verdict == "open"
    assert {point.blocks for point in bisection.flips.points} == {FLIP_LOOKS[-1]}
    assert len(bisection.flips.points) == 5


def test_others_come_before_more_blocks_of_a_level_that_seems_to_tell_nothing() -> None:
    first = next(
        bisection
        for bisection in dialogue(lambda _: 0.0)
        if len(bisection.flips.points) > 2 or 32.0 in bisection.next_levels
    )
    assert {point.blocks for point in first.flips.points} == {PATIENCE}


def test_two_crossings_are_found_where_the_levels_between_show_them() -> None:
    bisection = end(lambda level: 0.2 if level < 3 or level > 400 else -0.2)
    assert [crossing.rising for crossing in bisection.flips.crossings] == [False, True]


def test_a_level_without_any_contrast_is_given_up() -> None:
    tried = {1.0: 5, 1000.0: 5}
    bisection = bisect({1.0: dict.fromkeys(range(5), 0.2)}, tried, BOUNDS, middle)
    assert 1000.0 not in bisection.next_levels
    assert 1.0 in bisection.next_levels


def test_whole_levels_without_another_between_are_narrow() -> None:
    bisection = end(lambda level: math.copysign(0.2, level - 1.5), Bounds(1, 16, 1.1, 30))
    (crossing,) = bisection.flips.crossings
    assert (crossing.before, crossing.after) == (1, 2)
    assert bisection.narrow


@pytest.mark.parametrize("within", [1.1, 1.5, 30.0])
def test_it_never_has_more_levels_than_share_the_chance_to_err(within: float) -> None:
    bounds = Bounds(1, 1000, within, 30)
    assert len(end(lambda level: 0.1 * math.log(level / 47), bounds, 0.05).flips.points) <= bounds.levels
