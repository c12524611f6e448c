"""Connections that were spread unevenly over the threads of a server. Pure functions.

Where the kernel spreads them by a hash (SO_REUSEPORT), the shares of few connections are luck, and the busiest thread
is what is measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from netdyno.analysis.findings import UnevenThreads
from netdyno.model.base import Name
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_label
from netdyno.model.metrics import Counted

UNEVEN = 1.5
"""The busiest thread's share divided by the largest of the most even spread, above which a trial is told."""


class _Spread(NamedTuple):
    ratio: float
    most: int
    connections: int
    threads: int
    level: Name


def uneven_threads(scenario: Scenario, ranked: Sequence[Counted]) -> tuple[UnevenThreads, ...]:
    """Every contestant that was measured so in some trial."""
    spreads: dict[str, list[_Spread]] = {}
    for counted in ranked:
        if (spread := _spread(scenario, counted)) is not None:
            spreads.setdefault(counted[0].contestant, []).append(spread)
    found = []
    for name, each in sorted(spreads.items()):
        trials = sum(one.ratio > UNEVEN for one in each)
        if trials:
            worst = max(each)
            found.append(
                UnevenThreads(name, trials, len(each), worst.level, worst.most, worst.connections, worst.threads)
            )
    return tuple(found)


def _spread(scenario: Scenario, counted: Counted) -> _Spread | None:
    """None where its connections belong to no thread. Those of the closing check are taken off the busiest thread."""
    trial, load = counted
    shares = trial.server.connections_per_thread if trial.server is not None else ()
    connections = load.connections.established
    if not shares or not connections:
        return None
    most = max(shares) - max(sum(shares) - connections, 0)
    even = math.ceil(connections / len(shares))
    return _Spread(most / even, most, connections, len(shares), level_label(scenario, trial.levels))
