"""Two runs side by side: their different questions and environments, and the figures of the cells that both have. Pure
functions of stored runs.

Blocks of different runs are not paired: whatever changed between the runs, the machine's own drift included, is in the
ratio. So each run scatters by itself, and the interval shows how far the blocks of the two scatter, not why they
differ."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from netdyno.analysis.compare import differences
from netdyno.analysis.found.compare import Both, Change, ChangedQuestion, ScenarioOfOne, SideBySide
from netdyno.analysis.ranking.cells import estimate_cell
from netdyno.analysis.trials import measured, unranked
from netdyno.kit.statistics import stats
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS
from netdyno.kit.statistics.stats import Interval
from netdyno.model import outcomes
from netdyno.model.base import Name
from netdyno.model.experiment import RankedBy, Scenario
from netdyno.model.levels import level_key, level_label
from netdyno.model.metrics import METRICS, TrialWithLoad
from netdyno.model.run import Run
from netdyno.question.capacity import CAPACITY

NOT_COMPARED_OPTIONS = ("name", "blocks", "precision", "most_blocks", "factors")
"""Options of a scenario that say how often it is measured, and its factors, which are compared level by level."""


def compare_runs(first: Run, second: Run) -> SideBySide:
    """Compare two runs. A cell is the same where scenario, contestant, levels and metric are; the unsafe and unranked
    are left out."""
    sides = [_collect_cells(unranked.remove_from_run(outcomes.judge_run(run))) for run in (first, second)]
    shared = [key for key in sides[0] if key in sides[1]]
    return SideBySide(
        first=first.run_id,
        second=second.run_id,
        environment=tuple(differences.list_decisive(first.environment, second.environment)),
        questions=_compare_experiments(first, second),
        cells=tuple(_compare_cell(key, sides[0][key], sides[1][key]) for key in shared),
        alone=len(sides[0].keys() ^ sides[1].keys()),
    )


class _Key(msgspec.Struct, frozen=True):
    scenario: Name
    contestant: Name
    level: Name
    metric: RankedBy


class _ComparedCell(msgspec.Struct, frozen=True):
    label: Name
    figure: float
    logs: tuple[float, ...]


def _collect_cells(run: Run) -> dict[_Key, _ComparedCell]:
    """Collect the figure of each cell and the logarithms of its trials' figures, scenario by scenario and name by
    name."""
    logs: dict[_Key, list[float]] = {}
    trials: dict[_Key, list[TrialWithLoad]] = {}
    scenarios = {scenario.name: scenario for scenario in run.experiment.scenarios}
    for planned in scenarios.values():
        # A capacity takes several cells, and here each stands by itself.
        scenario = msgspec.structs.replace(planned, metric="p99") if planned.metric == CAPACITY else planned
        for trial, load in measured.select_valid(run, scenario):
            key = _Key(scenario.name, trial.contestant, level_key(trial.levels), scenario.metric)
            figure = METRICS[scenario.metric].value(trial, load)
            if figure is not None and figure > 0:
                logs.setdefault(key, []).append(math.log(figure))
                trials.setdefault(key, []).append((trial, load))
    order = {name: number for number, name in enumerate(scenarios)}
    keys = sorted(logs, key=lambda key: (order[key.scenario], key.level, key.contestant))
    return {
        key: _ComparedCell(
            label=level_label(scenarios[key.scenario], trials[key][0][0].levels),
            figure=_read_figure(key.metric, trials[key], run.experiment.seed),
            logs=tuple(logs[key]),
        )
        for key in keys
    }


def _read_figure(metric: RankedBy, trials: Sequence[TrialWithLoad], seed: int) -> float:
    estimate = estimate_cell(METRICS[metric], trials, seed)
    assert estimate is not None, "each of these trials has a figure above 0"
    return estimate.value


def _compare_cell(key: _Key, first: _ComparedCell, second: _ComparedCell) -> Both:
    means = [sum(cell.logs) / len(cell.logs) for cell in (first, second)]
    return Both(
        scenario=key.scenario,
        contestant=key.contestant,
        level=first.label,
        metric=key.metric,
        first=first.figure,
        second=second.figure,
        first_trials=len(first.logs),
        second_trials=len(second.logs),
        ratio=math.exp(means[1] - means[0]),
        interval=estimate_interval(first.logs, second.logs),
    )


def _compare_experiments(first: Run, second: Run) -> tuple[ChangedQuestion | ScenarioOfOne, ...]:
    """Return the differences in the questions of two runs, except in how often they are measured."""
    first_scenarios, second_scenarios = (
        {scenario.name: scenario for scenario in run.experiment.scenarios} for run in (first, second)
    )
    names = differences.list_changes(
        {"experiment": first.experiment.name}, {"experiment": second.experiment.name}, ["experiment"]
    )
    return (
        *(ChangedQuestion("", change) for change in names),
        *(
            ScenarioOfOne(run.run_id, scenario.name, scenario.workload)
            for run, other_scenarios in ((first, second_scenarios), (second, first_scenarios))
            for scenario in run.experiment.scenarios
            if scenario.name not in other_scenarios
        ),
        *(
            ChangedQuestion(name, change)
            for name, scenario in first_scenarios.items()
            if name in second_scenarios
            for change in _compare_scenarios(scenario, second_scenarios[name])
        ),
    )


def _compare_scenarios(first: Scenario, second: Scenario) -> Sequence[Change]:
    before, now = (msgspec.structs.asdict(scenario) for scenario in (first, second))
    options = differences.list_changes(before, now, [key for key in before if key not in NOT_COMPARED_OPTIONS])
    levels = differences.list_changes(first.factors, second.factors, dict.fromkeys((*first.factors, *second.factors)))
    return [*options, *levels]


def estimate_interval(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """Return the 95% interval of exp(mean of the second minus mean of the first): Student's t with Welch's degrees of
    freedom (1947), for each side scatters by itself. None where a side has fewer blocks than any interval needs."""
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
