"""`netdyno aa`: so many A/A comparisons and nothing else, as a run that is stored and reported like any other."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from netdyno.base.errors import UserError, did_you_mean
from netdyno.commands import run as run_command
from netdyno.commands.run import Wishes
from netdyno.experiment.plan import Named, why_skip
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.levels import combinations, level_label

if TYPE_CHECKING:  # statistics are heavy, and wait until the trials are over
    from netdyno.analysis.aa.found import Control


def run(wishes: Wishes, argv: Sequence[str], comparisons: int, workload: str | None) -> int:
    """Exit code 0; 1 where a ranking would have told more than 5% of them apart, or the alarm is raised, or
    no comparison had blocks enough to be judged; 128 + signal when interrupted."""

    def adapt(asked: Experiment, servers: Sequence[Contestant], clients: Sequence[Contestant]) -> Experiment:
        named, others = ({one.name: one for one in everyone} for everyone in (servers, clients))
        return spread(of_workload(asked, workload), comparisons, named, others)

    untraced = wishes._replace(trace="never")  # what a message costs the kernel is not the question here
    done = run_command.carry_out(untraced, argv, adapt)
    control = done.analysis.control if done.analysis else None
    if wishes.as_json:
        print(json.dumps(done.line | {"aa": counts(control) if control else None}), flush=True)
    if done.exit_code or control is None:
        return done.exit_code
    too_often = control.fails or control.different.share > control.level
    return 1 if too_often or not control.single.of else 0


def counts(control: Control) -> dict[str, int]:
    """What `--json` says of it: of the comparisons, those with blocks enough, and the false differences among these, as
    a ranking would have said it and without its correction."""
    return {
        "comparisons": len(control.comparisons),
        "judged": control.single.of,
        "different": control.different.count,
        "different_uncorrected": control.single.count,
    }


def of_workload(asked: Experiment, workload: str | None) -> Experiment:
    """The experiment with the scenarios of a workload only. Raises UserError where it has none."""
    if workload is None:
        return asked
    chosen = tuple(scenario for scenario in asked.scenarios if scenario.workload == workload)
    if not chosen:
        known = sorted({scenario.workload for scenario in asked.scenarios})
        raise UserError(f"--workload: {asked.name} has no scenario of {workload!r}{did_you_mean(workload, known)}")
    return msgspec.structs.replace(asked, scenarios=chosen)


class _Load(NamedTuple):
    """One load of a scenario, and who can have it."""

    scenario: Scenario
    contestants: tuple[str, ...]


def spread(asked: Experiment, comparisons: int, servers: Named, clients: Named) -> Experiment:
    """The experiment with just so many cells, each of which the A/A control doubles: one load after the other for all
    contestants, and from the beginning where that is not enough. Every load becomes a scenario of its own, whose
    ranking is the family that its A/A comparisons are corrected in. Raises UserError where nobody can have any."""
    loads = [load for load in _loads(asked, servers, clients) if load.contestants]
    if not loads:
        raise UserError(f"none of these contestants can be measured in {asked.name} (see: ./netdyno list servers)")
    scenarios: list[Scenario] = []
    missing = comparisons
    for number, load in _again(loads):
        if missing <= 0:
            break
        name = load.scenario.name if number == 1 else f"{load.scenario.name} ({number})"
        chosen = load.contestants[:missing]
        scenarios.append(msgspec.structs.replace(load.scenario, name=name, contestants=chosen))
        missing -= len(chosen)
    return msgspec.structs.replace(asked, scenarios=tuple(scenarios))


def _again(loads: Sequence[_Load]) -> Iterator[tuple[int, _Load]]:
    """All of them without end, each with how often it has come by then."""
    for number in itertools.count(1):
        for load in loads:
            yield number, load


def _loads(asked: Experiment, servers: Named, clients: Mapping[str, Contestant]) -> Iterator[_Load]:
    for scenario in asked.scenarios:
        several = sum(1 for _ in combinations(scenario)) > 1
        for levels in combinations(scenario):
            can = tuple(
                name
                for name in scenario.contestants
                if not servers[name].manifest.apart and not why_skip(servers[name], scenario, levels, clients)
            )
            name = f"{scenario.name}, {level_label(scenario, levels)}" if several else scenario.name
            factors = {factor: (level,) for factor, level in levels.items()}
            yield _Load(msgspec.structs.replace(scenario, name=name, factors=factors), can)
