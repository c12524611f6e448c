"""What a gate has found, as frozen data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from netdyno.analysis.server_faults import Fault
from netdyno.model.base import Name
from netdyno.model.experiment import Gate
from netdyno.statistics.stats import Interval

Metric = Literal["throughput", "kept", "p50", "p99", "mean", "cpu", "memory", "connection-spread"]
METRIC_NAMES: tuple[Metric, ...] = get_args(Metric)
Outcome = Literal["better", "within", "worse", "faulty", "open", "bound", "unsound"]
"""`better` and `within` the margin pass; `worse` and a `faulty` server do not. Of the others nothing is decided: the
margin lies in the interval (`open`), the figures are the generator's (`bound`), or the earlier server was faulty."""
Decision = Literal["passes", "fails", "open"]


@dataclass(frozen=True)
class Line:
    """`ratio` is after by before, over `blocks`; its `interval` is what all looks leave, None before the first. Of both
    servers the geometric mean over these blocks."""

    scenario: Name
    metric: Metric
    margin: float
    outcome: Outcome
    blocks: int
    before: float
    after: float
    ratio: float
    interval: Interval | None
    faults: tuple[Fault, ...] = ()
    """Of the server after where it is `faulty`, of that before where the line is `unsound`, the most frequent first."""


@dataclass(frozen=True)
class Faults:
    """In how many blocks of a scenario each of the two showed a fault, `of` so many."""

    scenario: Name
    before: int
    after: int
    of: int


@dataclass(frozen=True)
class Found:
    """What a gate has come to. `faults`: of the scenarios in which there was one."""

    gate: Gate
    lines: tuple[Line, ...]
    faults: tuple[Faults, ...]
    decision: Decision
    may_go_on: bool
    """Whether another block could change anything."""
