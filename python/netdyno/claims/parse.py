"""The `[[claim]]` tables of an experiment file, parsed once into frozen values (docs/experiments.md).

Whatever is not understood is an error that names the file, the claim, the key and the nearest valid one."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from netdyno.claims.metrics import METRICS, TIMES, Metric
from netdyno.claims.why import EXPLANATIONS
from netdyno.errors import UserError, check_keys, did_you_mean
from netdyno.model import CONTESTANT, Bound, Cells, Claim, Flat, Order, Ratio, Scenario, Side, Test, Trend, type_level
from netdyno.options import SIDES
from netdyno.units import parse_duration

CLAIM_KEYS = ("id", "text", "published", "needs", "why", "test")
TEST_KEYS: Mapping[str, tuple[str, ...]] = {
    "ratio": ("kind", "metric", "cells", "a", "b", "above", "below", "every"),
    "order": ("kind", "metric", "cells", "along", "rising", "falling"),
    "trend": ("kind", "metric", "cells", "along", "direction"),
    "flat": ("kind", "metric", "cells", "along", "within"),
    "bound": ("kind", "metric", "cells", "above", "below", "every"),
}
DIRECTIONS = ("rises", "falls")
CELLS_KEYS = ("scenario", CONTESTANT)
CORES = re.compile(r"cores >= ([1-9]\d*)")
SECONDS = {"second host": "hosts", "second platform": "platforms"}
"""What a run may have more than one of, and where its environment says how many."""
LIBRARY = re.compile(r"[a-z][a-z0-9+-]*")

Table = Mapping[str, object]


def parse(tables: object, scenarios: Sequence[Scenario], where: str) -> tuple[Claim, ...]:
    """All claims of an experiment with these scenarios. Raises UserError with one clear line."""
    if not isinstance(tables, list):
        raise UserError(f"{where}: 'claim' must be one or more [[claim]] tables")
    reader = Reader(scenarios)
    claims = [reader.claim(table, f"{where}: claim {number}") for number, table in enumerate(tables, 1)]
    for number, claim in enumerate(claims, 1):
        if any(claim.id == other.id for other in claims[: number - 1]):
            raise UserError(f"{where}: claim {number}: key 'id': another claim is called {claim.id!r}")
    return tuple(claims)


def _fail(where: str, key: str, message: str) -> NoReturn:
    raise UserError(f"{where}: key {key!r}: {message}")


class Reader:
    """Reads claims about the cells of these scenarios."""

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        self._scenarios = {scenario.name: scenario for scenario in scenarios}

    def claim(self, table: object, where: str) -> Claim:
        if not isinstance(table, dict):
            raise UserError(f"{where}: must be a table")
        if isinstance(table.get("id"), str):
            where = f"{where} ({table['id']!r})"
        check_keys(where, table, CLAIM_KEYS)
        tests = table.get("test")
        tests = [tests] if isinstance(tests, dict) else tests
        if not isinstance(tests, list) or not tests:
            _fail(where, "test", "a claim has one [claim.test] table, or several [[claim.test]] that all must hold")
        return Claim(
            id=_text(where, table, "id"),
            text=_text(where, table, "text"),
            tests=tuple(
                self.test(test, where if len(tests) == 1 else f"{where}: test {number}")
                for number, test in enumerate(tests, 1)
            ),
            published=_published(where, table.get("published", {})),
            needs=_needs(where, table.get("needs", [])),
            why=_word(where, table, "why", EXPLANATIONS) if "why" in table else "",
        )

    def test(self, table: object, where: str) -> Test:
        if not isinstance(table, dict):
            _fail(where, "test", "must be a table")
        kind = _word(where, table, "kind", TEST_KEYS)
        check_keys(where, table, TEST_KEYS[kind])
        name = _word(where, table, "metric", METRICS)
        read: Mapping[str, Callable[[str, Table, str], Test]] = {
            "ratio": self._ratio,
            "order": self._order,
            "trend": self._trend,
            "flat": self._flat,
            "bound": self._bound,
        }
        return read[kind](where, table, name)

    # --- the kinds of test ---------------------------------------------------------------------------------------

    def _ratio(self, where: str, table: Table, metric: str) -> Ratio:
        if METRICS[metric].scale == "share":
            _fail(where, "metric", f"{metric!r} is a share and may be 0; compare it by order, trend, flat or bound")
        common = _table(where, table, "cells")
        sides = {}
        for key in ("a", "b"):
            own = _table(where, table, key)
            for twice in own.keys() & common.keys():
                _fail(f"{where}: {key}", twice, "'cells' says it already")
            sides[key] = self._cells(f"{where}: {key}", {**common, **own}, METRICS[metric])
        self._check_pairs(where, sides["a"], sides["b"])
        side, threshold = _threshold(where, table, lambda key, value: _above_0(where, key, value))
        every = _flag(where, table, "every")
        return Ratio(metric=metric, a=sides["a"], b=sides["b"], side=side, threshold=threshold, every=every)

    def _order(self, where: str, table: Table, metric: str) -> Order:
        cells, along = self._along(where, table, metric)
        directions = [key for key in ("rising", "falling") if key in table]
        if len(directions) != 1:
            raise UserError(f"{where}: an order needs either 'rising' or 'falling', a list of what stands along it")
        (direction,) = directions
        listed = table[direction]
        if not isinstance(listed, list) or len(listed) < 2:
            _fail(where, direction, "must be a list of two or more, such as [1, 2] or ['first', ['these', 'two']]")
        groups = tuple(self._values(where, cells.scenario, along, one, key=direction) for one in listed)
        named = [value for group in groups for value in group]
        if len(set(named)) != len(named):
            _fail(where, direction, "names something twice")
        return Order(
            metric=metric,
            cells=cells,
            along=along,
            direction="rising" if direction == "rising" else "falling",
            groups=groups,
        )

    def _trend(self, where: str, table: Table, metric: str) -> Trend:
        cells, along = self._along(where, table, metric)
        if along == CONTESTANT:
            _fail(where, "along", "a trend goes along a factor; contestants have an order")
        self._check_steps(where, cells, along)
        direction = _word(where, table, "direction", DIRECTIONS)
        return Trend(metric=metric, cells=cells, along=along, direction="rises" if direction == "rises" else "falls")

    def _flat(self, where: str, table: Table, metric: str) -> Flat:
        cells, along = self._along(where, table, metric)
        self._check_steps(where, cells, along)
        within = _above_0(where, "within", table.get("within"))
        if METRICS[metric].scale == "ratio" and within <= 1:
            _fail(where, "within", f"{within:g} is no factor above 1, such as 1.25")
        return Flat(metric=metric, cells=cells, along=along, within=within)

    def _bound(self, where: str, table: Table, metric: str) -> Bound:
        cells = self._cells(f"{where}: cells", _table(where, table, "cells"), METRICS[metric])
        side, threshold = _threshold(where, table, lambda key, value: _amount(where, key, value, metric))
        every = _flag(where, table, "every")
        return Bound(metric=metric, cells=cells, side=side, threshold=threshold, every=every)

    # --- cells ---------------------------------------------------------------------------------------------------

    def _along(self, where: str, table: Table, metric: str) -> tuple[Cells, str]:
        cells = self._cells(f"{where}: cells", _table(where, table, "cells"), METRICS[metric])
        scenario = self._scenarios[cells.scenario]
        return cells, _word(where, table, "along", (CONTESTANT, *scenario.factors))

    def _cells(self, where: str, table: Table, metric: Metric) -> Cells:
        name = table.get("scenario", next(iter(self._scenarios)) if len(self._scenarios) == 1 else None)
        if not isinstance(name, str):
            raise UserError(f"{where}: the key 'scenario' is missing; {did_you_mean('', self._scenarios).strip()}")
        if name not in self._scenarios:
            _fail(where, "scenario", f"unknown scenario {name!r}{did_you_mean(name, self._scenarios)}")
        flat = _flat(where, {key: value for key, value in table.items() if key != "scenario"})
        check_keys(where, flat, (CONTESTANT, *self._scenarios[name].factors))
        if metric.of_code is not None and flat.keys() - {CONTESTANT}:
            _fail(where, min(flat.keys() - {CONTESTANT}), "code is a contestant's and the same in every cell")
        return Cells(scenario=name, at={key: self._values(where, name, key, value) for key, value in flat.items()})

    def _values(
        self, where: str, scenario: str, coordinate: str, value: object, key: str = ""
    ) -> tuple[type_level, ...]:
        """One or several values of a coordinate, each of which the experiment has. `key` is what errors name."""
        values = value if isinstance(value, list) else [value]
        key = key or coordinate
        if not values:
            _fail(where, key, "names nothing")
        for one in values:
            self._check_value(where, key, self._scenarios[scenario], coordinate, one)
        if len(set(values)) != len(values):
            _fail(where, key, "names a value twice")
        return tuple(values)

    def _check_value(self, where: str, key: str, scenario: Scenario, coordinate: str, value: object) -> None:
        known = scenario.contestants if coordinate == CONTESTANT else scenario.factors[coordinate]
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            _fail(where, key, f"{value!r} is no level and no name")
        patterns = coordinate in (CONTESTANT, "client")
        if not any(fnmatch.fnmatchcase(str(value), str(one)) if patterns else value == one for one in known):
            of = "a contestant" if coordinate == CONTESTANT else f"a level of {coordinate!r}"
            _fail(where, key, f"{value!r} is not {of} in this experiment{did_you_mean(str(value), map(str, known))}")

    def _check_steps(self, where: str, cells: Cells, along: str) -> None:
        """There are two levels to go along, and it is known in which order."""
        if along in cells.at:
            levels = cells.at[along]
        elif along in (CONTESTANT, "client"):
            _fail(where, "along", f"'cells' must name the {along}s, for a pattern has no order")
        else:
            levels = self._scenarios[cells.scenario].factors[along]
        if len(levels) < 2:
            _fail(where, "along", f"{along!r} has a single level there")

    def _check_pairs(self, where: str, a: Cells, b: Cells) -> None:
        """Every cell of `a` has one partner in `b`: where the two differ, each is at one place."""
        coordinates = ({CONTESTANT, *self._scenarios[one.scenario].factors} for one in (a, b))
        apart = set.symmetric_difference(*coordinates)
        if a == b:
            raise UserError(f"{where}: 'a' and 'b' are the same cells")
        for side, cells in (("a", a), ("b", b)):
            own = {CONTESTANT, *self._scenarios[cells.scenario].factors}
            for name in sorted(own & (apart | differing(a, b))):
                if len(cells.at.get(name, ())) != 1:
                    _fail(f"{where}: {side}", name, "'a' and 'b' differ in it, so each must name one value")


def differing(a: Cells, b: Cells) -> set[str]:
    """The coordinates in which two selections differ, so that cells are not paired by them."""
    return {name for name in a.at.keys() | b.at.keys() if a.at.get(name) != b.at.get(name)}


def _flat(where: str, table: Table) -> dict[str, object]:
    """Coordinates by their full names: `both.nodelay` is written like a factor."""
    flat = {key: value for key, value in table.items() if key not in SIDES}
    for side in SIDES:
        inner = table.get(side, {})
        if not isinstance(inner, dict):
            _fail(where, side, "must be a table")
        flat |= {f"{side}.{key}": value for key, value in inner.items()}
    return flat


# --- single values -----------------------------------------------------------------------------------------------


def _text(where: str, table: Table, key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        _fail(where, key, "must be a text")
    return value


def _word(where: str, table: Table, key: str, valid: Mapping[str, object] | Sequence[str]) -> str:
    value = table.get(key)
    if value is None:
        raise UserError(f"{where}: the key {key!r} is missing{did_you_mean('', valid)}")
    if not isinstance(value, str) or value not in valid:
        _fail(where, key, f"{value!r} is not valid{did_you_mean(str(value), valid)}")
    return value


def _table(where: str, parent: Table, key: str) -> dict[str, object]:
    value = parent.get(key, {})
    if not isinstance(value, dict):
        _fail(where, key, "must be a table")
    return value


def _flag(where: str, table: Table, key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        _fail(where, key, f"{value!r} is neither true nor false")
    return value


def _number(value: object) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if number and isinstance(value, int | float) else None


def _above_0(where: str, key: str, value: object) -> float:
    number = _number(value)
    if number is None or number <= 0:
        _fail(where, key, f"{value!r} is not a number above 0")
    return number


def _amount(where: str, key: str, value: object, metric: str) -> float:
    """A threshold in the metric's own unit; times are durations in the file and nanoseconds here."""
    if metric not in TIMES:
        number = _number(value)
        return _above_0(where, key, value) if number != 0 or METRICS[metric].scale == "ratio" else 0.0
    if not isinstance(value, str):
        _fail(where, key, f"{value!r} is not a duration: write a text with a unit, such as '250ms'")
    try:
        return 1e9 * parse_duration(value)
    except ValueError as error:
        _fail(where, key, str(error))


def _threshold(where: str, table: Table, read: Callable[[str, object], float]) -> tuple[Side, float]:
    given = [key for key in ("above", "below") if key in table]
    if len(given) != 1:
        raise UserError(f"{where}: needs either 'above' or 'below'")
    (key,) = given
    return "above" if key == "above" else "below", read(key, table[key])


def _published(where: str, table: object) -> dict[str, float]:
    if not isinstance(table, dict):
        _fail(where, "published", "must be a table of labels with their unit and numbers")
    published = {}
    for label, value in table.items():
        number = _number(value)
        if number is None:
            _fail(f"{where}: published", label, f"{value!r} is not a number")
        published[label] = number
    return published


def _needs(where: str, needs: object) -> tuple[str, ...]:
    if not isinstance(needs, list):
        _fail(where, "needs", "must be a list, such as ['cores >= 4', 'folly']")
    for need in needs:
        known = isinstance(need, str) and (
            need in SECONDS or CORES.fullmatch(need) is not None or LIBRARY.fullmatch(need) is not None
        )
        if not known:
            hint = did_you_mean(str(need), ("cores >= 4", *SECONDS))
            _fail(where, "needs", f"{need!r} is no need; a library is named as manifests name it{hint}")
    return tuple(needs)
