"""`netdyno advise` with the programs that were built: a short run of two, and what is left of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netdyno.model import outcomes
from netdyno.store import read, schema
from netdyno.verbs.cli import main

pytestmark = pytest.mark.needs_build

NAMES = {"epoll-reactor", "threads-global-lock"}


def test_a_short_run_ends_with_an_answer_where_any_trial_is_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workload = ("--connections", "5", "--rate", "300", "--service-time", "100us", "--waits", "--objective", "p99<5s")
    named = ("--contestants", ",".join(NAMES), "--time-budget", "2s", "--no-along")
    code = main(["advise", *workload, *named, "--results", str(tmp_path), "--json"])
    captured = capsys.readouterr()
    advice = json.loads(captured.out)
    (folder,) = tmp_path.iterdir()
    run = read.load(folder / schema.FILE_NAME)
    assert run.experiment.scenarios[0].server["service-kind"] == "wait"
    assert {trial.contestant for trial in run.trials} <= NAMES
    assert {"advise.toml", "report.html"} <= {path.name for path in folder.iterdir()}
    # A machine that is busy enough spoils every trial, or leaves time for one.
    valid = {trial.contestant for trial in outcomes.judge_run(run).trials if trial.status in outcomes.RANKED}
    assert set(advice["take"]) <= valid
    assert (code, bool(advice["take"])) == ((0, True) if valid else (1, False))
    if valid:
        assert (advice["run"], (folder / "advice.json").is_file()) == (run.run_id, True)
        assert f"This is based on {folder}, made for this question." in captured.err
