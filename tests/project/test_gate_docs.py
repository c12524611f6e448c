"""The examples for CI servers in docs/gate.md are YAML, and what they call is a command that netdyno takes."""

from __future__ import annotations

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
from tests.project.test_action import PYTHON, read_yaml, write_fake

PAGE = (ROOT / "docs" / "gate.md").read_text()


def example(name: str) -> dict[str, Any]:
    (text,) = re.findall(rf"^```yaml {name}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return read_yaml(text)


def gates(text: str) -> Iterator[list[str]]:
    """The arguments of each call of netdyno in a script or a page."""
    for call in re.findall(r"netdyno\"? (gate .*?)(?: \|\||$)", text.replace("\\\n", " "), re.MULTILINE):
        yield shlex.split(call)


CALLS = [*gates(PAGE.partition("## ")[0])]


@pytest.mark.skipif(shutil.which(PYTHON) is None, reason="no Python of Debian's")
def test_the_example_of_github_gives_the_action_inputs_that_it_has() -> None:
    action = read_yaml((ROOT / "action.yml").read_text())
    _, step = example("github")["jobs"]["gate"]["steps"]
    assert step["uses"].startswith("OWNER/netdyno@v")
    assert {"build", "server"} <= step["with"].keys() <= action["inputs"].keys()
    outputs = PAGE[PAGE.index("It has the outputs") : PAGE.index("writes the job's summary")]
    assert set(re.findall(r"`(\w+)`", outputs)) == action["outputs"].keys()


@pytest.mark.skipif(shutil.which(PYTHON) is None, reason="no Python of Debian's")
def test_the_example_of_gitlab_calls_the_script_with_variables_that_it_reads() -> None:
    job = example("gitlab")["gate"]
    (call,) = job["script"]
    script = ROOT / call.removeprefix("/opt/netdyno/")
    assert os.access(script, os.X_OK)
    described = set(re.findall(r"\b[A-Z_]{3,}\b", script.read_text().partition("set -u")[0]))
    assert {"BASE", "SERVER", "BUILD"} <= job["variables"].keys() - {"GIT_DEPTH"} <= described
    assert "allow_failure" not in job


@pytest.mark.skipif(shutil.which(PYTHON) is None, reason="no Python of Debian's")
@pytest.mark.parametrize(("status", "exit_code"), [(0, 0), (1, 1), (3, 0), (2, 2)])
def test_the_job_of_gitlab_ends_as_the_action_does_and_leaves_its_report(
    status: int, exit_code: int, tmp_path: Path
) -> None:
    job = example("gitlab")["gate"]
    (call,) = job["script"]
    names = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    done = subprocess.run(
        ["bash", "-ec", call.replace("/opt/netdyno", str(ROOT))],
        cwd=tmp_path,
        env={**names, **job["variables"], "BASE": "HEAD", "NETDYNO": str(write_fake(tmp_path, status))},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == exit_code, done.stderr
    called = (tmp_path / "called-gate").read_text().splitlines()
    assert called[called.index("--junit") + 1] == job["artifacts"]["reports"]["junit"]
    assert [path for path in job["artifacts"]["paths"] if not (tmp_path / path).is_dir()] == []


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


def test_every_way_and_exit_code_stands_there() -> None:
    assert len(CALLS) == 3
    assert re.findall(r"^\* (\d): ", PAGE, re.MULTILINE) == ["0", "1", "3", "2"]
    stated = dict(re.findall(r"`(throughput|cpu|p99)=(\d+)`", PAGE))
    assert {name: int(amount) / 100 for name, amount in stated.items()} == dict(gate.MARGINS)
