"""The `[[flip]]` tables of an experiment file (docs/experiments.md), and the levels between their ends.

A flip's ends are levels of its factor from the start; those between follow from the measurements
(measure/run/next_cells.py). A key or value that is unknown is an error that names the file, the flip, the key and
the nearest valid one."""

from __future__ import annotations

import fnmatch
import math
import random
from collections.abc import Sequence
from typing import NoReturn

import msgspec

from netdyno.kit.errors import UserError, check_keys, did_you_mean, table_in
from netdyno.kit.units import duration_words
from netdyno.model.base import type_level
from netdyno.model.experiment import Experiment, Flip, Scenario
from netdyno.model.levels import place
from netdyno.model.metrics import CLAIMED, METRICS
from netdyno.model.options import LOAD, MACHINE, SERVER, SIDES, option_of, read_level
from netdyno.question.capacity import CAPACITY
from netdyno.question.plan import Cell, CellKind
from netdyno.question.selection import TomlTable, fail, read_positive, read_word

KEYS = ("scenario", "between", "groups", "along", "from", "to", "within", "metric")
METRIC_NAMES = tuple(name for name in CLAIMED if METRICS[name].scale == "ratio" and METRICS[name].of_code is None)
WITHIN = 1.5
"""The default for the largest ratio of the two levels between which the winner changes."""
DIGITS = 3
"""The digits of a level between others."""


# --- the file ---------------------------------------------------------------------------------------------------------


def add_ends(raw: TomlTable, where: str) -> dict[str, object]:
    """Add both ends of each flip to the factors of its scenario in the file's tables. Raises UserError with one clear
    line."""
    scenarios = raw.get("scenario")
    if "flip" not in raw or not isinstance(scenarios, list) or not all(isinstance(table, dict) for table in scenarios):
        return dict(raw)
    tables = [dict(table) for table in scenarios]
    named = {str(table.get("name")): table for table in tables}
    for there, flip in _check_tables(raw["flip"], where):
        check_keys(there, flip, KEYS)
        table = named[_read_scenario(there, flip, list(named))]
        along = _read_factor(there, flip)
        ends = list(_read_ends(there, flip, along))
        side, _, name = along.rpartition(".")
        factors = {side: {name: ends}} if side else {name: ends}
        if table.get("factors", factors) != factors:
            fail(
                there,
                "along",
                "its scenario has factors already; a flip is across a factor of its own, and names its levels",
            )
        table["factors"] = factors
    return {**raw, "scenario": tables}


def parse(tables: object, scenarios: Sequence[Scenario], where: str) -> tuple[Flip, ...]:
    """Parse all flips of an experiment with these scenarios. Raises UserError with one clear line."""
    return tuple(_parse_flip(table, scenarios, there) for there, table in _check_tables(tables, where))


def _check_tables(tables: object, where: str) -> list[tuple[str, TomlTable]]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UserError(f"{where}: 'flip' must be one or more [[flip]] tables")
    return [(f"{where}: flip {number}", table) for number, table in enumerate(tables, 1)]


def _read_required(where: str, table: TomlTable, key: str) -> object:
    if key not in table:
        raise UserError(f"{where}: the key {key!r} is missing")
    return table[key]


def _read_scenario(where: str, table: TomlTable, known: Sequence[str]) -> str:
    name = table.get("scenario", known[0] if len(known) == 1 else None)
    if name is None:
        raise UserError(f"{where}: the key 'scenario' is missing; there are {', '.join(map(repr, known))}")
    if name not in known:
        fail(where, "scenario", f"{name!r} is no scenario{did_you_mean(str(name), known)}")
    return str(name)


def _read_factor(where: str, table: TomlTable) -> str:
    on_both_sides = [name for name in LOAD if name in SERVER]
    known = [*MACHINE, *LOAD, *SERVER, *(f"{side}.{name}" for side in SIDES for name in on_both_sides)]
    return read_word(where, table, "along", list(dict.fromkeys(known)))


def _parse_flip(table: TomlTable, scenarios: Sequence[Scenario], where: str) -> Flip:
    scenario = next(
        scenario
        for scenario in scenarios
        if scenario.name == _read_scenario(where, table, [scenario.name for scenario in scenarios])
    )
    along = _read_factor(where, table)
    low, high = _read_ends(where, table, along)
    if scenario.factors[along] != (low, high):
        fail(where, "along", "no budget may change these levels: the flip names them")
    metric = read_word(where, table, "metric", METRIC_NAMES) if "metric" in table else scenario.metric
    if metric == CAPACITY:
        fail(where, "metric", "a capacity is a search of its own; name another metric")
    within = read_positive(where, "within", table["within"]) if "within" in table else WITHIN
    if within <= 1:
        fail(
            where,
            "within",
            f"{within:g} must be above 1: it is the ratio of the two levels between which the winner changes",
        )
    first, second, members = _read_sides(where, table)
    return Flip(
        scenario=scenario.name,
        first=first,
        second=second,
        members=members,
        along=along,
        low=low,
        high=high,
        metric=metric,
        within=within,
    )


def _read_ends(where: str, table: TomlTable, along: str) -> tuple[type_level, type_level]:
    low, high = (_read_end(where, along, key, _read_required(where, table, key)) for key in ("from", "to"))
    if not 0 < (place(low) or 0) < (place(high) or 0):
        fail(where, "from", f"{low!r} must be above 0 and below 'to', {high!r}: levels are halved as ratios")
    return low, high


def _read_end(where: str, along: str, key: str, value: object) -> type_level:
    level = read_level(f"{where}: {key}", along, value)
    if place(level) is None:
        fail(where, key, f"{value!r} is neither a number nor a duration")
    return level


def _read_sides(where: str, table: TomlTable) -> tuple[str, str, dict[str, tuple[str, ...]]]:
    between = _read_required(where, table, "between")
    if not isinstance(between, list) or len(between) != len(("one", "other")) or between[0] == between[1]:
        fail(where, "between", "must be two different contestants or groups, such as ['epoll-reactor', 'threads']")
    groups = table_in(where, table, "groups")
    check_keys(f"{where}: groups", groups, between)
    members: dict[str, tuple[str, ...]] = {}
    for name in map(str, between):
        patterns = groups.get(name, [name])
        if not isinstance(patterns, list) or not patterns:
            fail(f"{where}: groups", name, "must be a list of contestants, such as ['threads-*']")
        members[name] = tuple(map(str, patterns))
    return str(between[0]), str(between[1]), members


# --- the run ----------------------------------------------------------------------------------------------------------


def select_side(flip: Flip, name: str, contestants: Sequence[str]) -> tuple[str, ...]:
    """Return the contestants that are on a side."""
    return tuple(
        contestant
        for contestant in contestants
        if any(fnmatch.fnmatchcase(contestant, pattern) for pattern in flip.members[name])
    )


def check(experiment: Experiment) -> None:
    """Check that both sides of each flip take part, and that no contestant is on both. Raises UserError."""
    for flip in experiment.flips:
        scenario = next(scenario for scenario in experiment.scenarios if scenario.name == flip.scenario)
        if scenario.precision is not None:
            _fail_flip(experiment, flip, "a flip decides by itself when it has enough blocks; leave 'precision' out")
        sides = [select_side(flip, name, scenario.contestants) for name in (flip.first, flip.second)]
        for name, members in zip((flip.first, flip.second), sides, strict=True):
            if not members:
                _fail_flip(experiment, flip, f"{name!r} takes no part{did_you_mean(name, scenario.contestants)}")
        if both := set(sides[0]) & set(sides[1]):
            _fail_flip(experiment, flip, f"{min(both)!r} is on both sides")


def _fail_flip(experiment: Experiment, flip: Flip, why: str) -> NoReturn:
    raise UserError(f"experiment {experiment.name!r}, flip along {flip.along!r} in {flip.scenario!r}: {why}")


def choose_level(flip: Flip, position: float) -> type_level:
    """The level at a place, or the nearest that a person would write."""
    for end in (flip.low, flip.high):
        if place(end) == position:
            return end
    if isinstance(flip.low, str):
        return duration_words(round(position * 1e9) / 1e9)
    if option_of(flip.along).takes.typed is int:
        return round(position)
    return int(position) if position.is_integer() else position


def find_middle(flip: Flip, low: float, high: float) -> float | None:
    """The place of the level in the middle of two, as ratios; None where there is none between them."""
    between = float(f"{math.sqrt(low * high):.{DIGITS}g}")
    position = place(choose_level(flip, between))
    return position if position is not None and low < position < high else None


NextLevels = Sequence[tuple[Flip, type_level]]
"""The levels at which flips need more blocks."""


def block(experiment: Experiment, levels: NextLevels, number: int) -> tuple[Cell, ...]:
    """The block of this number: both sides at each of these levels, in an order drawn from the seed."""
    scenarios = {scenario.name: scenario for scenario in experiment.scenarios}
    kinds: list[CellKind] = []
    for flip, level in levels:
        contestants = scenarios[flip.scenario].contestants
        for name in (*select_side(flip, flip.first, contestants), *select_side(flip, flip.second, contestants)):
            kind = CellKind(flip.scenario, name, {flip.along: level})
            if kind not in kinds:
                kinds.append(kind)
    random.Random(f"flips {experiment.seed} {number}").shuffle(kinds)
    return tuple(Cell(block=number, position=position, **kind._asdict()) for position, kind in enumerate(kinds))


def add_levels(experiment: Experiment, next_levels: NextLevels) -> Experiment:
    """Add these levels to the plan of an experiment, in order; return the same object where it has them."""

    def add(scenario: Scenario) -> Scenario:
        factors = dict(scenario.factors)
        for flip, level in next_levels:
            if flip.scenario == scenario.name and level not in factors[flip.along]:
                several = (*factors[flip.along], level)
                factors[flip.along] = tuple(sorted(several, key=lambda value: place(value) or 0.0))
        return msgspec.structs.replace(scenario, factors=factors)

    changed = experiment.change_each(add)
    return experiment if changed.scenarios == experiment.scenarios else changed
