"""`netdyno resume`: go on with a run that was interrupted, where it was, in the same file.

The cells, their order and their seeds are those that were planned. What could make the rest differ from the beginning,
the machine, the compiler, the programs, is compared first; where it differs, nothing is run unless the user says so,
and then the run says so too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

import msgspec

from netdyno.analysis import differences
from netdyno.base import quantities
from netdyno.base.errors import UserError
from netdyno.base.paths import canary_path
from netdyno.base.utc_now import utc_now
from netdyno.contestants import contestants, own
from netdyno.experiment import experiment
from netdyno.experiment.plan import Cell
from netdyno.model import options
from netdyno.model.experiment import Experiment
from netdyno.model.observation import ForeignLoad
from netdyno.model.run import OF_CLUSTER, Environment, Run
from netdyno.model.trial import Trace
from netdyno.run import changes, needed, runner
from netdyno.run.progress import Display
from netdyno.store import read
from netdyno.store.write import Store
from netdyno.trial import traced
from netdyno.trial.canary import Canary

if TYPE_CHECKING:
    from netdyno.cluster.stage import Stage

RESUMED = "resumed"
"""The key of the environment that has a line for each time a run was gone on with."""


def resume(
    path: Path,
    *,
    build: Path,
    display: Display,
    anyway: bool,
    permit: Callable[[Run], None],
    stage: Stage | None = None,
) -> runner.Outcome:
    """Go on with the stored run. `permit` raises UserError where the user does not want what the run would start
    beside the servers of this repository; nothing is started or connected to before. Raises UserError where there is
    nothing to go on with, where it is still being made, or where something decisive differs and the user did not say
    `anyway`."""
    with Store.reopen(path) as stored:
        run = read.load(path)
        if run.finished_at is not None:
            raise UserError(f"the run {run.run_id} finished at {run.finished_at}; nothing is left to do")
        asked = run.experiment
        if asked.capacity:
            raise UserError(f"the run {run.run_id} is a search for a capacity, which cannot be resumed: start it again")
        if (OF_CLUSTER in run.environment) != (stage is not None):
            how = "over a cluster (--cluster DIR)" if stage is None else "on one machine (without --cluster)"
            raise UserError(f"the run {run.run_id} was made {how}")
        cells = read.load_cells(path)
        _check_options(asked, cells)
        permit(run)
        servers, clients = _ready(run, build)
        runner.check(asked, servers, build)
        bench, found = runner.set_up(
            asked,
            servers,
            clients=clients,
            build=build,
            folder=path.parent,
            progress=display.throughput,
            foreign_load=_foreign_load(run),
            stage=stage,
        )
        differ = [changes.said(change) for change in differences.decisive(run.environment, found)]
        if differ and not anyway:
            raise UserError(
                f"the run {run.run_id} cannot be resumed, because something has changed: {'; '.join(differ)} "
                "(--anyway resumes it, and records the change)"
            )
        run = msgspec.structs.replace(run, environment=_with_line(run, differ))
        stored.record(run.environment)
        runner.write_environment(path.parent, run.environment)
        done = f"{quantities.plural(len(run.all_trials), 'trial')} of {len(cells)} planned"
        display.begin(f"{run.run_id}: {asked.question} Going on after {done}")
        named = {server.name: server for server in servers}
        beside = Canary(canary_path(build), bench.pinning, path.parent)
        to_trace = traced.missing(traced.tasks(asked, named, bench.clients, _trace(run)), run.traced)
        interrupted = runner.carry_out(run, cells, named, bench, beside, stored, display, to_trace, stage)
    return runner.Outcome(run.run_id, path.parent, interrupted)


def _check_options(asked: Experiment, cells: Sequence[Cell]) -> None:
    """Raise UserError where the plan names what its experiment has not, or a server would be given an option that no
    experiment can set: all of them become words of command lines."""
    scenarios = {scenario.name: scenario for scenario in asked.scenarios}
    for scenario in asked.scenarios:
        options.check_stored(f"the stored scenario {scenario.name!r}", scenario)
    for cell in cells:
        if cell.scenario not in scenarios or cell.contestant not in scenarios[cell.scenario].contestants:
            raise UserError(
                f"the stored plan has {cell.contestant!r} in {cell.scenario!r}, but the experiment does not"
            )
        options.check_levels(f"the stored plan of {cell.scenario!r}", cell.levels)


def _with_line(run: Run, differ: Sequence[str]) -> Environment:
    before = run.environment.get(RESUMED, [])
    line = f"{utc_now()} after {quantities.plural(len(run.all_trials), 'trial')}"
    line += f", though {'; '.join(differ)}" if differ else ""
    return run.environment | {RESUMED: [*(before if isinstance(before, list) else []), line]}


def _ready(run: Run, build: Path) -> needed.Ready:
    asked = run.experiment
    servers = (*contestants.discover(build=build), *own.of_run(run.about))
    clients = contestants.discover(build=build, kind="client")
    names = sorted({name for scenario in asked.scenarios for name in scenario.contestants})
    return needed.make(
        asked,
        [contestants.by_name(servers, name) for name in names],
        [contestants.by_name(clients, name, "client") for name in experiment.clients(asked)],
        build,
    )


def _foreign_load(run: Run) -> ForeignLoad:
    """What the run began with; one that was stored before it was recorded struck such trials out."""
    recorded = run.environment.get("foreign_load")
    return cast(ForeignLoad, recorded) if recorded in get_args(ForeignLoad) else "strike-out"


def _trace(run: Run) -> Trace:
    """What the run began with; of one that was stored before it was recorded nobody knows, and it takes the default."""
    recorded = run.environment.get("trace")
    return cast(Trace, recorded) if recorded in get_args(Trace) else "auto"
