"""A server that is wholly broken is a result: a gate fails and names the fault, and a run ranks it last."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from netdyno.measure.trial import first_requests
from netdyno.model import outcomes
from netdyno.store import read, schema
from netdyno.verbs.cli import main
from netdyno.verbs.run import FINDINGS_NAME
from tests.support.fixtures import FAKES, draw_nothing, use_steady_canary

pytestmark = [
    pytest.mark.needs_build,
    pytest.mark.long,
    pytest.mark.xdist_group("servers of one's own"),  # test_own_server.py looks whether any of them is left
]

PYTHON = shlex.join([sys.executable, "-I", "-S"])
GOOD = f"{PYTHON} {FAKES / 'own_http.py'} {{port}} serves"
BROKEN = f"{PYTHON} {FAKES / 'broken_http.py'} {{port}}"
EXPERIMENT = """
question = "Is it broken?"
contestants = ["epoll-reactor"]
blocks = 3
warmup = "0ms"
duration = "100ms"
timeout = "500ms"
[[scenario]]
name = "most"
workload = "http"
connections = 4
"""
FAULTS = {
    "503": "gave wrong or lost replies",
    "wrong-body": "gave wrong or lost replies",
    "silent": "answered nothing",
    "closes": "refused or dropped connections",
}
IN_A_GATE = "silent"
"""The fault that a busy machine could be taken for. A gate names faults in the words of a run, which has them all."""


def experiment(folder: Path) -> str:
    path = folder / "broken.toml"
    path.write_text(EXPERIMENT)
    return str(path)


@pytest.mark.usefixtures("undrawn", "steady_canary")
def test_a_gate_fails_and_names_the_fault_of_a_server_that_is_wholly_broken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    junit, page = tmp_path / "gate.xml", tmp_path / "gate.md"
    servers = ["--before", GOOD, "--after", f"{BROKEN} {IN_A_GATE}", "--margin", "throughput=5"]
    files = ["--junit", str(junit), "--markdown", str(page)]
    budget = ["--time-budget", "1m", "--results", str(tmp_path / "results")]
    code = main(["gate", experiment(tmp_path), *servers, *files, *budget])
    printed = capsys.readouterr()
    assert code == 1, printed
    fault = f"The new server has a fault that the old server does not have: in 'most' it {FAULTS[IN_A_GATE]}"
    assert fault in printed.out
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("1", "1", "0")
    (failure,) = suite.findall("testcase/failure")
    assert f"faulty. The new server {FAULTS[IN_A_GATE]}" in failure.get("message", "")
    assert f"**faulty: {FAULTS[IN_A_GATE]}" in page.read_text()


@pytest.fixture(scope="module")
def run_of_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of one run of a server that works and of all that are broken."""
    folder = tmp_path_factory.mktemp("run")
    servers = [word for how in FAULTS for word in ("--server", f"{BROKEN} {how}", "--as", how)]
    options = ["--contestant", "epoll-reactor", "--foreign-load", "count", "--trace", "never"]
    with pytest.MonkeyPatch.context() as patch:
        draw_nothing(patch)
        use_steady_canary(patch)
        # They would end the run: here the servers break after them.
        patch.setattr(first_requests, "check", lambda planned, *_: first_requests.FirstReplies(planned, {}))
        code = main(["run", experiment(folder), *servers, *options, "--results", str(folder / "results")])
    assert code in (0, 1), "a busy machine may make trials of the server that works invalid"
    (run,) = (folder / "results").iterdir()
    return run


@pytest.fixture(scope="module")
def question(run_of_all: Path) -> Mapping[str, Any]:
    """Return the findings of its only question."""
    (only_question,) = json.loads((run_of_all / FINDINGS_NAME).read_text())["questions"]
    assert isinstance(only_question, dict)
    return only_question


@pytest.mark.parametrize("how", FAULTS)
def test_a_run_ranks_it_last_with_the_reason(how: str, question: Mapping[str, Any]) -> None:
    assert [contestant["name"] for contestant in question["faulty"]].count(how) == 1
    faulty_part = question["sentence"].partition("Ranked separately, for their faults: ")[2]
    assert re.search(rf"{how} {FAULTS[how]} in [23] of 3 trials", faulty_part), "a busy machine may excuse one"
    assert how not in [contestant["name"] for contestant in question["contestants"] if contestant["rank"] == 1]


def test_a_run_counts_no_trial_of_a_broken_server_as_valid(run_of_all: Path) -> None:
    """A busy machine can excuse one that answered nothing, or make the server that works stand still."""
    run = read.load(run_of_all / schema.FILE_NAME)
    of_broken = tuple(trial for trial in run.trials if trial.contestant in FAULTS)
    counts = outcomes.counts(msgspec.structs.replace(run, trials=of_broken))
    assert (counts["valid"], counts["failed"]) == (0, 0)
    assert counts["faulty"] >= 2 * len(FAULTS)
