"""HTTP/1.1 GET with keep-alive and pipelining (RFC 9112); the reply's body is the request target. By hand, because the
contract is about bytes: a library would answer malformed requests its own way."""

from __future__ import annotations

import re

from netdyno_server.options import Options
from netdyno_server.session import MessageSession, Totals

_MAX_HEAD = 16 << 10
_END_OF_HEAD = b"\r\n\r\n"
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST_LINE = re.compile(_TOKEN.join((b"(", rb") ([\x21-\x7e]+) HTTP/1\.([01])")))
_HEADER = re.compile(b"(" + _TOKEN + rb"):[ \t]*(.*?)[ \t]*", re.DOTALL)
_REASONS = {
    200: b"OK",
    400: b"Bad Request",
    405: b"Method Not Allowed",
    413: b"Content Too Large",
    431: b"Request Header Fields Too Large",
}
_HEAD = b"HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n%s\r\n"


class HttpSession(MessageSession):
    """One connection's requests, one after the other."""

    def __init__(self, options: Options, totals: Totals) -> None:
        super().__init__(options, totals)
        self._max_head = min(_MAX_HEAD, options.max_frame)

    def _consume(self, data: bytes) -> int:
        at = 0
        while not self._closed:
            end = data.find(_END_OF_HEAD, at)
            # The last bytes of an incomplete head may be the beginning of its end, which does not count.
            length = end - at if end >= 0 else len(data) - at - len(_END_OF_HEAD) + 1
            if length > self._max_head:
                self._refuse(431)
            elif end < 0:
                break
            else:
                self._on_head(data[at:end])
            at = end + len(_END_OF_HEAD)
        return at

    def _on_head(self, head: bytes) -> None:
        status, target, keep_alive = parse_head(head)
        if status != 200:
            return self._refuse(status)
        self._totals.requests += 1
        self._serve(self._options.service_time)
        self._respond(200, target, keep_alive)
        if not keep_alive:
            self._close()
        return None

    def _refuse(self, status: int) -> None:
        self._respond(status, _REASONS[status], False)
        self._protocol_error()

    def _respond(self, status: int, body: bytes, keep_alive: bool) -> None:
        close = b"" if keep_alive else b"Connection: close\r\n"
        self._reply(_HEAD % (status, _REASONS[status], len(body), close), body)


def parse_head(head: bytes) -> tuple[int, bytes, bool]:
    """(status, target, keep-alive) of a request's head without the CRLF CRLF that ends it; status 200 when it is
    good."""
    first, *lines = head.split(b"\r\n")
    request = _REQUEST_LINE.fullmatch(first)
    if request is None:
        return 400, b"", False
    method, target, minor = request.groups()
    status, keep_alive = 200, minor == b"1"
    for line in lines:
        header = _HEADER.fullmatch(line)
        if header is None:
            return 400, b"", False
        name, value = header[1].lower(), header[2]
        if name == b"connection":
            keep_alive = keep_alive and b"close" not in (token.strip(b" \t").lower() for token in value.split(b","))
        elif name == b"transfer-encoding" or (name == b"content-length" and value != b"0"):
            status = 413
    return (status if method == b"GET" else 405), target, keep_alive
