"""A server whose requests wait for a backend (protocol/WIRE.md, Backend). A program of the test is the backend, so that
the test decides when it replies."""

from __future__ import annotations

import select
import socket
from contextlib import suppress
from types import TracebackType
from typing import Self

import pytest

from netdyno.model.contestant import Contestant
from netdyno_server.protobuf import parse_request
from tests.contract.golden import wire
from tests.contract.tcp.conftest import threads_for
from tests.support import proc
from tests.support.client import Client
from tests.support.patience import PATIENCE_S, eventually
from tests.support.server import Server, launched, run, serving

POOL = 3
pytestmark = pytest.mark.has_pool(True)


class ScriptedBackend:
    """A backend that replies when the test says so. `questions`: the pending ones in the order of arrival, with the
    connection and the microseconds of each."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.connections: list[socket.socket] = []
        self.questions: list[tuple[socket.socket, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for opened in (self._listener, *self.connections):
            opened.close()

    @property
    def options(self) -> tuple[str, ...]:
        port = self._listener.getsockname()[1]
        return ("--service-kind", "backend", "--backend", f"tcp://127.0.0.1:{port}", "--pool", str(POOL))

    def accept_all(self) -> None:
        """Accept what has connected by now."""
        while select.select([self._listener], [], [], 0)[0]:
            self.connections.append(self._listener.accept()[0])

    def has(self, count: int) -> bool:
        """Read what has arrived; whether so many questions are pending."""
        for connection in select.select(self.connections, [], [], 0)[0]:
            header = connection.recv(wire.FRAME_HEADER, socket.MSG_WAITALL)
            body = connection.recv(int.from_bytes(header, "big"), socket.MSG_WAITALL)
            request = parse_request(body, 0, len(body))
            assert request is not None, f"no WorkRequest: {body!r}"
            self.questions.append((connection, request[1]))
        return len(self.questions) >= count

    def wait_for(self, count: int) -> None:
        eventually(lambda: self.has(count), lambda: f"{len(self.questions)} questions instead of {count}")

    def reply(self) -> int:
        """Reply to the first question, and return what it asked for."""
        connection, microseconds = self.questions.pop(0)
        connection.sendall(wire.frame(wire.response(0, b"")))
        return microseconds


def ask(server: Server, microseconds: int) -> Client:
    """A new client whose one request asks for so long, and waits in the server. The caller closes the client."""
    client = Client(server.address)
    client.send(wire.frame(wire.request(microseconds, b"s", microseconds)))
    server.wait_at_rest(client.address)
    return client


@pytest.mark.workloads("rpc")
def test_requests_wait_for_a_free_connection_in_arrival_order(contestant: Contestant, workload: str) -> None:
    """Of n requests the backend has as many as there are connections, whatever waits, and no more: with k connections
    and replies after w, k/w are answered. A reply frees its connection for the next that came."""
    with (
        ScriptedBackend() as backend,
        serving(contestant.command, "--workload", workload, *threads_for(contestant), *backend.options) as server,
    ):
        backend.accept_all()
        assert len(backend.connections) == POOL  # before the server is ready
        clients = [ask(server, number) for number in range(1, 3 * POOL)]
        for number, client in enumerate(clients, 1):
            backend.wait_for(min(POOL, len(clients) - number + 1))
            server.wait_at_rest()
            assert not backend.has(POOL + 1)
            assert backend.reply() == number
            assert client.frame() == wire.response(number, b"s")
            client.close()


@pytest.mark.workloads("rpc", "http")
def test_a_request_asks_for_its_service_time(contestant: Contestant, workload: str) -> None:
    """In whole microseconds, rounded up; of rpc the server's own and the request's together."""
    request = wire.frame(wire.request(7, b"s", 4)) if workload == "rpc" else b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
    with (
        ScriptedBackend() as backend,
        serving(contestant.command, "--workload", workload, "--service-time", "999500ns", *backend.options) as server,
        Client(server.address) as client,
    ):
        backend.accept_all()
        client.send(request)
        backend.wait_for(1)
        assert backend.reply() == (1004 if workload == "rpc" else 1000)
        assert client.frame() == wire.response(7, b"s") if workload == "rpc" else client.receive_until(b"\r\n\r\n/a")
        assert server.stop()["connections"] == 1  # those to the backend are none of its own


@pytest.mark.workloads("rpc")
def test_a_client_that_resets_holds_up_no_other(contestant: Contestant, workload: str) -> None:
    """It may be let go of when the backend has replied, and its place in the pool is then another's."""
    with (
        ScriptedBackend() as backend,
        serving(contestant.command, "--workload", workload, *threads_for(contestant), *backend.options) as server,
    ):
        backend.accept_all()
        descriptors = proc.descriptors(server.pid)
        leaving = [ask(server, number) for number in range(1, POOL + 2)]
        with ask(server, 100) as staying:
            for client in leaving:
                client.reset()
            numbers = [*range(1, POOL + 2), 100]
            for place, number in enumerate(numbers):
                backend.wait_for(min(POOL, len(numbers) - place))
                assert backend.reply() == number
            assert staying.frame() == wire.response(100, b"s")
        eventually(lambda: proc.descriptors(server.pid) <= descriptors, "a client that has left is not let go of")


@pytest.mark.workloads("rpc")
def test_without_its_backend_it_ends(contestant: Contestant, workload: str) -> None:
    """And says why, with exit code 1: when it starts, and at the next request at the latest."""
    with ScriptedBackend() as backend:
        options = ("--workload", workload, *backend.options)
        with launched(contestant.command, *options) as server:
            server.wait_ready()
            backend.accept_all()
            for connection in backend.connections:
                connection.close()
            with suppress(OSError), socket.create_connection(server.address) as client:  # it may have ended by now
                client.sendall(wire.frame(wire.request(1, b"s", 1)))
            assert server.process.wait(PATIENCE_S) == 1
            assert "the backend closed a connection" in server.stderr()
    ended = run(contestant.command, *options)
    assert ended.code == 1
    assert "cannot connect to the backend tcp://127.0.0.1:" in ended.stderr


def test_a_backend_needs_its_address(contestant: Contestant) -> None:
    ended = run(contestant.command, "--service-kind", "backend")
    assert ended.code == 2
    assert "--service-kind backend needs --backend tcp://HOST:PORT" in ended.stderr
