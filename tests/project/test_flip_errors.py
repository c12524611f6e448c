"""The simulation behind docs/flips.md: intervals of crossings hold the truth, and equals have no flip."""

from __future__ import annotations

import pytest

from netdyno.analysis.flips.judge_flips import follow_flip
from tests.support import bench_script

BENCH = bench_script.load("flip_errors")
RUNS = 10


def test_it_chooses_levels_by_the_rule_of_runs() -> None:
    assert BENCH.bisect_flip.__module__ == follow_flip.__module__


@pytest.mark.parametrize("truth", ["steady", "step"])
def test_intervals_hold_the_crossing_on_a_disturbed_machine(truth: str) -> None:
    rates = BENCH.rates(RUNS, BENCH.SHAPES["a disturbed machine's"], 0.03, BENCH.TRUTHS[truth])
    assert rates.verdicts["flip"] == RUNS
    assert rates.held >= RUNS - 1
    assert rates.ratio < 3


def test_equals_have_no_flip() -> None:
    rates = BENCH.rates(RUNS, BENCH.SHAPES["normal"], 0.03, BENCH.TRUTHS["equal"])
    assert rates.verdicts["open"] >= RUNS - 1
