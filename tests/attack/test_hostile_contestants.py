"""Contestants that misbehave by chance: each trial ends in its time with a verdict that can be stored, its log stays
small, and no process is left of it."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from netdyno.measure.machine import process, trial_log
from netdyno.measure.trial.context import TrialContext
from netdyno.measure.trial.trial import run_trial
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment
from netdyno.model.run import Run
from netdyno.question.plan import Cell
from netdyno.store import read, schema, write
from tests.support.fixtures import FAKES, PYTHON

CELL = Cell(block=1, position=0, scenario="echo", contestant="fake", levels={"connections": 2})
TRIALS = 4
MOST_S = 40.0
"""All that a trial may wait for: the ready line, the load, the closing check and the end."""


@pytest.fixture
def hostile(contestant: Contestant, tmp_path: Path) -> Contestant:
    """A hostile contestant. Its last argument distinguishes it from those of attacks that run beside this one."""
    return msgspec.structs.replace(contestant, command=(*PYTHON, str(FAKES / "hostile_server.py"), str(tmp_path)))


def left_of(hostile: Contestant) -> list[str]:
    commands = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            commands.append(entry.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # it has just ended
    return [line for line in commands if hostile.command[-1] in line]


def test_a_trial_of_one_ends_with_a_verdict_and_nothing_else(
    seed: int, hostile: Contestant, experiment: Experiment, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "MOST_LOG", 4 << 20)
    short = msgspec.structs.replace(context, ready_timeout_s=1.0, shutdown_timeout_s=1.0, slack_s=1.0)
    run = Run(
        run_id="attack",
        experiment=experiment,
        started_at="2026-01-01T00:00:00",
        finished_at=None,
        environment={},
        trials=(),
    )
    trials = []
    with write.Store.create(
        context.folder, run, [], [msgspec.structs.replace(CELL, position=position) for position in range(TRIALS)]
    ) as to:
        for number in range(TRIALS):
            monkeypatch.setenv("FAKE_SEED", str(TRIALS * seed + number))
            cell = msgspec.structs.replace(CELL, position=number)
            began_s = time.monotonic()
            trial = run_trial(cell, experiment.scenarios[0], hostile, short)
            assert time.monotonic() - began_s < MOST_S
            to.add(trial)
            trials.append(trial)
            assert trial.status in ("valid", "struck_out", "failed")
            assert bool(trial.reason) == (trial.status != "valid")
            assert (context.folder / trial.log).stat().st_size < 10 * trial_log.KEPT
            assert left_of(hostile) == []
    assert read.load(context.folder / schema.FILE_NAME).trials == tuple(trials)
