"""The simulation behind docs/adr/gate.md: no gate of equal servers fails, and none of a slower server passes."""

from __future__ import annotations

import numpy as np
import pytest

from netdyno.analysis.gate.judge_gate import judge
from netdyno.kit.statistics.block_counts import GATE_LOOKS
from tests.support import bench_script

BENCH = bench_script.load("gate_errors")
GATES = 40


def test_it_decides_by_the_rule_of_gates() -> None:
    assert BENCH.decide_gate.__module__ == BENCH.decide_outcome.__module__ == judge.__module__
    assert set(GATE_LOOKS) > {BENCH.MOST}


@pytest.mark.parametrize("shape", BENCH.SHAPES)
def test_the_blocks_that_are_drawn_have_the_spread_that_is_stated(shape: str) -> None:
    random = np.random.default_rng(3)
    blocks = np.concatenate([BENCH.SHAPES[shape](random, 500) for _ in range(40)])
    assert abs(blocks.mean()) < 0.1
    assert blocks.std() == pytest.approx(1, abs=0.25)


@pytest.mark.parametrize("shape", BENCH.SHAPES)
def test_errors_are_as_rare_as_the_record_says(shape: str) -> None:
    equal, _ = BENCH.rates(GATES, BENCH.SHAPES[shape], 0.03, 1.0)
    slower, _ = BENCH.rates(GATES, BENCH.SHAPES[shape], 0.03, 1.1)
    assert (equal["passes"], equal["fails"]) == (GATES, 0)
    assert (slower["passes"], slower["fails"]) == (0, GATES)
