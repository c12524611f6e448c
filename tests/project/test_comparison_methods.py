"""The simulation behind docs/adr/statistics.md: it simulates what netdyno does, and says what the record says."""

from __future__ import annotations

import itertools
import math
from types import ModuleType

import numpy as np
import pytest

from netdyno.statistics import stats
from tests.support import bench_script


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return bench_script.load("comparison_methods")


def test_the_simulated_method_is_the_one_that_judges(bench: ModuleType) -> None:
    logs = bench.machines()["normal"](1, 6)
    logs[0, :, 0] += 0.3
    names = "abcde"
    figures = np.exp(logs[0])
    family = [
        stats.compare(
            a,
            b,
            {n: {(k, "x"): row[names.index(n), axis] for k, row in enumerate(figures)} for n in names},
            axis=str(axis),
        )
        for (a, b), axis in itertools.product(itertools.combinations(names, 2), range(bench.AXES))
    ]
    judged = stats.corrected(family)
    p_values = bench.moderated(logs)
    assert [one.p for one in judged] == pytest.approx(p_values[0].tolist(), rel=1e-6)
    assert [one.different for one in judged] == bench.told_apart(p_values)[0].tolist()
    assert any(one.different for one in judged)


@pytest.mark.parametrize("machine", ["normal", "t, 2 df", "one scatters 4 times as far", "levels share luck (0.5)"])
def test_among_equals_a_false_difference_comes_in_at_most_one_run_of_twenty(bench: ModuleType, machine: str) -> None:
    found = bench.told_apart(bench.moderated(bench.machines()[machine](1000, 6))).any(1).mean()
    assert found <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)


def test_on_a_disturbed_machine_too(bench: ModuleType) -> None:
    draw = bench.machines()["stored, disturbed machine"]
    assert bench.told_apart(bench.moderated(draw(500, 6))).any(1).mean() <= 0.05


def test_borrowed_spread_finds_what_student_alone_does_not(bench: ModuleType) -> None:
    told = bench.power(bench.NOISE["normal"], 0.1, 5, 1.3, 200)
    assert told["moderated"] > 1.5 * told["t"] > 0.2
    assert told["flips"] == told["ranks"] == 0
    assert bench.power(bench.NOISE["normal"], 0.1, 5, 2.0, 200)["moderated"] > 0.98
