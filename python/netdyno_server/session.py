"""The work of one connection without any I/O: bytes in, effects out; the counterpart of lib/session/session.hpp in
C++."""

from __future__ import annotations

import time
from typing import Literal, TypeAlias

from netdyno_server.options import Options

Effect: TypeAlias = (
    tuple[Literal["write"], bytes]
    | tuple[Literal["broadcast"], tuple[bytes, ...]]
    | tuple[Literal["wait", "until", "burn"], int]
    | tuple[Literal["close"], None]
)
"""The effects of a session:

write      bytes that leave in one write
broadcast  a frame for the audience, a part per write; all recipients share the objects
wait       ns to pass without holding up other connections
until      the same: ns of time.monotonic at which it is over
burn       ns to keep the core busy (`burn_cpu`)
close      once the writes before it are sent
"""

CLOSE: Effect = ("close", None)

FRAME_OVERHEAD = 128
"""The bytes that a frame waiting for a reader counts beside its own, in every server (protocol/WIRE.md): a frame of one
byte takes far more than that to keep."""


class Totals:
    """The counts of every server."""

    def __init__(self) -> None:
        self.requests = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.connections = 0
        self.protocol_errors = 0
        self.slow_closed = 0
        self.memory_closed = 0

    def add(self, part: Totals) -> None:
        """Add the counts of a part of the server."""
        for name, count in vars(part).items():
            setattr(self, name, getattr(self, name) + count)


class Session:
    """The base of all sessions. Subclasses interpret bytes (`_on_bytes`) and send pending replies when the peer ends
    its stream (`_on_end`). They add to `_effects`, in order."""

    def __init__(self, options: Options, totals: Totals) -> None:
        self._options = options
        self._totals = totals
        self._split = options.split
        self._closed = False
        self._effects: list[Effect] = []
        self._parts: list[bytes] = []  # of a write to come, in mode gathered

    def receive(self, data: bytes) -> list[Effect]:
        """Process the next bytes of the stream, in any slicing, and return the effects. After a close they are ignored.
        Without memory for them, the only effect is a close."""
        self._totals.bytes_in += len(data)
        if self._closed:
            return []
        try:
            self._on_bytes(data)
            return self._taken()
        except MemoryError:
            self._totals.memory_closed += 1
            self._closed = True
            return [CLOSE]

    def take(self, data: bytes) -> list[Effect]:
        """The same for bytes that did not come as they are: the session around this one counts those, and has the
        memory."""
        if self._closed:
            return []
        self._on_bytes(data)
        return self._taken()

    def end(self) -> list[Effect]:
        """The peer ended its stream: return the pending replies, and a close."""
        if self._closed:
            return []
        self._on_end()
        if not self._closed:
            self._close()
        return self._taken()

    def _on_bytes(self, data: bytes) -> None:
        raise NotImplementedError

    def _on_end(self) -> None:
        """Do nothing: no reply is pending."""

    def _reply(self, header: bytes, body: bytes) -> None:
        """Send a reply of two parts, of which the first may be empty. Gathered: joins the write before it."""
        if not self._split:
            self._parts += (header, body)
            return
        if header:
            self._effects.append(("write", header))
        if body:
            self._effects.append(("write", body))

    def _serve(self, duration: int, kind: Literal["wait", "burn"] | None = None) -> None:
        """Add the service time, by default of the kind that the options name; nothing for a duration of 0."""
        if duration:
            self._end_write()
            by_options: Literal["wait", "burn"] = "wait" if self._options.service_kind == "wait" else "burn"
            self._effects.append((kind or by_options, duration))

    def _wait_until(self, due_ns: int) -> None:
        self._end_write()
        self._effects.append(("until", due_ns))

    def _close(self) -> None:
        self._closed = True
        self._end_write()
        self._effects.append(CLOSE)

    def _count_protocol_error(self) -> None:
        self._totals.protocol_errors += 1
        self._close()

    def _end_write(self) -> None:
        if self._parts:
            self._effects.append(("write", b"".join(self._parts)))
            self._parts = []

    def _taken(self) -> list[Effect]:
        self._end_write()
        taken, self._effects = self._effects, []
        return taken


class MessageSession(Session):
    """A session whose messages may be cut anywhere. Subclasses take complete messages off the front of the data
    (`_consume` returns the number of their bytes); the rest is kept until more comes."""

    def __init__(self, options: Options, totals: Totals) -> None:
        super().__init__(options, totals)
        self._pending = bytearray()
        self._bytes_needed = 0
        """The bytes needed before another attempt makes sense."""

    def _on_bytes(self, data: bytes) -> None:
        if self._pending:
            self._pending += data
            if len(self._pending) < self._bytes_needed:
                return
            data = bytes(self._pending)
            self._pending.clear()
        consumed = self._consume(data)
        if consumed < len(data) and not self._closed:
            self._pending += memoryview(data)[consumed:]

    def _consume(self, data: bytes) -> int:
        raise NotImplementedError

    def _on_end(self) -> None:
        """Count a protocol error for a stream that ends inside a message."""
        if self._pending:
            self._count_protocol_error()


def burn_cpu(duration: int, longest: int) -> int:
    """Keep this thread's core busy for this much of its own CPU time, so preemption does not count as work, but no
    longer than `longest` by the clock. Returns the ns left to burn. It polls the clock that user mode can read, and
    reads the thread's clock only to see whether it was preempted meanwhile."""
    end = time.thread_time_ns() + duration
    now = time.perf_counter_ns()
    limit, remaining_ns = now + longest, duration
    while remaining_ns > 0 and now < limit:
        deadline = min(now + remaining_ns, limit)
        while now < deadline:
            now = time.perf_counter_ns()
        remaining_ns = end - time.thread_time_ns()
    return max(0, remaining_ns)
