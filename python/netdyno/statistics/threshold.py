"""The capacity of one block, of which each rate was measured once. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Bound = Literal["", "at least", "below"]


@dataclass(frozen=True)
class Measured:
    """One rate of a block: whether the objective held, and the figure of its first latency, None where it has none."""

    rate_hz: float
    held: bool
    latency_ns: float | None = None


@dataclass(frozen=True)
class Capacity:
    """In messages per second; `bound` says where it lies beyond the rates that were tried, of which it is then the
    highest or the lowest."""

    rate_hz: float
    bound: Bound = ""


def capacity(measured: Sequence[Measured], limit_ns: float | None) -> Capacity:
    """The place among the rates that parts those where the objective held from those where it failed with the fewest
    exceptions, and the lower one of such places: a single failure far below, or a single success far above, moves
    nothing. Between the two rates there, the latency tells where on the way its limit was crossed, on logarithmic
    scales. Something was measured."""
    rates = sorted(measured, key=lambda one: one.rate_hz)
    holds = min(range(len(rates) + 1), key=lambda count: _exceptions(rates, count))
    if holds == 0:
        return Capacity(rates[0].rate_hz, "below")
    if holds == len(rates):
        return Capacity(rates[-1].rate_hz, "at least")
    return Capacity(_crossing(rates[holds - 1], rates[holds], limit_ns))


def _exceptions(rates: Sequence[Measured], count: int) -> int:
    """How many outcomes speak against the first `count` rates holding and the others not."""
    return sum(not one.held for one in rates[:count]) + sum(one.held for one in rates[count:])


def _crossing(below: Measured, above: Measured, limit_ns: float | None) -> float:
    """The lower rate where the latency does not cross the limit between the two, as in an overload that it hides."""
    low, high = below.latency_ns, above.latency_ns
    if limit_ns is None or low is None or high is None or not 0 < low < limit_ns <= high:
        return below.rate_hz
    share = math.log(limit_ns / low) / math.log(high / low)
    return below.rate_hz * math.exp(share * math.log(above.rate_hz / below.rate_hz))
