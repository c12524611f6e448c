"""Bad input closes at most the connection that it came on, and costs other clients nothing (`talk` looks)."""

from __future__ import annotations

import random
from contextlib import ExitStack

import pytest

from tests.contract.golden import wire
from tests.contract.tcp.conftest import ServedContestant
from tests.contract.tcp.stream_talk import HttpReply, StreamTalk
from tests.support import proc
from tests.support.background import in_background
from tests.support.patience import eventually

pytestmark = pytest.mark.quick

DEFAULT_MAX_FRAME = 1 << 20

GARBAGE = b"\xde\xad" + random.Random(1).randbytes(500)  # as a length far above every limit; no HTTP either
BROKEN: dict[str, dict[str, bytes]] = {
    "lines": {
        "line over the limit": b"x" * (DEFAULT_MAX_FRAME + 1),
    },
    "rpc": {
        "frame over the limit": wire.header(DEFAULT_MAX_FRAME + 1) + b"x" * 100,
        "length 0": wire.header(0),
        "length 2^32-1": wire.header(2**32 - 1),
        "garbage": GARBAGE,
        "garbage in a frame": wire.frame(b"\xff" * 64),
        "no request": wire.frame(wire.response(1, b"s")),
        "service time out of range": wire.frame(wire.request(1, b"s", 10_000_001)),
    },
    "chat": {
        "frame over the limit": wire.header(DEFAULT_MAX_FRAME + 1) + b"x" * 100,
        "length 0": wire.header(0),
        "length 2^32-1": wire.header(2**32 - 1),
        "garbage": GARBAGE,
    },
    "http": {
        "400: target over the limit": b"GET /" + b"x" * (16 << 10) + b" HTTP/1.1\r\n\r\n",
        "400: head over the limit": b"GET / HTTP/1.1\r\nX: " + b"x" * (16 << 10) + b"\r\n\r\n",
        "400: garbage": GARBAGE + b"\r\n\r\n",
        "501: another method": b"POST / HTTP/1.1\r\nHost: x\r\n\r\n",
        "400: a body": b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
    },
}


@pytest.mark.once_a_language
def test_one_byte_at_a_time(talk: StreamTalk) -> None:
    with talk.client() as slow:
        for _ in range(3):
            number, message = talk.message(slow)
            for position in range(len(message)):
                slow.send(message[position : position + 1])
                if position == len(message) // 2:
                    talk.check()
            talk.expect(slow, number)


@pytest.mark.once_a_language
def test_several_messages_in_one_segment(talk: StreamTalk) -> None:
    with talk.client() as client:
        numbered = [talk.message(client) for _ in range(50)]
        client.send(b"".join(message for _, message in numbered))
        talk.expect(client, *(number for number, _ in numbered))


@pytest.mark.once_a_language
def test_messages_cut_across_segments(talk: StreamTalk) -> None:
    cut = random.Random(2)
    with talk.client() as client:
        numbered = [talk.message(client, size=cut.randint(wire.STAMP_MINIMUM, 300)) for _ in range(100)]
        stream = b"".join(message for _, message in numbered)
        while stream:
            size = cut.choice((1, 2, 3, 5, 40, 41, 200, 1000))
            client.send(stream[:size])
            stream = stream[size:]
        for number, message in numbered:
            talk.expect(client, number, size=_stamp_size(talk.workload, message))


def _stamp_size(workload: str, message: bytes) -> int:
    """The stamp's size in a message of numbers below 128 (which take one byte in Protobuf)."""
    overhead = {"echo": 1, "lines": 1, "chat": 4, "http": len(b"GET / HTTP/1.1\r\nHost: netdyno\r\n\r\n")}
    if workload == "rpc":
        return len(wire.parse_request(message[wire.FRAME_HEADER :]).stamp)
    return len(message) - overhead[workload]


@pytest.mark.once_a_language
def test_a_large_message(talk: StreamTalk) -> None:
    """Larger than the socket buffers, so that neither side can send it in one piece."""
    size = 15_000 if talk.workload == "http" else 1_000_000
    with talk.client() as client:
        number, message = talk.message(client, size=size)
        client.send(message)
        talk.expect(client, number, size=size)


@pytest.mark.once_a_language
@pytest.mark.workloads(*BROKEN)
def test_a_broken_stream_ends_after_the_replies_it_is_owed(served: ServedContestant, talk: StreamTalk) -> None:
    for kind, broken in BROKEN[served.workload].items():
        with talk.client() as bad:
            number, message = talk.message(bad)
            bad.send(message + broken)
            talk.expect(bad, number)
            talk.check()
            if served.workload == "http":
                reply = HttpReply(bad)
                assert kind.startswith(f"{reply.status}:"), f"{kind}: {reply.status}"
                assert reply.closes, kind
            rest = bad.rest_until_closed()
            if served.workload == "chat":  # what others said meanwhile, whole
                rest = b"".join(wire.frames(rest)[2:])
            assert rest == b"", kind


@pytest.mark.once_a_family
@pytest.mark.workloads("rpc")
def test_a_client_that_stays_after_the_end_of_a_broken_stream_is_let_go(
    served: ServedContestant, talk: StreamTalk
) -> None:
    """The server ends its stream and waits for the client to end its own, but not for ever."""
    pid = served.server.pid
    before = proc.descriptors(pid)
    with talk.client() as bad:
        bad.send(next(iter(BROKEN[served.workload].values())))
        assert bad.rest_until_closed() == b""
        eventually(lambda: proc.descriptors(pid) <= before, "the connection of a client that stays is kept")


@pytest.mark.once_a_language
def test_a_truncated_message_then_close(talk: StreamTalk) -> None:
    for size in (1, 3, 4, 5, 30):
        bad = talk.client()
        _, message = talk.message(bad, size=1000)
        bad.send(message[:size])
        talk.check()
        bad.close()
        talk.check()


def test_half_close_gets_every_reply_then_the_end(served: ServedContestant, talk: StreamTalk) -> None:
    with talk.client() as client:
        numbered = [talk.message(client) for _ in range(20)]
        client.send(b"".join(message for _, message in numbered))
        client.half_close()
        talk.expect(client, *(number for number, _ in numbered))
        rest = client.rest()
        assert served.workload == "chat" or rest == b""


@pytest.mark.once_a_family
@pytest.mark.workloads("echo", "lines", "rpc", "http")
def test_half_close_after_more_replies_than_the_socket_buffers_hold(served: ServedContestant, talk: StreamTalk) -> None:
    size, count = (15_000, 300) if served.workload == "http" else (200_000, 20)
    with talk.client() as client:
        numbered = [talk.message(client, size=size) for _ in range(count)]

        def send() -> None:
            client.send(b"".join(message for _, message in numbered))
            client.half_close()

        with in_background(send):
            for number, _ in numbered:
                talk.expect(client, number, size=size)
            assert client.rest() == b""


@pytest.mark.workloads("rpc")
def test_half_close_while_a_request_is_served_and_another_waits(served: ServedContestant, talk: StreamTalk) -> None:
    with talk.client() as client:
        for number in range(2):
            client.send(wire.frame(wire.request(number, b"s", 50_000)))
            served.server.wait_read(client.address)
        client.half_close()
        for number in range(2):
            assert client.frame() == wire.response(number, b"s")
        assert client.rest() == b""


@pytest.mark.once_a_language
@pytest.mark.workloads("lines")
def test_an_unterminated_last_line_is_echoed_at_the_end(talk: StreamTalk) -> None:
    with talk.client() as client:
        client.send(b"no newline")
        talk.check()
        client.half_close()
        assert client.rest() == b"no newline"


def test_reset(talk: StreamTalk) -> None:
    """The RST meets the server in every state: idle, inside a message, with a reply on its way."""
    for part in ("nothing", "half a message", "a message", "a large message") * 3:
        bad = talk.client()
        _, message = talk.message(bad, size=10_000 if part == "a large message" else 40)
        bad.send({"nothing": b"", "half a message": message[:20]}.get(part, message))
        bad.reset()
        talk.check()


@pytest.mark.several_clients(True)
@pytest.mark.once_a_language
def test_silent_clients_hold_up_none(talk: StreamTalk) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(talk.client()) for _ in range(20)]
        for _ in range(3):
            talk.check()
        number, message = talk.message(silent[7])  # they are still served when they speak at last
        silent[7].send(message)
        talk.expect(silent[7], number)


@pytest.mark.once_a_family
@pytest.mark.one_workload
def test_hundreds_of_connects_and_closes(talk: StreamTalk) -> None:
    for attempt in range(400):
        client = talk.client()
        if attempt % 3:
            client.close()
        else:
            client.reset()
        if attempt % 100 == 0:
            talk.check()


@pytest.mark.several_clients(True)
def test_many_connections_at_once(served: ServedContestant, talk: StreamTalk) -> None:
    with ExitStack() as stack:
        crowd = [stack.enter_context(talk.client()) for _ in range(100)]
        for client in crowd if served.workload != "chat" else crowd[:10]:
            number, message = talk.message(client)
            client.send(message)
            talk.expect(client, number)
