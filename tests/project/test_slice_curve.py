"""What bench/slice_curve.py makes of the readings of a load."""

from __future__ import annotations

import math

import pytest

from netdyno.question import experiment as experiments
from tests.support import bench_script

curve = bench_script.load("slice_curve")


def test_each_interval_is_related_to_the_median_of_the_second_half() -> None:
    """A single stall there leaves the rest as it is, and an interval without a completion has no response time."""
    series = {"completed": [0, 50, *[100] * 18], "p50_ns": [None, 30, *[20] * 18], "p99_ns": [40] * 19 + [4000]}
    readings = [curve.CurveReading(cpu_s=0.5 * number, switches=10 * number) for number in range(22)]
    related = curve.relate_to_second_half(series, readings, drain_s=0.25)
    assert related.ratios["throughput"][:3] == pytest.approx([0.01, 0.5, 1.0])
    assert math.isnan(related.ratios["p50"][0])
    assert related.ratios["p50"][1] == 1.5
    assert related.ratios["p99"] == [1.0] * 19 + [100.0]
    assert related.ratios["cpu"][1:3] == [2.0, 1.0]
    assert related.ratios["switches"][1:3] == [2.0, 1.0]
    assert (related.drain_s, related.drain_cpu_s) == (0.25, 0.5)


def test_the_loads_of_the_curve_are_those_of_quick() -> None:
    quick = experiments.load(experiments.find("quick", experiments.find_experiments_folder()))
    scenarios = {scenario.name: scenario for scenario in quick.scenarios}
    for name, (_, load) in curve.LOADS.items():
        scenario = scenarios[name.partition("-")[0]]
        assert load[load.index("--workload") + 1] == scenario.workload
        assert set(curve.CONTESTANTS) <= set(scenario.contestants)
