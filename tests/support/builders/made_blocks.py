"""Runs without programs: what a trial measures is drawn from the seed, so that runs of many blocks take a second."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec.structs import replace

from netdyno.measure.run import runner
from netdyno.measure.run.progress import Progress, RunEvent
from netdyno.measure.trial.context import TrialContext
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.observation import ForeignLoad
from netdyno.model.run import Run
from netdyno.model.trial import Trace, Trial
from netdyno.present.prose.progress import describe_event, format_left
from netdyno.question.contestants.contestants import discover
from netdyno.question.plan import Cell
from netdyno.verbs import permission
from netdyno.verbs.permission import Given
from tests.support.builders.made_claims import made_trial

NAMES = tuple(
    contestant.name
    for contestant in discover()
    if not contestant.manifest.apart and "echo" in contestant.manifest.workloads
)[:2]
RunTrial = Callable[[Cell, Scenario, Contestant, TrialContext], Trial]


def permit(run: Run) -> None:
    """Permit what a user without options and without a terminal does: only what a run without own servers starts."""
    permission.ask(run, Given(), ["./netdyno", "resume"])


class Silent:
    """A display that remembers what was begun, how much was left at each trial, the trials, the messages, how often it
    was closed, and the progress."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.left: list[str] = []
        self.trials: list[Trial] = []
        self.notes: list[str] = []
        self.closed = 0
        self.progress = Progress((), 0.0)

    def begin(self, event: RunEvent) -> None:
        self.begun.append(describe_event(event))

    def trial_started(self, cell: Cell, progress: Progress) -> None:
        self.left.append(format_left(progress))
        self.progress = progress

    def throughput(self, completed: int, seconds: float) -> None: ...

    def trial_done(self, trial: Trial, progress: Progress) -> None:
        self.trials.append(trial)
        self.progress = progress

    def note(self, event: RunEvent) -> None:
        self.notes.append(describe_event(event))

    def close(self) -> None:
        self.closed += 1


def trials_with(spread: Mapping[str, float]) -> RunTrial:
    """In place of runner.run_trial: throughput with a log-normal noise of this spread in each scenario."""

    def run_trial(cell: Cell, scenario: Scenario, contestant: Contestant, _context: TrialContext) -> Trial:
        draw = random.Random(f"{cell.block} {cell.scenario} {cell.contestant} {cell.levels}")
        figure = 1000 * math.exp(draw.gauss(0, spread[cell.scenario]))
        trial = made_trial(scenario, cell.block, contestant.name, cell.levels, {"throughput": figure})
        return replace(trial, position=cell.position, attempt=cell.attempt, twin=cell.twin)

    return run_trial


def asked(*names: str, **fields: object) -> Experiment:
    """An experiment with scenarios of these names and two contestants."""
    scenarios = tuple(Scenario(name=name, workload="echo") for name in names)
    experiment = Experiment(name="until", question="Until when?", scenarios=scenarios)
    return experiment.with_each(contestants=NAMES, blocks=6, precision=0.05, **fields)


def execute(
    experiment: Experiment,
    results: Path,
    build: Path,
    display: Silent | None = None,
    foreign_load: ForeignLoad = "count",
    trace: Trace = "auto",
) -> runner.RunOutcome:
    servers = [
        contestant
        for contestant in discover(build=build)
        if any(contestant.name in scenario.contestants for scenario in experiment.scenarios)
    ]
    return runner.execute(
        experiment,
        servers,
        results=results,
        build=build,
        argv=["netdyno", "run"],
        display=display or Silent(),
        foreign_load=foreign_load,
        trace=trace,
    )


def blocks_of(run: Run, scenario: str) -> list[int]:
    """The blocks of a scenario; a test fails here where one is not complete."""
    mine = [trial for trial in run.trials if trial.scenario == scenario]
    numbers = sorted({trial.block for trial in mine})
    for block in numbers:
        assert sorted(trial.contestant for trial in mine if trial.block == block) == sorted(NAMES)
    return numbers
