"""The workload web: what a framework can do in twenty lines (protocol/WIRE.md, Web)."""

from __future__ import annotations

import re
import time
from typing import NamedTuple

from netdyno_server.http import HttpSession
from netdyno_server.options import Options
from netdyno_server.session import FRAME_OVERHEAD, Totals

_POSTED_SIZE = re.compile(rb"POST .*\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*(?:\r\n|\Z)", re.DOTALL | re.IGNORECASE)
_JSON, _TEXT, _EVENTS = b"application/json", b"text/plain", b"text/event-stream"
_ITEMS = b'[{"id":1,"name":"one"},{"id":2,"name":"two"},{"id":3,"name":"three"}]'
_MOST_OF_A_QUERY = 10_000_000  # microseconds, or bytes
_MOST_CHUNKS = 10_000
_NUMBERS = (b"size", b"chunks")


class EventStream(NamedTuple):
    """A reply of so many chunks, one every so many nanoseconds, with so many bytes of data each."""

    chunks: int
    every_ns: int
    size: int


class WebSession(HttpSession):
    """One connection's requests, each of which says what it costs."""

    _takes_posts = True

    def __init__(self, options: Options, totals: Totals) -> None:
        super().__init__(options, totals)
        self._stream = EventStream(0, 0, 0)
        """The stream that was requested last."""

    def _find_body_size(self, head: bytes) -> int:
        """Return the bytes of the body behind a head."""
        posted = _POSTED_SIZE.match(head)
        return int(posted[1]) if posted else 0

    def _answer(self, target: bytes, posted: int | None) -> tuple[bytes, bytes] | None:
        path, _, query = target.partition(b"?")
        if path == b"/items":
            return _JSON, _ITEMS if posted is None else b"%d" % posted
        work = parse_query(query)
        if work is None or not path.startswith(b"/") or posted is not None:
            return None
        wait_us, cpu_us, size, chunks = (work.get(name, 0) for name in (b"wait", b"cpu", *_NUMBERS))
        longest = self._options.max_frame
        whole = chunks * (max(size, len(path)) + FRAME_OVERHEAD)
        if size > longest or chunks > _MOST_CHUNKS or whole > longest:
            return None
        self._serve(1000 * wait_us, "wait")
        self._serve(1000 * cpu_us, "burn")
        if chunks:
            self._stream = EventStream(chunks, 1000 * work.get(b"every", 0), size)
            return _EVENTS, path[1:]
        return _TEXT, path[1:].ljust(size, b"x")

    def _respond(
        self, status: bytes, body: bytes, connection: bytes, *, is_head: bool, content_type: bytes = _TEXT
    ) -> None:
        if content_type != _EVENTS:
            return super()._respond(status, body, connection, is_head=is_head, content_type=content_type)
        self._reply_head(status, content_type, b"Transfer-Encoding: chunked", connection)
        return None if is_head else self._reply_events(body)

    def _reply_events(self, stamp: bytes) -> None:
        """Reply with the requested stream: each chunk leaves when it is due, by a schedule that begins with the
        request."""
        chunks, every_ns, size = self._stream
        begin_ns = time.monotonic_ns()
        for number in range(chunks):
            if number and every_ns:
                self._wait_until(begin_ns + number * every_ns)
            data = (b"%s%04d" % (stamp, number)).ljust(size, b"x")
            self._reply(b"", b"%x\r\ndata: %s\n\n\r\n" % (len(data) + len(b"data: \n\n"), data))
        self._reply(b"", b"0\r\n\r\n")


def parse_query(query: bytes) -> dict[bytes, int] | None:
    """Return the numbers of a query by name; None where a value is none."""
    numbers = {}
    for part in query.split(b"&") if query else ():
        name, _, value = part.partition(b"=")
        digits = value if name in _NUMBERS else value.removesuffix(b"us")
        if not digits.isdigit() or (name not in _NUMBERS and digits == value) or len(digits) > 8:
            return None
        numbers[name] = int(digits)
        if numbers[name] > _MOST_OF_A_QUERY:
            return None
    return numbers
