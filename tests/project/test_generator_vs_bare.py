"""The comparison of the generator with a bare loop says how far its own figure can be trusted."""

from __future__ import annotations

import pytest

from tests.support import bench_script

generator_vs_bare = bench_script.load("generator_vs_bare")


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        (1, "too few rounds for an interval"),
        (5, "too few rounds for an interval"),  # all lie on one side of the median with a chance of 2 in 32
        (6, "95% 1.000 to 6.000"),
        (9, "95% 2.000 to 8.000"),  # the sign test's ranks, e.g. Conover, Practical Nonparametric Statistics
        (15, "95% 4.000 to 12.000"),
        (45, "95% 16.000 to 30.000"),
    ],
)
def test_the_interval_of_a_median_lies_as_far_in_as_chance_allows(rounds: int, expected: str) -> None:
    assert generator_vs_bare.interval_of_median([float(value) for value in range(rounds, 0, -1)]) == expected
