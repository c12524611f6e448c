"""action.yml as its runner executes it: inputs become the environment of bash steps, and what they leave in the files
of $GITHUB_OUTPUT and $GITHUB_STEP_SUMMARY the outputs and the summary."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from netdyno.kit.paths import ROOT, build_dir
from tests.support.patience import slowness

PYTHON = "/usr/bin/python3"
"""Debian's, which has Debian's PyYAML."""
READ = "import json, sys, yaml; json.dump(yaml.load(sys.stdin, yaml.BaseLoader), sys.stdout)"
PATIENCE_S = 120
TWO = {"before": "./old --port {port}", "after": "./new --port {port}"}
BASE = {"base": "main", "build": "make -j2", "server": "{tree}/server --port {port}"}
FAKE = """#!/bin/sh
printf '%s\\n' "$@" >"called-$1"
echo "what $1 printed"
[ "$1" = gate ] || { echo '{"ending": "capacity"}'; exit SEARCHED; }
while [ $# -gt 0 ]; do
    if [ "$1" = --markdown ]; then echo '**decided**' >"$2"; fi
    if [ "$1" = --results ]; then mkdir "$2/run" && echo page >"$2/run/report.html"; fi
    shift
done
exit STATUS
"""

pytestmark = pytest.mark.skipif(shutil.which(PYTHON) is None, reason="no Python of Debian's")


class StepResult(NamedTuple):
    """What the steps of a job left behind."""

    exit_code: int
    outputs: dict[str, str]
    summary: str
    printed: str


def read_yaml(text: str) -> dict[str, Any]:
    done = subprocess.run([PYTHON, "-c", READ], input=text, capture_output=True, text=True, check=False)
    if "No module named 'yaml'" in done.stderr:
        pytest.skip("python3-yaml is not installed (packages/debian.txt)")
    assert done.returncode == 0, done.stderr
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def evaluate(text: str, inputs: Mapping[str, str]) -> str:
    """Evaluate the one expression in a text, in as much of its language as action.yml has."""
    expression = re.fullmatch(r"\$\{\{ (.*) \}\}", text)
    if expression is None:
        return text
    python = re.sub(r"inputs\.(\w+)", lambda name: repr(inputs[name[1]]), expression[1])
    python = python.replace("||", " or ").replace("&&", " and ").replace("!", " not ")
    value = eval(python, {"__builtins__": {}})
    assert isinstance(value, str)
    return value


def execute(given: Mapping[str, str], folder: Path, pull_request: str = "", **environment: str) -> StepResult:
    """Execute the bash steps of the action in a folder, the workspace."""
    action = read_yaml((ROOT / "action.yml").read_text())
    assert not given.keys() - action["inputs"].keys()
    defaults = {name: declared.get("default", "") for name, declared in action["inputs"].items()}
    defaults["base"] = pull_request
    inputs = {**defaults, **given}
    files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for path in files.values():
        path.touch()
    (step,) = [step for step in action["runs"]["steps"] if "run" in step]
    assert step["shell"] == "bash"
    variables = {name: evaluate(text, inputs) for name, text in step["env"].items()}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={**os.environ, **{k: str(v) for k, v in files.items()}, **variables, **environment}
        | {"GITHUB_ACTION_PATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=PATIENCE_S * slowness(build_dir()),
    )
    lines = files["GITHUB_OUTPUT"].read_text().splitlines()
    left = dict(line.split("=", 1) for line in lines)
    outputs = {
        name: left.get(re.sub(r".*\.outputs\.(\w+) }}", r"\1", declared["value"]), "")
        for name, declared in action["outputs"].items()
    }
    return StepResult(done.returncode, outputs, files["GITHUB_STEP_SUMMARY"].read_text(), done.stdout)


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    return write_fake(tmp_path, 0)


def write_fake(folder: Path, status: int, searched: int = 0) -> Path:
    path = folder / "fake"
    path.write_text(FAKE.replace("STATUS", str(status)).replace("SEARCHED", str(searched)))
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("status", "decision", "exit_code"),
    [(0, "passes", 0), (1, "fails", 1), (3, "open", 0), (2, "unmeasured", 2), (130, "unmeasured", 2)],
)
def test_the_job_fails_where_the_server_is_worse_and_where_nothing_was_measured(
    status: int, decision: str, exit_code: int, tmp_path: Path
) -> None:
    step = execute(TWO, tmp_path, NETDYNO=str(write_fake(tmp_path, status)))
    assert (step.outputs["decision"], step.exit_code) == (decision, exit_code)
    assert step.summary == "**decided**\n"
    assert "what gate printed" in step.printed
    assert ("::warning" in step.printed) == (status == 3)
    assert (tmp_path / step.outputs["report"]).read_text() == "page\n"
    assert (tmp_path / step.outputs["summary"]).is_file()


def test_two_commands_reach_the_gate_as_they_were_given(tmp_path: Path, fake: Path) -> None:
    execute(TWO | {"path": "/api?a=1&b=2", "budget": "15m"}, tmp_path, pull_request="ignored", NETDYNO=str(fake))
    called = (tmp_path / "called-gate").read_text().splitlines()
    assert called[:9] == [
        *("gate", "--before", TWO["before"], "--after", TWO["after"]),
        *("--path", "/api?a=1&b=2", "--time-budget", "15m"),
    ]


def test_a_pull_request_is_compared_with_its_target(tmp_path: Path, fake: Path) -> None:
    given = {name: text for name, text in BASE.items() if name != "base"}
    execute(given, tmp_path, pull_request="0123abcd", NETDYNO=str(fake))
    called = (tmp_path / "called-gate").read_text().splitlines()
    assert called[:9] == [
        *("gate", "--base", "0123abcd", "--repository", ".", "--server", BASE["server"], "--build", BASE["build"])
    ]


def test_an_objective_is_searched_with_the_new_server(tmp_path: Path, fake: Path) -> None:
    step = execute(BASE | {"build": "touch built", "objective": "p99<20ms"}, tmp_path, NETDYNO=str(fake))
    called = (tmp_path / "called-capacity").read_text().splitlines()
    assert called[:7] == ["capacity", "--server", "./server --port {port}", "--path", "/", "--objective", "p99<20ms"]
    assert ((tmp_path / "built").is_file(), step.exit_code) == (True, 0)
    fake.write_text(fake.read_text().replace('"capacity"}', '"none"}'))
    failed = execute(TWO | {"objective": "p99<20ms"}, tmp_path, NETDYNO=str(fake))
    assert (failed.exit_code, failed.outputs["decision"]) == (1, "fails")


@pytest.mark.parametrize(
    ("ending", "decision"),
    [("at_most", "passes"), ("capacity", "fails"), ("none", "fails"), ("generator", "unmeasured")],
)
def test_at_a_rate_an_objective_holds_there_or_the_job_fails(
    ending: str, decision: str, tmp_path: Path, fake: Path
) -> None:
    fake.write_text(fake.read_text().replace('"capacity"}', f'"{ending}"}}'))
    step = execute(TWO | {"objective": "p99<20ms", "rate": "500"}, tmp_path, NETDYNO=str(fake))
    called = (tmp_path / "called-capacity").read_text().splitlines()
    assert called[5:11] == ["--objective", "p99<20ms", "--start", "500", "--most", "500"]
    assert step.outputs["decision"] == decision


def test_a_search_without_an_answer_and_a_build_that_fails_do_not_blame_the_server(tmp_path: Path) -> None:
    given = TWO | {"objective": "p99<20ms"}
    unanswered = execute(given, tmp_path, NETDYNO=str(write_fake(tmp_path, 0, searched=1)))
    assert (unanswered.exit_code, unanswered.outputs["decision"]) == (2, "unmeasured")
    unbuilt = execute(given | {"build": "false"}, tmp_path, NETDYNO=str(write_fake(tmp_path, 0)))
    assert (unbuilt.exit_code, unbuilt.outputs["decision"]) == (2, "unmeasured")


def test_further_options_are_one_a_line(tmp_path: Path, fake: Path) -> None:
    given = {"options": "--margin=p99=40\n  --header=a: b 'c'\n \n", "objective": "p99<20ms"}
    execute(TWO | given, tmp_path, NETDYNO=str(fake))
    assert (tmp_path / "called-gate").read_text().splitlines()[1:3] == ["--header=a: b 'c'", "--margin=p99=40"]
    assert (tmp_path / "called-capacity").read_text().splitlines()[1:3] == ["--header=a: b 'c'", "--server"]


def test_a_rate_without_an_objective_is_no_gate(tmp_path: Path, fake: Path) -> None:
    step = execute(TWO | {"rate": "500"}, tmp_path, NETDYNO=str(fake))
    assert (step.exit_code, step.printed) == (2, "netdyno: a rate is that of an objective: give both\n")


@pytest.mark.parametrize("given", [{}, {"before": "./old {port}"}, {"server": "./server {port}"}, {"base": "main"}])
def test_without_two_servers_the_step_says_what_is_missing(given: dict[str, str], tmp_path: Path, fake: Path) -> None:
    step = execute(given, tmp_path, NETDYNO=str(fake))
    assert (step.exit_code, step.outputs["decision"]) == (2, "unmeasured")
    assert (step.outputs["report"], step.summary) == ("", step.printed)
    assert step.printed == "netdyno: give before and after, or base and server\n"


def test_the_folder_that_the_step_leaves_is_the_artifact_even_where_it_failed() -> None:
    _, upload = read_yaml((ROOT / "action.yml").read_text())["runs"]["steps"]
    assert (upload["if"], upload["with"]["path"]) == ("always()", "netdyno-gate")
    assert upload["uses"].startswith("actions/upload-artifact@")


@pytest.mark.needs_build
@pytest.mark.long
def test_the_action_gates_real_servers(tmp_path: Path) -> None:
    server = f"{build_dir()}/servers/threads-global-lock --workload http --listen tcp://127.0.0.1:{{port}}"
    entry = tmp_path / "netdyno"
    entry.write_text(
        f'#!/bin/sh\nexec {shlex.quote(str(ROOT / ".venv/bin/python"))} -P -m netdyno "$@" --duration 100ms\n'
    )
    entry.chmod(0o755)
    step = execute({"before": server, "after": server, "budget": "4s"}, tmp_path, NETDYNO=str(entry))
    codes = {"passes": 0, "open": 0, "fails": 1, "unmeasured": 2}
    assert codes[step.outputs["decision"]] == step.exit_code, step.printed
    assert (tmp_path / step.outputs["report"]).is_file(), step.printed
    assert step.summary
    assert (tmp_path / step.outputs["junit"]).read_text().count("<testcase ") == 4
