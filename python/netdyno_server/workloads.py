"""One session per workload, by protocol/WIRE.md."""

from __future__ import annotations

from struct import Struct

from netdyno_server import protobuf
from netdyno_server.http import HttpSession
from netdyno_server.options import Options
from netdyno_server.session import MessageSession, Session, Totals
from netdyno_server.web import WebSession

_LENGTH = Struct(">I")
_HEADER = _LENGTH.size
_MAX_WORKLOAD_US = 10_000_000


class EchoSession(Session):
    """Echo bytes as they come. The bytes of one read count as one request: an echo server sees no messages."""

    def _on_bytes(self, data: bytes) -> None:
        self._totals.requests += 1
        self._effects.append(("write", data))


class LinesSession(Session):
    """Source D's `process`: the bytes of a read are split by line before they are echoed."""

    def __init__(self, options: Options, totals: Totals) -> None:
        super().__init__(options, totals)
        self._pending = bytearray()

    def _on_bytes(self, data: bytes) -> None:
        offset = 0
        while offset < len(data):
            end = data.find(b"\n", offset) + 1
            piece = data[offset : end or len(data)]
            offset += len(piece)
            if len(self._pending) + len(piece) > self._options.max_frame:
                return self._count_protocol_error()
            if not end:
                self._pending += piece
            else:
                self._echo(piece)
        return None

    def _echo(self, tail: bytes) -> None:
        self._totals.requests += 1
        if self._pending:
            tail = bytes(self._pending) + tail
            self._pending.clear()
        self._reply(b"", tail)

    def _on_end(self) -> None:
        if self._pending:
            self._echo(b"")


class FramedSession(MessageSession):
    """Length-prefixed messages. Subclasses serve one, `data[offset:end]` with its header."""

    def _consume(self, data: bytes) -> int:
        offset, size = 0, len(data)
        while not self._closed:
            self._bytes_needed = _HEADER
            if size - offset < _HEADER:
                break
            (length,) = _LENGTH.unpack_from(data, offset)
            if not 0 < length <= self._options.max_frame:
                self._count_protocol_error()
                break
            self._bytes_needed = _HEADER + length
            if size - offset < self._bytes_needed:
                break
            self._on_frame(data, offset, offset + self._bytes_needed)
            offset += self._bytes_needed
        return offset

    def _on_frame(self, data: bytes, offset: int, end: int) -> None:
        raise NotImplementedError


class RpcSession(FramedSession):
    """Source A's request and response: Protobuf, parsed and serialised, with an optional service time."""

    def _on_frame(self, data: bytes, offset: int, end: int) -> None:
        request = protobuf.parse_request(data, offset + _HEADER, end)
        if request is None or not 0 <= request[1] <= _MAX_WORKLOAD_US:
            return self._count_protocol_error()
        job_id, workload_us, stamp = request
        self._totals.requests += 1
        self._serve(self._options.service_time + workload_us * 1000)
        body = protobuf.encode_response(job_id, stamp)
        self._reply(_LENGTH.pack(len(body)), body)
        return None


class ChatSession(FramedSession):
    """A chat: each message becomes one frame that all recipients share."""

    def _on_frame(self, data: bytes, offset: int, end: int) -> None:
        self._totals.requests += 1
        if self._split:
            self._effects.append(("broadcast", (data[offset : offset + _HEADER], data[offset + _HEADER : end])))
        else:
            self._effects.append(("broadcast", (data[offset:end],)))


_SESSIONS: dict[str, type[Session]] = {
    "echo": EchoSession,
    "lines": LinesSession,
    "rpc": RpcSession,
    "chat": ChatSession,
    "http": HttpSession,
    "web": WebSession,
}


def make_session(options: Options, totals: Totals) -> Session:
    """The session of the workload that the options name, within TLS where they ask for it."""
    session = _SESSIONS[options.workload](options, totals)
    if options.tls is None:
        return session
    from netdyno_server.tls import TlsSession  # OpenSSL takes time and memory: only here

    return TlsSession(session, options.tls, options, totals)
