"""Connections that were spread unevenly over the threads of a server. Pure functions.

Where the kernel spreads them by a hash (SO_REUSEPORT), the shares of few connections are luck, and the busiest thread
decides the figure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from netdyno.analysis.found.notices import UnevenThreads
from netdyno.model.base import Name
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_label
from netdyno.model.metrics import TrialWithLoad

UNEVEN = 1.5
"""The busiest thread's share divided by the largest of the most even spread, above which a trial is reported."""


class _Spread(msgspec.Struct, frozen=True, order=True):
    ratio: float
    most: int
    connections: int
    threads: int
    level: Name


def find_uneven(scenario: Scenario, ranked: Sequence[TrialWithLoad]) -> tuple[UnevenThreads, ...]:
    """Return every contestant with an uneven spread in some trial."""
    spreads: dict[str, list[_Spread]] = {}
    for counted in ranked:
        if (spread := _compute_spread(scenario, counted)) is not None:
            spreads.setdefault(counted[0].contestant, []).append(spread)
    uneven = []
    for name, contestant_spreads in sorted(spreads.items()):
        trials = sum(spread.ratio > UNEVEN for spread in contestant_spreads)
        if trials:
            worst = max(contestant_spreads)
            uneven.append(
                UnevenThreads(
                    name, trials, len(contestant_spreads), worst.level, worst.most, worst.connections, worst.threads
                )
            )
    return tuple(uneven)


def _compute_spread(scenario: Scenario, counted: TrialWithLoad) -> _Spread | None:
    """Return the spread of a trial; None where its connections belong to no thread, or some came before its load. Those
    of the closing check are taken off the busiest thread."""
    trial, load = counted
    shares = trial.server.connections_per_thread if trial.server is not None else ()
    connections = load.connections.established
    if not shares or not connections or (trial.warmup and trial.warmup.closed):
        return None
    most = max(shares) - max(sum(shares) - connections, 0)
    even = math.ceil(connections / len(shares))
    return _Spread(most / even, most, connections, len(shares), level_label(scenario, trial.levels))
