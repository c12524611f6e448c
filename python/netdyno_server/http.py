"""HTTP/1.1 GET and HEAD with keep-alive and pipelining (RFC 9112); the reply's body is the request target. By hand, as
the contract is about bytes: a library would answer malformed requests its own way."""

from __future__ import annotations

import re
import time
from email.utils import formatdate
from functools import lru_cache

from netdyno_server.options import Options
from netdyno_server.session import MessageSession, Totals

_MAX_HEAD = 16 << 10
_END_OF_HEAD = b"\r\n\r\n"
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST_LINE = re.compile(_TOKEN.join((b"(", rb") ([\x21-\x7e]+) HTTP/1\.([01])")))
_HEADER = re.compile(b"(" + _TOKEN + rb"):[ \t]*([^\0\r\n]*?)[ \t]*")
_OK, _BAD_REQUEST, _NOT_IMPLEMENTED = b"200 OK", b"400 Bad Request", b"501 Not Implemented"
_HEAD = b"HTTP/1.1 %s\r\nDate: %s\r\nContent-Type: %s\r\n%s\r\n%s\r\n"
_TEXT = b"text/plain"


class HttpSession(MessageSession):
    """One connection's requests, one after the other."""

    _takes_posts = False

    def __init__(self, options: Options, totals: Totals) -> None:
        super().__init__(options, totals)
        self._max_head = min(_MAX_HEAD, options.max_frame)

    def _consume(self, data: bytes) -> int:
        offset = 0
        while not self._closed:
            while data.startswith(b"\r\n", offset):  # RFC 9112, 2.2
                offset += 2
            end = data.find(_END_OF_HEAD, offset)
            # The last bytes of an incomplete head may be the beginning of its end, which does not count.
            length = end - offset if end >= 0 else len(data) - offset - len(_END_OF_HEAD) + 1
            if length > self._max_head:
                self._refuse(_BAD_REQUEST)
            elif end < 0:
                break
            else:
                head = data[offset:end]
                body_size = self._find_body_size(head) if self._takes_posts else 0
                if body_size <= self._options.max_frame and len(data) < end + len(_END_OF_HEAD) + body_size:
                    break
                self._on_head(head, body_size)
                end += body_size
            offset = end + len(_END_OF_HEAD)
        return offset

    def _on_head(self, head: bytes, body_size: int) -> None:
        status, target, connection = parse_head(head, takes_posts=self._takes_posts)
        if status != _OK or body_size > self._options.max_frame:
            return self._refuse(_BAD_REQUEST if status == _OK else status)
        answer = self._answer(target, body_size if head.startswith(b"POST ") else None)
        if answer is None:
            return self._refuse(_BAD_REQUEST)
        self._totals.requests += 1
        content_type, body = answer
        self._respond(_OK, body, connection, is_head=head.startswith(b"HEAD "), content_type=content_type)
        if connection == b"close":
            self._close()
        return None

    def _find_body_size(self, head: bytes) -> int:
        """Return the bytes of the body behind a head."""
        raise NotImplementedError

    def _answer(self, target: bytes, posted: int | None) -> tuple[bytes, bytes] | None:
        """Add the work for a request, or for so many bytes that were posted. Return type and body of the reply; None
        where the request is refused."""
        self._serve(self._options.service_time)
        return _TEXT, target

    def _refuse(self, status: bytes) -> None:
        self._respond(status, b"", b"close", is_head=False)
        self._count_protocol_error()

    def _respond(
        self, status: bytes, body: bytes, connection: bytes, *, is_head: bool, content_type: bytes = _TEXT
    ) -> None:
        self._reply_head(status, content_type, b"Content-Length: %d" % len(body), connection)
        if not is_head:
            self._reply(b"", body)

    def _reply_head(self, status: bytes, content_type: bytes, framing: bytes, connection: bytes) -> None:
        """Reply with a head; `framing` is the header that says where the body ends."""
        connection_header = b"Connection: %s\r\n" % connection if connection else b""
        self._reply(_HEAD % (status, _format_date(int(time.time())), content_type, framing, connection_header), b"")


@lru_cache(maxsize=1)
def _format_date(second: int) -> bytes:
    """Format a Date header (RFC 9110, 5.6.7)."""
    return formatdate(second, usegmt=True).encode()


def parse_head(head: bytes, *, takes_posts: bool = False) -> tuple[bytes, bytes, bytes]:
    """Return (status, target, connection) of a request's head without the CRLF CRLF that ends it; 200 OK when it is
    good. The connection is the reply's header: close, keep-alive, or nothing where it stays by default."""
    request_line, *lines = head.split(b"\r\n")
    request = _REQUEST_LINE.fullmatch(request_line)
    if request is None:
        return _BAD_REQUEST, b"", b""
    method, target, minor = request.groups()
    posts = takes_posts and method == b"POST"
    hosts, has_body, tokens = 0, False, set[bytes]()
    for line in lines:
        header = _HEADER.fullmatch(line)
        if header is None:
            return _BAD_REQUEST, b"", b""
        name, value = header[1].lower(), header[2]
        if name == b"host":
            hosts += 1
        elif name == b"connection":
            tokens.update(token.strip(b" \t").lower() for token in value.split(b","))
        elif name == b"content-length" and posts:
            has_body = has_body or not value.isdigit()
        elif name == b"transfer-encoding" or (name == b"content-length" and value != b"0"):
            has_body = True
    if hosts > 1 or (hosts == 0 and minor == b"1"):
        return _BAD_REQUEST, b"", b""
    if method not in (b"GET", b"HEAD") and not posts:  # RFC 9110, 9.1: also with a body
        return _NOT_IMPLEMENTED, b"", b""
    return (_BAD_REQUEST if has_body else _OK), target, _choose_connection(tokens, stays=minor == b"1")


def _choose_connection(tokens: set[bytes], *, stays: bool) -> bytes:
    if b"close" in tokens:
        return b"close"
    if stays:
        return b""
    return b"keep-alive" if b"keep-alive" in tokens else b"close"
