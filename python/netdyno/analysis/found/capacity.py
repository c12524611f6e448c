"""The capacities of a question: what was held at each rate, and where a search ended.

Frozen data without words; units are in the names."""

from __future__ import annotations

from typing import Literal

import msgspec

from netdyno.model.base import Name, Quoted
from netdyno.model.load_result import Audit
from netdyno.model.objective import Objective, Term


class FailedAudits(msgspec.Struct, frozen=True):
    """Audits for which the trial does not count, or which found the server at fault."""

    audits: tuple[Audit, ...]


class Incomplete(msgspec.Struct, frozen=True):
    """The trial was not completed."""

    reason: Quoted


class Overload(msgspec.Struct, frozen=True):
    """The answers and the offered rate that they stayed behind, in messages per second."""

    answered_hz: float
    offered_hz: float


class NoAnswer(msgspec.Struct, frozen=True):
    """No answer to any message."""


class Missed(msgspec.Struct, frozen=True):
    """The terms of the objective that were not kept, each with its figure. `lost` is a share of lost messages above the
    scenario's bound, None where there was no such loss, or the objective has its own term for loss."""

    terms: tuple[tuple[Term, float], ...]
    lost: float | None
    bound: float


Reason = FailedAudits | Incomplete | Overload | NoAnswer | Missed


Ending = Literal["capacity", "at_most", "at_least", "none", "generator", "disturbed", "broken"]
"""`capacity`: between two neighbours of the ladder. `at_most`: the objective holds at the highest rate that was
allowed. `none`: it does not hold at the lowest. `generator`: the generator could not go beyond `holds`. `disturbed`,
`broken`: trials kept saying nothing."""


class At(msgspec.Struct, frozen=True):
    """The outcomes of the trials at one rate, in messages per second."""

    rate_hz: float
    held: int
    failed: int


class Answer(msgspec.Struct, frozen=True):
    """The end of a search: the highest rate that holds, and the next one up that does not, None where there is none.
    `stopped_at` is the rate at which trials kept saying nothing."""

    ending: Ending
    holds: At | None
    fails: At | None
    stopped_at: float | None = None


class RatePoint(msgspec.Struct, frozen=True):
    """One contestant at one rate: how many trials held the objective, failed it, and did not count (`silent`); the
    response times are geometric means over those that count, None where there is none. `latency_ns` is the figure that
    the objective is about; `whys` the reasons of the trials that did not hold."""

    rate_hz: float
    held: int
    failed: int
    silent: int
    p50_ns: float | None
    p99_ns: float | None
    p999_ns: float | None
    latency_ns: float | None
    whys: tuple[Reason, ...]


class CapacityCurve(msgspec.Struct, frozen=True):
    """One contestant at one combination of the levels other than the rate. `capacity_hz` is the geometric mean over
    blocks; in `at_least` of them every rate held, in `below` none did: these are bounds."""

    contestant: Name
    level: Name
    points: tuple[RatePoint, ...]
    capacity_hz: float | None
    blocks: int
    at_least: int
    below: int
    knee_hz: float | None
    """The rate at which the curve bends (statistics/threshold.py)."""


class Searched(msgspec.Struct, frozen=True):
    """The answer of a search for a contestant's capacity; None where it did not come to its end, or followed other
    rules than those of today. `why` is the reason from the last trial, which matters where one trial after another
    did not count."""

    contestant: Name
    answer: Answer | None
    why: Reason | None


class CapacityFindings(msgspec.Struct, frozen=True):
    """The data behind the metric `capacity`. `figure` is the latency that the objective is about, by its name, and
    `limit_ns` its limit; `search` is None where the run is no search."""

    objective: Objective
    figure: Name
    limit_ns: float | None
    curves: tuple[CapacityCurve, ...]
    search: Searched | None
