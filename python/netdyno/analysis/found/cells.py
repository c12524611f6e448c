"""The figures of a cell: one contestant at one level, over all blocks.

Frozen data without words; units are in the names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from netdyno.kit.statistics.stats import Interval
from netdyno.model.base import Name, type_level

BoundDirection = Literal["", "at least", "at most"]
"""The direction of a figure that is not exact."""


class Estimate(msgspec.Struct, frozen=True):
    """A figure over all blocks, its 95% interval (None below 5 blocks), and the block values behind it."""

    value: float
    interval: Interval | None
    points: tuple[float, ...]


class Series(msgspec.Struct, frozen=True):
    """Completions per second over the measured window of one trial, and their p99, one value per interval; None where
    nothing was completed."""

    block: int
    interval_ns: int
    per_second: tuple[float, ...]
    p99_ns: tuple[float | None, ...]


class Drops(msgspec.Struct, frozen=True):
    """The places where messages were dropped; None: not counted. `elsewhere`: datagrams that found no room in a socket
    that neither side reported. `unserved`: requests that the server received, and dropped beyond its bound.
    `recipients`: how many messages are lost with a request that is not served."""

    server: int | None
    generator: int | None
    elsewhere: int | None
    unsent: int | None
    unserved: int | None
    recipients: float


class LossOfTrial(msgspec.Struct, frozen=True):
    """One trial over a transport that may lose messages: its latencies and what they leave out, as shares. `above`: it
    lost more than the experiment's bound, and is marked wherever it is drawn."""

    block: int
    above: bool
    lost: float
    late: float
    duplicated: float
    reordered: float
    mean_ns: float
    p50_ns: float
    p99_ns: float
    drops: Drops


class Loss(msgspec.Struct, frozen=True):
    """The messages that a cell's latencies leave out, over the whole life of its trials; their shares are figures of
    the cell."""

    messages: int
    """The number of lost messages."""
    drops: Drops
    trials: tuple[LossOfTrial, ...]

    @property
    def above(self) -> bool:
        """Whether some trial lost more than the bound."""
        return any(trial.above for trial in self.trials)


class CellFigures(msgspec.Struct, frozen=True):
    """One contestant at one level, over the valid trials of all blocks."""

    contestant: Name
    level: Name
    trials: int
    values: Mapping[Name, Estimate]
    """The figures by metric (model/metrics.py), in its unit; without those that were not measured."""
    curve: tuple[tuple[float, float], ...]
    """Response time by percentile: (percent, ns), as far out as at least ten messages lie beyond."""
    series: tuple[Series, ...]
    loss: Loss | None
    """None over a stream, where a lost message makes its trial invalid."""

    def value(self, metric: str) -> float:
        """Return a figure without its interval; NaN where it was not measured."""
        estimate = self.values.get(metric)
        return math.nan if estimate is None else estimate.value

    @property
    def marked(self) -> bool:
        """Whether some trial in it lost more than the bound."""
        return self.loss is not None and self.loss.above


class LevelInfo(msgspec.Struct, frozen=True):
    """One combination of factor levels: its key in cells and its label for people."""

    key: Name
    label: Name
    values: dict[Name, type_level]


def select_heaviest(levels: Sequence[LevelInfo], cells: Sequence[CellFigures]) -> LevelInfo:
    """Return the last level at which as many contestants were measured as at any other. `levels` is not empty."""
    measured = Counter(cell.level for cell in cells)
    most = max(measured.values(), default=0)
    return next(level for level in reversed(levels) if measured[level.key] == most)
