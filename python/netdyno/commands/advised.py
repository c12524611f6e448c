"""Which stored run has measured a workload already, here and with these programs, and what it says."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from netdyno.analysis import differences
from netdyno.analysis.advice import covered
from netdyno.analysis.advice.along import Along, along
from netdyno.analysis.advice.covered import Place
from netdyno.analysis.advice.found import Advice
from netdyno.analysis.advice.of_run import of_run
from netdyno.analysis.differences import Change
from netdyno.analysis.split import split
from netdyno.base.errors import UserError
from netdyno.base.units import format_clock
from netdyno.experiment import plan, workload
from netdyno.model import objective, outcomes
from netdyno.model.experiment import Advise, Experiment, Scenario
from netdyno.model.levels import combinations, level_key
from netdyno.model.run import OF_CLUSTER, Environment, Run
from netdyno.present.prose import advice as prose
from netdyno.run import changes
from netdyno.store import read
from netdyno.store.schema import FILE_NAME

MOST_REFUSED = 3
"""Runs that are not taken, and named with the reason."""
NOT_COMPARED = ("programs", "runtimes", "build", "link")
"""Programs are compared one by one, with what interprets them, and where they stand is all one; what lies between is
the cell's."""


class Near(NamedTuple):
    """What the same run says at another value of one option: whom to take there."""

    option: str
    value: float
    take: tuple[str, ...]


class Stored(NamedTuple):
    """`between`: the option and both values that the workload lies between, where it was not measured itself."""

    run: Run
    path: Path
    advice: Advice
    near: tuple[Near, ...]
    value: Mapping[str, float]
    between: tuple[str, float, float] | None = None


class Asked(NamedTuple):
    """The workload as an experiment with the time that there is for it; who may be taken; what this machine is; and how
    many cores a server has here."""

    experiment: Experiment
    advise: Advise
    names: tuple[str, ...]
    here: Environment
    cores: int

    @property
    def scenario(self) -> Scenario:
        return self.experiment.scenarios[0]


class _Covering(NamedTuple):
    """A stored run that has the workload (`exactly`), or values around it. `beside`: it is one of half and double."""

    path: Path
    environment: Environment
    exactly: bool
    beside: bool


def find(asked: Asked, results: Path, refused: list[str]) -> Stored | None:
    """The newest that covers it, of those of half and double only where no other does, for they have fewer contestants
    and blocks; `refused` gets a line for each that would, but for the reason that stands there."""
    for one in sorted(_covering(asked, results), key=lambda one: (not one.exactly, one.beside)):
        why = _why_not(one.environment, asked)
        run = None if why else read.load(one.path)
        found = run and _answer(run, one.path, asked)
        if isinstance(found, Stored):
            return found
        if len(refused) < MOST_REFUSED:
            has = "measured it" if one.exactly else "measured values around it"
            refused.append(f"Not used: {one.path.parent.name}, which has {has}: {why or found}.")
    return None


def _covering(asked: Asked, results: Path) -> Iterator[_Covering]:
    """The newest first."""
    for path, stored, environment in _stored(results):
        exactly = any(covered.exactly(stored, asked.scenario, asked.cores))
        if exactly or any(covered.around(stored, asked.scenario, asked.cores)):
            yield _Covering(path, environment, exactly, stored.name == workload.BESIDE)


def _stored(results: Path) -> Iterator[tuple[Path, Experiment, Environment]]:
    """Of one machine, the newest first."""
    for run_id in reversed(read.run_ids(results)):
        path = results / run_id / FILE_NAME
        try:
            stored, environment, _ = read.asked(path)
        except UserError:
            continue
        if OF_CLUSTER not in environment:
            yield path, stored, environment


def half_and_double(asked: Asked, first: str, results: Path) -> tuple[list[Along], Path] | None:
    """What the newest whole run of half and double says of the one to take, and its folder."""
    for path, stored, environment in _stored(results):
        others = [name for name in asked.names if name != first and _has_all(stored, (first, name))]
        if not others or not _is_along(stored, asked) or _why_not(environment, asked):
            continue
        run = read.load(path)
        if run.finished_at is not None:
            return [along(part, asked.advise, first, others) for part in split(outcomes.judged(run))], path.parent
    return None


def _has_all(stored: Experiment, names: Collection[str]) -> bool:
    return all(name in scenario.contestants for scenario in stored.scenarios for name in names)


def _is_along(stored: Experiment, asked: Asked) -> bool:
    """Whether it is half and double of the workload, ranked as is asked for, with messages enough for its objective."""
    if stored.name != workload.BESIDE:
        return False
    there = {place.scenario for place in covered.exactly(stored, asked.scenario, asked.cores)}
    return all(
        one.name in there
        and len(one.factors) == 1
        and one.metric == asked.scenario.metric
        and not any(_too_few(stored, Place(one.name, levels), asked) for levels in combinations(one))
        for one in stored.scenarios
    )


def _why_not(environment: Environment, asked: Asked) -> str:
    """What is not as it was; empty where all is."""
    differ = [one for one in differences.decisive(environment, asked.here) if one.key not in NOT_COMPARED]
    differ += _programs(environment, asked)
    return "; ".join(changes.said(one) for one in differ[:2])


def _programs(environment: Environment, asked: Asked) -> list[Change]:
    was, now = (_digests(one) for one in (environment, asked.here))
    return [
        Change(f"the program {name}", was[name], now[name]) for name in now if name in was and was[name] != now[name]
    ]


def _digests(environment: Environment) -> dict[str, str]:
    lines = environment.get("programs", [])
    return dict(line.split(" ", 1) for line in lines) if isinstance(lines, list) else {}


def _answer(run: Run, path: Path, asked: Asked) -> Stored | str:
    """What it says, or why it says nothing."""
    why: list[str] = []
    for place in covered.exactly(run.experiment, asked.scenario, asked.cores):
        advice = _decided(run, place, asked)
        if isinstance(advice, Advice):
            return Stored(run, path, advice, *_near(run, asked, place.scenario))
        why.append(advice)
    for found in covered.around(run.experiment, asked.scenario, asked.cores):
        both = [_decided(run, place, asked) for place in (found.below, found.above)]
        ends = [one for one in both if isinstance(one, Advice)]
        if len(ends) < len(both):
            why += [one for one in both if isinstance(one, str)]
            continue
        if set(ends[0].take) != set(ends[1].take) or {one.among for one in ends} != {"meets"}:
            why.append(f"its answers at {' and at '.join(prose.values(found.option, found.values))} are not the same")
            continue
        worst = max(ends, key=lambda one: math.inf if one.behind is None else one.behind)
        return Stored(run, path, worst, (), {}, (found.option, *found.values))
    return why[0]


def _decided(run: Run, place: Place, asked: Asked) -> Advice | str:
    """Of an answer that more time may change only one that had as much as there is now."""
    advice = _at(run, place, asked)
    if isinstance(advice, str) or not advice.may_tell_more:
        return advice
    had_s, has_s = _had_s(run, place), asked.experiment.time_budget_s or 0.0
    if has_s <= had_s:
        return advice
    return f"its answer is not settled, and this run has {format_clock(has_s)} where that run had {format_clock(had_s)}"


def _had_s(run: Run, place: Place) -> float:
    """What a run that was made for an answer might take; of another, or one that was ended, what was spent there."""
    if run.experiment.advise is not None and run.finished_at is not None:
        return run.experiment.time_budget_s or 0.0
    key = level_key(place.levels)
    return plan.spent_s([one for one in run.trials if one.scenario == place.scenario and level_key(one.levels) == key])


def _at(run: Run, place: Place, asked: Asked) -> Advice | str:
    missing = sorted(set(asked.names) - covered.trials_of(run, place))
    if missing:
        return f"without {', '.join(missing[:3])}{f' and {len(missing) - 3} more' if len(missing) > 3 else ''}"
    if few := _too_few(run.experiment, place, asked):
        return few
    advice = of_run(covered.alone(run, place, asked.scenario, asked.advise, asked.names))
    if advice is None or not advice.take:
        return "it has no valid trial of this workload"
    return advice if advice.behind is not None or advice.settled or advice.hidden else "it has too few blocks"


def _too_few(stored: Experiment, place: Place, asked: Asked) -> str:
    """What is said where its windows are too short for the objective."""
    if not asked.advise.slo:
        return ""
    wanted = objective.parse(asked.advise.slo, "objective")
    enough = covered.heard(stored, place) >= wanted.least_messages()
    return "" if enough else f"its windows have too few messages for {wanted.text}"


def _near(run: Run, asked: Asked, scenario: str) -> tuple[tuple[Near, ...], dict[str, float]]:
    """The nearest values on both sides that it has."""
    found: list[Near] = []
    values: dict[str, float] = {}
    for (name, option), places in covered.beside(run.experiment, asked.scenario, asked.cores).items():
        if name != scenario:
            continue
        value = covered.value_of(asked.scenario, option, asked.cores)
        for at in covered.nearest(places, value):
            if at is not None and isinstance(advice := _at(run, places[at], asked), Advice):
                found.append(Near(option, at, advice.take))
                values[option] = value
    return tuple(found), values
