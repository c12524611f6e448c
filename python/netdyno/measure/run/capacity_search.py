"""Carry out searches for a capacity: each step is a fresh server process and an ordinary trial of the ordinary loop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from netdyno.analysis.capacity.search import Search
from netdyno.kit.errors import UserError
from netdyno.kit.paths import canary_path
from netdyno.measure.run.hosts import RunSetup
from netdyno.measure.run.preparation import begin_run, check, create_folder, discard_if_refused, set_up
from netdyno.measure.run.progress import Display
from netdyno.measure.run.runner import Execution, RunOutcome
from netdyno.measure.trial import first_requests
from netdyno.measure.trial.canary import Canary
from netdyno.measure.trial.context import TrialContext
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment
from netdyno.model.observation import ForeignLoad
from netdyno.model.run import Environment
from netdyno.question import plan
from netdyno.question.capacity import CAPACITY, RATE, add_rate, to_level
from netdyno.store import write


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
            RunSetup(experiment=experiment, servers=[server], build=build, folder=folder, foreign_load=foreign_load)
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
    display: Display,
) -> RunOutcome:
    """Search; the experiment has one scenario with the server alone, and its `capacity` bounds the search."""
    if experiment.capacity is None:
        raise ValueError(f"{experiment.name} asks for no search")
    rate = to_level(Search(experiment.capacity).rate_hz(0))
    first = plan.Cell(
        block=1, position=0, scenario=experiment.scenarios[0].name, contestant=server.name, levels={RATE: rate}
    )
    run = begin_run(prepared.run_id, prepared.folder, add_rate(experiment, rate, 1), prepared.facts, [server])
    with write.Store.create(prepared.folder, run, argv, (first,)) as stored:
        canary = Canary(canary_path(build), prepared.context.pinning, prepared.folder)
        servers = {server.name: server}
        execution = Execution(run, (first,), servers, prepared.context, canary, stored, display, ())
        return RunOutcome(run.run_id, prepared.folder, execution.carry_out())
