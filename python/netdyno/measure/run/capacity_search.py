"""Carry out a search: each step is a fresh server process and an ordinary trial, stored before the next begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from netdyno.analysis.capacity.judge_capacity import Verdict, judge
from netdyno.analysis.capacity.search import Search
from netdyno.analysis.found.capacity import Answer, Reason
from netdyno.analysis.found.notices import Company
from netdyno.analysis.notices.company import find_neighbours
from netdyno.kit.errors import UserError
from netdyno.kit.paths import canary_path
from netdyno.kit.utc_now import utc_now
from netdyno.measure.audits import canary_audit as canary_audit
from netdyno.measure.run.neighbour_watch import NeighbourWatch
from netdyno.measure.run.preparation import begin_run, check, create_folder, discard_if_refused, set_up
from netdyno.measure.run.runner import Interrupted, raise_on_signals
from netdyno.measure.run.schedule import is_worth_retrying
from netdyno.measure.trial import first_requests, warm_up
from netdyno.measure.trial.canary import Canary
from netdyno.measure.trial.context import TrialContext, ignore_progress, key
from netdyno.measure.trial.trial import run_trial
from netdyno.model import objective, outcomes
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.observation import ForeignLoad
from netdyno.model.run import Environment
from netdyno.model.trial import Trial, Warmup
from netdyno.question import plan
from netdyno.question.capacity import CAPACITY, RATE
from netdyno.store import write

Show = Callable[[Trial, Verdict], None]
"""Shows every trial and its verdict."""
ShowNotice = Callable[[str], None]
"""Shows a notice beside that."""


class SearchResult(msgspec.Struct, frozen=True):
    """The result of a search: its folder, its answer (None where it was interrupted, then with the signal's exit code),
    the reason of the last verdict, and the company that it was measured in."""

    run_id: str
    folder: Path
    answer: Answer | None
    why: Reason | None
    interrupted: int
    company: Company | None


class PreparedSearch(msgspec.Struct, frozen=True):
    """What a search needs before its first trial: its run's id and folder, the context of its trials, and the
    environment that they run in."""

    run_id: str
    folder: Path
    context: TrialContext
    facts: Environment


def check_servers(experiment: Experiment, servers: Sequence[Contestant], build: Path) -> None:
    """Raise UserError where something cannot work for one of the servers; the experiment has one scenario with all of
    them."""
    (scenario,) = experiment.scenarios
    for server in servers:
        if reason := plan.explain_skip(server, scenario, {RATE: to_level(scenario.factors[RATE][0])}):
            raise UserError(reason)
    check(experiment, servers, build)


def prepare(
    experiment: Experiment, server: Contestant, *, results: Path, build: Path, foreign_load: ForeignLoad
) -> PreparedSearch:
    """Prepare the search of one server, after `check_servers`. Raises UserError."""
    run_id, folder = create_folder(results, f"{CAPACITY}-{server.name}")
    with discard_if_refused(folder):
        context, facts = set_up(
            experiment,
            [server],
            clients=(),
            build=build,
            folder=folder,
            progress=ignore_progress,
            foreign_load=foreign_load,
        )
    return PreparedSearch(run_id, folder, context, facts)


def send_first_requests(
    experiment: Experiment, servers: Sequence[Contestant], prepared: PreparedSearch
) -> first_requests.FirstReplies:
    """Send the first requests to all servers that are to be searched, before the first search. Raises UserError where
    one has no right reply."""
    with discard_if_refused(prepared.folder):
        return first_requests.check(experiment, {server.name: server for server in servers}, prepared.context)


def execute(
    experiment: Experiment,
    server: Contestant,
    prepared: PreparedSearch,
    *,
    build: Path,
    argv: Sequence[str],
    show: Show,
    note: ShowNotice,
) -> SearchResult:
    """Search; the experiment has one scenario with the server alone, and its `capacity` bounds the search."""
    context, folder = prepared.context, prepared.folder
    run = begin_run(prepared.run_id, folder, experiment, prepared.facts, [server])
    with write.Store.create(folder, run, argv, ()) as stored:
        canary = Canary(canary_path(build), context.pinning, folder)
        trials: list[Trial] = []
        answer, why, interrupted = _search(experiment, server, context, canary, stored, show, note, trials)
        if answer is not None:
            stored.finish(utc_now())
    witnesses = [trial for trial in trials if not outcomes.disturbances(trial)]
    return SearchResult(run.run_id, folder, answer, why, interrupted, find_neighbours(witnesses))


def _search(
    experiment: Experiment,
    server: Contestant,
    context: TrialContext,
    canary: Canary,
    stored: write.Store,
    show: Show,
    note: ShowNotice,
    trials: list[Trial],
) -> tuple[Answer | None, Reason | None, int]:
    """Search, and append each trial to `trials`."""
    search, goal, why = begin(experiment), objective.parse(experiment.scenarios[0].slo, "slo"), None
    neighbours = NeighbourWatch((), context.foreign_load)
    disturbed: list[Trial] = []
    try:
        with raise_on_signals() as raise_again:
            warmup = _measure_warmup(experiment.scenarios[0], server, context)
            while (rate_hz := search.choose_rate()) is not None:
                raise_again()
                cell = _plan_cell(experiment.scenarios[0], server, to_level(rate_hz), trials)
                experiment = _add_cell(experiment, cell)
                stored.extend((cell,), experiment)
                context = msgspec.structs.replace(
                    context, warmups={key(cell): warmup} if warmup else {}, neighbour=neighbours.present
                )
                trial = canary.beside(partial(run_trial, cell, experiment.scenarios[0], server, context))
                trials.append(canary_audit.judged_at_once(trial, trials, context.foreign_load))
                stored.add(trials[-1])
                verdict = judge(trials[-1], goal, experiment.scenarios[0])
                show(trials[-1], verdict)
                why = verdict.why
                if notice := neighbours.add(trials[-1]):
                    note(notice)
                disturbed = [*disturbed, trials[-1]] if verdict.outcome == "disturbed" else []
                # The search gives up after few disturbed trials, so it does not get those that a run would retry.
                if not disturbed or not (notice or neighbours.may_stay or is_worth_retrying(disturbed)):
                    search.tell(verdict.outcome)
    except Interrupted as signalled:
        return None, why, signalled.exit_code
    return search.answer, why, 0


def _measure_warmup(scenario: Scenario, server: Contestant, context: TrialContext) -> Warmup | None:
    """Measure the warm-up of a server with a JIT at the first rate: the next rates are not known yet."""
    first = _plan_cell(scenario, server, to_level(scenario.factors[RATE][0]), ())
    scenarios, servers = {scenario.name: scenario}, {server.name: server}
    kinds = warm_up.select_kinds((first,), scenarios, servers, {}, ())
    return next((warmup for _, warmup in warm_up.measure(kinds, scenarios, servers, context)), None)


def begin(experiment: Experiment) -> Search:
    """Return the search of an experiment before its first trial."""
    if experiment.capacity is None:
        raise ValueError(f"{experiment.name} asks for no search")
    return Search(experiment.capacity)


def to_level(rate_hz: float | str) -> int | float:
    """Return a rate as a level: whole numbers read better, and most rates are whole."""
    rate = float(rate_hz)
    return int(rate) if rate.is_integer() else rate


def _plan_cell(scenario: Scenario, server: Contestant, rate: int | float, before: Sequence[Trial]) -> plan.Cell:
    """Return the cell of the next trial. Its block counts the trials of its rate, so that each has its own arrivals;
    its position is its number in the whole search."""
    block = 1 + sum(trial.levels[RATE] == rate for trial in before)
    return plan.Cell(
        block=block, position=len(before), scenario=scenario.name, contestant=server.name, levels={RATE: rate}
    )


def _add_cell(experiment: Experiment, cell: plan.Cell) -> Experiment:
    """Return the experiment as if the cell had been planned: with its rate, in order, and its block."""
    (scenario,) = experiment.scenarios
    rates = tuple(sorted({*map(to_level, scenario.factors[RATE]), to_level(cell.levels[RATE])}))
    extended = replace(scenario, factors=scenario.factors | {RATE: rates}, blocks=max(scenario.blocks, cell.block))
    return replace(experiment, scenarios=(extended,))
