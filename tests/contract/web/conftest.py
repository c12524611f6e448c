"""The contract of the workload web (protocol/WIRE.md, Web): a dozen checks, and no more, of what a framework does.

It runs against one of netdyno's own servers of each language, and against the frameworks that are there without a
build; `--contestant NAME` builds the others, and `--all` all of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from typing import NamedTuple

import pytest

from netdyno.kit.paths import build_dir
from netdyno.model.contestant import Contestant
from netdyno.question.contestants.contestants import prepare
from tests.support.chosen import NONE_CHOSEN, list_web_servers, one_at_a_time, startable
from tests.support.patience import PATIENCE_S


class WebServer(NamedTuple):
    """A running server that speaks web."""

    contestant: Contestant
    process: subprocess.Popen[str]
    address: tuple[str, int]


@pytest.fixture
def connect(web_server: WebServer) -> Iterator[Callable[[], HTTPConnection]]:
    """Makes clients, whose connections are made with their first requests and closed after the test."""
    with ExitStack() as clients:
        yield lambda: clients.enter_context(closing(HTTPConnection(*web_server.address, timeout=PATIENCE_S)))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Server by server, so that each is started once."""
    if "web_server" not in metafunc.fixturenames:
        return
    parameters = [
        pytest.param(server, id=server.name, marks=one_at_a_time(server, "server"))
        for server in list_web_servers(metafunc.config)
    ]
    metafunc.parametrize("web_server", parameters or NONE_CHOSEN, indirect=True, scope="session")


@pytest.fixture(scope="session")
def web_server(request: pytest.FixtureRequest) -> Iterator[WebServer]:
    """A server shared by all tests. It must end in order when they are done, and leave no process."""
    contestant: Contestant = request.param
    if contestant.manifest.is_framework:
        contestant = prepare(contestant, build=build_dir())
        if not contestant.available:
            pytest.skip(f"{contestant.name}: {contestant.why_not}")
    startable(contestant, "server")
    threads = ("--threads", "2") if contestant.manifest.threads == "any" else ()
    command = [*contestant.command, "--listen", "tcp://127.0.0.1:0", "--workload", "web", *threads]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        host, _, port = ready["endpoint"].partition("://")[2].rpartition(":")
        yield WebServer(contestant, process, (host, int(port)))
        process.terminate()
        totals = json.loads(process.stdout.readline())
        assert process.wait(PATIENCE_S) == 0
        assert totals.get("left_behind", 0) == 0
