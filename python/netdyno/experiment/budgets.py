"""The sizes of an experiment: what `[budget.smoke]` and `[budget.full]` change of its file. Pure, on tables of TOML.

A size changes blocks, durations and how dense the grid is, contestants included, and nothing of what is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

import msgspec

from netdyno.base.errors import UserError, check_keys, table_in
from netdyno.base.quantities import listed
from netdyno.model.base import type_level
from netdyno.model.experiment import Budget, Scenario

NORMAL: Budget = "normal"
"""What the file says outside of its budgets."""
OTHERS = tuple(name for name in get_args(Budget) if name != NORMAL)
AMOUNTS = ("blocks", "precision", "most-blocks", "warmup", "warmup-per-connection", "duration")
BUDGET_KEYS = (*AMOUNTS, "scenario")
SCENARIO_KEYS = (*AMOUNTS, "factors", "contestants")

Table = Mapping[str, object]


def sizes(raw: Table, where: str) -> dict[Budget, Table]:
    """The tables of the experiment at each size that it has. Raises UserError with one clear line."""
    found: dict[Budget, Table] = {NORMAL: {key: value for key, value in raw.items() if key != "budget"}}
    budgets = table_in(where, raw, "budget")
    check_keys(f"{where}: budget", budgets, OTHERS)
    for name in OTHERS:
        if name in budgets:
            found[name] = _resized(
                found[NORMAL], table_in(f"{where}: budget", budgets, name), f"{where}: budget.{name}"
            )
    return found


def widest(all_sizes: Iterable[Sequence[Scenario]]) -> tuple[Scenario, ...]:
    """The scenarios with every level that some size has of each factor."""
    normal, *others = (tuple(scenarios) for scenarios in all_sizes)
    return tuple(_wider(one, [other[index] for other in others]) for index, one in enumerate(normal))


def _wider(scenario: Scenario, others: Sequence[Scenario]) -> Scenario:
    factors: dict[str, tuple[type_level, ...]] = {}
    for name, levels in scenario.factors.items():
        factors[name] = tuple(dict.fromkeys((*levels, *(level for other in others for level in other.factors[name]))))
    return msgspec.structs.replace(scenario, factors=factors)


def _resized(raw: Table, budget: Table, where: str) -> Table:
    check_keys(where, budget, BUDGET_KEYS)
    scenarios = raw.get("scenario")
    tables = [dict(one) for one in scenarios if isinstance(one, dict)] if isinstance(scenarios, list) else []
    named = {str(table.get("name")): table for table in tables}
    changes = table_in(where, budget, "scenario")
    check_keys(f"{where}: scenario", changes, named)
    for name in changes:
        change, there = table_in(f"{where}: scenario", changes, name), f"{where}: scenario {name!r}"
        check_keys(there, change, SCENARIO_KEYS)
        table = named[name]
        table |= {key: change[key] for key in AMOUNTS if key in change}
        if "contestants" in change:
            table["contestants"] = _some_of(there, table.get("contestants", raw.get("contestants")), change)
        table["factors"] = _grid(
            f"{there}: factors", table_in(there, table, "factors"), table_in(there, change, "factors")
        )
    amounts = {key: budget[key] for key in AMOUNTS if key in budget}
    return {**raw, **amounts, "scenario": tables if tables else scenarios}


def _some_of(where: str, every: object, change: Table) -> object:
    """Return the contestants of a size, who are some of those that the file has."""
    wanted = change["contestants"]
    if not (isinstance(every, list) and isinstance(wanted, list)):
        return wanted  # whoever reads the table says what it must be
    others = [str(name) for name in wanted if name not in every]
    if others:
        raise UserError(f"{where}: key 'contestants': {listed(others)} must stand in the scenario's own contestants")
    return wanted


def _grid(where: str, factors: Table, wanted: Table) -> Table:
    """The factors with other levels; `both` and `server` are tables of factors themselves."""
    check_keys(where, wanted, factors)
    changed = dict(factors)
    for name, levels in wanted.items():
        inner = factors[name]
        changed[name] = (
            _grid(f"{where}: {name}", inner, levels) if isinstance(inner, dict) and isinstance(levels, dict) else levels
        )
    return changed
