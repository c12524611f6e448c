"""A TCP client of a server under test, well behaved or not. Every wait has an end."""

from __future__ import annotations

import errno
import itertools
import select
import socket
import struct
from contextlib import suppress
from types import TracebackType
from typing import Self

from tests.contract.golden import wire
from tests.support.patience import PATIENCE_S

ETHERNET_SEGMENT = 1460
"""Bytes of data in a segment of TCP over IPv4 and Ethernet (RFC 9293, 3.7.1)."""
_ids = itertools.count(1)


class ClosedError(AssertionError):
    """The server ended the connection where more was expected."""


class Client:
    """One connection. `identity` and the numbers from `next_number` go into the stamps of its messages; `taken` counts
    the bytes that came from the server. With a receive buffer of its own it announces the segments of an Ethernet as
    well: the server's kernel then holds some 100 KiB of what is not read, where with those of loopback, 64 KiB each, it
    holds 3 MiB, which every test of a slow reader would have to fill."""

    def __init__(self, address: tuple[str, int], receive_buffer: int | None = None) -> None:
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, ETHERNET_SEGMENT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(address)
        self.identity = next(_ids)
        self._numbers = itertools.count()
        self._received = bytearray()  # grows in place: readers that are slow get megabytes by two kilobytes at a time
        self.taken = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def address(self) -> tuple[str, int]:
        """This end of the connection."""
        host, port = self.socket.getsockname()[:2]
        return host, port

    @property
    def is_open(self) -> bool:
        """Neither closed nor reset by this end."""
        return self.socket.fileno() >= 0

    def next_number(self) -> int:
        """The sequence number of this client's next message."""
        return next(self._numbers)

    def send(self, data: bytes) -> None:
        """Send all of it; raises OSError when the server has closed."""
        self.socket.sendall(data)

    def receive(self, size: int) -> bytes:
        """Exactly that many bytes; ClosedError when the stream ends before."""
        while len(self._received) < size:
            self._more(size)
        return self._take(size)

    def receive_until(self, mark: bytes) -> bytes:
        """All up to and with `mark`; ClosedError when the stream ends before."""
        while mark not in self._received:
            self._more(0)
        return self._take(self._received.index(mark) + len(mark))

    def frame(self) -> bytes:
        """The body of the next frame."""
        return self.receive(int.from_bytes(self.receive(wire.FRAME_HEADER), "big"))

    def frames(self) -> list[bytes]:
        """The bodies of all frames that have come whole, without waiting."""
        bodies, offset = [], 0
        while (start := offset + wire.FRAME_HEADER) <= len(self._received):
            end = start + int.from_bytes(self._received[offset:start], "big")
            if end > len(self._received):
                break
            bodies.append(bytes(self._received[start:end]))
            offset = end
        del self._received[:offset]
        return bodies

    def has_frame(self) -> bool:
        """`frame` would return without waiting."""
        size = int.from_bytes(self._received[: wire.FRAME_HEADER], "big")
        return len(self._received) >= wire.FRAME_HEADER + size and len(self._received) >= wire.FRAME_HEADER

    def pull(self) -> None:
        """Take what has arrived, waiting for something; ClosedError at the end of the stream."""
        self._more(0)

    def rest(self) -> bytes:
        """All until the server ends the stream in order; ConnectionResetError when it resets instead."""
        while self._recv():
            pass
        return self._take(len(self._received))

    def rest_until_closed(self) -> bytes:
        """All until the connection is over, by end of stream or by reset.

        A server that closes while bytes of this client are still unread resets the connection (RFC 1122, 4.2.2.13), and
        which it is depends on how much the server had read. What it sent before is received all the same.
        """
        with suppress(ConnectionResetError):  # the other way in which a connection ends
            while self._recv():
                pass
        return self._take(len(self._received))

    def half_close(self) -> None:
        """This side has nothing more to send. A connection that is over already has nothing to close."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError as error:
            if error.errno != errno.ENOTCONN:
                raise

    def reset(self) -> None:
        """Close with a RST (socket(7), SO_LINGER with a time of 0)."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self) -> None:
        """Close in order."""
        self.socket.close()

    def _more(self, expected: int) -> None:
        if not self._recv():
            raise ClosedError(f"closed with {bytes(self._received[:80])!r} of {expected or 'more'} bytes")

    def _recv(self) -> int:
        data = self.socket.recv(1 << 20)
        self._received += data
        self.taken += len(data)
        return len(data)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken


class Received:
    """Bytes that came before, read like those of a Client."""

    def __init__(self, stream: bytes) -> None:
        self.left = stream

    def receive(self, size: int) -> bytes:
        """Exactly that many bytes; ClosedError when there are fewer."""
        if len(self.left) < size:
            raise ClosedError(f"the stream ended with {self.left[:80]!r} of {size} bytes")
        taken, self.left = self.left[:size], self.left[size:]
        return taken

    def receive_until(self, mark: bytes) -> bytes:
        """All up to and with `mark`; ClosedError when it does not come."""
        if mark not in self.left:
            raise ClosedError(f"the stream ended with {self.left[:80]!r} and no {mark!r}")
        return self.receive(self.left.index(mark) + len(mark))


def pull_any(*clients: Client) -> None:
    """Wait until one of them has something to read, and take it; AssertionError when none ever has."""
    readable, _, _ = select.select([client.socket for client in clients], [], [], PATIENCE_S)
    assert readable, f"waited {PATIENCE_S:g} s and nothing came"
    for client in clients:
        if client.socket in readable:
            client.pull()
