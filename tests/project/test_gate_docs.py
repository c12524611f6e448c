"""The examples for CI servers in docs/gate.md are YAML, and what they call is a command that netdyno takes."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netdyno.kit.paths import ROOT
from netdyno.verbs import gate
from netdyno.verbs.cli import main

PAGE = (ROOT / "docs" / "gate.md").read_text()
PYTHON = "/usr/bin/python3"
"""Debian's, which has Debian's PyYAML."""
READ = "import json, sys, yaml; json.dump(yaml.load(sys.stdin, yaml.BaseLoader), sys.stdout)"


def example(name: str) -> dict[str, Any]:
    (text,) = re.findall(rf"^```yaml {name}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    done = subprocess.run([PYTHON, "-c", READ], input=text, capture_output=True, text=True, check=False)
    if "No module named 'yaml'" in done.stderr:
        pytest.skip("python3-yaml is not installed (packages/debian.txt)")
    assert done.returncode == 0, done.stderr
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def scripts(name: str) -> list[str]:
    """Return the scripts that its steps give a shell."""
    workflow = example(name)
    if name == "github":
        return [step["run"] for step in workflow["jobs"]["gate"]["steps"] if "run" in step]
    job = workflow["gate"]
    return [*job["before_script"], *job["script"]]


def gates(text: str) -> Iterator[list[str]]:
    """The arguments of each call of netdyno in a script or a page."""
    for call in re.findall(r"netdyno\"? (gate .*?)(?: \|\||$)", text.replace("\\\n", " "), re.MULTILINE):
        yield shlex.split(call)


CALLS = [*gates(PAGE.partition("## ")[0])]


@pytest.mark.skipif(shutil.which(PYTHON) is None, reason="no Python of Debian's")
@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_an_example_calls_a_gate_that_can_be_meant(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (call,) = [call for script in scripts(name) for call in gates(script)]
    assert {"--base", "--repository", "--build", "--server", "--time-budget", "--markdown", "--junit"} <= set(call)
    check(call, monkeypatch, capsys)


@pytest.mark.parametrize("call", CALLS, ids=shlex.join)
def test_a_command_of_the_page_can_be_meant(
    call: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check(call, monkeypatch, capsys)


def check(call: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    requests: list[gate.GateRequest] = []

    def run(request: gate.GateRequest, _argv: object) -> int:
        requests.append(request)
        return 0

    monkeypatch.setattr(gate, "run", run)
    assert main(call) == 0, capsys.readouterr().err
    assert all(
        "{port}" in command
        for request in requests
        for command in (request.before, request.after, request.server)
        if command
    )


@pytest.mark.skipif(shutil.which(PYTHON) is None, reason="no Python of Debian's")
@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_a_shell_takes_the_scripts(name: str) -> None:
    for script in scripts(name):
        subprocess.run(["sh", "-n"], input=re.sub(r"\$\{\{.*?\}\}", "x", script), text=True, check=True)


@pytest.mark.skipif(shutil.which(PYTHON) is None, reason="no Python of Debian's")
@pytest.mark.parametrize(("status", "passes"), [(0, True), (1, False), (2, False), (3, True), (130, False)])
def test_the_examples_let_no_gate_pass_that_measured_nothing(status: int, passes: bool, tmp_path: Path) -> None:
    (script,) = [script for script in scripts("github") if "gate.md" in script]
    netdyno = tmp_path / "netdyno" / "netdyno"
    netdyno.parent.mkdir()
    netdyno.write_text(f"#!/bin/sh\necho decision >gate.md\nexit {status}\n")
    netdyno.chmod(0o755)
    given = {"RUNNER_TEMP": str(tmp_path), "GITHUB_BASE_REF": "main", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    done = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=os.environ | given, check=False)
    assert (done.returncode == 0) == passes
    assert (str(status) in (example("gitlab")["gate"]["allow_failure"]["exit_codes"], "0")) == passes


def test_every_way_and_exit_code_stands_there() -> None:
    assert len(CALLS) == 3
    assert re.findall(r"^\* (\d): ", PAGE, re.MULTILINE) == ["0", "1", "3", "2"]
    stated = dict(re.findall(r"`(throughput|cpu|p99)=(\d+)`", PAGE))
    assert {name: int(amount) / 100 for name, amount in stated.items()} == dict(gate.MARGINS)
