"""UDP: a client is a socket of its own, and so an address of its own."""

from __future__ import annotations

import select
import socket

from tests.contract.messages.transport import MessageClient, TransportUnderTest
from tests.support.server import Server


class UdpClient(MessageClient):
    """One socket, connected to the server, so that it hears no other."""

    def __init__(self, address: tuple[str, int], receive_buffer: int | None = None) -> None:
        super().__init__()
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(address)

    def send(self, message: bytes) -> None:
        try:
            self.socket.send(message)
        except ConnectionRefusedError:  # of an earlier one, to a server that has ended; this one was not sent
            self.socket.send(message)

    def poll(self, patience_s: float) -> bytes | None:
        readable, _, _ = select.select([self.socket], [], [], patience_s)
        if not readable:
            return None
        try:
            return self.socket.recv(1 << 16)
        except ConnectionRefusedError:  # of an earlier one, too; what came before it is there still
            return self.poll(patience_s)

    def close(self) -> None:
        self.socket.close()


class Udp(TransportUnderTest):
    """Datagrams on loopback: lost only where a receive buffer is full."""

    name = "udp"
    hosts = ("127.0.0.2", "localhost", "[::1]", "0.0.0.0")

    def client(self, server: Server) -> UdpClient:
        return UdpClient(server.address)
