"""A real gate of real servers, one of them planted slower: it ends with the exit code that is due, as soon as it is
decided, and what it writes for a pull request and a CI server says the same."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from netdyno.kit.paths import build_dir
from netdyno.verbs.cli import main

pytestmark = [pytest.mark.needs_build, pytest.mark.usefixtures("undrawn", "steady_canary")]

WORKS_US = 100
METRICS = ("throughput", "cpu")


EXPERIMENT = """
question = "Is it slower?"
contestants = ["*"]
blocks = 1
warmup = "20ms"
duration = "100ms"
timeout = "5s"
[[scenario]]
name = "work"
workload = "rpc"
connections = 10
size = 64
"""


def command(service_us: int) -> str:
    """Return the command of a server that burns this much CPU for each request."""
    server = build_dir() / "servers" / "epoll-reactor"
    work = ["--service-kind", "cpu", "--service-time", f"{service_us}us"]
    return shlex.join([str(server), "--workload", "rpc", "--listen", "tcp://{address}:{port}", *work])


def gate(folder: Path, margin: int, *servers: str) -> int:
    """Run a gate with minutes of budget, so that a busy machine has time for blocks enough; a free one decides in
    seconds. The difference is large, so that windows may be short."""
    toml = folder / "work.toml"
    toml.write_text(EXPERIMENT)
    margins = [word for metric in METRICS for word in ("--margin", f"{metric}={margin}")]
    files = ["--markdown", str(folder / "gate.md"), "--junit", str(folder / "gate.xml")]
    options = ["--workload", "rpc", "--time-budget", "4m", "--results", str(folder / "results")]
    return main(["gate", str(toml), *servers, *margins, *files, *options])


def outcomes(folder: Path) -> dict[str, tuple[str, ...]]:
    """The results in the JUnit file, without its output, by metric."""
    suite = ElementTree.parse(folder / "gate.xml").getroot()
    cases = suite.findall("testcase")
    assert int(suite.get("tests", "")) == len(cases)
    assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure"))
    return {case.get("name", ""): tuple(child.tag for child in case if child.tag != "system-out") for case in cases}


def test_the_same_work_is_within_a_wide_margin_and_passes(tmp_path: Path) -> None:
    assert gate(tmp_path, 90, "--before", command(WORKS_US), "--after", command(WORKS_US)) == 0
    assert outcomes(tmp_path) == dict.fromkeys(METRICS, ())


def test_a_commit_that_works_three_times_as_long_fails_against_its_base_as_every_file_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "repository"
    home.mkdir()
    who = ["git", "-C", str(home), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*who, "init", "--quiet", "--initial-branch", "main"], check=True)
    for service_us in (WORKS_US, 3 * WORKS_US):
        listens = command(service_us).replace("'tcp://{address}:{port}'", '"$1"')
        assert '"$1"' in listens
        (home / "server.sh").write_text(f"exec {listens}\n")
        subprocess.run([*who, "add", "."], check=True)
        subprocess.run([*who, "commit", "--quiet", "-m", f"{service_us} us"], check=True)
    server = "sh {tree}/built 'tcp://{address}:{port}'"
    options = ["--base", "main~1", "--repository", str(home), "--build", "cp server.sh built", "--server", server]
    assert gate(tmp_path, 5, *options) == 1
    printed = capsys.readouterr().out
    by_metric = outcomes(tmp_path)
    assert set(by_metric) == set(METRICS)
    failed = [name for name, what in by_metric.items() if what == ("failure",)]
    assert failed
    page = (tmp_path / "gate.md").read_text()
    decision, _, table = page.partition("\n\n")
    assert decision.strip("*") in printed
    assert table.count("**worse**") == len(failed)
