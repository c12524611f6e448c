"""The server's half of WebSocket (RFC 6455), as plain as it goes."""

from __future__ import annotations

import base64
import hashlib
import re
import socket
import struct
from collections.abc import Iterator

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def accept_of(key: bytes) -> bytes:
    return base64.b64encode(hashlib.sha1(key + _GUID).digest())


def read_head(connection: socket.socket) -> bytes:
    """The request of the handshake. Byte by byte, so that nothing is taken of what follows it."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        if not byte:
            raise ConnectionError
        head += byte
    return head


def agree(connection: socket.socket) -> bytes:
    """Shake hands; the request."""
    head = read_head(connection)
    key = re.search(rb"Sec-WebSocket-Key: (\S+)", head)
    assert key
    connection.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept_of(key[1]) + b"\r\n\r\n"
    )
    return head


def frame(payload: bytes, opcode: int = TEXT, last: bool = True) -> bytes:
    size = len(payload)
    length = bytes([size]) if size < 126 else b"\x7f" + size.to_bytes(8, "big")
    if 126 <= size <= 0xFFFF:
        length = b"\x7e" + size.to_bytes(2, "big")
    return bytes([opcode | (0x80 if last else 0)]) + length + payload


def frames(connection: socket.socket, masks: list[bytes] | None = None) -> Iterator[tuple[int, bytes]]:
    """What a client sends: opcode and payload. Each must be whole and masked; the masks go into a list."""
    with connection.makefile("rb") as stream:
        while len(head := stream.read(2)) == 2:
            assert head[0] & 0x80, "the last frame of its message"
            assert head[1] & 0x80, "masked"
            size = head[1] & 0x7F
            if size >= 126:
                (size,) = struct.unpack(">H" if size == 126 else ">Q", stream.read(2 if size == 126 else 8))
            mask = stream.read(4)
            if masks is not None:
                masks.append(mask)
            repeated = (mask * (size // 4 + 1))[:size]
            payload = stream.read(size)
            yield (
                head[0] & 0x0F,
                (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big"),
            )
