"""How many blocks a run has: as many as its experiment says, or as many as the precision that it asks for takes.

The blocks that every scenario has are planned before the first trial. A scenario with a `precision` goes on after them,
block by block, until its intervals are narrow enough (precision.py) or its budget ends. What is in a further block
depends on the seed alone: it is the block of that number in the plan of a larger fixed number.
docs/adr/adaptive-precision.md says why, with simulations."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from netdyno import plan
from netdyno.display import Progress
from netdyno.errors import UserError
from netdyno.model import Experiment, Run, Scenario, Trial
from netdyno.plan import Cell, Kind

FIRST_LOOK = 10
"""The number of blocks after which an interval is first asked how wide it is."""
LOOKS = 8
"""At so many looks in succession, one after each block, it must have been narrow enough."""
EARLIEST_END = FIRST_LOOK + LOOKS - 1
MOST_BLOCKS = 60
"""The budget where neither the file nor the command line says one."""
MOST_BLOCKS_IN_TIME = 1000
"""The same beside a budget of time."""
_SHARE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)(%)?")


# --- what may be asked for ---------------------------------------------------------------------------------------


def check_precision(value: object) -> float:
    """A share above 0 and up to 1: a number, or a text with one or with a percentage. Raises ValueError with the
    accepted form."""
    share = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        share = float(value)
    elif isinstance(value, str) and (found := _SHARE.fullmatch(value)):
        share = float(found[1]) / (100 if found[2] else 1)
    if not 0 < share <= 1:
        raise ValueError(f"{value!r} is no precision: write a share above 0, such as 0.05 or '5%'")
    return share


def check(where: str, scenario: Scenario) -> None:
    """Raises UserError where a scenario asks for what contradicts itself."""
    if scenario.most_blocks is None:
        return
    if scenario.precision is None:
        raise UserError(f"{where}: key 'most-blocks': without a 'precision' there are just as many blocks as 'blocks'")
    if scenario.most_blocks < scenario.blocks:
        raise UserError(f"{where}: key 'most-blocks': {scenario.most_blocks} is less than blocks = {scenario.blocks}")


def with_budget(experiment: Experiment, most_blocks: int | None, time_budget_s: float | None) -> Experiment:
    """The experiment with the command line's budgets; None leaves what the file says. Raises UserError where there is
    no precision that a budget could be for."""
    named = {"--most-blocks": most_blocks, "--time-budget": time_budget_s}
    asked = [option for option, value in named.items() if value is not None]
    if asked and all(scenario.precision is None for scenario in experiment.scenarios):
        raise UserError(f"{asked[0]}: is for a run with --precision; without it there are just as many blocks as said")
    scenarios = tuple(
        scenario if scenario.precision is None else _with_budget(scenario, most_blocks, time_budget_s)
        for scenario in experiment.scenarios
    )
    for scenario in scenarios:
        check(f"experiment {experiment.name!r}, scenario {scenario.name!r}", scenario)
    return msgspec.structs.replace(experiment, scenarios=scenarios, time_budget_s=time_budget_s)


def _with_budget(scenario: Scenario, most_blocks: int | None, time_budget_s: float | None) -> Scenario:
    if most_blocks is None and (time_budget_s is None or scenario.most_blocks is not None):
        return scenario
    return msgspec.structs.replace(scenario, most_blocks=most_blocks or max(MOST_BLOCKS_IN_TIME, scenario.blocks))


# --- how many there may be ---------------------------------------------------------------------------------------


def most(scenario: Scenario) -> int:
    """More blocks than this it never has."""
    if scenario.precision is None:
        return scenario.blocks
    return scenario.most_blocks or max(MOST_BLOCKS, scenario.blocks)


def least(scenario: Scenario) -> int:
    """Fewer blocks than this it never has; with nobody to compare with, no look is needed."""
    if scenario.precision is None or len(scenario.contestants) < 2:
        return scenario.blocks
    return max(scenario.blocks, min(EARLIEST_END, most(scenario)))


def at_least(experiment: Experiment) -> Experiment:
    """The experiment with a fixed number of blocks: as few as it may have."""
    return _fixed(experiment, least)


def at_most(experiment: Experiment) -> Experiment:
    """The same with as many as it may have."""
    return _fixed(experiment, most)


def _fixed(experiment: Experiment, blocks: Callable[[Scenario], int]) -> Experiment:
    scenarios = tuple(
        msgspec.structs.replace(scenario, blocks=blocks(scenario), precision=None, most_blocks=None)
        for scenario in experiment.scenarios
    )
    return msgspec.structs.replace(experiment, scenarios=scenarios)


# --- which come next ---------------------------------------------------------------------------------------------


def next_block(
    experiment: Experiment, still_open: Sequence[Scenario], number: int, twice: Sequence[Kind] = ()
) -> tuple[Cell, ...]:
    """The cells of these scenarios in the block of this number, with the twins of what is run twice; the same seed
    gives the same order. Pure."""
    scenarios = tuple(msgspec.structs.replace(scenario, blocks=number) for scenario in still_open)
    if not scenarios:
        return ()
    planned = plan.plan(msgspec.structs.replace(experiment, scenarios=scenarios), twice)
    return tuple(cell for cell in planned if cell.block == number)


class Schedule:
    """The cells of a run in their order: what is planned, then further blocks while some scenario wants them."""

    def __init__(self, run: Run, planned: Sequence[Cell], progress: Progress) -> None:
        """`run` holds the trials that there are already; they are counted as done."""
        self._run = run
        self._trials: dict[tuple[int, int], Trial] = {}
        self._cells: list[Cell] = []
        self._left: Counter[int] = Counter()
        """Of each block, how many of its cells have no trial yet."""
        self._progress = progress
        self._plan(planned)
        for trial in run.all_trials:
            self.add(trial)
        self._expect(self._below_budget())

    def cells(self, keep: Callable[[Sequence[Cell]], None]) -> Iterator[Cell]:
        """Every cell that has no trial yet. `keep` is given the cells of a further block before the first of them is
        run, so that they are planned when they begin."""
        yield from [cell for cell in self._cells if _place(cell) not in self._trials]
        while further := self._further():
            keep(further)
            yield from further

    def add(self, trial: Trial) -> None:
        """What came of a planned cell that had no trial yet."""
        self._trials[_place(trial)] = trial
        self._left[trial.block] -= 1
        self._progress.add(trial)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Those that there are."""
        return tuple(self._trials.values())

    def revise(self, judged: Sequence[Trial]) -> tuple[Trial, ...]:
        """Trials that were judged later, each in the place of itself: of a block that was cut short and gone on with,
        for the second time. Returns those that were valid until now and are not any more."""
        changes = [(self._trials[_place(trial)], trial) for trial in judged]
        for was, now in changes:
            self._trials[_place(now)] = now
            self._progress.revise(was, now)
        return tuple(now for was, now in changes if was.status == "valid" and now.status != "valid")

    def is_over(self, block: int) -> bool:
        """Whether every cell of a block has its trial."""
        return self._left[block] == 0

    def _plan(self, cells: Sequence[Cell]) -> None:
        self._cells += cells
        self._left.update(cell.block for cell in cells)

    def _further(self) -> tuple[Cell, ...]:
        """The next block; empty where the run has come to its end."""
        still_open = self._open()
        number = 1 + max((cell.block for cell in self._cells), default=0)
        further = next_block(self._run.experiment, still_open, number, plan.with_twins(self._cells))
        if not self._is_in_time(further):
            still_open, further = [], ()
        self._plan(further)
        self._expect(still_open)
        return further

    def _open(self) -> list[Scenario]:
        """The scenarios that want another block and may have one."""
        asked = self._below_budget()
        if not asked:
            return []
        from netdyno import endings  # it needs the heavy libraries, and a run with a fixed number of blocks does not

        run = msgspec.structs.replace(self._run, trials=tuple(trial for trial in self.trials if not trial.twin))
        return [one for one in asked if endings.wants_more(run, one)]

    def _below_budget(self) -> list[Scenario]:
        scenarios = self._run.experiment.scenarios
        return [one for one in scenarios if one.precision is not None and self._blocks(one) < most(one)]

    def _blocks(self, scenario: Scenario) -> int:
        """How many blocks of a scenario are planned."""
        return len({cell.block for cell in self._cells if cell.scenario == scenario.name})

    def _is_in_time(self, cells: Sequence[Cell]) -> bool:
        """Whether a block would end within the budget of time, if its trials take as long as those so far."""
        budget_s = self._run.experiment.time_budget_s
        if budget_s is None or not self._trials:
            return True
        spent_s = sum(trial.seconds for trial in self.trials)
        return spent_s + spent_s / len(self._trials) * len(cells) <= budget_s

    def _expect(self, still_open: Sequence[Scenario]) -> None:
        """Tell the progress how far the run may go on."""
        further = 0
        last = max((cell.block for cell in self._cells), default=0)
        for scenario in still_open:
            blocks = self._blocks(scenario)
            mine = sum(cell.scenario == scenario.name for cell in self._cells)
            further += mine // max(blocks, 1) * (most(scenario) - blocks)
        more = max((most(scenario) - self._blocks(scenario) for scenario in still_open), default=0)
        self._progress.expect(len(self._cells), len(self._cells) + further, last + more)


def _place(one: Cell | Trial) -> tuple[int, int]:
    """Where in a run it stands."""
    return one.block, one.position
