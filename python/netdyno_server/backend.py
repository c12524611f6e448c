"""The questions to a backend (protocol/WIRE.md, Backend)."""

from __future__ import annotations

import socket
import sys
from struct import Struct
from typing import NoReturn

from netdyno_server.options import Options
from netdyno_server.protobuf import encode_varint

_LENGTH = Struct(">I")
_REQUEST, _WORKLOAD = b"\x0a", b"\x10"
"""The tags of the two fields (work.proto)."""


def connect_or_exit(options: Options) -> list[socket.socket]:
    """Return the connections of the pool. Ends the program where they cannot be made."""
    try:
        return [socket.create_connection(options.backend) for _ in range(options.pool)]
    except OSError as error:
        host, port = options.backend
        print(
            f"{options.program}: cannot connect to the backend tcp://{host}:{port}; start it first: {error.strerror}",
            file=sys.stderr,
        )
        sys.exit(1)


def exit_without_backend(options: Options) -> NoReturn:
    """End the program: without its backend it has no answers."""
    print(
        f"{options.program}: the backend closed a connection; it must run as long as this server",
        file=sys.stderr,
        flush=True,
    )
    sys.exit(1)


def encode_question(duration_ns: int) -> bytes:
    """Return the frame that asks for a reply after this time, in whole microseconds."""
    request = _WORKLOAD + encode_varint(-(-duration_ns // 1000))
    body = _REQUEST + encode_varint(len(request)) + request
    return _LENGTH.pack(len(body)) + body


def is_whole_answer(data: bytes) -> bool:
    """Whether a reply has come whole."""
    return len(data) >= _LENGTH.size and len(data) >= _LENGTH.size + _LENGTH.unpack_from(data)[0]
