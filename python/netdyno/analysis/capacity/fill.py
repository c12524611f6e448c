"""From a stored run to the capacities that a scenario asks for. Pure: the same run gives the same findings."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence

from netdyno.analysis.capacity.judge_capacity import Verdict, judge_capacity
from netdyno.analysis.capacity.search import MOST_RETRIES, follow
from netdyno.analysis.found.capacity import Answer, CapacityCurve, CapacityFindings, RatePoint, Reason, Searched
from netdyno.analysis.found.cells import BoundDirection
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.kit.statistics import threshold
from netdyno.kit.statistics.stats import Samples
from netdyno.kit.statistics.threshold import knee
from netdyno.model.levels import level_key, level_label
from netdyno.model.objective import Objective
from netdyno.model.objective import parse as parse_objective
from netdyno.model.trial import Trial
from netdyno.question.capacity import CAPACITY, RATE, select_coordinates

Judged = tuple[Trial, Verdict]
COUNTED = ("held", "failed")
"""The outcomes of trials that count: these say something of the server."""


def collect_samples(part: ScenarioTrials) -> dict[str, Samples]:
    """Return the capacity of each contestant by block and by its levels other than the rate. A search has a single one,
    its answer, for its blocks have different rates."""
    by_contestant = {name: _find_capacities(part, name) for name in part.contestants}
    return {
        name: {cell: capacity.rate_hz for cell, capacity in capacities.items()}
        for name, capacities in by_contestant.items()
        if capacities
    }


def collect_findings(part: ScenarioTrials) -> CapacityFindings | None:
    """Return the curves behind the capacities; None for a scenario of another metric."""
    if part.scenario.metric != CAPACITY:
        return None
    objective = parse_objective(part.scenario.objective, "objective")
    latency = objective.latency
    curves = tuple(curve for name in part.contestants for curve in _draw_curves(part, name, objective))
    return CapacityFindings(
        objective=objective,
        figure=latency.name if latency else "p99",
        limit_ns=latency.limit if latency else None,
        curves=curves,
        search=summarise_search(part),
    )


def count_silent_trials(part: ScenarioTrials, name: str) -> int:
    """Return how many trials of a contestant do not count."""
    return sum(verdict.outcome not in COUNTED for _, verdict in _judge_trials(part, name))


def find_bound(part: ScenarioTrials, name: str) -> BoundDirection:
    """Return the direction in which a capacity is only a bound; empty where it is no bound, or for another metric."""
    if part.scenario.metric != CAPACITY:
        return ""
    bounds = {capacity.bound for capacity in _find_capacities(part, name).values()}
    return "at least" if "at least" in bounds else "at most" if "below" in bounds else ""


# --- one block, one search --------------------------------------------------------------------------------------------


def _judge_trials(part: ScenarioTrials, name: str) -> Iterator[Judged]:
    objective = parse_objective(part.scenario.objective, "objective")
    for trial in part.trials:
        if trial.contestant == name:
            yield trial, judge_capacity(trial, objective, part.scenario)


def _find_capacities(part: ScenarioTrials, name: str) -> dict[tuple[int, str], threshold.Capacity]:
    if part.search is not None:
        answer = _replay_search(part)
        found_rate = _convert_answer(answer[0]) if answer else None
        return {(1, ""): found_rate} if found_rate else {}
    term = parse_objective(part.scenario.objective, "objective").latency
    measured: dict[tuple[int, str], list[threshold.RateResult]] = {}
    for trial, verdict in _judge_trials(part, name):
        if verdict.outcome in COUNTED and trial.load is not None:
            value = term.value(trial.load) if term else math.nan
            latency = value if math.isfinite(value) else None
            point = threshold.RateResult(float(trial.levels[RATE]), verdict.outcome == "held", latency)
            measured.setdefault((trial.block, level_key(select_coordinates(part.scenario, trial.levels))), []).append(
                point
            )
    return {
        key: threshold.capacity(block_trials, term.limit if term else None) for key, block_trials in measured.items()
    }


def _convert_answer(answer: Answer) -> threshold.Capacity | None:
    """Return the capacity of an answer; None where no rate is known to hold: the least rate tried is no capacity."""
    if answer.holds is None:
        return None
    return threshold.Capacity(answer.holds.rate_hz, "" if answer.ending == "capacity" else "at least")


def _replay_search(part: ScenarioTrials) -> tuple[Answer, Reason | None] | None:
    """Repeat the run's search from its trials: its answer, and the reason for the last trial's verdict. None where it
    is no search, did not come to its end, or followed other rules than those of today."""
    if part.search is None:
        return None
    objective = parse_objective(part.scenario.objective, "objective")
    judged = [(trial, judge_capacity(trial, objective, part.scenario)) for trial in part.trials]
    judged.sort(key=lambda pair: pair[0].position)
    last = list(itertools.takewhile(lambda pair: pair[1].outcome == "disturbed", reversed(judged)))
    trials = [(float(trial.levels[RATE]), verdict.outcome) for trial, verdict in judged]
    search = follow(part.search, trials, min(len(last), MOST_RETRIES))
    if search is None or search.choose_rate() is not None or search.answer is None:
        return None
    return search.answer, judged[-1][1].why if judged else None


def summarise_search(part: ScenarioTrials) -> Searched | None:
    """Return the findings of the run's search; None where it is no search."""
    if part.search is None or not part.contestants:
        return None
    answer, why = _replay_search(part) or (None, None)
    return Searched(part.contestants[0], answer, why)


# --- curves -----------------------------------------------------------------------------------------------------------


def _draw_curves(part: ScenarioTrials, name: str, objective: Objective) -> Iterator[CapacityCurve]:
    """Draw one curve for each combination of the other levels."""
    groups: dict[str, list[Judged]] = {}
    for trial, verdict in _judge_trials(part, name):
        groups.setdefault(level_key(select_coordinates(part.scenario, trial.levels)), []).append((trial, verdict))
    capacities = _find_capacities(part, name)
    for level, judged in groups.items():
        points = tuple(_draw_points(judged, objective))
        other_levels = select_coordinates(part.scenario, judged[0][0].levels)
        found_capacities = [capacity for (_, capacity_level), capacity in capacities.items() if capacity_level == level]
        drawn = [(point.rate_hz, value) for point in points if (value := point.latency_ns) is not None]
        yield CapacityCurve(
            contestant=name,
            level=level_label(part.scenario, other_levels) if other_levels else "",
            points=points,
            capacity_hz=_geometric_mean([capacity.rate_hz for capacity in found_capacities]),
            blocks=len(found_capacities),
            at_least=sum(capacity.bound == "at least" for capacity in found_capacities),
            below=sum(capacity.bound == "below" for capacity in found_capacities),
            knee_hz=knee(drawn),
        )


def _draw_points(judged: Sequence[Judged], objective: Objective) -> Iterator[RatePoint]:
    by_rate: dict[float, list[Judged]] = {}
    for trial, verdict in judged:
        by_rate.setdefault(float(trial.levels[RATE]), []).append((trial, verdict))
    for rate_hz, rate_trials in sorted(by_rate.items()):
        loads = [
            trial.load
            for trial, verdict in rate_trials
            if verdict.outcome in COUNTED and trial.load is not None and trial.load.latency.response_ns.count
        ]
        responses = [load.latency.response_ns for load in loads]
        outcomes = Counter(verdict.outcome for _, verdict in rate_trials)
        term = objective.latency
        yield RatePoint(
            rate_hz=rate_hz,
            held=outcomes["held"],
            failed=outcomes["failed"],
            silent=len(rate_trials) - outcomes["held"] - outcomes["failed"],
            p50_ns=_geometric_mean([float(response.p50) for response in responses]),
            p99_ns=_geometric_mean([float(response.p99) for response in responses]),
            p999_ns=_geometric_mean([float(response.p999) for response in responses]),
            latency_ns=_geometric_mean(
                [term.value(load) for load in loads] if term else [float(response.p99) for response in responses]
            ),
            whys=tuple(verdict.why for _, verdict in rate_trials if verdict.why is not None),
        )


def _geometric_mean(values: Sequence[float]) -> float | None:
    """Return the geometric mean, as over trials and blocks everywhere; None for no values, or any without a
    logarithm."""
    if not values or min(values) <= 0:
        return None
    return math.exp(sum(map(math.log, values)) / len(values))
