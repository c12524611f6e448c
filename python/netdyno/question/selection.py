"""The reader of selections of the experiment's own cells in its file, and of the single values around them, for claims
and figures.

A key or value that is not understood is an error that names the file, the table, the key and the nearest valid one."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping, Sequence
from typing import NoReturn

from netdyno.kit.errors import UserError, check_keys, did_you_mean, table_in
from netdyno.kit.units import parse_duration
from netdyno.model.base import type_level
from netdyno.model.claim import CONTESTANT, Cells
from netdyno.model.experiment import Scenario
from netdyno.model.metrics import METRICS, Metric
from netdyno.model.options import SIDES

PATTERNS = (CONTESTANT, "client")
"""The coordinates that an experiment may name by patterns, so that their values have no order in the file."""

TomlTable = Mapping[str, object]


def fail(where: str, key: str, message: str) -> NoReturn:
    raise UserError(f"{where}: key {key!r}: {message}")


class CellReader:
    """Reads selections of cells of these scenarios."""

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        self._scenarios = {scenario.name: scenario for scenario in scenarios}

    def coordinates(self, scenario: str) -> tuple[str, ...]:
        """The coordinates in which the cells of a scenario differ."""
        return (CONTESTANT, *self._scenarios[scenario].factors)

    def known(self, scenario: str, coordinate: str) -> Sequence[type_level]:
        """The values of a coordinate as the file has them; of `contestant` and `client` they may be patterns."""
        named_scenario = self._scenarios[scenario]
        return named_scenario.contestants if coordinate == CONTESTANT else named_scenario.factors[coordinate]

    def cells(self, where: str, table: TomlTable, metric: Metric) -> Cells:
        """Read the cells that a table selects. A scenario need not be named where there is only one."""
        name = self.scenario(where, table.get("scenario"))
        coordinates = flatten_coordinates(where, {key: value for key, value in table.items() if key != "scenario"})
        check_keys(where, coordinates, self.coordinates(name))
        if metric.of_code is not None and (others := coordinates.keys() - set(PATTERNS)):
            fail(where, min(others), "code belongs to a contestant or a client, and is the same in every cell")
        if metric.of_code is not None and coordinates.keys() == set(PATTERNS):
            fail(where, "client", "code belongs to contestants or to clients; name one of the two")
        return Cells(
            scenario=name, at={key: self.values(where, name, key, value) for key, value in coordinates.items()}
        )

    def scenario(self, where: str, name: object) -> str:
        """Find a scenario by its name, or the only one where none is named."""
        if name is None and len(self._scenarios) == 1:
            return next(iter(self._scenarios))
        if not isinstance(name, str):
            raise UserError(f"{where}: the key 'scenario' is missing; {did_you_mean('', self._scenarios).strip()}")
        if name not in self._scenarios:
            fail(where, "scenario", f"unknown scenario {name!r}{did_you_mean(name, self._scenarios)}")
        return name

    def values(
        self, where: str, scenario: str, coordinate: str, value: object, key: str = ""
    ) -> tuple[type_level, ...]:
        """Read one or several values of a coordinate, all of which the experiment has. Errors name `key`."""
        values = value if isinstance(value, list) else [value]
        key = key or coordinate
        if not values:
            fail(where, key, "names nothing")
        for single in values:
            self._check_value(where, key, scenario, coordinate, single)
        if len(set(values)) != len(values):
            fail(where, key, "names a value twice")
        return tuple(values)

    def has(self, scenario: str, coordinate: str, value: object) -> bool:
        """Whether a scenario has this value of a coordinate, or a pattern that it matches."""
        known = self.known(scenario, coordinate)
        if coordinate in PATTERNS:
            return any(fnmatch.fnmatchcase(str(value), str(pattern)) for pattern in known)
        return value in known

    def _check_value(self, where: str, key: str, scenario: str, coordinate: str, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            fail(where, key, f"{value!r} is no level and no name")
        if not self.has(scenario, coordinate, value):
            known = self.known(scenario, coordinate)
            kind = "a contestant" if coordinate == CONTESTANT else f"a level of {coordinate!r}"
            fail(where, key, f"{value!r} is not {kind} in this experiment{did_you_mean(str(value), map(str, known))}")


def flatten_coordinates(where: str, table: TomlTable) -> dict[str, object]:
    """Return coordinates by their full names: `both.nodelay` is written like a factor."""
    coordinates = {key: value for key, value in table.items() if key not in SIDES}
    for side in SIDES:
        coordinates |= {f"{side}.{key}": value for key, value in table_in(where, table, side).items()}
    return coordinates


# --- single values -----------------------------------------------------------------------------------------------


def read_text(where: str, table: TomlTable, key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        fail(where, key, "must be a text")
    return value


def read_word(where: str, table: TomlTable, key: str, valid: Mapping[str, object] | Sequence[str]) -> str:
    value = table.get(key)
    if value is None:
        raise UserError(f"{where}: the key {key!r} is missing{did_you_mean('', valid)}")
    if not isinstance(value, str) or value not in valid:
        fail(where, key, f"{value!r} is not valid{did_you_mean(str(value), valid)}")
    return value


def read_flag(where: str, table: TomlTable, key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        fail(where, key, f"{value!r} is neither true nor false")
    return value


def parse_finite(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number and isinstance(value, int | float) else None


def read_positive(where: str, key: str, value: object) -> float:
    number = parse_finite(value)
    if number is None or number <= 0:
        fail(where, key, f"{value!r} is not a number above 0")
    return number


def read_amount(where: str, key: str, value: object, metric: str) -> float:
    """Read a figure in the metric's own unit; times are durations in the file and nanoseconds here."""
    if not METRICS[metric].is_time:
        number = parse_finite(value)
        return read_positive(where, key, value) if number != 0 or METRICS[metric].scale == "ratio" else 0.0
    if not isinstance(value, str):
        fail(where, key, f"{value!r} is not a duration: write a text with a unit, such as '250ms'")
    try:
        return 1e9 * parse_duration(value)
    except ValueError as error:
        fail(where, key, str(error))
