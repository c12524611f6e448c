"""The findings of a gate, as frozen data."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from netdyno.analysis.found.exclusions import Fault
from netdyno.kit.statistics.stats import Interval
from netdyno.model.base import Name, Quoted
from netdyno.model.experiment import Gate
from netdyno.model.load_result import FirstExchange

GateMetric = Literal["throughput", "kept", "p50", "p99", "mean", "cpu", "memory", "connection-spread"]
METRIC_NAMES: tuple[GateMetric, ...] = get_args(GateMetric)
GateOutcome = Literal["better", "within", "worse", "faulty", "open", "bound", "unsound"]
"""`better` and `within` the margin pass; `worse` and a `faulty` server do not. The others decide nothing: the margin
lies in the interval (`open`), the figures are the generator's (`bound`), or the earlier server was faulty
(`unsound`)."""
GateDecision = Literal["passes", "fails", "open", "unmeasured"]
"""`unmeasured`: of some scenario no block has figures of both servers, and no fault explains that as the new server's
own."""


class GatedMetric(msgspec.Struct, frozen=True):
    """One metric of one scenario. `before` and `after` are the geometric means over `blocks`, and `ratio` is after by
    before; its `interval` is the part that all looks share, None before the first."""

    scenario: Name
    metric: GateMetric
    margin: float
    outcome: GateOutcome
    blocks: int
    before: float
    after: float
    ratio: float
    interval: Interval | None
    faults: tuple[Fault, ...] = ()
    """The faults of the later server where it is `faulty`, of the earlier one where `unsound`, the most frequent
    first."""


class Faults(msgspec.Struct, frozen=True):
    """The number of blocks of a scenario in which each of the two showed a fault, out of `blocks` (in an export `of`).
    `exchange`: a request and what came, of a trial without a right reply."""

    scenario: Name
    before: int
    after: int
    blocks: int = msgspec.field(name="of")
    exchange: FirstExchange | None = None


class NoFigures(msgspec.Struct, frozen=True):
    """Why a server has no figure in a scenario: its faults, the most frequent first, else the reason of a trial that
    has none."""

    faults: tuple[Fault, ...]
    reason: Quoted


class Unmeasured(msgspec.Struct, frozen=True):
    """A scenario of which no block has figures of both servers. A server that has figures is None."""

    scenario: Name
    before: NoFigures | None
    after: NoFigures | None


class GateFindings(msgspec.Struct, frozen=True):
    """The state of a gate. `faults`: those of the scenarios in which there was one."""

    gate: Gate
    lines: tuple[GatedMetric, ...]
    faults: tuple[Faults, ...]
    decision: GateDecision
    may_go_on: bool
    """Whether another block could change anything."""
    unmeasured: tuple[Unmeasured, ...] = ()
