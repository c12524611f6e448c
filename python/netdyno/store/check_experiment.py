"""The check of a stored experiment for values that no experiment from TOML can have: a file of foreign origin is well
formed and yet impossible, and the analysis of a run relies on what the TOML reader has checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from netdyno.model.base import MOST
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.levels import check_combinations, count_combinations
from netdyno.model.metrics import METRICS
from netdyno.model.options import SERVER, option_of
from netdyno.model.values import DURATION

_POSITIVE = ("least_published", "within")
"""The numbers of claims and flips of which a logarithm is taken."""


def check_experiment(experiment: Experiment) -> None:
    """Raise ValueError for a number, an option, a metric or the name of a scenario that no experiment can have."""
    check_combinations("its experiment", sum(map(count_combinations, experiment.scenarios)))
    for scenario in experiment.scenarios:
        _check_options(scenario)
    if experiment.seed < 0:
        raise ValueError(f"the seed {experiment.seed} is below 0")
    stored = msgspec.to_builtins(experiment)
    check_numbers({key: value for key, value in stored.items() if key != "seed"})
    names = {scenario.name for scenario in experiment.scenarios}
    for table in _list_tables([stored["claims"], stored["figures"], stored["flips"]]):
        _check_table(table, names)


def check_numbers(stored: object) -> None:
    """Raise ValueError where a number in these values is beyond those of a measurement (model/base.py)."""
    for value in _walk(stored):
        if isinstance(value, int | float) and not abs(value) <= MOST:
            raise ValueError(f"the number {str(value)[:30]} is not between {-MOST} and {MOST}")


def _check_options(scenario: Scenario) -> None:
    """An option of an older netdyno is only shown, and may have any value."""
    for name, value in (*scenario.server.items(), *scenario.where_possible.items()):
        if name in SERVER and option_of(name).takes is DURATION:
            DURATION.read(value)
    for name, levels in scenario.factors.items():
        if not levels:
            raise ValueError(f"the factor {name!r} has no level")


def _check_table(table: Mapping[str, object], names: set[str]) -> None:
    scenario = table.get("scenario")
    if isinstance(scenario, str) and scenario not in names:
        raise ValueError(f"it names the scenario {scenario[:100]!r}, which it does not have")
    for key in ("metric", "why"):
        if isinstance(metric := table.get(key), str) and (metric or key == "metric") and metric not in METRICS:
            raise ValueError(f"it names the metric {metric[:100]!r}, which does not exist")
    if isinstance(at := table.get("at"), dict) and not all(at.values()):
        raise ValueError("it names a coordinate without any value")
    is_share = METRICS[str(table.get("metric") or "throughput")].scale == "share"
    for key in _POSITIVE if is_share else (*_POSITIVE, "threshold"):
        if isinstance(value := table.get(key), int | float) and value <= 0:
            raise ValueError(f"{key} is {value}, and must be above 0")


def _list_tables(stored: object) -> Iterator[Mapping[str, object]]:
    for value in _walk(stored):
        if isinstance(value, dict):
            yield value


def _walk(stored: object) -> Iterator[object]:
    """Yield a value and all those in it."""
    waiting = [stored]
    while waiting:
        value = waiting.pop()
        yield value
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
