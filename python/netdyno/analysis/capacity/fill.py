"""From a stored run to the capacities that a scenario asks for. Pure: the same run gives the same findings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from netdyno.analysis.capacity.judge import Reason, Verdict, judge
from netdyno.analysis.capacity.search import Answer, Search
from netdyno.analysis.findings import Bound, CapacityCurve, CapacityFindings, RatePoint, Searched
from netdyno.analysis.split import Part
from netdyno.experiment.capacity import CAPACITY, RATE, coordinates
from netdyno.model import objective as slo
from netdyno.model.levels import level_key, level_label
from netdyno.model.objective import Objective
from netdyno.model.trial import Trial
from netdyno.statistics import threshold
from netdyno.statistics.knee import knee
from netdyno.statistics.stats import Samples

Judged = tuple[Trial, Verdict]
WITNESSES = ("held", "failed")


def samples(part: Part) -> dict[str, Samples]:
    """The capacity of each contestant by block and by its levels other than the rate. Of a search there is one: its
    answer, for its blocks have different rates."""
    of_each = {name: _by_block(part, name) for name in part.contestants}
    return {
        name: {cell: one.rate_hz for cell, one in capacities.items()}
        for name, capacities in of_each.items()
        if capacities
    }


def findings(part: Part) -> CapacityFindings | None:
    """The curves behind them; None for a scenario of another metric."""
    if part.scenario.metric != CAPACITY:
        return None
    objective = slo.parse(part.scenario.slo, "slo")
    latency = objective.latency
    curves = tuple(curve for name in part.contestants for curve in _curves(part, name, objective))
    return CapacityFindings(
        objective=objective,
        figure=latency.name if latency else "p99",
        limit_ns=latency.limit if latency else None,
        curves=curves,
        search=_search(part),
    )


def silent(part: Part, name: str) -> int:
    """How many trials of a contestant say nothing of it."""
    return sum(verdict.outcome not in WITNESSES for _, verdict in _judged(part, name))


def bound(part: Part, name: str) -> Bound:
    """Where a capacity is only a bound; nothing for another metric."""
    if part.scenario.metric != CAPACITY:
        return ""
    bounds = {one.bound for one in _by_block(part, name).values()}
    return "at least" if "at least" in bounds else "at most" if "below" in bounds else ""


# --- one block, one search --------------------------------------------------------------------------------------------


def _judged(part: Part, name: str) -> Iterator[Judged]:
    objective = slo.parse(part.scenario.slo, "slo")
    for trial in part.trials:
        if trial.contestant == name:
            yield trial, judge(trial, objective, part.scenario)


def _by_block(part: Part, name: str) -> dict[tuple[int, str], threshold.Capacity]:
    if part.search is not None:
        answer = _answer(part)
        found_rate = _of_search(answer[0]) if answer else None
        return {(1, ""): found_rate} if found_rate else {}
    term = slo.parse(part.scenario.slo, "slo").latency
    found: dict[tuple[int, str], list[threshold.Measured]] = {}
    for trial, verdict in _judged(part, name):
        if verdict.outcome in WITNESSES and trial.load is not None:
            value = term.value(trial.load) if term else math.nan
            latency = value if math.isfinite(value) else None
            one = threshold.Measured(float(trial.levels[RATE]), verdict.outcome == "held", latency)
            found.setdefault((trial.block, level_key(coordinates(part.scenario, trial.levels))), []).append(one)
    return {key: threshold.capacity(each, term.limit if term else None) for key, each in found.items()}


def _of_search(answer: Answer) -> threshold.Capacity | None:
    """None where nothing is known to hold: the least rate that was tried is then no capacity."""
    if answer.holds is None:
        return None
    return threshold.Capacity(answer.holds.rate_hz, "" if answer.ending == "capacity" else "at least")


def _answer(part: Part) -> tuple[Answer, Reason | None] | None:
    """What the run's search answered, found again from its trials, with why the last one said what it said. None where
    it is no search, did not come to its end, or went by other rules than those of today."""
    if part.search is None:
        return None
    search, objective = Search(part.search), slo.parse(part.scenario.slo, "slo")
    why = None
    for trial in sorted(part.trials, key=lambda one: one.position):
        if search.next_rate() != float(trial.levels[RATE]):
            return None
        verdict = judge(trial, objective, part.scenario)
        search.tell(verdict.outcome)
        why = verdict.why
    search.next_rate()
    return None if search.answer is None else (search.answer, why)


def _search(part: Part) -> Searched | None:
    """None where the run is none."""
    if part.search is None or not part.contestants:
        return None
    answer, why = _answer(part) or (None, None)
    return Searched(part.contestants[0], answer, why)


# --- curves -----------------------------------------------------------------------------------------------------------


def _curves(part: Part, name: str, objective: Objective) -> Iterator[CapacityCurve]:
    """One for each combination of the other levels."""
    groups: dict[str, list[Judged]] = {}
    for trial, verdict in _judged(part, name):
        groups.setdefault(level_key(coordinates(part.scenario, trial.levels)), []).append((trial, verdict))
    capacities = _by_block(part, name)
    for level, judged in groups.items():
        points = tuple(_points(judged, objective))
        others = coordinates(part.scenario, judged[0][0].levels)
        of_blocks = [one for (_, at), one in capacities.items() if at == level]
        drawn = [(point.rate_hz, value) for point in points if (value := point.latency_ns) is not None]
        yield CapacityCurve(
            contestant=name,
            level=level_label(part.scenario, others) if others else "",
            points=points,
            capacity_hz=_geometric([one.rate_hz for one in of_blocks]),
            blocks=len(of_blocks),
            at_least=sum(one.bound == "at least" for one in of_blocks),
            below=sum(one.bound == "below" for one in of_blocks),
            knee_hz=knee(drawn),
        )


def _points(judged: Sequence[Judged], objective: Objective) -> Iterator[RatePoint]:
    by_rate: dict[float, list[Judged]] = {}
    for trial, verdict in judged:
        by_rate.setdefault(float(trial.levels[RATE]), []).append((trial, verdict))
    for rate_hz, each in sorted(by_rate.items()):
        loads = [
            trial.load
            for trial, verdict in each
            if verdict.outcome in WITNESSES and trial.load is not None and trial.load.latency.response_ns.count
        ]
        responses = [load.latency.response_ns for load in loads]
        outcomes = Counter(verdict.outcome for _, verdict in each)
        term = objective.latency
        yield RatePoint(
            rate_hz=rate_hz,
            held=outcomes["held"],
            failed=outcomes["failed"],
            silent=len(each) - outcomes["held"] - outcomes["failed"],
            p50_ns=_geometric([float(one.p50) for one in responses]),
            p99_ns=_geometric([float(one.p99) for one in responses]),
            p999_ns=_geometric([float(one.p999) for one in responses]),
            latency_ns=_geometric([term.value(load) for load in loads] if term else [float(o.p99) for o in responses]),
            whys=tuple(verdict.why for _, verdict in each if verdict.why is not None),
        )


def _geometric(values: Sequence[float]) -> float | None:
    """Over trials and blocks, as everywhere; None where there is nothing, or nothing with a logarithm."""
    if not values or min(values) <= 0:
        return None
    return math.exp(sum(map(math.log, values)) / len(values))
