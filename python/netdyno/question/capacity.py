"""The rules of a scenario for the metric `capacity`. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from netdyno.kit.errors import UserError
from netdyno.model import objective
from netdyno.model.base import type_level
from netdyno.model.experiment import CapacityPlan, Experiment, Scenario
from netdyno.model.options import SCENARIO, SERVER
from netdyno.model.values import Option, declared

CAPACITY = "capacity"
RATE = "rate"
"""The factor along which a capacity is searched."""

_PLAN = declared(CapacityPlan)
SEARCH: tuple[Option, ...] = (
    replace(SCENARIO["objective"], default="p99<5ms"),
    SCENARIO["workload"],
    SCENARIO["connections"],
    replace(SCENARIO["size"], default=64),
    replace(SCENARIO["arrivals"], default="poisson"),
    *_PLAN.values(),
    replace(SCENARIO["warmup"], default=0.3),
    replace(SCENARIO["duration"], default=2.0),
    SERVER["threads"],
    SCENARIO["generator-threads"],
    SERVER["service-time"],
    SERVER["service-kind"],
    declared(Experiment)["seed"],
)
"""The options of a search by the command line, with its own defaults."""


def to_level(rate_hz: float | str) -> int | float:
    """Return a rate as a level: whole numbers read better, and most rates are whole."""
    rate = float(rate_hz)
    return int(rate) if rate.is_integer() else rate


def add_rate(experiment: Experiment, rate: int | float, block: int) -> Experiment:
    """Return the experiment of a search as if a trial had been planned: with its rate, in order, and its block."""
    (scenario,) = experiment.scenarios
    rates = tuple(sorted({*map(to_level, scenario.factors[RATE]), rate}))
    factors, blocks = {**scenario.factors, RATE: rates}, max(scenario.blocks, block)
    return experiment.with_each(factors=factors, blocks=blocks)


def select_coordinates(scenario: Scenario, levels: Mapping[str, type_level]) -> dict[str, type_level]:
    """Return the levels of a figure of the scenario's metric: all of a trial's; a capacity is found among the rates and
    has no rate."""
    return {name: level for name, level in levels.items() if scenario.metric != CAPACITY or name != RATE}


def check_capacity(scenario: Scenario, where: str) -> None:
    """Check that a capacity has an objective, an open loop and a factor of rates; only a capacity has an objective.
    Raises UserError naming `where` and the key."""
    if scenario.metric != CAPACITY:
        if scenario.objective:
            raise UserError(f"{where}: key 'objective': is that of the metric 'capacity'; write metric = 'capacity'")
        return
    if scenario.then_by:
        raise UserError(f"{where}: key 'then-by': leave it out; with metric 'capacity' each contestant has other rates")
    if not scenario.objective:
        raise UserError(f"{where}: the key 'objective', such as 'p99<5ms', is missing; metric = 'capacity' needs it")
    objective.parse(scenario.objective, f"{where}: key 'objective'")
    if scenario.arrivals == "closed":
        raise UserError(
            f"{where}: key 'metric': 'capacity' needs arrivals = 'constant' or 'poisson'; a closed loop has no rate of "
            "its own to keep up with"
        )
    if RATE not in scenario.factors:
        raise UserError(f"{where}: key 'metric': 'capacity' needs the factor 'rate', which is missing")
