"""What the parts of one load announce, as one program would."""

from __future__ import annotations

import msgspec


class Event(msgspec.Struct):
    """A line of --events-fd (protocol/load-result.md)."""

    event: str
    established: int = 0
    completed: int = 0
    messages: int = 0
    seconds: float = 0.0


WINDOW_END = b'{"event":"window_end"}\n'


class Parts:
    """What the parts of a load say becomes what one would say. Pure."""

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
    def _begun(self) -> bool:
        return self._heard.get("window_start") == self._count

    @property
    def all_sent(self) -> int | None:
        """Chat: messages of all parts, once each has said what it sent, or has ended."""
        known = self._sent.keys() | self._ended
        return sum(self._sent.values()) if self._sent and len(known) == self._count else None

    def end(self, part: int) -> None:
        """It says nothing more."""
        self._ended.add(part)

    def hear(self, part: int, line: bytes) -> bytes:
        """What there is to be told now, in lines; empty where that is nothing. The window begins with the last part's
        and ends with the first's, but not before it has begun: a part that stood still may begin when another's is
        over. Then both are told at once, and the trial's audits see that nothing lies between."""
        if self._count == 1:
            return line
        event = msgspec.json.decode(line, type=Event)
        if event.event == "sent":
            self._sent[part] = event.messages
            return b""
        self._heard[event.event] = heard = self._heard.get(event.event, 0) + 1
        if event.event == "progress":
            self._completed[part] = event.completed
            if part > 0:
                return b""
            event.completed = sum(self._completed)
        elif event.event == "connected":
            self._established += event.established
            event.established = self._established
        elif event.event == "window_end":
            return WINDOW_END if heard == 1 and self._begun else b""
        if event.event != "progress" and heard != self._count:
            return b""
        is_over = event.event == "window_start" and self._heard.get("window_end", 0) > 0
        return msgspec.json.encode(event) + b"\n" + (WINDOW_END if is_over else b"")
