"""Every test here runs against servers of a transport that carries messages, found by their manifests: all tests
against one server of each transport, those that look at a loop against all (as in tests/contract/tcp).

A test that takes `spoken` runs once for each server and transport; one that takes `workload` as well, once for each of
its workloads too. Mark a test with `workloads(...)` when it concerns only those, and with `transports(...)` when it
concerns only these.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from netdyno.model.contestant import Contestant
from tests.contract.messages.transport import TransportUnderTest, find_transports
from tests.support.chosen import NONE_CHOSEN, one_at_a_time, startable, targets, workloads_to_test
from tests.support.server import Finished, Server

TRANSPORTS = find_transports()


@dataclass(frozen=True)
class Spoken:
    """A server and the transport over which it is talked to."""

    contestant: Contestant
    transport: TransportUnderTest

    @property
    def name(self) -> str:
        """The names of both."""
        return f"{self.contestant.name}-{self.transport.name}"

    @contextmanager
    def serving(self, workload: str, *arguments: str) -> Iterator[Server]:
        """The server, with several threads where it can have them: that is where its data races are."""
        threads = ("--threads", "3") if self.contestant.manifest.threads == "any" else ()
        with self.transport.serving(self.contestant, "--workload", workload, *threads, *arguments) as server:
            yield server

    def run(self, *arguments: str) -> Finished:
        """Run the server with arguments that end it."""
        return self.transport.run(self.contestant, *arguments)


def pytest_configure(config: pytest.Config) -> None:
    """The marks of this suite; the first is also one of the conformance suite."""
    config.addinivalue_line("markers", "workloads(*names): the test concerns only these workloads")
    config.addinivalue_line("markers", "transports(*names): the test concerns only these transports")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Server by server, so that few run at a time."""
    if "spoken" not in metafunc.fixturenames:
        return
    servers, in_full = targets(metafunc, "server")
    pairs = [
        Spoken(contestant, TRANSPORTS[name])
        for contestant in servers
        for name in contestant.manifest.transports
        if name in TRANSPORTS and _concerns(metafunc, "transports", name)
    ]
    if "workload" not in metafunc.fixturenames:
        parameters = [
            pytest.param(pair, id=pair.name, marks=one_at_a_time(pair.contestant, "server")) for pair in pairs
        ]
        metafunc.parametrize("spoken", parameters or NONE_CHOSEN, indirect=True)
        return
    triples = [
        pytest.param(pair, workload, id=f"{pair.name}-{workload}", marks=one_at_a_time(pair.contestant, "server"))
        for pair in pairs
        for workload in workloads_to_test(
            [name for name in pair.contestant.manifest.workloads if _concerns(metafunc, "workloads", name)],
            in_full=pair.contestant.name in in_full,
        )
    ]
    no_triples = [pytest.param(None, None, marks=NONE_CHOSEN[0].marks)]
    metafunc.parametrize(("spoken", "workload"), triples or no_triples, indirect=["spoken"])


def _concerns(metafunc: pytest.Metafunc, mark: str, name: str) -> bool:
    marker = metafunc.definition.get_closest_marker(mark)
    return marker is None or name in marker.args


@pytest.fixture
def spoken(request: pytest.FixtureRequest) -> Spoken:
    """One server that can be started."""
    pair: Spoken = request.param
    startable(pair.contestant, "server")
    return pair
