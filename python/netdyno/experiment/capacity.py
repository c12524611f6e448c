"""What a scenario must say for the metric `capacity`. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from netdyno.base.errors import UserError
from netdyno.model import objective
from netdyno.model.base import type_level
from netdyno.model.experiment import Scenario

CAPACITY = "capacity"
RATE = "rate"
"""The factor along which capacity is looked for."""


def coordinates(scenario: Scenario, levels: Mapping[str, type_level]) -> dict[str, type_level]:
    """The levels at which a figure of the scenario's metric stands: all of a trial's, but a capacity is found among the
    rates and has none."""
    return {name: level for name, level in levels.items() if scenario.metric != CAPACITY or name != RATE}


def check_capacity(scenario: Scenario, where: str) -> None:
    """A capacity is a place among rates, of an objective, in an open loop; and an objective is of nothing else. Raises
    UserError naming `where` and the key."""
    if scenario.metric != CAPACITY:
        if scenario.slo:
            raise UserError(f"{where}: key 'slo': is the objective of the metric 'capacity'; write it beside this key")
        return
    if not scenario.slo:
        raise UserError(f"{where}: the key 'slo' is missing; metric = 'capacity' needs an objective, such as 'p99<5ms'")
    objective.parse(scenario.slo, f"{where}: key 'slo'")
    if scenario.arrivals == "closed":
        raise UserError(
            f"{where}: key 'metric': 'capacity' needs arrivals = 'constant' or 'poisson'; a closed loop has no rate of "
            "its own to keep up with"
        )
    if RATE not in scenario.factors:
        raise UserError(f"{where}: key 'metric': 'capacity' is looked for along the factor 'rate', which is missing")
