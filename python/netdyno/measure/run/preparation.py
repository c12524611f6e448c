"""The preparation of a run: what must hold before its first trial, its folder, and the context of its trials."""

from __future__ import annotations

import itertools
import json
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from netdyno.kit import quantities
from netdyno.kit.errors import UserError, did_you_mean
from netdyno.kit.paths import canary_path, generator_path, tls_layer_path
from netdyno.kit.units import utc_now
from netdyno.measure.machine import digests, environment, pinning
from netdyno.measure.machine.links import link_check
from netdyno.measure.run import needed
from netdyno.measure.run.hosts import Hosts, RunSetup
from netdyno.measure.trial import first_requests
from netdyno.measure.trial.context import TrialContext
from netdyno.measure.trial.first_requests import FirstReplies
from netdyno.model import run
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Conditions, Experiment, Scenario
from netdyno.model.levels import combinations
from netdyno.model.observation import Pinning
from netdyno.model.options import Settings, settings
from netdyno.model.run import Run
from netdyno.question import flips, plan
from netdyno.question.contestants import building, codesize, contestants

OF_ALL_CELLS = {*Scenario.__struct_fields__} - {*Conditions.__struct_fields__, "name", "factors"}
"""The fields of a scenario beside the settings of its cells: its contestants, metric, blocks and turns, for example."""
SPARE_DESCRIPTORS = 64
"""The descriptors of a server or a generator beside its connections: listener, loops, timers, files, libraries."""


def check(experiment: Experiment, servers: Sequence[Contestant], build: Path) -> None:
    """Check for failures in the middle of a run that can be known before it. Raises UserError."""
    plan.check_size(experiment)
    for what, program in (("load generator", generator_path(build)), ("canary", canary_path(build))):
        if not program.is_file():
            raise UserError(f"the {what} is not built: {program} is missing (run ./netdyno, which builds it)")
    check_workloads(experiment, servers)
    flips.check(experiment)
    named = {server.name: server for server in servers}
    ensure_descriptors(plan.find_most_descriptors(experiment, named) + SPARE_DESCRIPTORS, experiment.name)


def leave_out_repeats(experiment: Experiment, cores: Pinning) -> Experiment:
    """Leave out each scenario with other `server-cores` than one before it that asks the same, and whose cells are all
    among that one's on this machine. An experiment whose claims, figures or flips name scenarios keeps all. Pure."""
    are_equal = len({scenario.server_cores for scenario in experiment.scenarios}) < 2
    if are_equal or experiment.claims or experiment.figures or experiment.flips:
        return experiment
    kept: list[Scenario] = []
    for scenario in experiment.scenarios:
        if not any(_repeats(scenario, before, cores) for before in kept):
            kept.append(scenario)
    return msgspec.structs.replace(experiment, scenarios=tuple(kept))


def _repeats(scenario: Scenario, before: Scenario, cores: Pinning) -> bool:
    if scenario.server_cores == before.server_cores:
        return False  # the same question twice is meant so
    if any(getattr(scenario, field) != getattr(before, field) for field in OF_ALL_CELLS):
        return False
    measured = _list_effective_settings(before, cores)
    return all(cell in measured for cell in _list_effective_settings(scenario, cores))


def _list_effective_settings(scenario: Scenario, cores: Pinning) -> list[Settings]:
    """Return the settings of each cell, with "all" for a number of server cores that limits nothing here."""
    effective = []
    for levels in combinations(scenario):
        cell = settings(scenario, levels)
        given = pinning.apply_placement(cores, cell.placement)
        if pinning.give_server(given, cell.server_cores) == given:
            cell = msgspec.structs.replace(cell, server_cores="all")
        effective.append(cell)
    return effective


class PreparedRun(msgspec.Struct, frozen=True):
    """A run before its first trial: its id and folder, the context of its trials, the environment that they run in, and
    what the first requests showed."""

    run_id: str
    folder: Path
    context: TrialContext
    facts: run.Environment
    first: FirstReplies


def prepare(
    setup: RunSetup,
    results: Path,
    name: str,
    hosts: Hosts | None = None,
    *,
    everyone: Sequence[Contestant] = (),
    first: FirstReplies | None = None,
) -> PreparedRun:
    """Check a run, create its folder, set up its trials and send its servers the first requests. Of several runs of one
    experiment, the first checks and asks the servers of all (`everyone`), and the others take its replies (`first`).
    Raises UserError, and then leaves no folder."""
    experiment, servers = setup.experiment, everyone or setup.servers
    servers_by_name = {server.name: server for server in servers}
    if first is None:
        check(experiment, servers, setup.build)
    if hosts is not None:
        hosts.check(experiment, servers_by_name, {client.name: client for client in setup.clients})
    run_id, folder = create_folder(results, name)
    with discard_if_refused(folder):
        context, facts = set_up(setup, folder, hosts)
        first = first or first_requests.check(experiment, servers_by_name, context)
    return PreparedRun(run_id, folder, context, facts, first)


def set_up(setup: RunSetup, folder: Path, hosts: Hosts | None = None) -> tuple[TrialContext, run.Environment]:
    """Return the context of a run's trials and the environment that they run in. Measures the links of this machine;
    where there is a `hosts`, its hosts describe themselves instead."""
    if hosts is not None:
        return hosts.set_up(setup, folder)
    experiment, servers, clients, build = setup.experiment, setup.servers, setup.clients, setup.build
    generator = generator_path(build)
    cores = pinning.choose()
    links = link_check.check(experiment, cores, folder)
    facts = environment.collect(experiment, cores, build) | links.environment | {"foreign_load": setup.foreign_load}
    tls_layer = tls_layer_path(build) if needed.is_encrypted(experiment) else None
    others = {level: needed.list_level_servers(experiment, servers, level) for level in building.PRESETS}
    started = (*servers, *itertools.chain.from_iterable(others.values()))
    facts |= {"programs": digests.digest_programs(generator, started, clients, tls_layer)}
    for level in filter(others.get, others):
        facts |= environment.describe_build(level, building.find_build(build, level))
    if interpreted := digests.list_runtimes([*servers, *clients]):
        facts["runtimes"] = interpreted
    if described := contestants.describe_frameworks(servers, build):
        facts["frameworks"] = described
    context = TrialContext(
        seed=experiment.seed,
        generator=(str(generator),),
        pinning=cores,
        folder=folder,
        clients={client.name: client for client in clients},
        bad_links=links.bad,
        progress=setup.progress,
        foreign_load=setup.foreign_load,
    )
    return context, facts


def create_folder(results: Path, name: str) -> tuple[str, Path]:
    """Create a fresh results/<run-id>; ids sort by time. Raises UserError when it cannot be written."""
    stem = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{name}"
    for run_id in (stem, *(f"{stem}-{number}" for number in range(2, 100))):
        try:
            (results / run_id / "logs").mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise UserError(f"the results folder {results} cannot be written: {error.strerror}") from error
        return run_id, results / run_id
    raise UserError(f"the results folder {results} has 99 runs of this very second")


@contextmanager
def discard_if_refused(folder: Path) -> Iterator[None]:
    """Remove the folder of a run that ends before its first trial, unless something in it may say why."""
    try:
        yield
    except UserError:
        with suppress(OSError):
            (folder / "logs").rmdir()
            folder.rmdir()
        raise


def begin_run(
    prepared: PreparedRun,
    experiment: Experiment,
    servers: Sequence[Contestant],
    clients: Sequence[Contestant] = (),
    **facts: str,
) -> Run:
    """Return a run before its first trial, and write its environment, with further `facts`, into its folder."""
    recorded = prepared.facts | facts
    write_environment(prepared.folder, recorded)
    return Run(
        run_id=prepared.run_id,
        experiment=experiment,
        started_at=utc_now(),
        finished_at=None,
        environment=recorded,
        trials=(),
        about=codesize.describe(servers, clients),
    )


def write_environment(folder: Path, facts: run.Environment) -> None:
    """Write the environment beside the run, for a reader without SQLite."""
    (folder / "environment.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def check_workloads(experiment: Experiment, servers: Sequence[Contestant]) -> None:
    """Raise UserError for a workload that no server speaks: it is a typing error, not a result. A server of the user's
    own speaks one only; where there are no others, scenarios that it does not speak are skipped as long as one is
    left."""
    known = {workload for server in servers for workload in server.manifest.workloads}
    needed = {scenario.workload for scenario in experiment.scenarios}
    only_own = bool(servers) and all(server.own is not None for server in servers)
    if only_own and not needed & known:
        raise UserError(
            f"experiment {experiment.name!r} needs {quantities.listed(sorted(needed))}, but your server speaks "
            f"{quantities.listed(sorted(known))} (--workload)"
        )
    for scenario in experiment.scenarios:
        if scenario.workload not in known and not only_own:
            where = f"experiment {experiment.name!r}, scenario {scenario.name!r}"
            raise UserError(f"{where}: unknown workload {scenario.workload!r}{did_you_mean(scenario.workload, known)}")


def ensure_descriptors(needed: int, experiment: str) -> None:
    """Raise the soft limit on open files for the programs to inherit. Raises UserError when the hard limit forbids."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise UserError(
            f"too few file descriptors: experiment {experiment!r} needs {needed} per program and the limit is {hard}; "
            f"raise it with: ulimit -n {needed} (as root, or by LimitNOFILE or limits.conf, where that is refused)"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
