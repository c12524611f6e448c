"""What a server does with the bytes of one connection, by protocol/WIRE.md: the reference that golden.json comes from.

It works on the whole stream at once, unlike a server, which is why it can be short: slicing must not matter, and the
tests that compare a server with it slice the stream in many ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.contract.golden import wire

# {"write": hex}, {"broadcast": [hex, ...]} (one string per write), {"wait": ns}, {"burn": ns} or {"close": true}
GoldenEffect: TypeAlias = dict[str, object]

MAX_WORKLOAD_US = 10_000_000
MAX_HEAD = 16 << 10
DURATIONS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}


@dataclass
class SessionOutcome:
    """The effects in order, and what was counted. `requests` is None where it depends on the slicing."""

    effects: list[GoldenEffect] = field(default_factory=list)
    protocol_errors: int = 0
    requests: int | None = 0
    split: bool = False

    def reply(self, *parts: bytes) -> None:
        """One write per part that is not empty; joined with each other and the write before in mode gathered."""
        for part in filter(None, parts):
            last = self.effects[-1] if self.effects else {}
            if not self.split and "write" in last:
                last["write"] = str(last["write"]) + part.hex()
            else:
                self.effects.append({"write": part.hex()})

    def count_request(self) -> None:
        """One more request that was understood."""
        self.requests = (self.requests or 0) + 1

    def spend(self, options: SessionOptions, more_ns: int = 0) -> None:
        """The service time of a request: the server's own, and what the request asks for."""
        if duration := options.service_ns + more_ns:
            self.effects.append({options.service_effect: duration})

    def close(self) -> None:
        """The connection ends here; what the client sent after this is not looked at."""
        self.effects.append({"close": True})

    def protocol_error(self) -> None:
        """Count and close."""
        self.protocol_errors += 1
        self.close()


@dataclass(frozen=True)
class SessionOptions:
    """The server options that a session depends on, from their command-line text."""

    max_frame: int
    split: bool
    service_ns: int
    service_effect: str

    @staticmethod
    def parse(text: Mapping[str, str]) -> SessionOptions:
        """From {"max-frame": "16", ...}; raises ValueError or KeyError on what it does not know."""
        unknown = set(text) - {"max-frame", "write-mode", "service-time", "service-kind", "audience"}
        if unknown:
            raise KeyError(f"options that change nothing for a session: {unknown}")
        service = re.fullmatch(r"(\d+)(ns|us|ms|s)", text.get("service-time", "0ns"))
        if service is None:
            raise ValueError(text["service-time"])
        return SessionOptions(
            max_frame=int(text.get("max-frame", 1 << 20)),
            split=text.get("write-mode") == "split",
            service_ns=int(service[1]) * DURATIONS_NS[service[2]],
            service_effect={"wait": "wait", "cpu": "burn"}[text.get("service-kind", "wait")],
        )


def serve(workload: str, options: SessionOptions, stream: bytes, ends: bool) -> SessionOutcome:
    """What becomes of a connection on which `stream` arrives and, where `ends`, the client then shuts its side down."""
    outcome = SessionOutcome(split=options.split)
    served = SESSIONS[workload](options, stream, outcome)
    closed = {"close": True} in outcome.effects
    if ends and not closed:
        leftover = stream[served:]
        if leftover and workload == "lines":
            outcome.count_request()
            outcome.reply(leftover)
        if leftover and workload in ("rpc", "chat", "http"):
            outcome.protocol_errors += 1
        outcome.close()
    return outcome


def _echo(_: SessionOptions, stream: bytes, outcome: SessionOutcome) -> int:
    outcome.requests = None
    outcome.reply(stream)
    return len(stream)


def _lines(options: SessionOptions, stream: bytes, outcome: SessionOutcome) -> int:
    served = 0
    for line in re.findall(rb"[^\n]*\n|[^\n]+", stream):
        if len(line) > options.max_frame:
            outcome.protocol_error()
            break
        if not line.endswith(b"\n"):
            break
        outcome.count_request()
        outcome.reply(line)
        served += len(line)
    return served


def _framed(
    on_body: Callable[[SessionOptions, bytes, SessionOutcome], bool],
) -> Callable[[SessionOptions, bytes, SessionOutcome], int]:
    def session(options: SessionOptions, stream: bytes, outcome: SessionOutcome) -> int:
        served = 0
        while len(stream) - served >= wire.FRAME_HEADER:
            body_at = served + wire.FRAME_HEADER
            size = int.from_bytes(stream[served:body_at], "big")
            if not 0 < size <= options.max_frame:
                outcome.protocol_error()
                break
            if len(stream) < body_at + size:
                break
            served = body_at + size
            if not on_body(options, stream[body_at:served], outcome):
                break
        return served

    return session


def _rpc_body(options: SessionOptions, body: bytes, outcome: SessionOutcome) -> bool:
    try:
        request = wire.parse_request(body)
    except wire.MalformedError:
        outcome.protocol_error()
        return False
    if not 0 <= request.workload <= MAX_WORKLOAD_US:
        outcome.protocol_error()
        return False
    outcome.count_request()
    outcome.spend(options, request.workload * 1000)
    reply = wire.response(request.job_id, request.stamp)
    outcome.reply(wire.header(len(reply)), reply)
    return True


def _chat_body(options: SessionOptions, body: bytes, outcome: SessionOutcome) -> bool:
    outcome.count_request()
    parts = [wire.header(len(body)), body] if options.split else [wire.frame(body)]
    outcome.effects.append({"broadcast": [part.hex() for part in parts]})
    return True


TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
REQUEST_LINE = re.compile(rb"(" + TOKEN + rb") ([\x21-\x7e]+) (HTTP/1\.[01])")
HEADER_LINE = re.compile(rb"(" + TOKEN + rb"):[ \t]*([^\0\r\n]*?)[ \t]*")
OK, BAD_REQUEST, NOT_IMPLEMENTED = b"200 OK", b"400 Bad Request", b"501 Not Implemented"


def _http(options: SessionOptions, stream: bytes, outcome: SessionOutcome) -> int:
    served = 0
    limit = min(MAX_HEAD, options.max_frame)
    while True:
        while stream.startswith(b"\r\n", served):
            served += 2
        end = stream.find(b"\r\n\r\n", served)
        # A head whose end is not there yet may still be followed by up to three bytes of that end.
        if (end - served if end >= 0 else len(stream) - served - 3) > limit:
            _refuse(BAD_REQUEST, outcome)
            return served
        if end < 0:
            return served
        status, target, connection = _judge(stream[served:end])
        if status != OK:
            _refuse(status, outcome)
            return served
        outcome.count_request()
        outcome.spend(options)
        _respond(OK, target, connection, outcome, is_head=stream.startswith(b"HEAD ", served))
        served = end + 4
        if connection == b"close":
            outcome.close()
            return served


def _judge(head: bytes) -> tuple[bytes, bytes, bytes]:
    """(status, target, what the header Connection says) of a request's head without its last CRLF CRLF."""
    first, *lines = head.split(b"\r\n")
    request = REQUEST_LINE.fullmatch(first)
    headers = [HEADER_LINE.fullmatch(line) for line in lines]
    if request is None or None in headers:
        return BAD_REQUEST, b"", b""
    method, target, version = request.groups()
    pairs = [(match[1].lower(), match[2]) for match in headers if match is not None]
    hosts = sum(name == b"host" for name, _ in pairs)
    if hosts > 1 or (hosts == 0 and version == b"HTTP/1.1"):
        return BAD_REQUEST, b"", b""
    if method not in (b"GET", b"HEAD"):
        return NOT_IMPLEMENTED, b"", b""
    if any(name == b"transfer-encoding" or (name == b"content-length" and value != b"0") for name, value in pairs):
        return BAD_REQUEST, b"", b""
    tokens = [token.strip().lower() for name, value in pairs if name == b"connection" for token in value.split(b",")]
    if b"close" in tokens:
        return OK, target, b"close"
    if version == b"HTTP/1.1":
        return OK, target, b""
    return OK, target, b"keep-alive" if b"keep-alive" in tokens else b"close"


def _refuse(status: bytes, outcome: SessionOutcome) -> None:
    _respond(status, b"", b"close", outcome, is_head=False)
    outcome.protocol_error()


def _respond(status: bytes, body: bytes, connection: bytes, outcome: SessionOutcome, *, is_head: bool) -> None:
    """Without the line Date, which differs with each second."""
    lines = [
        b"HTTP/1.1 " + status,
        b"Content-Type: text/plain",
        b"Content-Length: %d" % len(body),
    ]
    if connection:
        lines.append(b"Connection: " + connection)
    outcome.reply(b"\r\n".join(lines) + b"\r\n\r\n", b"" if is_head else body)


SESSIONS: dict[str, Callable[[SessionOptions, bytes, SessionOutcome], int]] = {
    "echo": _echo,
    "lines": _lines,
    "rpc": _framed(_rpc_body),
    "chat": _framed(_chat_body),
    "http": _http,
}
