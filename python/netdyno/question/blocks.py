"""The number of blocks of a run: the one in its experiment, or as many as the requested precision takes.

The blocks that every scenario has are planned before the first trial. A scenario with a `precision` goes on after them,
block by block (measure/run/next_cells.py), until its intervals are narrow (statistics/precision.py) or its budget
ends. docs/adr/adaptive-precision.md says why, with simulations."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from netdyno.kit.errors import UserError
from netdyno.kit.statistics.block_counts import EARLIEST_END
from netdyno.model.experiment import Experiment, Scenario

MOST_BLOCKS = 60
"""The budget where neither the file nor the command line has one."""
MOST_BLOCKS_IN_TIME = 1000
"""The budget of blocks beside a budget of time."""


# --- valid requests ----------------------------------------------------------------------------------------------


def check(where: str, scenario: Scenario, *, timed: bool = False) -> None:
    """Raise UserError where the blocks of a scenario contradict each other. `timed`: its experiment has a budget of
    time."""
    if scenario.most_blocks is None:
        return
    if scenario.precision is None and not timed:
        raise UserError(
            f"{where}: key 'most-blocks': without a 'precision' or a 'time-budget' there are just as many blocks as "
            "'blocks'"
        )
    if scenario.most_blocks < scenario.blocks:
        raise UserError(f"{where}: key 'most-blocks': {scenario.most_blocks} is less than blocks = {scenario.blocks}")


def replace_budget(experiment: Experiment, most_blocks: int | None, time_budget_s: float | None) -> Experiment:
    """Replace the budgets of an experiment by the command line's; None leaves those of the file. Raises UserError where
    neither a precision nor the file's own budget of time lets blocks go on."""
    named = {"--most-blocks": most_blocks, "--time-budget": time_budget_s}
    given = [option for option, value in named.items() if value is not None]
    if given and not experiment.flips and not any(_has_open_end(scenario) for scenario in experiment.scenarios):
        raise UserError(
            f"{given[0]}: is for a run with --precision; without it there are exactly as many blocks as 'blocks'"
        )
    scenarios = tuple(
        _replace_budget(scenario, most_blocks, time_budget_s)
        if _has_open_end(scenario) or (experiment.flips and most_blocks is not None)
        else scenario
        for scenario in experiment.scenarios
    )
    for scenario in scenarios:
        check(f"experiment {experiment.name!r}, scenario {scenario.name!r}", scenario, timed=True)
    if time_budget_s is None:
        return msgspec.structs.replace(experiment, scenarios=scenarios)
    limit_s = experiment.time_limit_s and max(experiment.time_limit_s, time_budget_s)
    return msgspec.structs.replace(experiment, scenarios=scenarios, time_budget_s=time_budget_s, time_limit_s=limit_s)


def replace_number(experiment: Experiment, blocks: int) -> Experiment:
    """Fix the number of blocks of an experiment: no more without a precision, whatever the budget of time; and with
    flips, no more at a level."""
    at_level = blocks if experiment.flips else None
    return experiment.change_each(
        lambda scenario: msgspec.structs.replace(
            scenario, blocks=blocks, most_blocks=scenario.most_blocks if scenario.precision else at_level
        )
    )


def apply_overrides(
    experiment: Experiment,
    number: int | None,
    duration_s: float | None,
    seed: int | None,
    precision: float | None = None,
) -> Experiment:
    """Return the experiment with the options of the command line; None leaves what the file says. `number` is that of
    the blocks."""
    overrides = {"duration_s": duration_s, "precision": precision}
    changed = experiment.with_each(**{key: value for key, value in overrides.items() if value is not None})
    if number is not None:
        changed = replace_number(changed, number)
    return changed if seed is None else msgspec.structs.replace(changed, seed=seed)


def _has_open_end(scenario: Scenario) -> bool:
    """Whether a scenario may have more blocks than are planned."""
    return scenario.precision is not None or scenario.most_blocks is not None


def _replace_budget(scenario: Scenario, most_blocks: int | None, time_budget_s: float | None) -> Scenario:
    if most_blocks is None and (time_budget_s is None or scenario.most_blocks is not None):
        return scenario
    return msgspec.structs.replace(scenario, most_blocks=most_blocks or max(MOST_BLOCKS_IN_TIME, scenario.blocks))


# --- possible numbers --------------------------------------------------------------------------------------------


def find_most(scenario: Scenario) -> int:
    """The most blocks that a scenario can have."""
    if scenario.precision is None:
        return scenario.most_blocks or scenario.blocks
    return scenario.most_blocks or max(MOST_BLOCKS, scenario.blocks)


def find_fewest(scenario: Scenario) -> int:
    """The fewest blocks that a scenario can have; with a single contestant, no look is needed."""
    if scenario.precision is None or len(scenario.contestants) < 2:
        return scenario.blocks
    return max(scenario.blocks, min(EARLIEST_END, find_most(scenario)))


def fix_number(experiment: Experiment, number: Callable[[Scenario], int]) -> Experiment:
    """The experiment with a fixed number of blocks: as many as `find_fewest` or `find_most` gives each scenario."""
    return experiment.change_each(
        lambda scenario: msgspec.structs.replace(scenario, blocks=number(scenario), precision=None, most_blocks=None)
    )
