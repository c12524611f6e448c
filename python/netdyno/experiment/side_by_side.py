"""Which contestants take turns, and how long a turn's slices are. Pure.

Contestants that are compared stand side by side and take turns, so that what the machine does meets all of them within
tenths of a second (docs/adr/turns.md). What cannot stand side by side is measured trial by trial."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from netdyno.experiment.plan import Cell
from netdyno.model import outcomes, transports
from netdyno.model.contestant import GENERATOR, Contestant, stands_already
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_key
from netdyno.model.options import Settings
from netdyno.model.trial import Trial

SKIPPED_S = 0.005
"""The beginning of a slice, which is not measured: caches are cold, and idle threads wake."""
SHORTEST_S, LONGEST_S = 0.05, 0.1
"""Of a slice: a fraction of half a second, the correlation time of a shared machine's noise."""
STEP_S = 0.005
"""The intervals of a short time series (protocol/load-result.md), so that those of all slices are whole."""
TURNS = 16
"""What a window is divided into, where its slices are neither too short nor too long then. Slices of 50 ms instead of
100 stand closer together: the difference of two contestants varies half as much (docs/adr/turns.md)."""
FEWEST_TURNS = 2
FEWEST_MESSAGES = 10
"""In a slice of an open loop; fewer say nothing of a slice."""
LARGEST_SHARE = 0.2
"""Of a slice, what one answer or one round may take."""
MOST_IN_FLIGHT = 1000
"""Of a closed loop: a slice begins with all of them at once, and most of it would be that."""
MOST_CONNECTIONS = 10_000
"""Of all contestants of a group together."""

ONLY = "it is the only contestant"
BUSY = "it uses CPU during the slices of others"
"""Why a contestant takes no turns, where nothing else is in the way."""
BEHIND = "one of them does not keep up with the rate"
"""Why no contestant takes turns at a level."""
SIDE_BY_SIDE = "side_by_side"
"""The audit that finds a contestant busy while another has its slice."""
BACKLOG = "backlog"
"""The audit that finds answers of a slice long after its end."""


class Slices(NamedTuple):
    """How a window of a trial is divided: into `turns` slices of `measured_s`, each after `SKIPPED_S`."""

    turns: int
    measured_s: float

    @property
    def length_s(self) -> float:
        return SKIPPED_S + self.measured_s


def divide(window_s: float) -> Slices:
    """Return the slices that together measure a window, to within half a slice. Their lengths are multiples of
    STEP_S."""
    length_s = STEP_S * round(min(LONGEST_S, max(SHORTEST_S, window_s / TURNS)) / STEP_S)
    measured_s = length_s - SKIPPED_S
    return Slices(max(FEWEST_TURNS, round(window_s / measured_s)), measured_s)


def why_alone(scenario: Scenario, wanted: Settings, contestants: Sequence[Contestant]) -> str:
    """Why the trials of one level of a scenario are made one by one; empty where its contestants take turns."""
    slice_s = divide(wanted.duration_s).measured_s
    longest_s = LARGEST_SHARE * slice_s
    connections = wanted.connections * len(contestants)
    rate = wanted.rate_per_connection * wanted.connections if wanted.rate_per_connection else wanted.rate
    reasons = {
        "turns are off": scenario.turns == "off",
        ONLY: len(contestants) < 2,
        "clients are compared": wanted.client != GENERATOR,
        "a link lies between load and server": wanted.is_apart,
        "several hosts make the load": wanted.client_hosts > 1,
        "a capacity is searched, each contestant at rates of its own": bool(scenario.slo),
        "failed connects are counted": wanted.failed_connects == "count",
        "some clients read slowly": wanted.slow_readers > 0,
        "clients speak while others connect": wanted.start == "at-once",
        "each connection's mean needs a whole window": scenario.metric == "connection-spread",
        "a request takes too much of a slice": wanted.longest_service_time_s > longest_s,
        "a round takes too much of a slice": wanted.round_s > longest_s,
        "a slice has too few messages": rate is not None and rate * slice_s < FEWEST_MESSAGES,
        "there are too many connections": connections > MOST_CONNECTIONS,
        "too many messages are in flight for a slice": wanted.arrivals == "closed"
        and wanted.connections * wanted.depth > MOST_IN_FLIGHT,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def why_apart(contestant: Contestant) -> str:
    """Why a contestant takes no turns, whatever the scenario; empty where it can."""
    if transports.of(contestant).messages:
        return "what is lost on its transport would hold up the slices of others"
    if stands_already(contestant):
        return "it is already running, and may serve other clients"
    return ""


def divide_into_groups(cells: Iterable[Cell]) -> Iterator[tuple[Cell, ...]]:
    """Divide cells into those that follow each other and differ only in their contestant."""
    for _, found in itertools.groupby(cells, key=lambda cell: (cell.block, cell.scenario, level_key(cell.levels))):
        yield tuple(found)


def busy_beside(trials: Iterable[Trial]) -> frozenset[tuple[str, str]]:
    """Scenario and contestant of those that were busy in the slice of another. They are measured alone from then on."""
    return frozenset((trial.scenario, trial.contestant) for trial in trials if _has_failed(trial, SIDE_BY_SIDE))


def behind(trials: Iterable[Trial]) -> frozenset[tuple[str, str]]:
    """Scenario and levels (`level_key`) at which a contestant did not keep up with the rate, and no other program can
    be why. All are measured alone there from then on, so that they are compared over windows of one length."""
    return frozenset(
        (trial.scenario, level_key(trial.levels))
        for trial in trials
        if _has_failed(trial, BACKLOG) and not outcomes.had_company(trial)
    )


def _has_failed(trial: Trial, name: str) -> bool:
    return any(audit.name == name and not audit.passed for audit in trial.audits)
