"""Build the programs of a run, and prepare its contestants: each is ready to start, or has the reason why not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment
from netdyno.model.levels import combinations
from netdyno.model.options import Settings, settings
from netdyno.question.contestants import building, contestants


class PreparedContestants(NamedTuple):
    """The prepared contestants of a run."""

    servers: tuple[Contestant, ...]
    clients: tuple[Contestant, ...]


def make(
    experiment: Experiment, servers: Sequence[Contestant], clients: Sequence[Contestant], build: Path
) -> PreparedContestants:
    """Build only what its cells start. `servers` and `clients` are those that its cells name. Raises UserError where
    the build fails; a contestant that lacks something is no failure."""
    building.make(list_programs(experiment, servers, clients), build)
    for level in building.PRESETS:
        building.make_level(list_level_programs(experiment, servers, level), level, build)
    spoken = {scenario.workload for scenario in experiment.scenarios}
    ready_servers = tuple(
        contestants.prepare(server, build=build) if spoken & set(server.manifest.workloads) else server
        for server in servers
    )
    ready_clients = (contestants.prepare(client, build=build, kind="client") for client in clients)
    return PreparedContestants(ready_servers, tuple(ready_clients))


def list_programs(
    experiment: Experiment, servers: Sequence[Contestant], clients: Sequence[Contestant]
) -> tuple[str, ...]:
    """Return the targets of the build that its trials need. Pure."""
    contestant_targets = [
        target
        for kind, group in (("server", servers), ("client", clients))
        for contestant in group
        for target in building.list_targets(contestant, kind)
    ]
    # The relay is such a link where the kernel has no netem.
    relay = (building.RELAY,) if any(cell.is_impaired for cell in _list_cells(experiment)) else ()
    tls = building.list_tls_targets(servers) if is_encrypted(experiment) else ()
    kinds = {cell.asks_postgresql for cell in _list_cells(experiment) if cell.has_backend}
    backend = [building.POSTGRESQL if postgresql else building.BACKEND for postgresql in sorted(kinds)]
    return (building.GENERATOR, building.CANARY, *relay, *tls, *backend, *contestant_targets)


def list_level_programs(experiment: Experiment, servers: Sequence[Contestant], level: str) -> tuple[str, ...]:
    """Return the targets that its trials need in the build for a level of `build`. Pure."""
    chosen = _select_servers(experiment, servers, level)
    return (
        *(building.list_tls_targets(chosen) if is_encrypted(experiment) else ()),
        *(server.name for server in chosen),
    )


def list_level_servers(experiment: Experiment, servers: Sequence[Contestant], level: str) -> tuple[Contestant, ...]:
    """Return the programs of a level of `build` that its trials start, as servers with names of their own."""
    return tuple(
        msgspec.structs.replace(server, name=f"{server.name}-{level}", command=(str(program),))
        for server in _select_servers(experiment, servers, level)
        if (program := building.find_program(Path(server.command[0]), level)).is_file()
    )


def _select_servers(experiment: Experiment, servers: Sequence[Contestant], level: str) -> list[Contestant]:
    """Return the servers of which a cell starts the program of a level of `build`."""
    names = {
        name
        for scenario in experiment.scenarios
        if any(settings(scenario, levels).other_build == level for levels in combinations(scenario))
        for name in scenario.contestants
    }
    return [server for server in servers if server.name in names and server.available and server.manifest.has_builds]


def _list_cells(experiment: Experiment) -> Iterator[Settings]:
    return (settings(scenario, levels) for scenario in experiment.scenarios for levels in combinations(scenario))


def is_encrypted(experiment: Experiment) -> bool:
    """Whether a cell is encrypted."""
    return any(cell.is_encrypted for cell in _list_cells(experiment))
