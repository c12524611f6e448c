"""Carry a search out: each step is a fresh server process and an ordinary trial, stored before the next begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from netdyno.analysis.capacity.judge import Reason, Verdict, judge
from netdyno.analysis.capacity.search import Answer, Search
from netdyno.analysis.company import Company, company
from netdyno.audits import canary as canary_audit
from netdyno.base.errors import UserError
from netdyno.base.paths import canary_path
from netdyno.base.utc_now import utc_now
from netdyno.experiment import plan
from netdyno.experiment.capacity import RATE
from netdyno.model import objective, outcomes
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.observation import ForeignLoad
from netdyno.model.trial import Trial, Warmup
from netdyno.run.neighbour_watch import NeighbourWatch
from netdyno.run.runner import Interrupted, begun, check, create_folder, set_up, signals_raise
from netdyno.store import write
from netdyno.trial import warm_up
from netdyno.trial.canary import Canary
from netdyno.trial.setup import Bench, key, unwatched
from netdyno.trial.trial import run_trial

Show = Callable[[Trial, Verdict], None]
"""Told of every trial and what it said."""
Note = Callable[[str], None]
"""Told what a person should know beside that."""


@dataclass(frozen=True)
class Found:
    """What is left of a search: its folder, its answer (None where it was interrupted, then with the signal's exit
    code), why the last trial said what it said, and beside whom it was measured."""

    run_id: str
    folder: Path
    answer: Answer | None
    why: Reason | None
    interrupted: int
    company: Company | None


def execute(
    experiment: Experiment,
    server: Contestant,
    *,
    results: Path,
    build: Path,
    argv: Sequence[str],
    foreign_load: ForeignLoad,
    show: Show,
    note: Note,
) -> Found:
    """Search; the experiment has one scenario and says with `capacity` what to search for. Raises UserError before the
    first trial where something cannot work."""
    (scenario,) = experiment.scenarios
    if reason := plan.why_skip(server, scenario, {RATE: level(scenario.factors[RATE][0])}):
        raise UserError(reason)
    check(experiment, [server], build)
    run_id, folder = create_folder(results, experiment.name)
    bench, found = set_up(
        experiment, [server], clients=(), build=build, folder=folder, progress=unwatched, foreign_load=foreign_load
    )
    run = begun(run_id, folder, experiment, found, [server])
    with write.Store.create(folder, run, argv, ()) as stored:
        beside = Canary(canary_path(build), bench.pinning, folder)
        trials: list[Trial] = []
        answer, why, interrupted = _search(experiment, server, bench, beside, stored, show, note, trials)
        if answer is not None:
            stored.finish(utc_now())
    witnesses = [trial for trial in trials if not outcomes.disturbances(trial)]
    return Found(run_id, folder, answer, why, interrupted, company(witnesses))


def _search(
    experiment: Experiment,
    server: Contestant,
    bench: Bench,
    canary: Canary,
    stored: write.Store,
    show: Show,
    note: Note,
    trials: list[Trial],
) -> tuple[Answer | None, Reason | None, int]:
    """Search, and append each trial to `trials`."""
    search, wanted, why = begin(experiment), objective.parse(experiment.scenarios[0].slo, "slo"), None
    neighbours = NeighbourWatch((), bench.foreign_load)
    try:
        with signals_raise() as raise_again:
            warmup = _warmup(experiment.scenarios[0], server, bench)
            while (rate_hz := search.next_rate()) is not None:
                raise_again()
                cell = _cell(experiment.scenarios[0], server, level(rate_hz), trials)
                experiment = _with(experiment, cell)
                stored.extend((cell,), experiment)
                bench = bench._replace(warmups={key(cell): warmup} if warmup else {}, neighbour=neighbours.present)
                trial = canary.beside(partial(run_trial, cell, experiment.scenarios[0], server, bench))
                trials.append(canary_audit.judged_at_once(trial, trials, bench.foreign_load))
                stored.add(trials[-1])
                verdict = judge(trials[-1], wanted, experiment.scenarios[0])
                show(trials[-1], verdict)
                why = verdict.why
                if changed := neighbours.add(trials[-1]):
                    note(changed)
                # The search gives up after few disturbed trials, so it is not told of those that may be a neighbour's.
                if verdict.outcome != "disturbed" or not (changed or neighbours.may_stay):
                    search.tell(verdict.outcome)
    except Interrupted as signalled:
        return None, why, signalled.exit_code
    return search.answer, why, 0


def _warmup(scenario: Scenario, server: Contestant, bench: Bench) -> Warmup | None:
    """Of a server with a JIT, that of the first rate: which rates follow is not known yet."""
    first = _cell(scenario, server, level(scenario.factors[RATE][0]), ())
    scenarios, servers = {scenario.name: scenario}, {server.name: server}
    kinds = warm_up.kinds((first,), scenarios, servers, {}, ())
    return next((found for _, found in warm_up.measure(kinds, scenarios, servers, bench)), None)


def begin(experiment: Experiment) -> Search:
    """The search that an experiment asks for, before its first trial."""
    if experiment.capacity is None:
        raise ValueError(f"{experiment.name} asks for no search")
    return Search(experiment.capacity)


def level(rate_hz: float | str) -> int | float:
    """A rate as a level: whole numbers read better, and are most of them."""
    rate = float(rate_hz)
    return int(rate) if rate.is_integer() else rate


def _cell(scenario: Scenario, server: Contestant, rate: int | float, before: Sequence[Trial]) -> plan.Cell:
    """The next trial. Its block is how often its rate was measured, so that each time the arrivals are others; its
    position is its number in the whole search."""
    block = 1 + sum(trial.levels[RATE] == rate for trial in before)
    return plan.Cell(
        block=block, position=len(before), scenario=scenario.name, contestant=server.name, levels={RATE: rate}
    )


def _with(experiment: Experiment, cell: plan.Cell) -> Experiment:
    """The experiment as if the cell had been planned: its rate, in order, and its block."""
    (scenario,) = experiment.scenarios
    rates = tuple(sorted({*map(level, scenario.factors[RATE]), level(cell.levels[RATE])}))
    more = replace(scenario, factors=scenario.factors | {RATE: rates}, blocks=max(scenario.blocks, cell.block))
    return replace(experiment, scenarios=(more,))
