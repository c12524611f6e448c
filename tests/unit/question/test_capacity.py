"""The metric `capacity` in an experiment file: what it needs, and what is refused."""

from __future__ import annotations

import itertools
import re

import msgspec
import pytest

from netdyno.kit.errors import UserError
from netdyno.kit.paths import ROOT
from netdyno.question import experiment

GOOD = """
question = "Who keeps up?"
contestants = ["asio-*"]
blocks = 2
warmup = "100ms"
duration = "1s"
[[scenario]]
name = "keep-up"
workload = "rpc"
arrivals = "poisson"
metric = "capacity"
objective = "p99<5ms"
size = 64
[scenario.factors]
rate = [1000, 2000]
"""


def test_a_scenario_may_ask_for_capacity() -> None:
    (scenario,) = experiment.parse(GOOD, "good", "good.toml").scenarios
    assert (scenario.metric, scenario.objective, scenario.factors["rate"]) == ("capacity", "p99<5ms", (1000, 2000))
    assert msgspec.to_builtins(scenario)["slo"] == "p99<5ms"  # as in every stored run


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('objective = "p99<5ms"\n', "", "the key 'objective', such as 'p99<5ms', is missing"),
        ('"p99<5ms"', '"p99<5"', "key 'objective': the limit of 'p99': '5' is not a duration"),
        ('"p99<5ms"', "5", "key 'objective': 5 is not a text"),
        ('metric = "capacity"\n', "", "key 'objective': is that of the metric 'capacity'"),
        ('"poisson"', '"poisson"\nburst-rate = 9', "key 'burst-rate': the metric 'capacity' needs windows of one rate"),
        ('"poisson"', '"closed"', "'capacity' needs arrivals = 'constant' or 'poisson'"),
        ("rate = [1000, 2000]", "connections = [1, 2]", "needs the factor 'rate', which is missing"),
        ('"capacity"', '"capasity"', "did you mean 'capacity'?"),
    ],
)
def test_what_is_missing_or_wrong_is_one_line(old: str, new: str, complaint: str) -> None:
    assert old in GOOD
    with pytest.raises(UserError, match=re.escape(complaint)) as caught:
        experiment.parse(GOOD.replace(old, new), "good", "good.toml")
    assert str(caught.value).startswith("good.toml: scenario 1 ('keep-up'): ")


def test_the_experiment_of_the_repository_has_rates_of_equal_ratios() -> None:
    """The step of the grid is the resolution of a capacity; equal ratios make it the same for all."""
    for size in experiment.list_budgets(ROOT / "experiments" / "capacity.toml"):
        loaded = experiment.load(ROOT / "experiments" / "capacity.toml", size)
        for scenario in loaded.scenarios:
            assert scenario.metric == "capacity"
            rates = [float(rate) for rate in scenario.factors["rate"]]
            ratios = [high / low for low, high in itertools.pairwise(rates)]
            assert rates == sorted(rates)
            assert max(ratios) / min(ratios) < 1.06
