"""`netdyno resume`: resume an interrupted run where it stopped, in the same file.

The cells, their order and their seeds are those that were planned. The machine, the compiler and the programs could
make the rest differ from the beginning, so they are compared first; where they differ, nothing is run unless the user
insists, and then the run records it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast, get_args

import msgspec

from netdyno.analysis.compare import differences
from netdyno.kit import quantities
from netdyno.kit.errors import UserError
from netdyno.kit.paths import canary_path
from netdyno.kit.units import utc_now
from netdyno.measure.run import changes, needed, preparation, runner
from netdyno.measure.run.hosts import Hosts, RunSetup
from netdyno.measure.run.progress import Display, ResumedRun
from netdyno.measure.trial import traced
from netdyno.measure.trial.canary import Canary
from netdyno.model import options
from netdyno.model.experiment import Experiment
from netdyno.model.observation import ForeignLoad
from netdyno.model.run import OF_CLUSTER, Environment, Run
from netdyno.model.trial import Trace
from netdyno.question import experiment
from netdyno.question.contestants import contestants, own
from netdyno.question.plan import Cell
from netdyno.store import read
from netdyno.store.write import Store

RESUMED = "resumed"
"""The key of the environment that has a line for each time a run was resumed."""


def resume(
    path: Path,
    *,
    build: Path,
    display: Display,
    anyway: bool,
    permit: Callable[[Run], None],
    hosts: Hosts | None = None,
) -> runner.RunOutcome:
    """Resume a stored run. `permit` raises UserError where the user forbids the programs that the run would start
    beside the servers of this repository; nothing is started or connected to before. Raises UserError where nothing is
    left to do, where the run is still being made, or where something decisive differs without `anyway`."""
    began_s = time.monotonic()
    with Store.reopen(path) as stored:
        run = read.load(path)
        if run.finished_at is not None:
            raise UserError(f"the run {run.run_id} finished at {run.finished_at}; nothing is left to do")
        planned = run.experiment
        if planned.capacity:
            raise UserError(f"the run {run.run_id} is a search for a capacity, which cannot be resumed: start it again")
        if (OF_CLUSTER in run.environment) != (hosts is not None):
            how = "over a cluster (--cluster DIR)" if hosts is None else "on one machine (without --cluster)"
            raise UserError(f"the run {run.run_id} was made {how}")
        cells = read.load_cells(path)
        _check_options(planned, cells)
        permit(run)
        servers, clients = _make_ready(run, build)
        preparation.check(planned, servers, build)
        setup = RunSetup(
            experiment=planned,
            servers=servers,
            clients=clients,
            build=build,
            progress=display.throughput,
            foreign_load=_read_foreign_load(run),
        )
        context, facts = preparation.set_up(setup, path.parent, hosts)
        changed_words = [changes.format_change(change) for change in differences.list_decisive(run.environment, facts)]
        if changed_words and not anyway:
            raise UserError(
                f"the run {run.run_id} cannot be resumed, because something has changed: {'; '.join(changed_words)} "
                "(--anyway resumes it, and records the change)"
            )
        run = msgspec.structs.replace(run, environment=_add_line(run, changed_words))
        stored.record(run.environment)
        preparation.write_environment(path.parent, run.environment)
        display.begin(ResumedRun(run.run_id, planned.question, len(run.all_trials), len(cells)))
        servers_by_name = {server.name: server for server in servers}
        canary = Canary(canary_path(build), context.pinning, path.parent)
        to_trace = traced.select_missing(
            traced.plan_tasks(planned, servers_by_name, context.clients, _choose_trace(run)), run.traced
        )
        execution = runner.Execution(
            run, cells, servers_by_name, context, canary, stored, display, to_trace, began_s, hosts
        )
        interrupted = execution.carry_out()
    return runner.RunOutcome(run.run_id, path.parent, interrupted)


def _check_options(planned: Experiment, cells: Sequence[Cell]) -> None:
    """Raise UserError where the plan names something that its experiment lacks, or gives a server an option that no
    experiment can set: all of them become words of command lines."""
    scenarios = {scenario.name: scenario for scenario in planned.scenarios}
    for scenario in planned.scenarios:
        options.check_stored(f"the stored scenario {scenario.name!r}", scenario)
    for cell in cells:
        if cell.scenario not in scenarios or cell.contestant not in scenarios[cell.scenario].contestants:
            raise UserError(
                f"the stored plan has {cell.contestant!r} in {cell.scenario!r}, but the experiment does not"
            )
        options.check_levels(f"the stored plan of {cell.scenario!r}", cell.levels)


def _add_line(run: Run, changed_words: Sequence[str]) -> Environment:
    before = run.environment.get(RESUMED, [])
    line = f"{utc_now()} after {quantities.plural(len(run.all_trials), 'trial')}"
    line += f", though {'; '.join(changed_words)}" if changed_words else ""
    return run.environment | {RESUMED: [*(before if isinstance(before, list) else []), line]}


def _make_ready(run: Run, build: Path) -> needed.PreparedContestants:
    planned = run.experiment
    servers = (*contestants.discover(build=build), *own.restore_servers(run.about))
    clients = contestants.discover(build=build, kind="client")
    names = sorted({name for scenario in planned.scenarios for name in scenario.contestants})
    return needed.make(
        planned,
        [contestants.find_by_name(servers, name) for name in names],
        [contestants.find_by_name(clients, name, "client") for name in experiment.list_clients(planned)],
        build,
    )


def _read_foreign_load(run: Run) -> ForeignLoad:
    """Return the run's rule; a run from before it was recorded excluded such trials."""
    recorded = run.environment.get("foreign_load")
    return cast(ForeignLoad, recorded) if recorded in get_args(ForeignLoad) else "strike-out"


def _choose_trace(run: Run) -> Trace:
    """Return the run's choice; a run from before it was recorded takes the default."""
    recorded = run.environment.get("trace")
    return cast(Trace, recorded) if recorded in get_args(Trace) else "auto"
