"""Which stored run has measured a workload already, here and with these programs, and what it says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from netdyno.analysis import differences
from netdyno.analysis.advice import covered
from netdyno.analysis.advice.covered import Place
from netdyno.analysis.advice.found import Advice
from netdyno.analysis.advice.of_run import of_run
from netdyno.analysis.differences import Change
from netdyno.base.errors import UserError
from netdyno.base.units import format_clock
from netdyno.experiment import plan
from netdyno.model import objective
from netdyno.model.experiment import Advise, Experiment, Scenario
from netdyno.model.levels import level_key
from netdyno.model.run import OF_CLUSTER, Environment, Run
from netdyno.present.prose import advice as prose
from netdyno.run import changes
from netdyno.store import read
from netdyno.store.schema import FILE_NAME

MOST_REFUSED = 3
"""Runs that are not taken, and named with the reason."""
NOT_COMPARED = ("programs", "build", "link")
"""Programs are compared one by one, and where they stand is all one; what lies between is the cell's."""


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


def find(asked: Asked, results: Path, refused: list[str]) -> Stored | None:
    """The newest that covers it; `refused` gets a line for each that would, but for the reason that stands there."""
    for run_id in reversed(read.run_ids(results)):
        path = results / run_id / FILE_NAME
        try:
            stored, environment, _ = read.asked(path)
        except UserError:
            continue
        has = _has(stored, asked)
        if not has or OF_CLUSTER in environment:
            continue
        why = _why_not(environment, asked)
        run = None if why else read.load(path)
        found = run and _answer(run, path, asked)
        if isinstance(found, Stored):
            return found
        if len(refused) < MOST_REFUSED:
            refused.append(f"Not taken: {run_id}, which has {has}: {why or found}.")
    return None


def _has(stored: Experiment, asked: Asked) -> str:
    """What it has of the workload, in words; empty where that is nothing."""
    if any(covered.exactly(stored, asked.scenario, asked.cores)):
        return "measured it"
    return "measured values around it" if any(covered.around(stored, asked.scenario, asked.cores)) else ""


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
    return f"its answer is not settled, and this one has {format_clock(has_s)} where it had {format_clock(had_s)}"


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
    if asked.advise.slo:
        wanted = objective.parse(asked.advise.slo, "objective")
        if covered.heard(run.experiment, place) < wanted.least_messages():
            return f"its windows have too few messages for {wanted.text}"
    advice = of_run(covered.alone(run, place, asked.scenario, asked.advise, asked.names))
    if advice is None or not advice.take:
        return "it has no valid trial of it"
    return advice if advice.behind is not None or advice.settled or advice.hidden else "it has too few blocks"


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
