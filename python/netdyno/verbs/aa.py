"""`netdyno aa`: a number of A/A comparisons and nothing else, as a run that is stored and reported like any other."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from netdyno.kit.errors import UserError, did_you_mean
from netdyno.kit.paths import ENTRY
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.levels import combinations, level_label
from netdyno.question.plan import ContestantsByName, explain_skip
from netdyno.verbs import run as run_command
from netdyno.verbs.run import RunRequest

if TYPE_CHECKING:  # statistics are heavy, and wait until the trials are over
    from netdyno.analysis.found.control import Control


def run(request: RunRequest, argv: Sequence[str], comparisons: int, workload: str | None) -> int:
    """Run the comparisons. Return 0; 1 where a ranking would have found more than 5% of them different, or the alarm is
    raised, or no comparison had enough blocks to be judged; 128 + signal when interrupted."""

    def adapt(experiment: Experiment, servers: Sequence[Contestant], clients: Sequence[Contestant]) -> Experiment:
        servers_by_name, clients_by_name = (
            {contestant.name: contestant for contestant in group} for group in (servers, clients)
        )
        return spread(select_workload(experiment, workload), comparisons, servers_by_name, clients_by_name)

    untraced = replace(request, trace="never")  # the cost of a message in the kernel is not the question here
    done = run_command.carry_out(untraced, argv, adapt)
    control = done.analysis.control if done.analysis else None
    if request.as_json:
        print(json.dumps(done.line | {"aa": count_comparisons(control) if control else None}), flush=True)
    if done.exit_code or control is None:
        return done.exit_code
    too_often = control.fails or control.different.share > control.significance
    return 1 if too_often or not control.single.total else 0


def count_comparisons(control: Control) -> dict[str, int]:
    """Return the counts for `--json`: the comparisons, those with enough blocks, and the false differences among these,
    as a ranking reports them and without its correction."""
    return {
        "comparisons": len(control.comparisons),
        "judged": control.single.total,
        "different": control.different.count,
        "different_uncorrected": control.single.count,
    }


def select_workload(experiment: Experiment, workload: str | None) -> Experiment:
    """Return the experiment with the scenarios of a workload only. Raises UserError where it has none."""
    if workload is None:
        return experiment
    chosen = tuple(scenario for scenario in experiment.scenarios if scenario.workload == workload)
    if not chosen:
        known = sorted({scenario.workload for scenario in experiment.scenarios})
        raise UserError(f"--workload: {experiment.name} has no scenario of {workload!r}{did_you_mean(workload, known)}")
    return msgspec.structs.replace(experiment, scenarios=chosen)


class _ScenarioLoad(NamedTuple):
    """One load of a scenario, and the contestants that support it."""

    scenario: Scenario
    contestants: tuple[str, ...]


def spread(
    experiment: Experiment, comparisons: int, servers: ContestantsByName, clients: ContestantsByName
) -> Experiment:
    """Return the experiment with just so many cells, each of which the A/A control doubles: one load after the other
    for all contestants, and from the beginning where that is not enough. Every load becomes a separate scenario; its
    ranking is the family that its A/A comparisons are corrected in. Raises UserError where no contestant supports
    one."""
    loads = [load for load in _list_loads(experiment, servers, clients) if load.contestants]
    if not loads:
        raise UserError(f"none of these contestants can be measured in {experiment.name} (see: {ENTRY} list servers)")
    scenarios: list[Scenario] = []
    missing = comparisons
    for number, load in _repeat(loads):
        if missing <= 0:
            break
        name = load.scenario.name if number == 1 else f"{load.scenario.name} ({number})"
        chosen = load.contestants[:missing]
        scenarios.append(msgspec.structs.replace(load.scenario, name=name, contestants=chosen))
        missing -= len(chosen)
    return msgspec.structs.replace(experiment, scenarios=tuple(scenarios))


def _repeat(loads: Sequence[_ScenarioLoad]) -> Iterator[tuple[int, _ScenarioLoad]]:
    """Yield all loads without end, each with the number of its round."""
    for number in itertools.count(1):
        for load in loads:
            yield number, load


def _list_loads(
    experiment: Experiment, servers: ContestantsByName, clients: Mapping[str, Contestant]
) -> Iterator[_ScenarioLoad]:
    for scenario in experiment.scenarios:
        several = sum(1 for _ in combinations(scenario)) > 1
        for levels in combinations(scenario):
            eligible = tuple(
                name
                for name in scenario.contestants
                if not servers[name].manifest.apart and not explain_skip(servers[name], scenario, levels, clients)
            )
            name = f"{scenario.name}, {level_label(scenario, levels)}" if several else scenario.name
            factors = {factor: (level,) for factor, level in levels.items()}
            yield _ScenarioLoad(msgspec.structs.replace(scenario, name=name, factors=factors), eligible)
