"""Merge the events of the parts of one load into those of one program."""

from __future__ import annotations

import msgspec


class PartEvent(msgspec.Struct):
    """A line of --events-fd (protocol/load-result.md)."""

    event: str
    established: int = 0
    completed: int = 0
    messages: int = 0
    seconds: float = 0.0


WINDOW_END = b'{"event":"window_end"}\n'


class Parts:
    """The events of a load's parts, merged into those of one program. Pure."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._heard: dict[str, int] = {}
        self._established = 0
        self._completed = [0] * count
        self._sent: dict[int, int] = {}
        self._ended: set[int] = set()

    @property
    def all_stand(self) -> bool:
        """Whether every part has its connections."""
        return self._heard.get("connected") == self._count

    @property
    def all_sent(self) -> int | None:
        """Chat: the messages of all parts, once each has reported what it sent, or has ended."""
        known = self._sent.keys() | self._ended
        return sum(self._sent.values()) if self._sent and len(known) == self._count else None

    def end(self, part: int) -> None:
        """Note that a part sends no more events."""
        self._ended.add(part)

    def hear(self, part: int, line: bytes) -> bytes:
        """Take a line of a part; return the lines to pass on now, empty where there are none. The window begins with
        the last part's and ends with the first's, but not before it has begun: a part that was paused may begin after
        another's end. Then both are passed on at once, and the trial's audits find an empty window."""
        if self._count == 1:
            return line
        event = msgspec.json.decode(line, type=PartEvent)
        if event.event == "sent":
            self._sent[part] = event.messages
            return b""
        self._heard[event.event] = count = self._heard.get(event.event, 0) + 1
        if event.event == "progress":
            self._completed[part] = event.completed
            if part > 0:
                return b""
            event.completed = sum(self._completed)
        elif event.event == "connected":
            self._established += event.established
            event.established = self._established
        elif event.event == "window_end":
            has_begun = self._heard.get("window_start") == self._count
            return WINDOW_END if count == 1 and has_begun else b""
        if event.event != "progress" and count != self._count:
            return b""
        is_over = event.event == "window_start" and self._heard.get("window_end", 0) > 0
        return msgspec.json.encode(event) + b"\n" + (WINDOW_END if is_over else b"")
