"""The context that all trials of a run share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from netdyno.measure.machine.links.network import MACHINE, Network
from netdyno.measure.machine.pinning import apply_placement, give_server
from netdyno.model.contestant import Contestant
from netdyno.model.levels import level_key
from netdyno.model.load_result import LoadResult
from netdyno.model.observation import ForeignLoad, Neighbour, Pinning
from netdyno.model.options import Settings
from netdyno.model.trial import Trial, Warmup
from netdyno.question.plan import Cell, CellKind

Key = tuple[str, str, str]
"""Scenario, contestant and levels."""


def key(item: Cell | CellKind | Trial) -> Key:
    """The identity of a cell across blocks."""
    return item.scenario, item.contestant, level_key(item.levels)


def ignore_progress(_completed: int, _seconds: float) -> None:
    """Ignore the progress of a window."""


def decode_load(text: bytes) -> LoadResult:
    """Decode the result of one generator. Raises what msgspec does."""
    return msgspec.json.decode(text, type=LoadResult)


class TrialContext(msgspec.Struct, frozen=True):
    """The context of a trial: `seed` is the experiment's, `folder` the run's; `clients` are the client contestants by
    name; `bad_links` maps links, by their words, to the reason why nothing is measured over them; `progress` takes the
    completions and the seconds of the window so far; `foreign_load` says whether steal and foreign load invalidate a
    trial, and the `neighbour`'s share of the cores never does; `warmups` are the measured ones; `network` lies between
    the programs where no link is configured, and `decode` reads the result of a load; in a cell, `is_punctual` says
    whether the harness may run before everything of normal priority. The times are added to what the plan and the
    contracts allow."""

    seed: int
    generator: tuple[str, ...]
    pinning: Pinning
    folder: Path
    clients: Mapping[str, Contestant] = MappingProxyType({})
    bad_links: Mapping[str, str] = MappingProxyType({})
    progress: Callable[[int, float], None] = ignore_progress
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

    def adapt_to_cell(self, settings: Settings) -> TrialContext:
        """Return the same with the cores of server and load in a cell."""
        placed = apply_placement(self.pinning, settings.placement)
        return msgspec.structs.replace(
            self, pinning=give_server(placed, settings.server_cores), is_punctual=self.pinning.realtime
        )

    @property
    def load_cores(self) -> tuple[int, ...]:
        """The cores of this machine that a program of the load is pinned to."""
        return () if self.is_load_elsewhere else self.pinning.generator
