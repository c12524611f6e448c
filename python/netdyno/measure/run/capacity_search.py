"""Carry out searches for a capacity: each step is a fresh server process and an ordinary trial of the ordinary loop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from netdyno.analysis.capacity.search import Search
from netdyno.kit.errors import UserError
from netdyno.kit.paths import canary_path
from netdyno.measure.run.preparation import PreparedRun, begin_run
from netdyno.measure.run.progress import Display
from netdyno.measure.run.runner import Execution, RunOutcome
from netdyno.measure.trial.canary import Canary
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment
from netdyno.question import plan
from netdyno.question.capacity import RATE, add_rate, to_level
from netdyno.store import write


def check_servers(experiment: Experiment, servers: Sequence[Contestant]) -> None:
    """Raise UserError where one of the servers cannot be searched; the experiment has one scenario with all of them."""
    (scenario,) = experiment.scenarios
    for server in servers:
        if reason := plan.explain_skip(server, scenario, {RATE: to_level(scenario.factors[RATE][0])}):
            raise UserError(reason)


def execute(
    experiment: Experiment,
    server: Contestant,
    prepared: PreparedRun,
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
    run = begin_run(prepared, add_rate(experiment, rate, 1), [server])
    with write.Store.create(prepared.folder, run, argv, (first,)) as stored:
        canary = Canary(canary_path(build), prepared.context.pinning, prepared.folder)
        servers = {server.name: server}
        execution = Execution(run, (first,), servers, prepared.context, canary, stored, display, ())
        return RunOutcome(run.run_id, prepared.folder, execution.carry_out())
