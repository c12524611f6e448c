"""The contestants that take turns, and the lengths of a turn's slices. Pure.

Contestants that are compared run side by side and take turns, so that a disturbance of the machine reaches all of them
within tenths of a second (docs/adr/turns.md). The others are measured trial by trial."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from netdyno.model import outcomes, transports
from netdyno.model.contestant import GENERATOR, Contestant, stands_already
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_key
from netdyno.model.options import Settings
from netdyno.model.trial import Trial
from netdyno.question.plan import Cell

SKIPPED_S = 0.025
"""The beginning of a slice, in which the load runs and nothing is measured: after it throughput, p50 and CPU per
message are within 2% of those of a server that runs on (docs/adr/settled-slices.md)."""
SKIPPED_IN_A_ROOM_S = 0.1
"""The same where each message goes to others: beside other contestants a room settles later (the same record)."""
SHORTEST_S, LONGEST_S = 0.045, 0.145
"""The measured part of a slice. The longest lets each of a hundred threads on one core go first once (ROTATION), and
is a fraction of the correlation time of a shared machine's noise, 0.5 to 1 s. Shorter ones are for short windows."""
STEP_S = 0.005
"""The intervals of a short time series (protocol/load-result.md), so that those of all slices are whole."""
FEWEST_TURNS = 2
FEWEST_MESSAGES = 30
"""The fewest messages in a slice of an open loop; with fewer, a slice says nothing."""
LARGEST_SHARE = 0.2
"""The share of a slice that one answer or one round may take, and at most half of the slice's beginning."""
MOST_IN_FLIGHT = 1000
"""The most messages in flight of a closed loop: a slice begins with all at once, and they would fill most of it."""
MOST_CONNECTIONS = 10_000
"""The most connections of all contestants of a group together."""

ONLY = "it is the only contestant"
BUSY = "it uses CPU during the slices of others"
"""The reasons for which a contestant takes no turns where no other reason does."""
BEHIND = "one of them does not keep up with the rate"
"""The reason for which no contestant takes turns at a level."""
QUOTA = "a CPU quota stops all contestants together"
"""The reason for which none takes turns while a quota is too small: a slice would be stopped for the one before it."""
ROTATING = "the threads of one of them need longer than a slice to run once each"
"""The reason for which none takes turns where a slice would show one part of a server's unfairness."""
SIDE_BY_SIDE = "side_by_side"
"""The audit that finds a contestant busy while another has its slice."""
BACKLOG = "backlog"
"""The audit that finds answers of a slice long after its end."""
ROTATION = "rotation"
"""The audit that finds more threads than can go first once within a slice."""


class Slices(NamedTuple):
    """The division of a trial's window: `turns` slices of `measured_s`, each after `skipped_s` of its load."""

    turns: int
    measured_s: float
    skipped_s: float = SKIPPED_S

    @property
    def length_s(self) -> float:
        return self.skipped_s + self.measured_s


def divide(settings: Settings) -> Slices:
    """Return the slices that together measure a window, to within half a slice. Their lengths are multiples of
    STEP_S."""
    window_s = settings.duration_s
    measured_s = STEP_S * round(min(LONGEST_S, max(SHORTEST_S, window_s / FEWEST_TURNS)) / STEP_S)
    skipped_s = SKIPPED_IN_A_ROOM_S if settings.workload == "chat" else SKIPPED_S
    return Slices(max(FEWEST_TURNS, round(window_s / measured_s)), measured_s, skipped_s)


def explain_alone(scenario: Scenario, settings: Settings, contestants: Sequence[Contestant]) -> str:
    """Say why the trials of one level of a scenario run one by one; empty where its contestants take turns."""
    slice_s, skipped_s = divide(settings)[1:]
    longest_s = min(LARGEST_SHARE * slice_s, skipped_s / 2)
    connections = settings.connections * len(contestants)
    rate = settings.rate_per_connection * settings.speakers if settings.rate_per_connection else settings.rate
    reasons = {
        "turns are off": scenario.turns == "off",
        ONLY: len(contestants) < 2,
        "clients are compared": settings.client != GENERATOR,
        "a link lies between load program and server": settings.is_apart,
        "a control group limits each server": settings.cpu_quota is not None or settings.memory_limit is not None,
        "several hosts make the load": settings.client_hosts > 1,
        "the rate changes within the window": settings.burst_rate is not None,
        "a capacity is searched, each contestant at rates of its own": bool(scenario.objective),
        "each server has a backend": settings.has_backend,
        "failed connects are counted": settings.failed_connects == "count",
        "some clients read slowly": settings.slow_readers > 0,
        "clients speak while others connect": settings.start == "at-once",
        "clients read nothing and leave": settings.is_write_only,
        "each start needs the cores for itself": scenario.measures_start,
        "an application's timer would be late in the slices of others": "application-tick" in settings.server,
        "each connection's mean needs a whole window": scenario.metric == "connection-spread",
        "a request takes too much of a slice": settings.longest_service_time_s > longest_s,
        "a round takes too much of a slice": settings.round_s > longest_s,
        "a slice has too few messages": rate is not None and rate * slice_s < FEWEST_MESSAGES,
        "there are too many connections": connections > MOST_CONNECTIONS,
        "too many messages are in flight for a slice": settings.arrivals == "closed"
        and settings.speakers * settings.depth > MOST_IN_FLIGHT,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def explain_apart(contestant: Contestant) -> str:
    """Say why a contestant takes no turns, whatever the scenario; empty where it can."""
    if transports.find_transport(contestant).messages:
        return "what is lost on its transport would hold up the slices of others"
    if stands_already(contestant):
        return "it is already running, and may serve other clients"
    return ""


def divide_into_groups(cells: Iterable[Cell]) -> Iterator[tuple[Cell, ...]]:
    """Divide cells into those that follow each other and differ only in their contestant."""
    for _, group in itertools.groupby(cells, key=lambda cell: (cell.block, cell.scenario, level_key(cell.levels))):
        yield tuple(group)


def find_busy(trials: Sequence[Trial], scenario: str) -> frozenset[str]:
    """Return the contestants that were busy in the slices of others: in this scenario, or, before they have run beside
    others in it, in two others, as once may be chance. They are measured alone from then on."""
    failing = {(where, contestant) for where, contestant, _ in _find_failing(trials, SIDE_BY_SIDE)}
    scenarios = Counter(contestant for _, contestant in failing)
    tried = {trial.contestant for trial in trials if trial.scenario == scenario and _list_verdicts(trial, SIDE_BY_SIDE)}
    return frozenset(
        contestant
        for contestant, count in scenarios.items()
        if (scenario, contestant) in failing or (count > 1 and contestant not in tried)
    )


def find_lagging(trials: Iterable[Trial]) -> frozenset[tuple[str, str]]:
    """Return scenario and levels (`level_key`) at which a contestant did not keep up with the rate, where no other
    program can be the cause. All are measured alone there from then on, to be compared over windows of one length."""
    lagging = _find_failing((trial for trial in trials if not outcomes.had_company(trial)), BACKLOG)
    return frozenset((scenario, levels) for scenario, _, levels in lagging)


def find_rotating(trials: Iterable[Trial]) -> frozenset[tuple[str, str]]:
    """Return scenario and levels (`level_key`) at which a contestant has more threads than can go first once within a
    slice. All are measured alone there from then on."""
    return frozenset((scenario, levels) for scenario, _, levels in _find_failing(trials, ROTATION))


def _find_failing(trials: Iterable[Trial], name: str) -> frozenset[tuple[str, str, str]]:
    """Return scenario, contestant and levels of those that failed an audit in more than half of the trials in which it
    was made: one trial alone may have failed by chance."""
    passed: dict[tuple[str, str, str], list[bool]] = {}
    for trial in trials:
        key = (trial.scenario, trial.contestant, level_key(trial.levels))
        if own := _list_verdicts(trial, name):
            passed.setdefault(key, []).append(all(own))
    return frozenset(key for key, verdicts in passed.items() if 2 * verdicts.count(False) > len(verdicts))


def _list_verdicts(trial: Trial, name: str) -> list[bool]:
    return [audit.passed for audit in trial.audits if audit.name == name]
