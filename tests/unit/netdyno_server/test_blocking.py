"""How a server whose connections block ends them, and what it counts in parts."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from netdyno_server import blocking
from netdyno_server.session import Totals

SocketPair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[SocketPair]:
    """The server's and the client's end of a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        server, _ = listener.accept()
        with server:
            client.settimeout(30)
            yield server, client


def test_a_close_with_unread_input_loses_no_reply(pair: SocketPair) -> None:
    server, client = pair
    client.sendall(b"never read")
    server.sendall(b"reply")
    blocking.close(server)
    assert client.recv(100) == b"reply"
    assert client.recv(100) == b""
    blocking.close(server)  # a peer that has reset leaves nothing to do


def test_a_connection_that_is_shut_down_from_outside_ends_with_what_has_arrived(pair: SocketPair) -> None:
    server, client = pair
    client.sendall(b"arrived")
    server.recv(1, socket.MSG_PEEK)
    read: list[bytes] = []
    blocking.shut_down(server, socket.SHUT_RD)
    reader = threading.Thread(target=lambda: read.extend((server.recv(100), server.recv(100))), daemon=True)
    reader.start()
    reader.join(30)
    assert read == [b"arrived", b""]
    server.sendall(b"still open")
    assert client.recv(100) == b"still open"


def test_parts_of_the_totals_add_up() -> None:
    totals, part = Totals(), Totals()
    totals.requests, part.requests, part.slow_closed = 2, 3, 1
    totals.add(part)
    assert (totals.requests, totals.slow_closed, totals.bytes_in) == (5, 1, 0)
