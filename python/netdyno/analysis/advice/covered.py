"""Which cells of a stored experiment are a workload that is asked about, and which lie around it. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard

import msgspec

from netdyno.model.base import Name, type_level
from netdyno.model.experiment import Advise, Conditions, Experiment, Scenario
from netdyno.model.levels import combinations, level_key
from netdyno.model.options import Settings, settings
from netdyno.model.run import Run
from netdyno.model.values import CORES

HOW_LONG = ("warmup_s", "duration_s", "timeout_s", "connect_timeout_s", "failed_connects")
"""How it is measured, and not what. So is the server's application-tick."""
SERVER_DEFAULTS: Mapping[str, type_level] = {
    "threads": CORES,
    "nodelay": "on",
    "write-mode": "gathered",
    "audience": "others",
    "deliveries": "joined",
    "service-kind": "wait",
}
"""Of lib/server/options.hpp, and of the harness (model/server_options.py)."""


@dataclass(frozen=True)
class Place:
    """A cell of a stored experiment: its scenario and the levels there."""

    scenario: Name
    levels: Mapping[Name, type_level]


@dataclass(frozen=True)
class Around:
    """Two cells between which a workload lies: they differ from it in one number only."""

    option: Name
    below: Place
    above: Place
    values: tuple[float, float]


def exactly(stored: Experiment, wanted: Scenario, cores: int) -> Iterator[Place]:
    """The cells that are the workload; `cores` are the server's."""
    asked = _said(settings(wanted, {}), cores)
    for place, said in _places(stored, cores):
        if said == asked:
            yield place


def beside(stored: Experiment, wanted: Scenario, cores: int) -> dict[tuple[str, str], dict[float, Place]]:
    """The cells that differ from it in one number only: by scenario and option, and there by the value."""
    asked = _said(settings(wanted, {}), cores)
    found: dict[tuple[str, str], dict[float, Place]] = {}
    for place, said in _places(stored, cores):
        differ = [key for key in {**asked, **said} if asked.get(key) != said.get(key)]
        if len(differ) == 1 and _is_number(value := said.get(differ[0])) and _is_number(asked.get(differ[0])):
            found.setdefault((place.scenario, differ[0]), {})[float(value)] = place
    return found


def around(stored: Experiment, wanted: Scenario, cores: int) -> Iterator[Around]:
    """The nearest cells on both sides, of one scenario."""
    asked = _said(settings(wanted, {}), cores)
    for (_, option), places in beside(stored, wanted, cores).items():
        value = asked[option]
        assert _is_number(value)
        below, above = nearest(places, value)
        if below is not None and above is not None:
            yield Around(option, places[below], places[above], (below, above))


def nearest(places: Collection[float], value: float) -> tuple[float | None, float | None]:
    """The next below a value and the next above it."""
    return max((at for at in places if at < value), default=None), min(
        (at for at in places if at > value), default=None
    )


def value_of(wanted: Scenario, option: str, cores: int) -> float:
    """What the workload has there."""
    value = _said(settings(wanted, {}), cores)[option]
    assert _is_number(value)
    return float(value)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _places(stored: Experiment, cores: int) -> Iterator[tuple[Place, dict[str, object]]]:
    for scenario in stored.scenarios:
        for levels in combinations(scenario):
            yield Place(scenario.name, levels), _said(settings(scenario, levels), cores)


def _said(wanted: Settings, cores: int) -> dict[str, object]:
    """What a cell is, whichever way it was written."""
    found: dict[str, object] = {
        field: getattr(wanted, field)
        for field in Conditions.__struct_fields__
        if field not in (*HOW_LONG, "server", "where_possible", "rate_per_connection", "service_time_s")
    }
    if wanted.rate_per_connection is not None:
        found["rate"] = wanted.rate_per_connection * wanted.connections
    options = {**SERVER_DEFAULTS, **wanted.where_possible, **wanted.server}
    cores = min(cores, wanted.server_cores) if isinstance(wanted.server_cores, int) else cores
    found["server_cores"] = cores
    if options["threads"] == CORES:
        options["threads"] = cores
    if wanted.workload != "chat":
        del options["audience"]
        del options["deliveries"]
    options.pop("application-tick", None)
    options["service-time"] = wanted.service_time_in_all_s
    if not wanted.service_time_in_all_s:
        del options["service-kind"]
    return found | {f"server.{name}": value for name, value in options.items()}


def trials_of(run: Run, place: Place) -> frozenset[str]:
    """Who was measured there."""
    key = level_key(place.levels)
    return frozenset(
        one.contestant for one in run.trials if one.scenario == place.scenario and level_key(one.levels) == key
    )


def heard(stored: Experiment, place: Place) -> float:
    """How many messages with a time of their own a trial has there, of an open loop."""
    (scenario,) = (one for one in stored.scenarios if one.name == place.scenario)
    here = settings(scenario, place.levels)
    rate = here.rate or (here.rate_per_connection or 0.0) * here.connections
    return rate * here.duration_s * (here.connections if here.workload == "chat" else 1)


def alone(run: Run, place: Place, wanted: Scenario, advise: Advise, names: Collection[str]) -> Run:
    """That cell as a run of its own, of these contestants, ranked as is asked for."""
    (scenario,) = (one for one in run.experiment.scenarios if one.name == place.scenario)
    here = settings(scenario, place.levels)
    conditions = {field: getattr(here, field) for field in Conditions.__struct_fields__}
    single = Scenario(
        **conditions,
        name=wanted.name,
        contestants=tuple(sorted(names)),
        blocks=scenario.blocks,
        loss_bound=scenario.loss_bound,
        metric=wanted.metric,
    )
    key = level_key(place.levels)
    trials = tuple(
        msgspec.structs.replace(one, scenario=wanted.name, levels={})
        for one in run.trials
        if one.scenario == place.scenario and level_key(one.levels) == key and one.contestant in names
    )
    asked = Experiment(
        name=run.experiment.name,
        question=run.experiment.question,
        scenarios=(single,),
        seed=run.experiment.seed,
        advise=advise,
    )
    return msgspec.structs.replace(run, experiment=asked, trials=trials, twins=(), traced=())
