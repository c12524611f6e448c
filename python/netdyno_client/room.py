"""A chat among all instances, as the journal sees it (protocol/client.md): the members of the room, the messages that
each has heard, and the messages that are thereby complete. For the thread of the instances only."""

from __future__ import annotations

import time

from netdyno.protocol import wire
from netdyno_client.journal import Caller, FailedError, Failure, HeardMessages, Journal

PROBE = 0xFFFF_FFFF
"""The client of the messages by which every member learns that the server knows it."""
FIRST_EARLY = 0x8000_0000
"""The client of the first member's messages while others still connect, which are in no figure but the bytes."""


class Room:
    """All members. A message of one is heard by all others; it is complete when its timer has heard it: the next one
    in the room, as with the generator."""

    def __init__(self, journal: Journal, connections: int, early_depth: int = 0) -> None:
        """`early_depth`: the messages in flight of each member while others still connect."""
        self.speakers = [Speaker(self, journal, identity) for identity in range(connections)]
        self.journal = journal
        self.is_open = False
        self._unknown: set[int] = set()  # in the room, and nothing heard of it yet
        self._timers = [-1] * connections
        self._early_depth = early_depth
        self._probes = 0

    @property
    def recipients(self) -> int:
        """The recipients of each message: every member except its sender."""
        return max(self.journal.first_attempts[None] - 1, 0)

    @property
    def is_known(self) -> bool:
        """Whether every member of the open room has heard something, so the server has all of them."""
        return self.is_open and not self._unknown

    @property
    def has_heard_all(self) -> bool:
        return self.journal.messages.lost == 0

    def inside(self) -> list[int]:
        return [speaker.identity for speaker in self.speakers if speaker.inside]

    def open(self) -> None:
        """Open the room: all members are there. A single one has nothing to hear."""
        inside = self.inside()
        self.is_open = True
        self._unknown = set(inside) if len(inside) > 1 else set()
        self._choose_timers()

    def probe(self) -> bytes:
        """Return a message without a speaker, from one of the first two members: so all hear it, and the first of the
        second."""
        self._probes += 1
        frame = wire.frame(wire.stamp(PROBE, self._probes - 1, self.journal.size))
        self.journal.messages.bytes_sent += len(frame)
        return frame

    def speak_early(self, identity: int) -> bytes:
        """Return the messages of a member that may now be in flight, while others still connect; empty afterwards."""
        speaker = self.speakers[identity]
        frames = []
        while not self.is_open and speaker.early_sent - speaker.early_heard < self._early_depth:
            frames.append(wire.frame(wire.stamp(FIRST_EARLY + identity, speaker.early_sent, self.journal.size)))
            speaker.early_sent += 1
        sent = b"".join(frames)
        self.journal.messages.bytes_sent += len(sent)
        return sent

    def hear_early(self, identity: int, sequence: int) -> int | None:
        """Note such a message; returns its speaker where that may send the next one. Raises MalformedError where no
        member has sent it."""
        if identity >= len(self.speakers) or sequence >= self.speakers[identity].early_sent:
            raise wire.MalformedError("a message that no client has sent")
        speaker = self.speakers[identity]
        is_first = sequence >= speaker.early_heard
        speaker.early_heard = max(speaker.early_heard, sequence + 1)
        return identity if is_first and not self.is_open else None

    def known(self, identity: int) -> None:
        self._unknown.discard(identity)

    def left(self, identity: int) -> None:
        """Remove a member that is gone. It must not come back: the recipients of a message would no longer be known."""
        self.speakers[identity].inside = False
        self._unknown.discard(identity)
        self._choose_timers()

    def is_timer(self, identity: int, speaker: int) -> bool:
        return self._timers[speaker] == identity

    def _choose_timers(self) -> None:
        inside = self.inside()
        for identity, following in zip(inside, inside[1:] + inside[:1], strict=True):
            self._timers[identity] = following


class Speaker(Caller):
    """A member: its own messages, and those that it hears of all others."""

    def __init__(self, room: Room, journal: Journal, identity: int) -> None:
        super().__init__(journal, identity)
        self.identity = identity
        self.inside = False
        self.early_sent = self.early_heard = 0
        self._room = room
        self._others: dict[int, HeardMessages] = {}

    def connected(self) -> None:
        """Record that the connection is established."""
        super().connected()
        self.inside = True

    def next(self) -> tuple[bytes, bytes]:
        """Return the next message, length and body. It counts as sent from here on."""
        body = wire.stamp(self.identity, self._next, self._journal.size)
        messages, recipients = self._journal.messages, self._room.recipients
        messages.expected += recipients
        messages.bytes_expected += recipients * (wire.FRAME_HEADER + len(body))
        return self._send(body)

    def hear(self, body: bytes) -> int | None:
        """Verify a message; returns the speaker that may go on, because this was heard. Raises FailedError where no
        member of the room can have sent it."""
        now = time.monotonic_ns()
        messages = self._journal.messages
        messages.bytes_received += len(body)
        try:
            identity, sequence = wire.read_stamp(body)
            if identity == PROBE:
                messages.bytes_expected += wire.FRAME_HEADER + len(body)
                self._room.known(self.identity)
                return None
            if identity >= FIRST_EARLY:
                next_speaker = self._room.hear_early(identity - FIRST_EARLY, sequence)
                messages.bytes_expected += wire.FRAME_HEADER + len(body)
                return next_speaker
            speaker = self._speaker(identity, sequence)
        except wire.MalformedError as error:
            messages.corrupt += 1
            raise FailedError(Failure.PROTOCOL) from error
        if not self._take(self._others.setdefault(identity, HeardMessages()), sequence, now):
            return None
        if not (sequence in speaker._in_flight and self._room.is_timer(self.identity, identity)):
            return None
        speaker._record_answer(sequence, now)
        return identity

    def _speaker(self, identity: int, sequence: int) -> Speaker:
        speakers = self._room.speakers
        if identity >= len(speakers) or identity == self.identity or sequence >= speakers[identity]._next:
            raise wire.MalformedError("a message that no client has sent, or that came back to its sender")
        return speakers[identity]
