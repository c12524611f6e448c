"""ZeroMQ over TCP: a client is a DEALER socket."""

from __future__ import annotations

import zmq

from tests.contract.messages.transport import MessageClient, TransportUnderTest
from tests.support.server import Server

CONTEXT: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
CONTEXT.max_sockets = 8192


class ZmqClient(MessageClient):
    """One DEALER, connected to the server. It sends its id only where it has a `routing_id`; the number of messages
    that may wait here, unread, is the library's default unless one is given."""

    def __init__(self, server: Server, routing_id: bytes | None = None, receive_hwm: int | None = None) -> None:
        super().__init__()
        self.socket: zmq.Socket[bytes] = CONTEXT.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.IPV6, 1)
        if routing_id is not None:
            self.socket.setsockopt(zmq.ROUTING_ID, routing_id)
        if receive_hwm is not None:
            self.socket.setsockopt(zmq.RCVHWM, receive_hwm)
        self.socket.connect(server.endpoint.removeprefix("zmq+"))

    def __enter__(self) -> ZmqClient:
        return self

    def send(self, message: bytes) -> None:
        self.socket.send(message)

    def send_parts(self, *parts: bytes) -> None:
        """One message of several parts."""
        self.socket.send_multipart(parts)

    def poll(self, patience_s: float) -> bytes | None:
        if not self.socket.poll(int(patience_s * 1000)):
            return None
        message: bytes = self.socket.recv()
        assert not self.socket.getsockopt(zmq.RCVMORE), "a message of several parts"
        return message

    def close(self) -> None:
        self.socket.close()


class Zmq(TransportUnderTest):
    """Messages over TCP: lost only where a queue is full."""

    name = "zmq+tcp"
    bounds_requests = False  # not where that test looks: there is room for more of them (test_zeromq.py)
    connected = True
    longest = 1 << 20
    hosts = ("127.0.0.2", "localhost", "[::1]", "0.0.0.0")

    def client(self, server: Server) -> ZmqClient:
        return ZmqClient(server)
