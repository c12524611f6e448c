"""The budgets of an experiment: the changes of `[budget.smoke]` and `[budget.full]` to its file. Pure, on tables of
TOML.

A budget changes blocks, durations and the density of the grid, contestants included, and nothing of the question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import get_args

import msgspec

from netdyno.kit.errors import UserError, check_keys, table_in
from netdyno.kit.quantities import listed
from netdyno.model.base import type_level
from netdyno.model.experiment import Budget, Scenario
from netdyno.question.selection import TomlTable

NORMAL: Budget = "normal"
"""The budget that the file describes outside of its tables `budget`."""
OTHERS = tuple(name for name in get_args(Budget) if name != NORMAL)
AMOUNTS = ("blocks", "precision", "most-blocks", "warmup", "warmup-per-connection", "duration")
BUDGET_KEYS = (*AMOUNTS, "scenario")
SCENARIO_KEYS = (*AMOUNTS, "factors", "contestants")


def read_budgets(raw: TomlTable, where: str) -> dict[Budget, TomlTable]:
    """The tables of the experiment with each budget that it has. Raises UserError with one clear line."""
    available: dict[Budget, TomlTable] = {NORMAL: {key: value for key, value in raw.items() if key != "budget"}}
    budgets = table_in(where, raw, "budget")
    check_keys(f"{where}: budget", budgets, OTHERS)
    for name in OTHERS:
        if name in budgets:
            available[name] = _apply_budget(
                available[NORMAL], table_in(f"{where}: budget", budgets, name), f"{where}: budget.{name}"
            )
    return available


def merge_levels(all_budgets: Iterable[Sequence[Scenario]]) -> tuple[Scenario, ...]:
    """The scenarios with every level that some budget has of each factor."""
    normal, *others = (tuple(scenarios) for scenarios in all_budgets)
    return tuple(
        _add_levels(scenario, [scenarios[index] for scenarios in others]) for index, scenario in enumerate(normal)
    )


def _add_levels(scenario: Scenario, counterparts: Sequence[Scenario]) -> Scenario:
    factors: dict[str, tuple[type_level, ...]] = {}
    for name, levels in scenario.factors.items():
        factors[name] = tuple(
            dict.fromkeys((*levels, *(level for counterpart in counterparts for level in counterpart.factors[name])))
        )
    return msgspec.structs.replace(scenario, factors=factors)


def _apply_budget(raw: TomlTable, budget: TomlTable, where: str) -> TomlTable:
    check_keys(where, budget, BUDGET_KEYS)
    scenarios = raw.get("scenario")
    tables = [dict(table) for table in scenarios if isinstance(table, dict)] if isinstance(scenarios, list) else []
    named = {str(table.get("name")): table for table in tables}
    changes = table_in(where, budget, "scenario")
    check_keys(f"{where}: scenario", changes, named)
    for name in changes:
        change, there = table_in(f"{where}: scenario", changes, name), f"{where}: scenario {name!r}"
        check_keys(there, change, SCENARIO_KEYS)
        table = named[name]
        table |= {key: change[key] for key in AMOUNTS if key in change}
        if "contestants" in change:
            table["contestants"] = _choose_contestants(there, table.get("contestants", raw.get("contestants")), change)
        table["factors"] = _change_grid(
            f"{there}: factors", table_in(there, table, "factors"), table_in(there, change, "factors")
        )
    amounts = {key: budget[key] for key in AMOUNTS if key in budget}
    return {**raw, **amounts, "scenario": tables if tables else scenarios}


def _choose_contestants(where: str, available: object, change: TomlTable) -> object:
    """Return the contestants of a budget, which are some of those that the file has."""
    requested = change["contestants"]
    if not (isinstance(available, list) and isinstance(requested, list)):
        return requested  # the reader of the table reports the error
    unknown = [str(name) for name in requested if name not in available]
    if unknown:
        raise UserError(f"{where}: key 'contestants': {listed(unknown)} must be among the scenario's contestants")
    return requested


def _change_grid(where: str, factors: TomlTable, changes: TomlTable) -> TomlTable:
    """Change the levels of factors; `both` and `server` are tables of factors themselves."""
    check_keys(where, changes, factors)
    changed = dict(factors)
    for name, levels in changes.items():
        inner = factors[name]
        changed[name] = (
            _change_grid(f"{where}: {name}", inner, levels)
            if isinstance(inner, dict) and isinstance(levels, dict)
            else levels
        )
    return changed
