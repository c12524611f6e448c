"""Two runs side by side: what differs in what was asked and where, and the figures of the cells that both have. Pure
functions of stored runs.

Blocks of different runs are not paired: whatever changed between the runs, the machine's own drift included, is in the
ratio. So each run scatters by itself, and the interval says how far the blocks of the two scatter and nothing of
why they differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from netdyno.analysis import differences, excluded, measured
from netdyno.analysis.differences import Change
from netdyno.experiment.capacity import CAPACITY
from netdyno.model import outcomes
from netdyno.model.base import Name, type_level
from netdyno.model.experiment import RankedBy, Scenario
from netdyno.model.levels import level_key, level_label
from netdyno.model.metrics import METRICS
from netdyno.model.run import Run
from netdyno.statistics import stats
from netdyno.statistics.block_counts import FEWEST_BLOCKS
from netdyno.statistics.stats import Interval

NOT_ASKED = ("name", "blocks", "precision", "most_blocks", "factors")
"""Of a scenario: how often it is measured. Its factors are told level by level."""


@dataclass(frozen=True)
class Both:
    """One cell of both runs. `ratio` is the second's figure divided by the first's, with the interval of it; None below
    five blocks on a side."""

    scenario: Name
    contestant: Name
    level: Name
    metric: RankedBy
    first: float
    """Geometric mean over its valid trials, in messages a second or nanoseconds."""
    second: float
    first_trials: int
    second_trials: int
    ratio: float
    interval: Interval | None

    @property
    def apart(self) -> bool:
        """Whether the interval leaves out that both are the same."""
        return self.interval is not None and not self.interval.low <= 1 <= self.interval.high


@dataclass(frozen=True)
class AskedApart:
    """What a scenario of both runs asks for differently; of the experiment itself the scenario is empty."""

    scenario: Name
    change: Change


@dataclass(frozen=True)
class AskedAlone:
    """A scenario that only one of the runs has."""

    run: Name
    scenario: Name
    workload: Name


@dataclass(frozen=True)
class SideBySide:
    """What differs in where the runs were made and in what was asked; `alone` counts cells with a figure in only one
    run."""

    first: Name
    second: Name
    environment: tuple[Change, ...]
    asked: tuple[AskedApart | AskedAlone, ...]
    cells: tuple[Both, ...]
    alone: int


def side_by_side(first: Run, second: Run) -> SideBySide:
    """Cells are the same where scenario, contestant, levels and metric are. Who is unsafe or not ranked is left out."""
    sides = [_cells(excluded.without(outcomes.judged(run))) for run in (first, second)]
    shared = [key for key in sides[0] if key in sides[1]]
    return SideBySide(
        first=first.run_id,
        second=second.run_id,
        environment=tuple(differences.decisive(first.environment, second.environment)),
        asked=_asked(first, second),
        cells=tuple(_both(key, sides[0][key], sides[1][key]) for key in shared),
        alone=len(sides[0].keys() ^ sides[1].keys()),
    )


@dataclass(frozen=True)
class _Key:
    scenario: Name
    contestant: Name
    level: Name
    metric: RankedBy


@dataclass(frozen=True)
class _Cell:
    label: Name
    logs: tuple[float, ...]


def _cells(run: Run) -> dict[_Key, _Cell]:
    """The logarithms of the figures of each cell, one per block, scenario by scenario and name by name."""
    found: dict[_Key, list[float]] = {}
    levels: dict[_Key, Mapping[str, type_level]] = {}
    scenarios = {scenario.name: scenario for scenario in run.experiment.scenarios}
    for asked in scenarios.values():
        # a capacity takes several cells, and here each stands by itself
        scenario = msgspec.structs.replace(asked, metric="p99") if asked.metric == CAPACITY else asked
        for trial, load in measured.valid(run, scenario):
            key = _Key(scenario.name, trial.contestant, level_key(trial.levels), scenario.metric)
            figure = METRICS[scenario.metric].of(trial, load)
            if figure is not None and figure > 0:
                found.setdefault(key, []).append(math.log(figure))
                levels[key] = trial.levels
    order = {name: number for number, name in enumerate(scenarios)}
    keys = sorted(found, key=lambda key: (order[key.scenario], key.level, key.contestant))
    return {key: _Cell(level_label(scenarios[key.scenario], levels[key]), tuple(found[key])) for key in keys}


def _both(key: _Key, first: _Cell, second: _Cell) -> Both:
    means = [sum(cell.logs) / len(cell.logs) for cell in (first, second)]
    return Both(
        scenario=key.scenario,
        contestant=key.contestant,
        level=first.label,
        metric=key.metric,
        first=math.exp(means[0]),
        second=math.exp(means[1]),
        first_trials=len(first.logs),
        second_trials=len(second.logs),
        ratio=math.exp(means[1] - means[0]),
        interval=unpaired(first.logs, second.logs),
    )


def _asked(first: Run, second: Run) -> tuple[AskedApart | AskedAlone, ...]:
    """What the two ask for differently, beside how often it is measured."""
    here, there = ({scenario.name: scenario for scenario in run.experiment.scenarios} for run in (first, second))
    names = differences.between(
        {"experiment": first.experiment.name}, {"experiment": second.experiment.name}, ["experiment"]
    )
    return (
        *(AskedApart("", change) for change in names),
        *(
            AskedAlone(run.run_id, scenario.name, scenario.workload)
            for run, others in ((first, there), (second, here))
            for scenario in run.experiment.scenarios
            if scenario.name not in others
        ),
        *(
            AskedApart(name, change)
            for name, scenario in here.items()
            if name in there
            for change in _of_scenario(scenario, there[name])
        ),
    )


def _of_scenario(first: Scenario, second: Scenario) -> Sequence[Change]:
    before, now = (msgspec.structs.asdict(one) for one in (first, second))
    asked = differences.between(before, now, [key for key in before if key not in NOT_ASKED])
    levels = differences.between(first.factors, second.factors, dict.fromkeys((*first.factors, *second.factors)))
    return [*asked, *levels]


def unpaired(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """The 95% interval of exp(mean of the second minus mean of the first): Student's t with Welch's degrees of freedom
    (1947), for each side scatters by itself. None where a side has fewer blocks than any interval needs."""
    sides = [np.array(side, dtype=np.float64) for side in (first, second)]
    if min(len(side) for side in sides) < FEWEST_BLOCKS:
        return None
    parts = [stats.spread(side) ** 2 / len(side) for side in sides]
    middle = float(sides[1].mean() - sides[0].mean())
    if sum(parts) == 0:
        return Interval(math.exp(middle), math.exp(middle))
    freedom = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, sides, strict=True))
    half = stats.student(freedom) * math.sqrt(sum(parts))
    return Interval(math.exp(middle - half), math.exp(middle + half))
