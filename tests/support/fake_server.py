"""An rpc server inside the test that does what the test tells it: the right thing, or one that is wrong.

It speaks with netdyno/protocol/wire.py and shares no code with any contestant.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tests.contract.golden import wire
from tests.support.patience import PATIENCE_S

SERVICE_S = 0.002


@dataclass
class AcceptedConnection:
    """One accepted connection, as its thread sees it. `client` is the instance at the other end, `attempt` counts its
    connections from 1; both are known with the first request. `requests` counts those of this connection."""

    socket: socket.socket
    client: int = -1
    attempt: int = 0
    requests: int = 0
    _received: bytes = b""

    def request(self) -> wire.WorkRequest | None:
        """The next whole request; None at the end of the stream, also in the middle of one."""
        while (request := self._take()) is None:
            data = self.socket.recv(1 << 16)
            if not data:
                return None
            self._received += data
        return request

    def unread(self) -> bytes:
        """What has come beyond the requests that were taken, without waiting for more."""
        with suppress(BlockingIOError):
            self._received += self.socket.recv(1 << 16, socket.MSG_DONTWAIT)
        return self._received

    def answer(self, request: wire.WorkRequest) -> None:
        """The right response."""
        self.socket.sendall(response(request))

    def reset(self) -> None:
        """Close with a RST (socket(7), SO_LINGER with a time of 0)."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def wait_gone(self) -> None:
        """Read on, and answer nothing, until the client is gone."""
        with suppress(ConnectionResetError):
            while self.socket.recv(1 << 16):
                pass

    def _take(self) -> wire.WorkRequest | None:
        size = int.from_bytes(self._received[: wire.FRAME_HEADER], "big")
        end = wire.FRAME_HEADER + size
        if len(self._received) < max(end, wire.FRAME_HEADER):
            return None
        body, self._received = self._received[wire.FRAME_HEADER : end], self._received[end:]
        return wire.parse_request(body)


def response(request: wire.WorkRequest) -> bytes:
    """The bytes of the right response."""
    return wire.frame(wire.response(request.job_id, request.stamp))


Behaviour = Callable[[AcceptedConnection, wire.WorkRequest], bool]
"""Called with each request; False: this connection is done with (closed in order, if it is still open)."""


def honest(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
    """Answer as a server should, after a while: else a client sends tens of thousands of requests a second."""
    time.sleep(SERVICE_S)
    peer.answer(request)
    return True


@dataclass
class FakeServer:
    """A listening server. `requests` counts what it was sent, by instance; it verifies every stamp. `ended` has the
    moments at which its connections came to their end."""

    behaviour: Behaviour
    listener: socket.socket
    port: int
    requests: Counter[int] = field(default_factory=Counter)
    attempts: Counter[int] = field(default_factory=Counter)
    ended: list[float] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _connections: list[socket.socket] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where to find it."""
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def open(self) -> int:
        """The number of its open connections."""
        return len(self._connections) - len(self.ended)

    def serve(self) -> None:
        """Begin to listen; a port that was bound only is refused until then."""
        self.listener.listen(1024)
        self._start(self._accept)

    def close(self) -> None:
        """End everything; raises what went wrong in a behaviour."""
        for connection in (self.listener, *self._connections):
            with suppress(OSError):  # gone already
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE_S)
        self.listener.close()
        if self.failures:
            raise self.failures[0]

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):  # shut down
            while True:
                connection, _ = self.listener.accept()
                self._connections.append(connection)
                self._start(lambda connection=connection: self._talk(AcceptedConnection(connection)))  # type: ignore[misc]

    def _talk(self, peer: AcceptedConnection) -> None:
        try:
            with peer.socket, suppress(ConnectionError):
                while request := peer.request():
                    self._note(peer, request)
                    if not self.behaviour(peer, request):
                        return
        except Exception as error:  # noqa: BLE001  (raised again by close, in the thread that can report it)
            self.failures.append(error)
        finally:
            self.ended.append(time.monotonic())

    def _note(self, peer: AcceptedConnection, request: wire.WorkRequest) -> None:
        client, _ = wire.read_stamp(request.stamp)
        with self._lock:
            if peer.requests == 0:
                self.attempts[client] += 1
                peer.client, peer.attempt = client, self.attempts[client]
            assert client == peer.client, f"a connection of instance {peer.client} brings a request of {client}"
            peer.requests += 1
            self.requests[client] += 1


@contextmanager
def bound(behaviour: Behaviour = honest) -> Iterator[FakeServer]:
    """A server whose port is taken and refuses every client until serve() is called."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", 0))
        server = FakeServer(behaviour, listener, listener.getsockname()[1])
        try:
            yield server
        finally:
            server.close()


@contextmanager
def fake_server(behaviour: Behaviour = honest) -> Iterator[FakeServer]:
    """A server that serves."""
    with bound(behaviour) as server:
        server.serve()
        yield server
