"""A server that is wholly broken is a result: a gate fails and names the fault, and a run ranks it last."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from netdyno.base.paths import ROOT
from tests.support.fixtures import FAKES

pytestmark = [
    pytest.mark.needs_build,
    pytest.mark.xdist_group("servers of one's own"),  # test_own_server.py looks whether any of them is left
]

PYTHON = shlex.join([sys.executable, "-I", "-S"])
GOOD = f"{PYTHON} {FAKES / 'own_http.py'} {{port}} serves"
BROKEN = f"{PYTHON} {FAKES / 'broken_http.py'} {{port}}"
EXPERIMENT = """
question = "Is it broken?"
contestants = ["epoll-reactor"]
blocks = 2
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


def experiment(folder: Path) -> str:
    path = folder / "broken.toml"
    path.write_text(EXPERIMENT)
    return str(path)


def from_shell(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(ROOT / "netdyno"), *words], capture_output=True, text=True, check=False)


def passes_workflow(exit_code: int) -> bool:
    """Whether the step of the workflow in docs/gate.md lets a merge pass when its gate ends with this code."""
    page = (ROOT / "docs" / "gate.md").read_text()
    (last,) = [line for line in page.splitlines() if line.strip().startswith('test "$status"')]
    return subprocess.run(["sh", "-c", f"status={exit_code}; {last}"], check=False).returncode == 0


@pytest.mark.parametrize("how", FAULTS)
def test_a_gate_fails_and_names_the_fault_of_a_server_that_is_wholly_broken(how: str, tmp_path: Path) -> None:
    junit, page = tmp_path / "gate.xml", tmp_path / "gate.md"
    servers = ["--before", GOOD, "--after", f"{BROKEN} {how}", "--margin", "throughput=5"]
    files = ["--junit", str(junit), "--markdown", str(page)]
    budget = ["--time-budget", "1m", "--results", str(tmp_path / "results")]
    done = from_shell("gate", experiment(tmp_path), *servers, *files, *budget)
    assert done.returncode == 1, done
    assert not passes_workflow(done.returncode)
    assert f"It has a fault that the server before has not: in 'most' it {FAULTS[how]}" in done.stdout
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("1", "1", "0")
    (failure,) = suite.findall("testcase/failure")
    assert f"faulty. It {FAULTS[how]}" in failure.get("message", "")
    assert f"**faulty: {FAULTS[how]}" in page.read_text()


def test_a_gate_that_decides_nothing_passes_the_workflow_and_one_that_passes_does() -> None:
    assert passes_workflow(0)
    assert passes_workflow(3)


@pytest.mark.parametrize("how", FAULTS)
def test_a_run_ranks_it_last_with_the_reason(how: str, tmp_path: Path) -> None:
    asked = ["--server", f"{BROKEN} {how}", "--as", "broken", "--foreign-load", "count", "--trace", "never"]
    done = from_shell("run", experiment(tmp_path), *asked, "--json", "--results", str(tmp_path / "results"))
    line = json.loads(done.stdout)
    assert line["trials"]["faulty"] == 2, done
    assert line["trials"]["failed"] == 0
    (question,) = json.loads(Path(line["findings"]).read_text())["questions"]
    (faulty,) = question["faulty"]
    assert faulty["name"] == "broken"
    assert f"Ranked apart for faults: broken {FAULTS[how]} in 2 of 2 trials" in question["sentence"]
    assert "broken" not in [one["name"] for one in question["contestants"] if one["rank"] == 1]
