"""The cells that come after those so far: what each question of a run still needs. One function a question.

Each judges the run after a block and proposes what to measure next, the best first. A run ends when its question
proposes nothing, or nothing that its time allows (schedule.py). kit/statistics/looks.py has the looks of every
question and the rule that ends it; the analysis of the stored run decides by the same."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from netdyno.model import outcomes
from netdyno.model.base import Frozen
from netdyno.model.experiment import Advise, CapacityPlan, Experiment, Gate, Scenario
from netdyno.model.objective import parse as parse_objective
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.question import flips, plan
from netdyno.question.capacity import RATE, add_rate, to_level
from netdyno.question.plan import Cell, CellKind

MOST_TRIES = 40
"""The most tries of one cell in one block."""
TRIES_ALONE = 8
"""The most successive tries disturbed without any foreign program at work: the cause is then likely the trial
itself."""
SHARE_OF_BUDGET = 0.1
"""The most of the budget of time that the blocks of a further look may take together (docs/adr/statistics.md)."""


class SoFar(Frozen):
    """A run between two blocks: its trials without twins, those of them (by place) that a neighbour may have cost, the
    scenarios that may have more blocks, the number of the next block, the seconds of a block of each scenario without
    twins, and the kinds of cells that are run twice."""

    run: Run
    lost: Collection[tuple[int, int]]
    below_budget: Sequence[Scenario]
    number: int
    block_s: Mapping[str, float]
    twice: Sequence[CellKind]


class Proposal(Frozen):
    """Cells to run next, and the experiment as if they had been planned. `still_open`: the scenarios that may need
    more. `is_look`: the cells of a further look, which come after the budget of time."""

    cells: tuple[Cell, ...]
    experiment: Experiment
    still_open: Sequence[Scenario] = ()
    is_look: bool = False


def is_worth_retrying(tries: Sequence[Trial]) -> bool:
    """Whether a cell is to be tried again after these tries, the last of which was disturbed: the one rule of all
    verbs."""
    if len(tries) >= MOST_TRIES:
        return False
    return len(tries) < TRIES_ALONE or any(map(outcomes.had_company, tries[-TRIES_ALONE:]))


def propose(so_far: SoFar) -> Iterator[Proposal]:
    """Propose what the question of the run needs next; nothing where it is decided."""
    experiment = so_far.run.experiment
    if experiment.capacity is not None:
        return search_capacity(experiment.capacity, so_far)
    if experiment.flips:
        return pursue_flips(so_far)
    if experiment.gate is not None:
        return continue_gate(experiment.gate, so_far)
    if experiment.advise is not None:
        return continue_advice(experiment.advise, so_far)
    return itertools.chain(improve_precision(so_far), look_further(so_far))


def search_capacity(bounds: CapacityPlan, so_far: SoFar) -> Iterator[Proposal]:
    """Propose the next rate of a search. Its block counts the trials of its rate, so that each has its own arrivals;
    its position is its number in the whole search."""
    from netdyno.analysis.capacity.judge_capacity import judge_capacity
    from netdyno.analysis.capacity.search import follow

    (scenario,) = so_far.run.experiment.scenarios
    objective, trials = parse_objective(scenario.objective, "objective"), so_far.run.trials
    results = [(float(trial.levels[RATE]), judge_capacity(trial, objective, scenario).outcome) for trial in trials]
    first = 1 + max((number for number, (_, outcome) in enumerate(results) if outcome != "disturbed"), default=-1)
    search = follow(bounds, results, _count_hopeless(trials[first:], so_far.lost))
    if search is not None and (rate_hz := search.choose_rate()) is not None:
        rate = to_level(rate_hz)
        block = 1 + sum(trial.levels[RATE] == rate for trial in trials)
        kind = CellKind(scenario.name, scenario.contestants[0], {RATE: rate})
        cell = Cell(block=block, position=len(trials), **kind._asdict())
        yield Proposal(cells=(cell,), experiment=add_rate(so_far.run.experiment, rate, block))


def _count_hopeless(disturbed: Sequence[Trial], lost: Collection[tuple[int, int]]) -> int:
    """Count those of a row of disturbed trials that a run would not retry, without those that a neighbour may have
    cost: after few of these a search gives up."""
    return sum(
        (trial.block, trial.position) not in lost and not is_worth_retrying(disturbed[:number])
        for number, trial in enumerate(disturbed, 1)
    )


def pursue_flips(so_far: SoFar) -> Iterator[Proposal]:
    """Propose the levels that flips pursue, each with both sides, in an order that depends on the seed."""
    from netdyno.analysis.flips.judge_flips import follow_flip
    from netdyno.analysis.trials.split import split

    judged = outcomes.judge_run(so_far.run)
    parts = {part.scenario.name: part for part in split(judged)}
    pursuits = [(flip, follow_flip(flip, parts[flip.scenario]).pursuit) for flip in judged.experiment.flips]
    levels = [
        (flip, flips.choose_level(flip, value))
        for flip, pursuit in pursuits
        if pursuit is not None
        for value in pursuit.next_levels
    ]
    experiment = so_far.run.experiment
    cells = flips.block(experiment, levels, so_far.number)
    yield Proposal(cells=cells, experiment=flips.add_levels(experiment, levels), still_open=experiment.scenarios)


def continue_gate(gate: Gate, so_far: SoFar) -> Iterator[Proposal]:
    """Propose a block of the scenarios with open metrics, while another could decide the gate."""
    from netdyno.analysis.gate.judge_gate import judge_gate
    from netdyno.analysis.trials.split import split

    if not so_far.below_budget:
        return
    findings = judge_gate(gate, split(outcomes.judge_run(so_far.run)))
    still_open = {line.scenario for line in findings.lines if line.outcome == "open"}
    if findings.may_go_on:
        yield _propose_block(so_far, [scenario for scenario in so_far.below_budget if scenario.name in still_open])


def continue_advice(advise: Advise, so_far: SoFar) -> Iterator[Proposal]:
    """Propose a block of the contestants that may still be recommended."""
    from netdyno.analysis.advice.judge_advice import select_remaining
    from netdyno.analysis.trials.split import split

    for part in split(outcomes.judge_run(so_far.run)) if so_far.below_budget else ():
        if remaining := select_remaining(advise, part):
            yield _propose_block(so_far, [msgspec.structs.replace(part.scenario, contestants=remaining)])


def improve_precision(so_far: SoFar) -> Iterator[Proposal]:
    """Propose a block of all scenarios that need another for their precision; or, where the rest of the time is to be
    used, of one of them, first the one with most to gain."""
    from netdyno.analysis.ranking import stopping
    from netdyno.analysis.trials.split import select_part

    if not so_far.below_budget or so_far.run.experiment.looked_again:
        return
    judged = outcomes.judge_run(so_far.run)
    parts = [select_part(judged, scenario) for scenario in so_far.below_budget]
    precise = [part.scenario for part in parts if stopping.needs_more_blocks(part)]
    timed = [part for part in parts if part.scenario.precision is None]
    groups = [precise] if precise else []
    for scenarios in (*groups, *([part.scenario] for part in stopping.sort_by_gain(timed))):
        yield _propose_block(so_far, scenarios)


def look_further(so_far: SoFar) -> Iterator[Proposal]:
    """Propose the blocks that would decide what is open at the end of the budget of time, all at once and without
    twins: a run may look again once. Those scenarios come first whose blocks take the least time."""
    experiment = so_far.run.experiment
    if experiment.time_budget_s is None or experiment.looked_again:
        return
    scenarios = {scenario.name: scenario for scenario in so_far.below_budget if scenario.precision is None}
    judged = outcomes.judge_run(so_far.run)
    candidates = sorted(
        (count * so_far.block_s[name], name, count)
        for name, scenario in scenarios.items()
        for count in _count_needed(judged, scenario)
    )
    room_s, chosen = SHARE_OF_BUDGET * experiment.time_budget_s, dict[str, int]()
    for seconds, name, count in candidates:
        if name not in chosen and seconds <= room_s:
            chosen[name] = count
            room_s -= seconds
    repeated = [scenario for name, scenario in scenarios.items() for _ in range(chosen.get(name, 0))]
    without_twins = msgspec.structs.replace(so_far, twice=())
    blocks = (plan_next_block(without_twins, [scenario], so_far.number + i) for i, scenario in enumerate(repeated))
    looked_again = msgspec.structs.replace(experiment, looked_again=tuple(chosen))
    yield Proposal(cells=tuple(itertools.chain.from_iterable(blocks)), experiment=looked_again, is_look=True)


def _count_needed(judged: Run, scenario: Scenario) -> set[int]:
    """Return how many more blocks would decide each open question of a scenario."""
    from netdyno.analysis.scenario import derive_findings
    from netdyno.analysis.trials.split import select_part
    from netdyno.kit.statistics import stats

    findings = derive_findings(select_part(judged, scenario), None, stats.SIGNIFICANCE)
    needed = {decision.blocks_to_settle for decision in (findings.decision, *findings.elsewhere)}
    return {count for count in needed if count is not None}


def _propose_block(so_far: SoFar, scenarios: Sequence[Scenario]) -> Proposal:
    cells = plan_next_block(so_far, scenarios, so_far.number)
    return Proposal(cells=cells, experiment=so_far.run.experiment, still_open=scenarios)


def plan_next_block(so_far: SoFar, scenarios: Sequence[Scenario], number: int) -> tuple[Cell, ...]:
    """Return the cells of these scenarios in the block of this number. The same seed gives the same order: it is the
    block of that number in the plan of a larger fixed number."""
    numbered = tuple(msgspec.structs.replace(scenario, blocks=number) for scenario in scenarios)
    planned = plan.plan(msgspec.structs.replace(so_far.run.experiment, scenarios=numbered), so_far.twice)
    return tuple(cell for cell in planned if cell.block == number)
