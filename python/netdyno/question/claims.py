"""The `[[claim]]` tables of an experiment file, parsed once into frozen values (docs/experiments.md).

Whatever is not understood is an error that names the file, the claim, the key and the nearest valid one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import cast, get_args

import msgspec

from netdyno.kit.errors import UserError, check_keys, did_you_mean, table_in
from netdyno.model.claim import (
    CONTESTANT,
    Account,
    Bound,
    ByWhat,
    Cells,
    Claim,
    Flat,
    Order,
    Ratio,
    ScriptTests,
    Test,
    ThresholdSide,
    Trend,
)
from netdyno.model.experiment import Scenario
from netdyno.model.metrics import CLAIMED, METRICS, WHYS
from netdyno.question.selection import (
    PATTERNS,
    CellReader,
    TomlTable,
    fail,
    parse_finite,
    read_amount,
    read_flag,
    read_positive,
    read_text,
    read_word,
)

NEEDS = ("needs", "needs-to-confirm", "needs-to-refute")
"""The keys for what a claim or test needs of a machine: for any verdict, or for one of the two only."""
ANY_TEST = ("only-refutes", *NEEDS)
"""The keys of a test of any kind."""
CLAIM_KEYS = ("id", "text", "published", "published-on", "differs", *NEEDS, "why", "test", "script", "account")
SCRIPT_KEYS = ("by", "because", "test")
TEST_KEYS: Mapping[str, tuple[str, ...]] = {
    "ratio": ("kind", "metric", "cells", "a", "b", "above", "below", "within", "every", "over", "least-published"),
    "order": ("kind", "metric", "cells", "along", "rising", "falling", "over", "minus"),
    "trend": ("kind", "metric", "cells", "along", "direction"),
    "flat": ("kind", "metric", "cells", "along", "within"),
    "bound": ("kind", "metric", "cells", "above", "below", "within", "every"),
}
DIRECTIONS = ("rises", "falls")
CORES = re.compile(r"(server-)?cores >= ([1-9]\d*)")
SECONDS = {"second host": "hosts", "second platform": "platforms"}
"""The things that a run may have more than one of, and the field of its environment with their number."""
ONE_HOST = "one host"
LIBRARY = re.compile(r"[a-z][a-z0-9+-]*")


def parse(tables: object, scenarios: Sequence[Scenario], where: str) -> tuple[Claim, ...]:
    """Parse all claims of an experiment with these scenarios. Raises UserError with one clear line."""
    if not isinstance(tables, list):
        raise UserError(f"{where}: 'claim' must be one or more [[claim]] tables")
    reader = ClaimReader(scenarios)
    claims = [reader.claim(table, f"{where}: claim {number}") for number, table in enumerate(tables, 1)]
    known: set[str] = set()
    for number, claim in enumerate(claims, 1):
        if claim.id in known:
            raise UserError(f"{where}: claim {number}: key 'id': another claim is called {claim.id!r}")
        known.add(claim.id)
    return tuple(claims)


class ClaimReader:
    """Reads claims about the cells of these scenarios."""

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        self._cells = CellReader(scenarios)

    def claim(self, table: object, where: str) -> Claim:
        if not isinstance(table, dict):
            raise UserError(f"{where}: must be a table")
        if isinstance(table.get("id"), str):
            where = f"{where} ({table['id']!r})"
        check_keys(where, table, CLAIM_KEYS)
        return Claim(
            id=read_text(where, table, "id"),
            text=read_text(where, table, "text"),
            tests=self._read_tests(where, table),
            published=_read_published(where, table.get("published", {})),
            published_on=read_text(where, table, "published-on") if "published-on" in table else "",
            differs=read_text(where, table, "differs") if "differs" in table else "",
            **_read_needs(where, table),
            why=read_word(where, table, "why", WHYS) if "why" in table else "",
            script=self._read_script(f"{where}: script", table["script"]) if "script" in table else None,
            account=_read_account(f"{where}: account", table["account"]) if "account" in table else None,
        )

    def _read_script(self, where: str, table: object) -> ScriptTests:
        """Read the tests as the source ran its own program."""
        if not isinstance(table, dict):
            raise UserError(f"{where}: must be a table")
        check_keys(where, table, SCRIPT_KEYS)
        by = read_word(where, {"by": table.get("by", "script")}, "by", get_args(ByWhat))
        return ScriptTests(
            because=read_text(where, table, "because"),
            tests=self._read_tests(where, table),
            by=cast("ByWhat", by),
        )

    def _read_tests(self, where: str, table: TomlTable) -> tuple[Test, ...]:
        tests = table.get("test")
        tests = [tests] if isinstance(tests, dict) else tests
        if not isinstance(tests, list) or not tests:
            fail(where, "test", "a claim has one [claim.test] table, or several [[claim.test]] that all must hold")
        parsed = tuple(
            parsed_test
            for number, test in enumerate(tests, 1)
            for parsed_test in self.tests(test, where if len(tests) == 1 else f"{where}: test {number}")
        )
        if all(parsed_test.only_refutes for parsed_test in parsed):
            fail(where, "test", "every test has 'only-refutes', so that nothing could confirm the claim")
        return parsed

    def tests(self, table: object, where: str) -> tuple[Test, ...]:
        """Parse the tests of a table: two where a value is to lie between two bounds."""
        if not isinstance(table, dict):
            fail(where, "test", "must be a table")
        kind = read_word(where, table, "kind", TEST_KEYS)
        check_keys(where, table, (*TEST_KEYS[kind], *ANY_TEST))
        name = read_word(where, table, "metric", CLAIMED)
        readers: Mapping[str, Callable[[str, TomlTable, str], tuple[Test, ...]]] = {
            "ratio": self._read_ratio,
            "order": lambda *arguments: (self._order(*arguments),),
            "trend": lambda *arguments: (self._read_trend(*arguments),),
            "flat": lambda *arguments: (self._read_flat(*arguments),),
            "bound": self._read_bound,
        }
        needs, only_refutes = _read_needs(where, table), read_flag(where, table, "only-refutes")
        return tuple(
            msgspec.structs.replace(test, only_refutes=only_refutes, **needs)
            for test in readers[kind](where, table, name)
        )

    # --- the kinds of test ---------------------------------------------------------------------------------------

    def _read_ratio(self, where: str, table: TomlTable, metric: str) -> tuple[Ratio, ...]:
        if METRICS[metric].scale == "share":
            fail(where, "metric", f"{metric!r} is a share and may be 0; compare it by order, trend, flat or bound")
        common = table_in(where, table, "cells")
        sides = {}
        for key in ("a", "b"):
            own_cells = table_in(where, table, key)
            for repeated in own_cells.keys() & common.keys():
                fail(f"{where}: {key}", repeated, "'cells' names it already")
            sides[key] = self._cells.cells(f"{where}: {key}", {**common, **own_cells}, METRICS[metric])
        self._check_pairs(where, sides["a"], sides["b"])
        every = read_flag(where, table, "every")
        over = None
        if "over" in table:
            if every:
                fail(where, "every", "'over' divides all cells of a side together; leave one of the two out")
            first, second = ({**common, **table_in(where, table, key)} for key in ("a", "b"))
            over = self._over(where, table, first, metric), self._over(where, table, second, metric)
            for side, base in zip(sides.values(), over, strict=True):
                self._check_pairs(where, side, base, ("side", "over"))
        thresholds = _read_thresholds(where, table, lambda key, value: read_positive(where, key, value))
        published = _read_least_published(where, table, thresholds)
        return tuple(
            Ratio(
                metric=metric,
                a=sides["a"],
                b=sides["b"],
                side=side,
                threshold=threshold,
                every=every,
                over=over,
                least_published=published,
            )
            for side, threshold in thresholds
        )

    def _order(self, where: str, table: TomlTable, metric: str) -> Order:
        cells, along = self._read_along(where, table, metric)
        directions = [key for key in ("rising", "falling") if key in table]
        if len(directions) != 1:
            raise UserError(f"{where}: an order needs a list, either 'rising' or 'falling'")
        (direction,) = directions
        listed = table[direction]
        if not isinstance(listed, list) or len(listed) < 2:
            fail(where, direction, "must be a list of two or more, such as [1, 2] or ['first', ['these', 'two']]")
        groups = tuple(self._cells.values(where, cells.scenario, along, entry, key=direction) for entry in listed)
        named = [value for group in groups for value in group]
        if len(set(named)) != len(named):
            fail(where, direction, "names something twice")
        if "over" in table and "minus" in table:
            fail(where, "minus", "'over' is there, too; leave one of the two out")
        bases = {key: self._read_base(where, table, key, cells, along, metric) for key in ("over", "minus")}
        return Order(
            metric=metric,
            cells=cells,
            along=along,
            direction="rising" if direction == "rising" else "falling",
            groups=groups,
            over=bases["over"],
            minus=bases["minus"],
        )

    def _read_base(self, where: str, table: TomlTable, key: str, cells: Cells, along: str, metric: str) -> Cells | None:
        """Read the cells by which an order divides its figures, or which it subtracts; None where the table has no
        such key."""
        if key not in table:
            return None
        if along in table_in(where, table, key):
            fail(f"{where}: {key}", along, "it is the factor of the order itself")
        base = self._over(where, table, table_in(where, table, "cells"), metric, key)
        self._check_pairs(where, cells, base, ("cells", key))
        return base

    def _read_trend(self, where: str, table: TomlTable, metric: str) -> Trend:
        cells, along = self._read_along(where, table, metric)
        if along == CONTESTANT:
            fail(where, "along", "a trend is across a factor; contestants have an order")
        self._check_steps(where, cells, along)
        direction = read_word(where, table, "direction", DIRECTIONS)
        return Trend(metric=metric, cells=cells, along=along, direction="rises" if direction == "rises" else "falls")

    def _read_flat(self, where: str, table: TomlTable, metric: str) -> Flat:
        cells, along = self._read_along(where, table, metric)
        self._check_steps(where, cells, along)
        within = read_positive(where, "within", table.get("within"))
        if METRICS[metric].scale == "ratio" and within <= 1:
            fail(where, "within", f"{within:g} is no factor above 1, such as 1.25")
        return Flat(metric=metric, cells=cells, along=along, within=within)

    def _read_bound(self, where: str, table: TomlTable, metric: str) -> tuple[Bound, ...]:
        cells = self._cells.cells(f"{where}: cells", table_in(where, table, "cells"), METRICS[metric])
        every = read_flag(where, table, "every")
        return tuple(
            Bound(metric=metric, cells=cells, side=side, threshold=threshold, every=every)
            for side, threshold in _read_thresholds(
                where, table, lambda key, value: read_amount(where, key, value, metric)
            )
        )

    # --- cells ---------------------------------------------------------------------------------------------------

    def _read_along(self, where: str, table: TomlTable, metric: str) -> tuple[Cells, str]:
        cells = self._cells.cells(f"{where}: cells", table_in(where, table, "cells"), METRICS[metric])
        return cells, read_word(where, table, "along", self._cells.coordinates(cells.scenario))

    def _check_steps(self, where: str, cells: Cells, along: str) -> None:
        """Check that the factor has at least two levels, in a known order."""
        if along in cells.at:
            levels = cells.at[along]
        elif along in PATTERNS:
            fail(where, "along", f"name each {along} in 'cells': a pattern has no order")
        else:
            levels = tuple(self._cells.known(cells.scenario, along))
        if len(levels) < 2:
            fail(where, "along", f"{along!r} has a single level there")

    def _over(self, where: str, table: TomlTable, side: TomlTable, metric: str, key: str = "over") -> Cells:
        """Read the cells that a side is divided by, or that are subtracted: its own, changed by `over` or `minus`."""
        if key == "over" and METRICS[metric].scale == "share":
            fail(where, key, f"{metric!r} is a share and may be 0; nothing is divided by it")
        changes = table_in(where, table, key)
        if not changes:
            fail(where, key, "names nothing that differs from the cells themselves")
        return self._cells.cells(f"{where}: {key}", {**side, **changes}, METRICS[metric])

    def _check_pairs(self, where: str, left: Cells, right: Cells, names: tuple[str, str] = ("a", "b")) -> None:
        """Check that every cell of `left` has one partner in `right`: where the two differ, each names one value."""
        coordinates = (set(self._cells.coordinates(selection.scenario)) for selection in (left, right))
        apart = set.symmetric_difference(*coordinates)
        if left == right:
            raise UserError(f"{where}: {names[0]!r} and {names[1]!r} are the same cells")
        for side, cells in zip(names, (left, right), strict=True):
            own_coordinates = set(self._cells.coordinates(cells.scenario))
            for name in sorted(own_coordinates & (apart | find_differences(left, right))):
                if len(cells.at.get(name, ())) != 1:
                    both = f"{names[0]!r} and {names[1]!r}"
                    fail(f"{where}: {side}", name, f"{both} differ in it, so each must name one value")


def find_differences(left: Cells, right: Cells) -> set[str]:
    """The coordinates in which two selections differ, so that cells are not paired by them."""
    return {name for name in left.at.keys() | right.at.keys() if left.at.get(name) != right.at.get(name)}


def _read_account(where: str, table: object) -> Account:
    """Read what is to be said of a verdict."""
    if not isinstance(table, dict):
        raise UserError(f"{where}: must be a table")
    keys = Account.__struct_fields__
    check_keys(where, table, keys)
    return Account(**{key: read_text(where, table, key) for key in keys})


# --- single values -----------------------------------------------------------------------------------------------


def _read_thresholds(
    where: str, table: TomlTable, read: Callable[[str, object], float]
) -> tuple[tuple[ThresholdSide, float], ...]:
    """Read the threshold: one side, or both sides of 'within'."""
    given = [key for key in ("above", "below", "within") if key in table]
    if len(given) != 1:
        raise UserError(f"{where}: needs either 'above', 'below' or 'within'")
    (key,) = given
    if key != "within":
        return (("above" if key == "above" else "below", read(key, table[key])),)
    bounds = table[key]
    if not isinstance(bounds, list) or len(bounds) != 2:
        fail(where, key, f"{bounds!r} is no list of two bounds, such as [0.9, 1.1]")
    low, high = (read(key, bound) for bound in bounds)
    if low >= high:
        fail(where, key, f"{bounds[0]!r} is not below {bounds[1]!r}")
    return ("above", low), ("below", high)


def _read_published(where: str, table: object) -> dict[str, float]:
    if not isinstance(table, dict):
        fail(where, "published", "must be a table of labels with their unit and numbers")
    published = {}
    for label, value in table.items():
        figure = parse_finite(value)
        if figure is None:
            fail(f"{where}: published", label, f"{value!r} is not a number")
        published[label] = figure
    return published


def _read_least_published(
    where: str, table: TomlTable, thresholds: Sequence[tuple[ThresholdSide, float]]
) -> float | None:
    key = "least-published"
    if key not in table:
        return None
    value = read_positive(where, key, table[key])
    if len(thresholds) > 1:
        fail(where, key, "'within' has a bound on this side already; leave one of the two out")
    ((side, threshold),) = thresholds
    if (value > threshold) != (side == "above") or value == threshold:
        fail(where, key, f"{value:g} is not {side} {threshold:g}, as the claim has it")
    return value


def _read_needs(where: str, table: TomlTable) -> dict[str, tuple[str, ...]]:
    """Read what the machine must have, by the names of the fields of Needs."""
    return {key.replace("-", "_"): _check_needs(where, key, table.get(key, [])) for key in NEEDS}


def _check_needs(where: str, key: str, needs: object) -> tuple[str, ...]:
    if not isinstance(needs, list):
        fail(where, key, "must be a list, such as ['server-cores >= 2', 'folly']")
    for need in needs:
        known = isinstance(need, str) and (
            need in (ONE_HOST, *SECONDS) or CORES.fullmatch(need) is not None or LIBRARY.fullmatch(need) is not None
        )
        if not known:
            hint = did_you_mean(str(need), ("cores >= 4", "server-cores >= 2", ONE_HOST, *SECONDS))
            fail(where, key, f"{need!r} is no need; a library is named as manifests name it{hint}")
    return tuple(needs)
