"""Find the stored run that has measured a workload already, here and with these programs, and its advice."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from netdyno.analysis.advice import covered
from netdyno.analysis.advice.covered import StoredCell
from netdyno.analysis.advice.judge_advice import compare_across_factor
from netdyno.analysis.analysis import analyse, derive_advice
from netdyno.analysis.compare import differences
from netdyno.analysis.found.advice import AcrossFactor, Advice
from netdyno.analysis.found.compare import Change
from netdyno.analysis.trials.split import split
from netdyno.kit.errors import UserError
from netdyno.kit.units import format_clock
from netdyno.measure.run import changes
from netdyno.model import outcomes
from netdyno.model.experiment import Advise, Experiment, Scenario
from netdyno.model.levels import combinations, level_key
from netdyno.model.objective import parse as parse_objective
from netdyno.model.run import OF_CLUSTER, Environment, Run
from netdyno.present.prose import advice as prose
from netdyno.question import plan, workload
from netdyno.store import read
from netdyno.store.schema import FILE_NAME

MOST_REFUSED = 3
"""Runs that are not used, and are named with the reason."""
NOT_COMPARED = ("programs", "runtimes", "build", "link")
"""Programs are compared one by one, with their interpreters, and their paths do not matter; the link is the cell's."""


class Near(NamedTuple):
    """The advice of the same run at another value of one option."""

    option: str
    value: float
    take: tuple[str, ...]


class StoredAdvice(msgspec.Struct, frozen=True):
    """The advice of a stored run. `between`: the option and both values that the workload lies between, where it was
    not measured itself."""

    run: Run
    path: Path
    advice: Advice
    near: tuple[Near, ...]
    value: Mapping[str, float]
    between: tuple[str, float, float] | None = None


class AdviceRequest(msgspec.Struct, frozen=True):
    """The workload as an experiment with its time; the eligible contestants; this machine; and a server's cores
    here."""

    experiment: Experiment
    advise: Advise
    names: tuple[str, ...]
    here: Environment
    cores: int

    @property
    def scenario(self) -> Scenario:
        return self.experiment.scenarios[0]


class _Covering(msgspec.Struct, frozen=True):
    """A stored run that has the workload (`exactly`), or values below and above its own. `is_of_neighbours`: it
    measured half and double."""

    path: Path
    environment: Environment
    exactly: bool
    is_of_neighbours: bool


def find(request: AdviceRequest, results: Path, refused: list[str]) -> StoredAdvice | None:
    """Return the newest run that covers the workload. One of half and double comes last, for it has fewer contestants
    and blocks. `refused` gets a line with the reason for each run that covers it and cannot be used."""
    for candidate in sorted(
        _find_covering(request, results), key=lambda candidate: (not candidate.exactly, candidate.is_of_neighbours)
    ):
        why = _describe_differences(candidate.environment, request)
        run = None if why else read.load(candidate.path)
        answer = run and _answer_from(run, candidate.path, request)
        if isinstance(answer, StoredAdvice):
            return answer
        if len(refused) < MOST_REFUSED:
            coverage = "this workload" if candidate.exactly else "values below and above those of this workload"
            refused.append(f"Not used: {candidate.path.parent.name}, which measured {coverage}: {why or answer}.")
    return None


def _find_covering(request: AdviceRequest, results: Path) -> Iterator[_Covering]:
    """Find the runs that cover the workload, the newest first."""
    for path, stored, environment in _read_stored(results):
        exactly = any(covered.find_exact_cells(stored, request.scenario, request.cores))
        if exactly or any(covered.find_nearest_cells(stored, request.scenario, request.cores)):
            yield _Covering(path, environment, exactly, stored.name == workload.NEIGHBOURS)


def _read_stored(results: Path) -> Iterator[tuple[Path, Experiment, Environment]]:
    """Read the stored runs of one machine, the newest first."""
    for run_id in reversed(read.run_ids(results)):
        path = results / run_id / FILE_NAME
        try:
            stored, environment, _ = read.read_head(path)
        except UserError:
            continue
        if OF_CLUSTER not in environment:
            yield path, stored, environment


def find_half_and_double(request: AdviceRequest, first: str, results: Path) -> tuple[list[AcrossFactor], Path] | None:
    """Return what the newest complete run of half and double says of the recommended contestant, and its folder."""
    for path, stored, environment in _read_stored(results):
        rivals = [name for name in request.names if name != first and _has_all(stored, (first, name))]
        if not rivals or not _has_neighbours(stored, request) or _describe_differences(environment, request):
            continue
        run = read.load(path)
        if run.finished_at is not None:
            return [
                compare_across_factor(part, request.advise, first, rivals) for part in split(outcomes.judge_run(run))
            ], path.parent
    return None


def _has_all(stored: Experiment, names: Collection[str]) -> bool:
    return all(name in scenario.contestants for scenario in stored.scenarios for name in names)


def _has_neighbours(stored: Experiment, request: AdviceRequest) -> bool:
    """Whether it is half and double of the workload, ranked by the same metric, with messages enough for its
    objective."""
    if stored.name != workload.NEIGHBOURS:
        return False
    matching = {place.scenario for place in covered.find_exact_cells(stored, request.scenario, request.cores)}
    return all(
        scenario.name in matching
        and len(scenario.factors) == 1
        and scenario.metric == request.scenario.metric
        and not any(
            _explain_short_windows(stored, StoredCell(scenario.name, levels), request)
            for levels in combinations(scenario)
        )
        for scenario in stored.scenarios
    )


def _describe_differences(environment: Environment, request: AdviceRequest) -> str:
    """Describe the differences that forbid its use; empty where there are none."""
    differ = [
        change for change in differences.list_decisive(environment, request.here) if change.key not in NOT_COMPARED
    ]
    differ += _compare_programs(environment, request)
    return "; ".join(changes.format_change(change) for change in differ[:2])


def _compare_programs(environment: Environment, request: AdviceRequest) -> list[Change]:
    was, now = (_parse_digests(environment) for environment in (environment, request.here))
    return [
        Change(f"the program {name}", was[name], now[name]) for name in now if name in was and was[name] != now[name]
    ]


def _parse_digests(environment: Environment) -> dict[str, str]:
    lines = environment.get("programs", [])
    return dict(line.split(" ", 1) for line in lines) if isinstance(lines, list) else {}


def _answer_from(run: Run, path: Path, request: AdviceRequest) -> StoredAdvice | str:
    """Return the answer of a run, or why it has none."""
    why: list[str] = []
    for place in covered.find_exact_cells(run.experiment, request.scenario, request.cores):
        advice = _decide(run, place, request)
        if isinstance(advice, Advice):
            return StoredAdvice(run, path, advice, *_find_neighbours(run, request, place.scenario))
        why.append(advice)
    for neighbours in covered.find_nearest_cells(run.experiment, request.scenario, request.cores):
        both = [_decide(run, place, request) for place in (neighbours.below, neighbours.above)]
        ends = [advice for advice in both if isinstance(advice, Advice)]
        if len(ends) < len(both):
            why += [advice for advice in both if isinstance(advice, str)]
            continue
        if set(ends[0].take) != set(ends[1].take) or {advice.outcome for advice in ends} != {"meets"}:
            why.append(
                f"its answers at {' and at '.join(prose.list_values(neighbours.option, neighbours.values))} "
                "are not the same"
            )
            continue
        worst = max(ends, key=lambda advice: math.inf if advice.behind is None else advice.behind)
        return StoredAdvice(run, path, worst, (), {}, (neighbours.option, *neighbours.values))
    return why[0]


def _decide(run: Run, place: StoredCell, request: AdviceRequest) -> Advice | str:
    """Return the advice at a place. One that more time may change counts only if it had as much time as there is
    now."""
    advice = _judge_place(run, place, request)
    if isinstance(advice, str) or not advice.may_tell_more:
        return advice
    had_s, has_s = _find_budget_s(run, place), request.experiment.time_budget_s or 0.0
    if has_s <= had_s:
        return advice
    return f"its answer is not settled, and it had {format_clock(had_s)}, while this run has {format_clock(has_s)}"


def _find_budget_s(run: Run, place: StoredCell) -> float:
    """The time budget of a completed advise run; of any other run, the time spent at the place."""
    if run.experiment.advise is not None and run.finished_at is not None:
        return run.experiment.time_budget_s or 0.0
    key = level_key(place.levels)
    return plan.sum_seconds(
        [trial for trial in run.trials if trial.scenario == place.scenario and level_key(trial.levels) == key]
    )


def _judge_place(run: Run, place: StoredCell, request: AdviceRequest) -> Advice | str:
    missing = sorted(set(request.names) - covered.list_contestants(run, place))
    if missing:
        return f"without {', '.join(missing[:3])}{f' and {len(missing) - 3} more' if len(missing) > 3 else ''}"
    if few := _explain_short_windows(run.experiment, place, request):
        return few
    cell = covered.extract_cell(run, place, request.scenario, request.advise, request.names)
    advice = derive_advice(cell, analyse(cell))
    if advice is None or not advice.take:
        return "it has no valid trial of this workload"
    return advice if advice.behind is not None or advice.settled or advice.hidden else "it has too few blocks"


def _explain_short_windows(stored: Experiment, place: StoredCell, request: AdviceRequest) -> str:
    """Explain that its windows are too short for the objective; empty where they are not."""
    if not request.advise.objective:
        return ""
    objective = parse_objective(request.advise.objective, "objective")
    enough = covered.count_timed_messages(stored, place) >= objective.least_messages()
    return "" if enough else f"its windows have too few messages for {objective.text}"


def _find_neighbours(run: Run, request: AdviceRequest, scenario: str) -> tuple[tuple[Near, ...], dict[str, float]]:
    """Find the nearest measured values on both sides."""
    neighbours: list[Near] = []
    values: dict[str, float] = {}
    for (name, option), places in covered.find_varied_cells(run.experiment, request.scenario, request.cores).items():
        if name != scenario:
            continue
        value = covered.find_value(request.scenario, option, request.cores)
        for level in covered.find_nearest_values(places, value):
            if level is not None and isinstance(advice := _judge_place(run, places[level], request), Advice):
                neighbours.append(Near(option, level, advice.take))
                values[option] = value
    return tuple(neighbours), values
