"""What a run starts: its programs are built, and its contestants ready to be started or with the reason why not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from netdyno.contestants import building, contestants
from netdyno.contestants.contestants import Kind
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment
from netdyno.model.levels import combinations
from netdyno.model.options import settings


class Ready(NamedTuple):
    """The contestants of a run."""

    servers: tuple[Contestant, ...]
    clients: tuple[Contestant, ...]


def make(experiment: Experiment, servers: Sequence[Contestant], clients: Sequence[Contestant], build: Path) -> Ready:
    """Build what its cells start and nothing else. `servers` and `clients` are those that its cells name. Raises
    UserError where the build fails; a contestant that lacks something is no failure."""
    building.make(programs(experiment, servers, clients), build)
    return Ready(_prepared(servers, build, "server"), _prepared(clients, build, "client"))


def programs(experiment: Experiment, servers: Sequence[Contestant], clients: Sequence[Contestant]) -> tuple[str, ...]:
    """The targets of the build that its trials need. Pure."""
    of_contestants = [
        target
        for kind, some in (("server", servers), ("client", clients))
        for contestant in some
        for target in building.target(contestant, kind)
    ]
    relay = (building.RELAY,) if _needs_relay(experiment) else ()
    return (building.GENERATOR, building.CANARY, *relay, *of_contestants)


def _needs_relay(experiment: Experiment) -> bool:
    """Whether a cell has a link that only the relay can be where the kernel has no netem."""
    return any(
        settings(scenario, levels).is_impaired for scenario in experiment.scenarios for levels in combinations(scenario)
    )


def _prepared(some: Sequence[Contestant], build: Path, kind: Kind) -> tuple[Contestant, ...]:
    return tuple(contestants.prepare(contestant, build=build, kind=kind) for contestant in some)
