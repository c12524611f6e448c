"""The contract of the workload grpc (protocol/WIRE.md, gRPC): a dozen checks, and no more, of what a framework does.

They need a build of some minutes, so they run where a framework is named (`--contestant NAME`), or with `--all`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import pytest

from netdyno.kit.paths import build_dir
from netdyno.model.contestant import Contestant
from netdyno.question.contestants.contestants import prepare
from tests.support.chosen import NONE_CHOSEN, list_grpc_servers, one_at_a_time
from tests.support.patience import PATIENCE_S


class GrpcServer(NamedTuple):
    """A framework that can be started, and where it listens in plain text."""

    contestant: Contestant
    url: str


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Server by server, so that each is started once."""
    if "grpc_server" not in metafunc.fixturenames:
        return
    parameters = [
        pytest.param(server, id=server.name, marks=one_at_a_time(server, "server"))
        for server in list_grpc_servers(metafunc.config)
    ]
    metafunc.parametrize("grpc_server", parameters or NONE_CHOSEN, indirect=True, scope="session")


@contextmanager
def serving_grpc(contestant: Contestant, *options: str) -> Iterator[str]:
    """Start a framework on two threads; it must end in order, and leave no process."""
    threads = ("--threads", "2") if contestant.manifest.threads == "any" else ()
    command = [*contestant.command, "--listen", "tcp://127.0.0.1:0", "--workload", "grpc", *threads, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["endpoint"]
        process.terminate()
        totals = json.loads(process.stdout.readline())
        assert process.wait(PATIENCE_S) == 0
        assert totals.get("left_behind", 0) == 0


@pytest.fixture(scope="session")
def grpc_server(request: pytest.FixtureRequest) -> Iterator[GrpcServer]:
    """A server shared by all tests."""
    contestant = prepare(request.param, build=build_dir())
    if not contestant.available:
        pytest.skip(f"{contestant.name}: {contestant.why_not}")
    with ExitStack() as running:
        yield GrpcServer(contestant, running.enter_context(serving_grpc(contestant)))
