"""Fisher's exact test, beside counts by hand and every way to deal out events."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from netdyno.kit.statistics.exact import compute_chance


@pytest.mark.parametrize(
    ("counts", "chance"),
    [
        ((5, 5, 0, 5), Fraction(1, 252)),
        ((4, 4, 0, 4), Fraction(1, 70)),
        ((1, 18, 0, 36), Fraction(1, 3)),
        ((1, 18, 0, 18), Fraction(1, 2)),
        ((0, 18, 3, 18), 1),
        ((3, 3, 0, 0), 1),
        ((6, 6, 6, 6), 1),
    ],
)
def test_the_chance_is_that_of_counts_by_hand(counts: tuple[int, int, int, int], chance: Fraction | int) -> None:
    assert compute_chance(*counts) == pytest.approx(float(chance))


@pytest.mark.parametrize(("trials", "others"), [(2, 3), (4, 4), (5, 2)])
def test_the_chance_is_the_share_of_all_ways_to_deal_out_the_events(trials: int, others: int) -> None:
    for events in range(trials + others + 1):
        dealt = [sum(place < trials for place in way) for way in itertools.combinations(range(trials + others), events)]
        for own in range(max(0, events - others), min(trials, events) + 1):
            share = sum(count >= own for count in dealt) / len(dealt)
            assert compute_chance(own, trials, events - own, others) == pytest.approx(share)
