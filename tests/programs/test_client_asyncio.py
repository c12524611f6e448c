"""The client in Python as a program: its result is the generator's, and what it says when it cannot go on."""

from __future__ import annotations

import json
import resource
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from netdyno.kit.paths import build_dir, generator_path
from netdyno.measure.trial.load import INVALID_LOAD
from netdyno.model.load_result import LoadResult
from netdyno.question.contestants.contestants import find_by_name
from tests.support.chosen import discover_once
from tests.support.patience import PATIENCE_S
from tests.support.server import serving

pytestmark = pytest.mark.needs_build

CLIENT = find_by_name(discover_once("client"), "asyncio", "client").command
QUICK = ("--warmup", "50ms", "--duration", "300ms")
EndedClient = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a real server."""
    contestant = find_by_name(discover_once(), "threads-global-lock")
    with serving(contestant.command, "--workload", "rpc") as serves:
        yield f"tcp://127.0.0.1:{serves.address[1]}"


@pytest.fixture
def unanswered_url() -> Iterator[str]:
    """A URL where no server listens: the port is bound and stays bound."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"tcp://127.0.0.1:{taken.getsockname()[1]}"


def client(*arguments: str, descriptors: tuple[int, int] | None = None) -> EndedClient:
    return subprocess.run(
        [*CLIENT, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        preexec_fn=None if descriptors is None else lambda: resource.setrlimit(resource.RLIMIT_NOFILE, descriptors),
    )


def test_its_result_has_the_keys_of_the_generator_in_their_order(server: str) -> None:
    def keys(value: object) -> object:
        return [(key, keys(field)) for key, field in value.items()] if isinstance(value, dict) else None

    ours = json.loads(client(server, "--json", "-", *QUICK).stdout)
    report = ours.pop("client")
    command = [str(generator_path(build_dir())), server, "--workload", "rpc", "--json", "-", *QUICK]
    done = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE_S)
    assert done.returncode in {0, INVALID_LOAD}, done
    theirs = json.loads(done.stdout)
    assert keys(ours) == keys(theirs)
    assert [audit["name"] for audit in ours["audits"]] == [*(audit["name"] for audit in theirs["audits"]), "window"]
    assert list(report)[-2:] == ["recovered", "tick_lag_ns"]


@pytest.mark.calm
def test_what_it_measures_is_believed(server: str, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    done = client(server, "-c", "5", "--size", "100", "--json", str(file), *QUICK)
    assert (done.returncode, done.stderr) == (0, "")
    assert "5 of 5 established" in done.stdout
    assert "INVALID" not in done.stdout
    result = msgspec.json.decode(file.read_bytes(), type=LoadResult)
    assert [audit for audit in result.audits if not audit.passed] == []
    assert result.messages.received == result.messages.sent > 0
    assert list(tmp_path.iterdir()) == [file], "nothing is left beside it"


def test_the_soft_limit_of_descriptors_is_raised_and_the_hard_one_stated(unanswered_url: str) -> None:
    done = client(unanswered_url, "-c", "100", *QUICK, descriptors=(64, 200))
    assert (done.returncode, "connect_other" in done.stderr) == (1, False), done.stderr
    done = client(unanswered_url, "-c", "500", *QUICK, descriptors=(64, 200))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "ulimit -n 518" in done.stderr


def test_a_result_that_cannot_be_written_is_stated(server: str, tmp_path: Path) -> None:
    done = client(server, "--json", str(tmp_path / "missing" / "result.json"), *QUICK)
    assert done.returncode == 1
    assert "cannot write" in done.stderr
    assert "No such file" in done.stderr
    assert done.stderr.count("\n") == 1
