"""The work of one connection without any I/O: bytes in, effects out; what lib/session/session.hpp is to C++."""

from __future__ import annotations

import time
from typing import Literal, TypeAlias

from netdyno_server.options import Options

Effect: TypeAlias = (
    tuple[Literal["write"], bytes]
    | tuple[Literal["broadcast"], tuple[bytes, ...]]
    | tuple[Literal["wait", "burn"], int]
    | tuple[Literal["close"], None]
)
"""What a session wants done:

write      bytes that leave in one write
broadcast  a frame for the audience, a part per write; all recipients share the objects
wait       ns to pass without holding up other connections
burn       ns to keep the core busy (`burn_cpu`)
close      once the writes before it are sent
"""

CLOSE: Effect = ("close", None)

FRAME_OVERHEAD = 128
"""What a frame that waits for a reader counts beside its bytes, in every server (protocol/WIRE.md): a frame of one byte
takes far more than that to keep."""


class Totals:
    """What every server counts."""

    def __init__(self) -> None:
        self.requests = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.connections = 0
        self.protocol_errors = 0
        self.slow_closed = 0
        self.memory_closed = 0


class Session:
    """Subclasses say what bytes mean (`_on_bytes`) and what is still owed when the peer ends its stream (`_on_end`).
    They add to `_effects`, in order."""

    def __init__(self, options: Options, totals: Totals) -> None:
        self._options = options
        self._totals = totals
        self._split = options.split
        self._closed = False
        self._effects: list[Effect] = []
        self._parts: list[bytes] = []  # of a write to come, in mode gathered

    def receive(self, data: bytes) -> list[Effect]:
        """Takes the next bytes of the stream, in any slicing; what is to be done. After a close they are ignored.
        Without memory for them, nothing but a close is to be done."""
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

    def end(self) -> list[Effect]:
        """The peer ended its stream: what is still owed, and a close."""
        if self._closed:
            return []
        self._on_end()
        if not self._closed:
            self._close()
        return self._taken()

    def _on_bytes(self, data: bytes) -> None:
        raise NotImplementedError

    def _on_end(self) -> None:
        """Nothing is owed."""

    def _reply(self, header: bytes, body: bytes) -> None:
        """A reply of two parts, of which the first may be empty. Gathered: joins the write before it."""
        if not self._split:
            self._parts += (header, body)
            return
        if header:
            self._effects.append(("write", header))
        if body:
            self._effects.append(("write", body))

    def _serve(self, duration: int) -> None:
        """Service time; nothing is added for a duration of 0."""
        if duration:
            self._end_write()
            kind: Literal["wait", "burn"] = "wait" if self._options.service_kind == "wait" else "burn"
            self._effects.append((kind, duration))

    def _close(self) -> None:
        self._closed = True
        self._end_write()
        self._effects.append(CLOSE)

    def _protocol_error(self) -> None:
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
    """A session whose messages may be cut anywhere. Subclasses take complete messages off the front of what they are
    given (`_consume` returns how many bytes those were); the rest is kept until more comes."""

    def __init__(self, options: Options, totals: Totals) -> None:
        super().__init__(options, totals)
        self._pending = bytearray()
        self._wanted = 0
        """Bytes without which trying again is of no use."""

    def _on_bytes(self, data: bytes) -> None:
        if self._pending:
            self._pending += data
            if len(self._pending) < self._wanted:
                return
            data = bytes(self._pending)
            self._pending.clear()
        consumed = self._consume(data)
        if consumed < len(data) and not self._closed:
            self._pending += memoryview(data)[consumed:]

    def _consume(self, data: bytes) -> int:
        raise NotImplementedError

    def _on_end(self) -> None:
        """A stream must not end inside a message."""
        if self._pending:
            self._protocol_error()


def burn_cpu(duration: int, longest: int) -> int:
    """Keeps this thread's core busy for so much of its own CPU time, so being preempted does not count as work, but no
    longer than `longest` by the clock. What is left to burn. It looks at the clock that user mode can read, and asks
    the other only whether it was preempted meanwhile."""
    end = time.thread_time_ns() + duration
    now = time.perf_counter_ns()
    limit, left = now + longest, duration
    while left > 0 and now < limit:
        until = min(now + left, limit)
        while now < until:
            now = time.perf_counter_ns()
        left = end - time.thread_time_ns()
    return max(0, left)
