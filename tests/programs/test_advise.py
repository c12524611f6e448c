"""`netdyno advise` with the programs that were built: a short run of two, and what is left of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netdyno.commands.cli import main
from netdyno.store import read, schema

pytestmark = pytest.mark.needs_build

NAMES = ("epoll-reactor", "threads-global-lock")


def test_a_short_run_ends_with_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workload = ("--connections", "5", "--rate", "300", "--service-time", "100us", "--waits", "--objective", "p99<5s")
    named = ("--contestants", ",".join(NAMES), "--time-budget", "4s", "--no-along")
    assert main(["advise", *workload, *named, "--results", str(tmp_path), "--json"]) == 0
    captured = capsys.readouterr()
    said = json.loads(captured.out)
    assert set(said["take"]) <= set(NAMES)
    assert said["take"]
    run = read.load(tmp_path / said["run"] / schema.FILE_NAME)
    assert {one.contestant for one in run.trials} == set(NAMES)
    assert {one.status for one in run.trials} <= {"valid", "struck_out"}  # by what others do beside this test
    assert run.experiment.scenarios[0].server["service-kind"] == "wait"
    assert f"It rests on {tmp_path / said['run']}, which was made for this." in captured.err
    assert {one.name for one in (tmp_path / said["run"]).iterdir()} >= {"advise.toml", "advice.json", "report.html"}
