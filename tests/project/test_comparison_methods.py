"""The simulation behind docs/adr/statistics.md: it simulates what netdyno does, and says what the record says."""

from __future__ import annotations

import itertools
import math
from types import ModuleType

import numpy as np
import pytest

from netdyno.analysis.ranking import answers, axes
from netdyno.kit.statistics import stats
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
            left,
            right,
            {name: {(block, "x"): row[names.index(name), axis] for block, row in enumerate(figures)} for name in names},
            axis=str(axis),
        )
        for (left, right), axis in itertools.product(itertools.combinations(names, 2), range(bench.AXES))
    ]
    own, rest = (
        stats.corrected([comparison for comparison in family if (comparison.axis == "0") == first])
        for first in (True, False)
    )
    p_values = bench.moderated(logs)[0].reshape(-1, bench.AXES)
    apart = bench.told_apart(bench.moderated(logs))[0].reshape(-1, bench.AXES)
    for judged, chosen in ((own, slice(0, 1)), (rest, slice(1, None))):
        assert [comparison.p for comparison in judged] == pytest.approx(p_values[:, chosen].ravel().tolist(), rel=1e-6)
        assert [comparison.different for comparison in judged] == apart[:, chosen].ravel().tolist()
    assert any(comparison.different for comparison in own)


@pytest.mark.parametrize("machine", ["normal", "t, 2 df", "one scatters 4 times as far", "levels share luck (0.5)"])
def test_among_equals_a_false_difference_comes_in_at_most_one_run_of_twenty(bench: ModuleType, machine: str) -> None:
    for share in bench.false_differences(bench.machines()[machine](1000, 6))["moderated"]:
        assert share <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)


def test_on_a_disturbed_machine_too(bench: ModuleType) -> None:
    draw = bench.machines()["stored, disturbed machine"]
    assert max(bench.false_differences(draw(500, 6))["moderated"]) <= 0.05


def test_a_further_look_of_half_the_level_calls_no_more_equals_different(bench: ModuleType) -> None:
    looked, _, before, _, after, _, whole, _ = bench.look_again("normal", 2, 0.06, 0.0, (6, 4), 1000)
    assert looked > 0.05
    assert before <= after < whole
    assert after <= 0.06


def test_borrowed_spread_finds_what_student_alone_does_not(bench: ModuleType) -> None:
    shares = bench.power(bench.NOISE["normal"], 0.1, 5, 1.2, 200)
    assert shares["moderated"] > 1.5 * shares["t"] > 0.2
    assert shares["flips"] == shares["ranks"] == 0
    assert bench.power(bench.NOISE["normal"], 0.1, 5, 2.0, 200)["moderated"] > 0.98


@pytest.mark.parametrize(("contestants", "lead"), [(2, 0.0), (5, 0.0), (5, 1.7), (12, 1.7)])
def test_the_simulated_correction_is_the_one_that_ranks(bench: ModuleType, contestants: int, lead: float) -> None:
    """Which is proven better than which, and how far each may be behind the best, run by run."""
    logs = 0.03 * bench.of_one_axis("normal", contestants, 8, 20, lead)
    means, errors, freedom = bench.compared(logs)
    beats = means > bench.reached("chosen", means, errors, freedom)
    most = means + bench.critical("with the best", contestants, freedom) * errors
    most[:, range(contestants), range(contestants)] = 0.0
    names = [f"{number:02}" for number in range(contestants)]
    for run, drawn in enumerate(np.exp(logs)):
        samples = {
            name: {(block, ""): float(figures[number]) for block, figures in enumerate(drawn)}
            for number, name in enumerate(names)
        }
        family = axes.compare_contestants({"throughput": samples}, [names], stats.LEVEL)["throughput"]
        direct = {
            comparison.a + comparison.b if comparison.ratio > 1 else comparison.b + comparison.a
            for comparison in family
            if comparison.different
        }
        assert direct == {names[better] + names[worse] for better, worse in zip(*np.nonzero(beats[run]), strict=True)}
        for number, name in enumerate(names):
            bound = answers.compute_deficit_bound(name, names, family, "higher", stats.LEVEL)
            assert math.log(bound) == pytest.approx(max(0.0, most[run, :, number].max()))


def test_a_server_that_leads_is_found_more_often_and_equals_are_called_different_no_more_often(
    bench: ModuleType,
) -> None:
    leads = bench.ranked(bench.of_one_axis("normal", 5, 8, 1000, math.log(1.05) / 0.03), math.log(1.05) / 0.03)
    assert leads["chosen"][1] > 0.7 > leads["pairs"][1] > 0.5 > leads["all axes"][1]
    equals = bench.ranked(bench.of_one_axis("normal", 5, 8, 1000), 0.0)
    assert equals["chosen"][0] <= 0.05 < 0.1 < equals["with the best"][0]
