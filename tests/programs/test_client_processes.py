"""One load of several client processes: a share of the connections for each, one window, and one result."""

from __future__ import annotations

import pytest

from netdyno.measure.trial import client_processes
from netdyno.model.contestant import Contestant
from tests.contract.golden import wire
from tests.support.chosen import discover_once, startable
from tests.support.fake_server import AcceptedConnection, fake_server, honest
from tests.support.running_client import ENDLESS, running

pytestmark = pytest.mark.needs_build
CLIENTS = [contestant for contestant in discover_once("client") if not contestant.manifest.instrument]
OPTIONS = ("-c", "5", "--warmup", "0", "--duration", "1s")


@pytest.fixture(params=CLIENTS, ids=lambda contestant: contestant.name)
def client(request: pytest.FixtureRequest) -> Contestant:
    return startable(request.param, "client")


def test_what_each_process_made_is_added_up(client: Contestant) -> None:
    clients: list[int] = []

    def serve(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
        clients.append(peer.client)
        return honest(peer, request)

    with (
        fake_server(serve) as fake,
        running(client_processes.build_command(client.command, 3), fake.url, *OPTIONS) as runs,
    ):
        assert runs.wait_event("connected")["established"] == 5
        runs.wait_event("window_start")
        runs.wait_event("window_end")
        done = runs.wait()
    assert (done.code, done.stderr) == (0, "")
    assert done.failed_audits == []
    result = done.result
    assert result.connections.established == result.plan.connections == 5
    assert set(clients) == {0, 1}, "processes of two connections and of one, each with its own numbers"
    assert result.messages.sent == result.messages.received == len(clients)
    assert result.requests.completed == sum(result.timeseries.completed) > 0
    assert len(result.timeseries.p50_ns) == len(result.timeseries.completed)
    assert result.latency.response_ns.count == result.requests.sent
    assert (len(result.generator.threads), result.plan.threads) == (3, 3)
    assert done.client.tick_lag_ns.count >= 3 * 30


def test_a_process_that_cannot_be_served_is_no_failure_of_the_program(client: Contestant) -> None:
    """Its counts are in the sum, and its audit names it."""

    def serve(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
        return honest(peer, request) if (peer.attempt, peer.requests) != (1, 1) or peer.client == 0 else False

    options = ("-c", "3", "--warmup", "0", "--duration", "600ms", "--retry-delay", "20ms")
    with (
        fake_server(serve) as fake,
        running(client_processes.build_command(client.command, 2), fake.url, *options) as runs,
    ):
        done = runs.wait()
    assert done.code == 0
    assert (done.failures, done.client.recovered) == ({"closed": 1}, 1)
    assert {"connections", "verification"} <= set(done.failed_audits)


def test_its_processes_end_when_it_is_killed(client: Contestant) -> None:
    with (
        fake_server() as fake,
        running(client_processes.build_command(client.command, 2), fake.url, "-c", "2", *ENDLESS) as runs,
    ):
        runs.wait_event("window_start")
        runs.kill()
