"""A made-up run in a results folder, as the runner would have left it."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from netdyno.model.run import Run
from netdyno.question.plan import Cell
from netdyno.store import write


def stored(run: Run, results: Path) -> Path:
    """The folder of the run."""
    folder = results / run.run_id.replace("/", "_")
    folder.mkdir(parents=True)
    trials = [replace(trial, position=number) for number, trial in enumerate(run.all_trials)]  # made-up ones have none
    cells = [
        Cell(
            block=trial.block,
            position=trial.position,
            scenario=trial.scenario,
            contestant=trial.contestant,
            levels=trial.levels,
            twin=trial.twin,
        )
        for trial in trials
    ]
    with write.Store.create(
        folder, run, ["netdyno", "run", run.experiment.name, "--results", str(results)], cells
    ) as made:
        for trial in trials:
            made.add(trial)
        if run.finished_at:
            made.finish(run.finished_at)
    return folder
