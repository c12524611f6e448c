"""Find the cells of a stored experiment that are a requested workload, or lie around it. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TypeGuard

import msgspec

from netdyno.model.base import Name, type_level
from netdyno.model.experiment import Advise, Conditions, Experiment, Scenario
from netdyno.model.levels import combinations, level_key
from netdyno.model.options import DEFAULT_POOL, SERVER, Settings, settings
from netdyno.model.run import Run
from netdyno.model.values import CORES

HOW_LONG = ("warmup_s", "duration_s", "timeout_s", "connect_timeout_s", "failed_connects")
"""Options of the measurement, not of the workload. The server's application-tick is another."""
SERVER_DEFAULTS = {name: option.takes.words[0] for name, option in SERVER.items() if option.takes.words} | {
    "threads": CORES,
    "pool": DEFAULT_POOL,
}


class StoredCell(msgspec.Struct, frozen=True):
    """A cell of a stored experiment: its scenario and the levels there."""

    scenario: Name
    levels: Mapping[Name, type_level]


class Around(msgspec.Struct, frozen=True):
    """Two cells between which a workload lies: they differ from it in one number only."""

    option: Name
    below: StoredCell
    above: StoredCell
    values: tuple[float, float]


def find_exact_cells(stored: Experiment, workload: Scenario, cores: int) -> Iterator[StoredCell]:
    """Find the cells that are the workload; `cores` are the server's."""
    target = _describe(settings(workload, {}), cores)
    for place, values in _list_places(stored, cores):
        if values == target:
            yield place


def find_varied_cells(
    stored: Experiment, workload: Scenario, cores: int
) -> dict[tuple[str, str], dict[float, StoredCell]]:
    """Find the cells that differ from it in one number only: by scenario and option, and there by the value."""
    target = _describe(settings(workload, {}), cores)
    cells: dict[tuple[str, str], dict[float, StoredCell]] = {}
    for place, values in _list_places(stored, cores):
        differ = [key for key in {**target, **values} if target.get(key) != values.get(key)]
        if len(differ) == 1 and _is_number(value := values.get(differ[0])) and _is_number(target.get(differ[0])):
            cells.setdefault((place.scenario, differ[0]), {})[float(value)] = place
    return cells


def find_nearest_cells(stored: Experiment, workload: Scenario, cores: int) -> Iterator[Around]:
    """Find the nearest cells on both sides, of one scenario."""
    target = _describe(settings(workload, {}), cores)
    for (_, option), places in find_varied_cells(stored, workload, cores).items():
        value = target[option]
        assert _is_number(value)
        below, above = find_nearest_values(places, value)
        if below is not None and above is not None:
            yield Around(option, places[below], places[above], (below, above))


def find_nearest_values(places: Collection[float], value: float) -> tuple[float | None, float | None]:
    """Return the next below a value and the next above it."""
    return max((place for place in places if place < value), default=None), min(
        (place for place in places if place > value), default=None
    )


def find_value(workload: Scenario, option: str, cores: int) -> float:
    """Return the workload's value of an option."""
    value = _describe(settings(workload, {}), cores)[option]
    assert _is_number(value)
    return float(value)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _list_places(stored: Experiment, cores: int) -> Iterator[tuple[StoredCell, dict[str, object]]]:
    for scenario in stored.scenarios:
        for levels in combinations(scenario):
            yield StoredCell(scenario.name, levels), _describe(settings(scenario, levels), cores)


def _describe(cell_settings: Settings, cores: int) -> dict[str, object]:
    """Describe a cell by its options and values, in the same way however it was written."""
    description: dict[str, object] = {
        field: getattr(cell_settings, field)
        for field in Conditions.__struct_fields__
        if field not in (*HOW_LONG, "server", "where_possible", "rate_per_connection", "service_time_s")
    }
    if cell_settings.rate_per_connection is not None:
        description["rate"] = cell_settings.rate_per_connection * cell_settings.speakers
    options = {**SERVER_DEFAULTS, **cell_settings.where_possible, **cell_settings.server}
    cores = min(cores, cell_settings.server_cores) if isinstance(cell_settings.server_cores, int) else cores
    description["server_cores"] = cores
    if options["threads"] == CORES:
        options["threads"] = cores
    if cell_settings.workload != "chat":
        del options["audience"]
        del options["deliveries"]
    options.pop("application-tick", None)
    options["service-time"] = cell_settings.service_time_in_all_s
    if not cell_settings.service_time_in_all_s:
        del options["service-kind"]
    return description | {f"server.{name}": value for name, value in options.items()}


def list_contestants(run: Run, place: StoredCell) -> frozenset[str]:
    """Return the contestants that were measured there."""
    key = level_key(place.levels)
    return frozenset(
        trial.contestant for trial in run.trials if trial.scenario == place.scenario and level_key(trial.levels) == key
    )


def count_timed_messages(stored: Experiment, place: StoredCell) -> float:
    """Return how many messages with a time of their own a trial of an open loop has there."""
    (scenario,) = (scenario for scenario in stored.scenarios if scenario.name == place.scenario)
    cell_settings = settings(scenario, place.levels)
    rate = cell_settings.rate or (cell_settings.rate_per_connection or 0.0) * cell_settings.speakers
    return rate * cell_settings.duration_s * (cell_settings.connections if cell_settings.workload == "chat" else 1)


def extract_cell(run: Run, place: StoredCell, workload: Scenario, advise: Advise, names: Collection[str]) -> Run:
    """Return the cell as a run of its own, with these contestants, ranked as the workload asks."""
    (scenario,) = (scenario for scenario in run.experiment.scenarios if scenario.name == place.scenario)
    cell_settings = settings(scenario, place.levels)
    conditions = {field: getattr(cell_settings, field) for field in Conditions.__struct_fields__}
    single = Scenario(
        **conditions,
        name=workload.name,
        contestants=tuple(sorted(names)),
        blocks=scenario.blocks,
        loss_bound=scenario.loss_bound,
        metric=workload.metric,
    )
    key = level_key(place.levels)
    trials = tuple(
        msgspec.structs.replace(trial, scenario=workload.name, levels={})
        for trial in run.trials
        if trial.scenario == place.scenario and level_key(trial.levels) == key and trial.contestant in names
    )
    experiment = Experiment(
        name=run.experiment.name,
        question=run.experiment.question,
        scenarios=(single,),
        seed=run.experiment.seed,
        advise=advise,
    )
    return msgspec.structs.replace(run, experiment=experiment, trials=trials, twins=(), traced=())
