"""The cells of a run in their order: the planned ones, then those that its question needs next (next_cells.py).

The cells of a further block depend on the seed alone: it is the block of that number in the plan of a larger fixed
number, but a further look has no twins. blocks.py bounds the number. Of a run that pursues flips, a further block has
the levels that follow from the stored trials, in an order that depends on the seed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from netdyno.kit import quantities
from netdyno.measure.run.next_cells import SoFar, is_worth_retrying, propose
from netdyno.measure.run.progress import Progress
from netdyno.model import outcomes
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.levels import level_key
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.question import plan
from netdyno.question.blocks import find_most
from netdyno.question.plan import Cell
from netdyno.question.side_by_side import divide_into_groups

BEYOND_BLOCKS = 3
"""The blocks in which an open loop may exceed the generator before its cell is skipped. Then more than half of its
trials have done so, and its figures are bounds however often they are taken (outcomes.saturated)."""
MOST_END_S, SHARE_OF_END = 5.0, 0.05
"""The time that analysis and report take after the last trial: of the budget of time so much, at most."""
RETRIES_PER_CELL = 6
"""The most retries of a whole block, over its cells. A neighbour that takes a quarter of each core in bursts leaves a
trial of 0.7 s alone three times in ten (bench/disturb.py); a machine that never rests makes a run seven times as long
at the most."""


class Schedule:
    """The cells of a run in their order: the planned ones, then further blocks while some scenario needs them. At the
    end of a block, its disturbed trials are retried, and again while they are disturbed."""

    def __init__(self, run: Run, planned: Sequence[Cell], progress: Progress, before_s: float = 0.0) -> None:
        """`run` holds the stored trials; they are counted as done. `before_s`: the seconds of this run before its first
        trial."""
        self._run = run
        self._before_s = before_s
        self._spent_s = 0.0
        self._trials: dict[tuple[int, int, int], Trial] = {}
        self._last: dict[tuple[int, int], Trial] = {}
        """The last try of each place."""
        self._cells: dict[int, list[Cell]] = {}
        """The cells by block."""
        self._left: Counter[int] = Counter()
        """The cells of each block that are still to be tried in this round."""
        self._retried: Counter[int] = Counter()
        """The tries of each block beyond the first of a cell."""
        self._lost: set[tuple[int, int]] = set()
        """The places of trials that a neighbour may have cost."""
        self._progress = progress
        self._plan(planned)
        for trial in run.all_trials:
            if trial.attempt > 1:
                self._repeat(self._last[_locate(trial)])
            self.add(trial)
        self._expect(self._select_below_budget())

    def groups(self, keep: Callable[[Sequence[Cell], Experiment | None], None]) -> Iterator[tuple[Cell, ...]]:
        """Yield every cell without a trial, then those to retry, grouped with the following cells that differ only in
        their contestant. `keep` gets the cells of further blocks before the first of them runs, so that they are
        planned when they begin, and the experiment where it changes: a new level, or the last blocks. A block's trials
        are judged (`revise`) when its round is over, before the next is requested. The first block has all its cells,
        however short the time is."""
        blocks = list(self._cells)
        while blocks:
            for block in blocks:
                yield from self._group_block(block)
            before = self._run.experiment
            further = self._plan_further()
            if further:
                keep(further, None if self._run.experiment is before else self._run.experiment)
            blocks = list(dict.fromkeys(cell.block for cell in further))

    def _group_block(self, block: int) -> Iterator[tuple[Cell, ...]]:
        cells = self._cells[block]
        for group in divide_into_groups(cell for cell in cells if _locate(cell) not in self._last):
            if block > 1 and self._count_within_limit() < len(group):
                return
            yield group
        while again := [cell for cell in cells if self._must_retry(cell)]:
            room = min(RETRIES_PER_CELL * len(cells) - self._retried[block], self._count_within_limit())
            if room <= 0:
                return
            again = again[:room]
            for cell in again:
                self._repeat(self._last[_locate(cell)])
            tries = (msgspec.structs.replace(cell, attempt=self._last[_locate(cell)].attempt + 1) for cell in again)
            yield from list(divide_into_groups(tries))

    def _must_retry(self, cell: Cell) -> bool:
        if self._run.experiment.capacity is not None:  # a search tries its rates again by itself
            return False
        last = self._last[_locate(cell)]
        tries = [self._trials[*_locate(cell), attempt] for attempt in range(1, last.attempt + 1)]
        return outcomes.is_disturbed(last) and is_worth_retrying(tries)

    def _repeat(self, disturbed: Trial) -> None:
        self._left[disturbed.block] += 1
        self._retried[disturbed.block] += 1
        self._progress.again(disturbed)

    def add(self, trial: Trial) -> None:
        """Record a try."""
        self._trials[*_locate(trial), trial.attempt] = self._last[_locate(trial)] = trial
        self._left[trial.block] -= 1
        self._spent_s += plan.sum_trial_seconds(trial)
        self._progress.add(trial)

    def excuse(self, trial: Trial) -> None:
        """Record that a neighbour may have cost a try."""
        self._lost.add(_locate(trial))

    def find_stop_reason(self, cell: Cell) -> str:
        """Return why a cell is not run any more; empty while it is. A search's rates are not judged here: it has its
        own end."""
        if any(scenario.objective for scenario in self._run.experiment.scenarios if scenario.name == cell.scenario):
            return ""
        judged = [
            trial
            for trial in self._last.values()
            if (trial.scenario, trial.contestant) == (cell.scenario, cell.contestant)
            and level_key(trial.levels) == level_key(cell.levels)
            and trial.load is not None
            and not outcomes.disturbances(trial)
        ]
        blocks = {trial.block for trial in judged} - {cell.block}
        if len(blocks) < BEYOND_BLOCKS or not all(map(outcomes.is_beyond, judged)):
            return ""
        return f"the generator could not offer the rate in any of {quantities.plural(len(blocks), 'block')}"

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials so far."""
        return tuple(self._trials.values())

    def revise(self, judged: Sequence[Trial]) -> tuple[Trial, ...]:
        """Replace trials by themselves as judged later; those of a block that was interrupted and resumed are judged
        twice. Returns those that were valid until now and are not any more."""
        changes = [(self._trials[*_locate(trial), trial.attempt], trial) for trial in judged]
        for was, now in changes:
            self._trials[*_locate(now), now.attempt] = now
            if self._last[_locate(now)].attempt == now.attempt:
                self._last[_locate(now)] = now
                self._progress.revise(was, now)
        return tuple(now for was, now in changes if was.status == "valid" and now.status != "valid")

    def is_over(self, block: int) -> bool:
        """Whether every cell of a block has its trial, and each retried one its new trial."""
        return self._left[block] == 0

    def _count_within_limit(self) -> int:
        """Count the trials that would end within the limit of time, if they take as long as those so far."""
        limit_s = self._run.experiment.time_limit_s
        if limit_s is None:
            return sys.maxsize
        left_s = _leave_end(limit_s) - self._before_s - self._spent_s
        return max(0, int(left_s / self._spent_s * len(self._trials))) if self._spent_s else sys.maxsize

    def _plan(self, cells: Sequence[Cell]) -> None:
        for cell in cells:
            self._cells.setdefault(cell.block, []).append(cell)
            self._left[cell.block] += 1

    def _plan_further(self) -> tuple[Cell, ...]:
        """Plan what the question needs next; return its cells, none at the end of the run."""
        proposals = propose(self._summarise()) if self._count_within_limit() else ()
        for proposal in proposals:
            if proposal.cells and (proposal.is_look or self._is_in_time(proposal.cells)):
                self._run = msgspec.structs.replace(self._run, experiment=proposal.experiment)
                self._plan(proposal.cells)
                self._expect(proposal.still_open)
                return proposal.cells
        self._expect([])
        return ()

    def _summarise(self) -> SoFar:
        trials = tuple(trial for trial in self.trials if not trial.twin)
        return SoFar(
            run=msgspec.structs.replace(self._run, trials=trials),
            lost=self._lost,
            below_budget=self._select_below_budget(),
            number=1 + max(self._cells, default=0),
            block_s=self._average_blocks(),
            twice=plan.find_twins(self._list_cells()),
        )

    def _average_blocks(self) -> dict[str, float]:
        """Return the mean seconds of a block of each scenario, with retries and without twins, by its name."""
        counts = self._count_blocks()
        spent_s = {scenario.name: 0.0 for scenario in self._run.experiment.scenarios}
        for trial in self._trials.values():
            if not trial.twin:
                spent_s[trial.scenario] += plan.sum_trial_seconds(trial)
        return {name: seconds / max(counts[name], 1) for name, seconds in spent_s.items()}

    def _select_below_budget(self) -> list[Scenario]:
        blocks = self._count_blocks()
        return [scenario for scenario in self._run.experiment.scenarios if blocks[scenario.name] < find_most(scenario)]

    def _count_blocks(self) -> Counter[str]:
        """Count the planned blocks of each scenario, by its name."""
        return Counter(name for cells in self._cells.values() for name in {cell.scenario for cell in cells})

    def _list_cells(self) -> list[Cell]:
        return [cell for cells in self._cells.values() for cell in cells]

    def _is_in_time(self, cells: Sequence[Cell]) -> bool:
        """Whether a block would end within the budget of time, if its trials take as long as those so far."""
        budget_s = self._run.experiment.time_budget_s
        if budget_s is None or not self._last:
            return True
        expected_s = self._spent_s / len(self._last) * len(cells)  # with the retries that a trial took so far
        return self._before_s + self._spent_s + expected_s <= _leave_end(budget_s)

    def _expect(self, still_open: Sequence[Scenario]) -> None:
        """Update the progress with the most cells and blocks that may come."""
        planned, further, last = self._list_cells(), 0, max(self._cells, default=0)
        precise = [scenario for scenario in still_open if scenario.precision is not None]
        blocks, cells = self._count_blocks(), Counter(cell.scenario for cell in planned)
        for scenario in precise:
            further += (
                cells[scenario.name] // max(blocks[scenario.name], 1) * (find_most(scenario) - blocks[scenario.name])
            )
        more = max((find_most(scenario) - blocks[scenario.name] for scenario in precise), default=0)
        goes_on = len(precise) < len(still_open)
        self._progress.expect(len(planned), len(planned) + further, last + more, goes_on=goes_on)


def _leave_end(seconds: float) -> float:
    """Return the part of a time in which trials may run."""
    return seconds - min(MOST_END_S, SHARE_OF_END * seconds)


def _locate(item: Cell | Trial) -> tuple[int, int]:
    """Return the place of a cell or a trial in its run."""
    return item.block, item.position
