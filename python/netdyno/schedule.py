"""Which cells a run has, and in which order: what is planned, then further blocks while some scenario wants them.

What is in a further block depends on the seed alone: it is the block of that number in the plan of a larger fixed
number. How many there may be is said in blocks.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from netdyno import plan
from netdyno.blocks import most
from netdyno.display import Progress
from netdyno.model import Experiment, Run, Scenario, Trial
from netdyno.plan import Cell, Kind


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
