"""The outcome of the requests of all instances: numbered, stamped, verified and counted (protocol/client.md).

Everything here belongs to the thread that carries the requests out."""

from __future__ import annotations

import enum
import errno
import time
from collections import Counter
from dataclasses import dataclass

from netdyno.kit.statistics.histogram import Histogram
from netdyno.protocol import wire
from netdyno_client.plan import ClientPlan
from netdyno_client.recorder import NEVER, Recorder, Window

RESPONSE_OVERHEAD = 64
"""Room for the fields of a response beside the stamp; a longer body is no response to this client."""


class Failure(enum.StrEnum):
    """The stages in which an attempt of an instance can fail, in their order; the values are keys of the result."""

    RESOLVE_FAILED = "resolve_failed"
    CONNECT_REFUSED = "connect_refused"
    CONNECT_TIMED_OUT = "connect_timed_out"
    CONNECT_OTHER = "connect_other"
    RESPONSE_TIMEOUT = "response_timeout"
    CLOSED = "closed"
    RESET = "reset"
    PROTOCOL = "protocol"


def connect_failure(error: OSError) -> Failure:
    """Return the failure that a failed connect means."""
    if error.errno == errno.ECONNREFUSED:
        return Failure.CONNECT_REFUSED
    return Failure.CONNECT_TIMED_OUT if error.errno == errno.ETIMEDOUT else Failure.CONNECT_OTHER


class FailedError(Exception):
    """An attempt of an instance has ended; Caller.failed counts the failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


@dataclass
class MessageCounts:
    """Counts over the whole life, as in the result. `expected`: the messages that those sent should have brought
    back."""

    sent: int = 0
    expected: int = 0
    received: int = 0
    duplicated: int = 0
    reordered: int = 0
    corrupt: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    bytes_expected: int = 0

    @property
    def lost(self) -> int:
        return self.expected - (self.received - self.duplicated)


class Journal:
    """The figures, and the times shared by all instances."""

    def __init__(self, plan: ClientPlan) -> None:
        self.recorder = Recorder(is_part=plan.is_part)
        self.connect = Histogram()
        self.messages = MessageCounts()
        self.failures: Counter[Failure] = Counter()
        self.first_attempts: Counter[Failure | None] = Counter()  # None: established
        self.recovered = 0
        self.start = self.end = NEVER
        self.size = plan.size
        self.service_us = plan.service_us
        self._plan = plan

    def settled(self) -> bool:
        """Whether the first attempt of every instance has ended."""
        return self.first_attempts.total() == self._plan.connections

    def begin(self, moment: int | None = None) -> Window:
        """Start the load at a moment, or now: warm-up, then the window."""
        self.start = time.monotonic_ns() if moment is None else moment
        window_start = self.start + self._plan.warmup_ns
        self.end = window_start + self._plan.duration_ns
        self.recorder.set_window(Window(window_start, self.end))
        return self.recorder.window

    def begun(self) -> bool:
        return self.start != NEVER

    def stop(self) -> None:
        """Stop all sending: the window is over, or the program has to end."""
        if not self.begun():  # the series needs a window
            self.begin()
        self.end = min(self.end, time.monotonic_ns())

    def has_reached_end(self) -> bool:
        return self.end >= self.recorder.window.end

    def may_send(self) -> bool:
        """Whether the load has begun and is not over."""
        return self.start <= time.monotonic_ns() < self.end


class HeardMessages:
    """The messages of one sender that have come."""

    def __init__(self) -> None:
        self._expected = 0  # one past the highest
        self._skipped: set[int] = set()  # below it, and not yet there

    def take(self, sequence: int) -> str:
        """Record a message; returns whether it is `new`, `late` (after a later one) or there `again`."""
        if sequence >= self._expected:
            self._skipped.update(range(self._expected, sequence))
            self._expected = sequence + 1
            return "new"
        if sequence not in self._skipped:
            return "again"
        self._skipped.remove(sequence)
        return "late"


class Caller:
    """One instance as the journal sees it: its requests, and the verification of their answers."""

    def __init__(self, journal: Journal, identity: int) -> None:
        self._in_flight: dict[int, tuple[int, int]] = {}  # by sequence number: when it was intended and sent
        self._journal = journal
        self._identity = identity
        self._next = 0  # sequence number, over all connections of the instance
        self._heard = HeardMessages()
        self._connect_began = self._intended = 0
        self._first_attempt = True

    @property
    def waiting(self) -> bool:
        """Whether a request has no answer yet."""
        return bool(self._in_flight)

    def connecting(self) -> None:
        """Record that the name is resolved, and a connection is being made."""
        self._connect_began = time.monotonic_ns()

    def connected(self) -> None:
        """Record that the connection is established."""
        now = self._intended = time.monotonic_ns()
        if self._first_attempt:
            self._journal.connect.record(now - self._connect_began)
            self._settle(None)
        else:  # there is a second one only where the first has failed
            self._journal.recovered += 1

    def failed(self, failure: Failure) -> None:
        """Record that the attempt has failed and its connection is dropped; a request under way gets no answer."""
        now = time.monotonic_ns()
        self._journal.failures[failure] += 1
        if self._first_attempt:
            self._settle(failure)
        for _ in self._in_flight:
            self._journal.recorder.abandoned(now)
        self._in_flight.clear()
        self._journal.recorder.error(now)

    def next(self) -> tuple[bytes, bytes]:
        """Return the next request, length and body. It counts as sent from here on."""
        journal = self._journal
        sequence = self._next
        job_id = sequence & 0xFFFF_FFFF
        body = wire.request(job_id, wire.stamp(self._identity, sequence, journal.size), journal.service_us)
        journal.messages.expected += 1
        journal.messages.bytes_expected += wire.FRAME_HEADER + wire.response_size(job_id, journal.size)
        return self._send(body)

    def parse_body_size(self, header: bytes) -> int:
        """Return the length of the body that follows. Raises FailedError where this is no valid frame."""
        self._journal.messages.bytes_received += len(header)
        size = int.from_bytes(header, "big")
        if not 0 < size <= self._journal.size + RESPONSE_OVERHEAD:
            raise FailedError(Failure.PROTOCOL)
        return size

    def receive(self, body: bytes) -> bool:
        """Verify a body; returns whether it answers the request that waits. Raises FailedError where it cannot be a
        response to this instance."""
        now = time.monotonic_ns()
        messages = self._journal.messages
        messages.bytes_received += len(body)
        try:
            sequence = self._verify(body)
        except wire.MalformedError as error:
            messages.corrupt += 1
            raise FailedError(Failure.PROTOCOL) from error
        if not self._take(self._heard, sequence, now):
            return False
        if sequence not in self._in_flight:  # of a request that was given up; the right one may follow
            return False
        self._record_answer(sequence, now)
        return True

    def cut_off(self, partial: bytes) -> None:
        """Count the last bytes of a stream that has ended."""
        self._journal.messages.bytes_received += len(partial)

    def _verify(self, body: bytes) -> int:
        response = wire.parse_response(body)
        client, sequence = wire.read_stamp(response.stamp)
        ours = client == self._identity and sequence < self._next and len(response.stamp) == self._journal.size
        if not ours or response.job_id != sequence & 0xFFFF_FFFF or not response.is_complete:
            raise wire.MalformedError("a response to another client or another request")
        return sequence

    def _send(self, body: bytes) -> tuple[bytes, bytes]:
        """Record that the next message goes out now."""
        journal, header = self._journal, wire.header(len(body))
        now = time.monotonic_ns()
        self._intended = max(self._intended, journal.start)
        self._in_flight[self._next] = (self._intended, now)
        self._next += 1
        journal.recorder.sent(self._intended, now)
        journal.messages.sent += 1
        journal.messages.bytes_sent += len(header) + len(body)
        return header, body

    def _take(self, heard: HeardMessages, sequence: int, now: int) -> bool:
        """Count a valid message; returns whether it is the newest of its sender."""
        messages, verdict = self._journal.messages, heard.take(sequence)
        messages.received += 1
        messages.reordered += verdict == "late"
        messages.duplicated += verdict == "again"
        if verdict != "new":
            self._journal.recorder.error(now)
        return verdict == "new"

    def _record_answer(self, sequence: int, now: int) -> None:
        """Record the answer to a request in flight. The next request is intended from here on."""
        intended, sent = self._in_flight.pop(sequence)
        self._journal.recorder.answered(intended, sent, now)
        self._intended = now

    def _settle(self, failure: Failure | None) -> None:
        self._first_attempt = False
        self._journal.first_attempts[failure] += 1
