"""One session per workload, by protocol/WIRE.md."""

from __future__ import annotations

from struct import Struct

from netdyno_server import protobuf
from netdyno_server.http import HttpSession
from netdyno_server.options import Options
from netdyno_server.session import MessageSession, Session, Totals

_LENGTH = Struct(">I")
_HEADER = _LENGTH.size
_MAX_WORKLOAD_US = 10_000_000


class EchoSession(Session):
    """Bytes as they come. What one read brought counts as one request: an echo server sees no messages."""

    def _on_bytes(self, data: bytes) -> None:
        self._totals.requests += 1
        self._effects.append(("write", data))


class LinesSession(Session):
    """Source D's `process`: what was read is split by line before it is echoed."""

    def __init__(self, options: Options, totals: Totals) -> None:
        super().__init__(options, totals)
        self._pending = bytearray()

    def _on_bytes(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            end = data.find(b"\n", at) + 1
            piece = data[at : end or len(data)]
            at += len(piece)
            if len(self._pending) + len(piece) > self._options.max_frame:
                return self._protocol_error()
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
    """Length-prefixed messages. Subclasses serve one, which is `data[at:end]` with its header."""

    def _consume(self, data: bytes) -> int:
        at, size = 0, len(data)
        while not self._closed:
            self._wanted = _HEADER
            if size - at < _HEADER:
                break
            (length,) = _LENGTH.unpack_from(data, at)
            if not 0 < length <= self._options.max_frame:
                self._protocol_error()
                break
            self._wanted = _HEADER + length
            if size - at < self._wanted:
                break
            self._on_frame(data, at, at + self._wanted)
            at += self._wanted
        return at

    def _on_frame(self, data: bytes, at: int, end: int) -> None:
        raise NotImplementedError


class RpcSession(FramedSession):
    """Source A's request and response: Protobuf, parsed and serialised, with an optional service time."""

    def _on_frame(self, data: bytes, at: int, end: int) -> None:
        request = protobuf.parse_request(data, at + _HEADER, end)
        if request is None or not 0 <= request[1] <= _MAX_WORKLOAD_US:
            return self._protocol_error()
        job_id, workload_us, stamp = request
        self._totals.requests += 1
        self._serve(self._options.service_time + workload_us * 1000)
        body = protobuf.response(job_id, stamp)
        self._reply(_LENGTH.pack(len(body)), body)
        return None


class ChatSession(FramedSession):
    """Each message becomes one frame that all recipients share."""

    def _on_frame(self, data: bytes, at: int, end: int) -> None:
        self._totals.requests += 1
        if self._split:
            self._effects.append(("broadcast", (data[at : at + _HEADER], data[at + _HEADER : end])))
        else:
            self._effects.append(("broadcast", (data[at:end],)))


_SESSIONS: dict[str, type[Session]] = {
    "echo": EchoSession,
    "lines": LinesSession,
    "rpc": RpcSession,
    "chat": ChatSession,
    "http": HttpSession,
}


def make_session(options: Options, totals: Totals) -> Session:
    """The session of the workload that the options name."""
    return _SESSIONS[options.workload](options, totals)
