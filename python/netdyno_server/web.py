"""The workload web: what a framework can do in twenty lines (protocol/WIRE.md, Web)."""

from __future__ import annotations

import re

from netdyno_server.http import HttpSession

_POSTED_SIZE = re.compile(rb"POST .*\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*(?:\r\n|\Z)", re.DOTALL | re.IGNORECASE)
_JSON, _TEXT = b"application/json", b"text/plain"
_ITEMS = b'[{"id":1,"name":"one"},{"id":2,"name":"two"},{"id":3,"name":"three"}]'
_MOST_OF_A_QUERY = 10_000_000  # microseconds, or bytes


class WebSession(HttpSession):
    """One connection's requests, each of which says what it costs."""

    _takes_posts = True

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
        wait_us, cpu_us, size = (work.get(name, 0) for name in (b"wait", b"cpu", b"size"))
        if size > self._options.max_frame:
            return None
        self._serve(1000 * wait_us, "wait")
        self._serve(1000 * cpu_us, "burn")
        return _TEXT, path[1:].ljust(size, b"x")


def parse_query(query: bytes) -> dict[bytes, int] | None:
    """Return the numbers of a query by name; None where a value is none."""
    numbers = {}
    for part in query.split(b"&") if query else ():
        name, _, value = part.partition(b"=")
        digits = value if name == b"size" else value.removesuffix(b"us")
        if not digits.isdigit() or (name != b"size" and digits == value) or len(digits) > 8:
            return None
        numbers[name] = int(digits)
        if numbers[name] > _MOST_OF_A_QUERY:
            return None
    return numbers
