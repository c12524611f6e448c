"""The counts of a chat among all instances of a Python client, by hand: which hears which, which may speak again."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace

from netdyno.kit.statistics.histogram import Histogram
from netdyno.model.load_result import LoadResult
from netdyno.protocol import wire
from netdyno_client.journal import FailedError, Failure, Journal
from netdyno_client.plan import parse_client_plan
from netdyno_client.result import Cpu, load_result
from netdyno_client.room import FIRST_EARLY, PROBE, Room

PLAN = replace(
    parse_client_plan("test", ["tcp://127.0.0.1:9", "--warmup", "0", "--workload", "chat"], ("rpc", "chat")),
    connections=3,
    size=40,
)


def opened(*outside: int) -> Room:
    """Return a room of three speakers; those outside could not connect."""
    room = Room(Journal(PLAN), PLAN.connections)
    for speaker in room.speakers:
        if speaker.identity in outside:
            speaker.failed(Failure.CONNECT_TIMED_OUT)
            room.left(speaker.identity)
        else:
            speaker.connected()
    room.open()
    room.journal.begin()
    return room


def hear_early(room: Room, identity: int, speaker: int, sequence: int) -> int | None:
    return hear(room, identity, wire.stamp(FIRST_EARLY + speaker, sequence, PLAN.size))


def test_an_early_member_sends_what_may_be_in_flight_until_the_room_opens() -> None:
    room = Room(Journal(PLAN), PLAN.connections, early_depth=2)
    size = wire.FRAME_HEADER + PLAN.size
    assert len(room.speak_early(0)) == 2 * size
    assert room.speak_early(0) == b""
    assert not room.is_known, "it is not open"
    assert hear_early(room, 1, 0, 1) == 0, "the first to hear it lets its speaker go on"
    assert hear_early(room, 2, 0, 1) is None
    assert len(room.speak_early(0)) == 2 * size
    with pytest.raises(FailedError):
        hear_early(room, 1, 0, 4)
    for speaker in room.speakers:
        speaker.connected()
    room.open()
    assert (hear_early(room, 1, 0, 3), room.speak_early(0), room.speak_early(1)) == (None, b"", b"")
    messages = room.journal.messages
    assert (messages.sent, messages.received, messages.bytes_sent) == (0, 0, 4 * size)
    assert messages.bytes_received == messages.bytes_expected + size == 4 * size, "one that none had sent is unexpected"


def test_without_an_early_depth_no_member_sends_before_the_load() -> None:
    assert Room(Journal(PLAN), PLAN.connections).speak_early(0) == b""


def result(room: Room) -> LoadResult:
    room.journal.recorder.finish()
    return load_result(PLAN, room.journal, Cpu(), Histogram())


def speak(room: Room, identity: int) -> bytes:
    """Return the body of the next message of a speaker."""
    header, body = room.speakers[identity].next()
    assert header == wire.header(len(body))
    return body


def hear(room: Room, identity: int, body: bytes) -> int | None:
    room.speakers[identity].parse_body_size(wire.header(len(body)))
    return room.speakers[identity].hear(body)


def test_a_client_that_speaks_may_speak_again_when_the_next_one_has_heard_it() -> None:
    room = opened()
    body = speak(room, 2)
    assert hear(room, 1, body) is None
    assert room.speakers[2].waiting
    assert hear(room, 0, body) == 2, "the next after the last is the first"
    assert not room.speakers[2].waiting
    assert room.has_heard_all
    messages = result(room).messages
    assert (messages.sent, messages.expected, messages.received, messages.lost) == (1, 2, 2, 0)
    assert result(room).bytes.received == result(room).bytes.expected == 2 * (4 + 40)
    assert result(room).plan.workload == "chat"


def test_each_of_several_messages_in_flight_has_times_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages sent at 1, 2 and 3 ms and heard at 11, 12 and 13 ms took 10 ms each."""
    now_ns = [0]
    monkeypatch.setattr(time, "monotonic_ns", lambda: now_ns[0])
    room = opened()

    def set_clock(ms: int) -> None:
        now_ns[0] = ms * 1_000_000

    bodies = []
    for ms in (1, 2, 3):
        set_clock(ms)
        bodies.append(speak(room, 0))
    for ms, body in zip((11, 12, 13), bodies, strict=True):
        set_clock(ms)
        assert room.speakers[0].waiting
        assert hear(room, 1, body) == 0
    assert not room.speakers[0].waiting
    service = result(room).latency.service_ns
    assert (service.count, service.mean) == (3, 10_000_000)
    room.speakers[0].failed(Failure.RESET)
    assert result(room).messages.sent == 3


def test_what_one_has_not_heard_is_lost() -> None:
    room = opened()
    hear(room, 0, speak(room, 2))
    assert not room.has_heard_all
    assert result(room).messages.lost == 1
    assert "verification" in [audit.name for audit in result(room).audits if not audit.passed]


def test_a_client_that_could_not_connect_is_no_recipient_and_no_timer() -> None:
    room = opened(1)
    body = speak(room, 0)
    assert hear(room, 2, body) == 0
    assert (room.has_heard_all, result(room).messages.expected) == (True, 1)


def test_a_client_that_leaves_is_followed_by_the_next_timer_and_what_it_missed_is_lost() -> None:
    room = opened()
    body = speak(room, 0)
    room.speakers[1].failed(Failure.RESET)
    room.left(1)
    assert hear(room, 2, body) == 0
    assert result(room).messages.lost == 1


def test_what_comes_twice_or_late_is_counted_and_lets_none_speak() -> None:
    room = opened()
    first, second = speak(room, 0), speak(room, 0)
    assert hear(room, 1, second) == 0
    assert hear(room, 1, first) is None
    assert hear(room, 1, second) is None
    messages = result(room).messages
    assert (messages.reordered, messages.duplicated, messages.received) == (1, 1, 3)


@pytest.mark.parametrize(
    ("identity", "sequence"), [(0, 1), (1, 0), (3, 0)], ids=["not said yet", "one's own", "of nobody"]
)
def test_what_no_member_of_the_room_can_have_sent_breaks_the_stream(identity: int, sequence: int) -> None:
    room = opened()
    speak(room, 0)
    with pytest.raises(FailedError) as failed:
        hear(room, 1, wire.stamp(identity, sequence, PLAN.size))
    assert failed.value.failure is Failure.PROTOCOL
    assert result(room).messages.corrupt == 1


def test_the_room_is_known_when_each_has_heard_another() -> None:
    room = opened()
    probe = room.probe()[wire.FRAME_HEADER :]
    assert wire.read_stamp(probe) == (PROBE, 0)
    for identity in (1, 2):
        assert not room.is_known
        assert hear(room, identity, probe) is None
    assert not room.is_known, "the one who sent it does not hear it"
    room.left(0)
    assert room.is_known
    assert (result(room).messages.received, result(room).bytes.expected) == (0, 2 * (4 + 40))


def test_alone_there_is_nothing_to_wait_for() -> None:
    room = opened(0, 1)
    assert room.is_known
    speak(room, 2)
    assert room.has_heard_all
