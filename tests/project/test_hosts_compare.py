"""What is within five per cent is told from what is not, and from what is not known well enough."""

from __future__ import annotations

import math

import pytest

from tests.support import bench_script

hosts_compare = bench_script.load("hosts_compare")


@pytest.mark.parametrize(
    ("ratios", "is_within"),
    [
        ([1.01, 0.99, 1.02, 0.98, 1.0, 1.0], True),
        ([1.06, 1.04, 1.07, 1.03, 1.05, 1.05], False),
        ([1.3, 0.7, 1.2, 0.8, 1.0, 1.0], False),
        ([1.0, 1.0, 1.0], True),
    ],
)
def test_equivalence_has_to_be_shown(ratios: list[float], is_within: bool) -> None:
    found = hosts_compare.equivalence([math.log(one) for one in ratios])
    assert (found.p < hosts_compare.LEVEL) == is_within
    assert (abs(found.mean) + found.half < hosts_compare.MARGIN) == is_within  # the 90% interval says the same


def test_the_table_has_the_second_over_the_first() -> None:
    pairs = [(hosts_compare.Figures(100, 10, 20), hosts_compare.Figures(100, 20, 20))] * 3
    told = hosts_compare.table(pairs).splitlines()
    assert told[0].split() == ["throughput", "1.000", "[1.000", "to", "1.000]", "p", "0:", "within", "5%"]
    assert told[1].split()[1] == "2.000"
    assert told[1].endswith("not shown")
