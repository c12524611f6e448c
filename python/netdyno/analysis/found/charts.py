"""The figures that an experiment asks for, ready to be drawn.

Frozen data without words; units are in the names."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from netdyno.analysis.found.cells import Estimate
from netdyno.analysis.found.exclusions import ExclusionCause
from netdyno.model.base import Name, type_level
from netdyno.model.figure import Figure, Published
from netdyno.model.trial import Status


class Missing(msgspec.Struct, frozen=True):
    """The outcome of most trials of a cell without a figure; both None where all were valid and none has it."""

    status: Status | None
    cause: ExclusionCause | None


class Spot(msgspec.Struct, frozen=True):
    """One cell of a figure: where it stands, and the estimates of the figure's metric and of those below it, None where
    there is none; `missing` says why the first has none. `lost` is None over a stream."""

    coordinates: Mapping[Name, type_level] = msgspec.field(name="at")
    contestant: Name
    estimates: tuple[Estimate | None, ...]
    missing: Missing | None
    trials: int
    """The number of trials behind the estimate, of `planned`."""
    planned: int
    excluded: int = msgspec.field(name="set_aside")
    """How many of these trials are invalid or faulty, for a metric that counts such."""
    lost: float | None
    above: bool
    """Whether some trial lost more than the bound."""

    @property
    def value(self) -> Estimate | None:
        return self.estimates[0]


class ChartPanel(msgspec.Struct, frozen=True):
    """The part of a figure at one combination of its panels' coordinates, empty where it has a single one."""

    coordinates: Mapping[Name, type_level] = msgspec.field(name="at")
    spots: tuple[Spot, ...]
    published: tuple[Published, ...]
    unsafe: tuple[Name, ...] = ()
    """The unsafe contestants of the whole figure."""


class Chart(msgspec.Struct, frozen=True):
    """A figure that the experiment asks for, filled from the run. `along` and `across` are the values that were run,
    in their order; `across` is (None,) where the figure has no such coordinate."""

    figure: Figure
    along: tuple[type_level, ...]
    across: tuple[type_level | None, ...]
    panels: tuple[ChartPanel, ...]
    blocks: int
    """The fewest blocks behind any estimate."""
    loss_bounds: tuple[float, ...]
    """The bounds of its scenarios, each once."""
    elsewhere: int
    """The number of published figures in panels that were not run."""
    unsafe: tuple[Name, ...] = ()
    """Contestants that are drawn, and in no ranking."""

    @property
    def spots(self) -> tuple[Spot, ...]:
        return tuple(spot for panel in self.panels for spot in panel.spots)
