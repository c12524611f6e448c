"""What a run asks of the hosts of a cluster. A run on one machine has none, and loads nothing of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from netdyno.measure.trial.context import TrialContext, ignore_progress
from netdyno.model.base import type_level
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.observation import ForeignLoad
from netdyno.model.run import Environment
from netdyno.model.trial import Trial, Warmup
from netdyno.question.plan import Cell, CellKind, ContestantsByName


class GoneError(Exception):
    """A run cannot continue on its hosts, and can be resumed; the text says why."""

    exit_code = 4


class RunSetup(msgspec.Struct, frozen=True, kw_only=True):
    """The request for the context of a run's trials: what it measures, its build, and where the progress of a window is
    reported."""

    experiment: Experiment
    servers: Sequence[Contestant]
    clients: Sequence[Contestant] = ()
    build: Path
    progress: Callable[[int, float], None] = ignore_progress
    foreign_load: ForeignLoad


class Hosts(Protocol):
    """One host of servers and those that load it."""

    def check(self, experiment: Experiment, servers: ContestantsByName, clients: ContestantsByName) -> None:
        """Check the cells of an experiment. Raises UserError where none of them can run on these hosts."""

    def why_skip(
        self, contestant: Contestant, scenario: Scenario, levels: dict[str, type_level], clients: ContestantsByName
    ) -> str:
        """Return why a cell cannot run on these hosts; empty when it can."""

    def set_up(self, setup: RunSetup, folder: Path) -> tuple[TrialContext, Environment]:
        """Let every host that is needed build and describe itself, for trials in a folder. Raises UserError where one
        cannot take part."""

    def warm_ups(
        self, kinds: Sequence[CellKind], scenarios: Mapping[str, Scenario]
    ) -> Iterator[tuple[CellKind, Warmup]]:
        """Measure the warm-up of each kind of cell. Raises GoneError where the hosts are lost."""

    def trial(self, cell: Cell, scenario: Scenario, warmup: Warmup | None) -> Trial:
        """Run one trial. Raises GoneError where the hosts are lost."""
