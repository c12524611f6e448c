"""What all trials of a run have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from netdyno.experiment.plan import Cell, Kind
from netdyno.machine.links.network import MACHINE, Network
from netdyno.machine.pinning import apply_placement, give_server
from netdyno.model.contestant import Contestant
from netdyno.model.levels import level_key
from netdyno.model.load_result import LoadResult
from netdyno.model.observation import ForeignLoad, Neighbour, Pinning
from netdyno.model.options import Settings
from netdyno.model.trial import Trial, Warmup

Key = tuple[str, str, str]
"""Scenario, contestant and levels."""


def key(one: Cell | Kind | Trial) -> Key:
    """What is the same in all blocks."""
    return one.scenario, one.contestant, level_key(one.levels)


def unwatched(_completed: int, _seconds: float) -> None:
    """The progress of a window that nobody looks at."""


def decode_load(text: bytes) -> LoadResult:
    """Of one generator. Raises what msgspec does."""
    return msgspec.json.decode(text, type=LoadResult)


class Bench(NamedTuple):
    """`seed` is the experiment's, `folder` the run's; `clients` are the client contestants by name; `bad_links`
    says of links, by their words, why nothing is measured over them; `progress` takes the completions of the window so
    far and its seconds so far; `foreign_load` says whether steal and foreign load strike a trial out, and `neighbour`
    whose share of the cores strikes nothing out; `warmups` are those that were measured; `network` is what lies between
    the programs where no link is asked for, and `decode` reads the result of a load; in a cell, `is_punctual` says
    whether the harness may run before everything of normal priority. The times are what is waited for beyond what the
    plan and the contracts foresee."""

    seed: int
    generator: tuple[str, ...]
    pinning: Pinning
    folder: Path
    clients: Mapping[str, Contestant] = MappingProxyType({})
    bad_links: Mapping[str, str] = MappingProxyType({})
    progress: Callable[[int, float], None] = unwatched
    foreign_load: ForeignLoad = "strike-out"
    neighbour: Neighbour | None = None
    warmups: Mapping[Key, Warmup] = MappingProxyType({})
    network: Network = MACHINE
    decode: Callable[[bytes], LoadResult] = decode_load
    is_punctual: bool = False
    ready_timeout_s: float = 10.0
    shutdown_timeout_s: float = 5.0
    slack_s: float = 10.0

    @property
    def is_load_elsewhere(self) -> bool:
        """Whether another host of a cluster makes the load."""
        return self.network is not MACHINE

    def for_cell(self, wanted: Settings) -> Bench:
        """Return the same with the cores that server and load have in a cell."""
        placed = apply_placement(self.pinning, wanted.placement)
        return self._replace(pinning=give_server(placed, wanted.server_cores), is_punctual=self.pinning.realtime)

    @property
    def load_cores(self) -> tuple[int, ...]:
        """Those of this machine that a program of the load is pinned to."""
        return () if self.is_load_elsewhere else self.pinning.generator
