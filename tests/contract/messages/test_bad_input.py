"""Bad input is dropped and counted. It costs its sender nothing more, and other clients nothing."""

from __future__ import annotations

import random

import pytest

from tests.contract.golden import wire
from tests.contract.messages.conftest import Spoken
from tests.contract.messages.message_talk import expect_nothing, joined, talking
from tests.contract.messages.transport import FULL, HELO, WELC, control
from tests.contract.talk import message, reply
from tests.support import proc
from tests.support.patience import eventually

pytestmark = pytest.mark.quick

FUZZ = random.Random(5)
EVERYWHERE = {
    "nothing": b"",
    "four zero bytes": bytes(4),
    "a control message of nobody": control(b"NOPE", 1),
    "a control message that is cut off": control(HELO, 1)[:-1],
    "a control message that is too long": control(HELO, 1) + b"x",
    "what only servers say": control(WELC, 1),
    "what only servers say as well": control(FULL, 1),
}
FRAMED = {
    "a length and no body": wire.header(5),
    "a truncated length": b"\0\0\1",
    "a truncated body": wire.frame(b"text")[:-1],
    "a body that is too long": wire.frame(b"text") + b"x",
    "two messages in one": wire.frame(b"text") * 2,
    "a length of 2^32-1": wire.header(2**32 - 1) + b"x" * 100,
    "garbage": b"\xde\xad" + FUZZ.randbytes(500),
}
BROKEN = {
    "echo": EVERYWHERE,
    "chat": EVERYWHERE | FRAMED,
    "rpc": EVERYWHERE
    | FRAMED
    | {
        "garbage in a frame": wire.frame(b"\xff" * 64),
        "no request": wire.frame(wire.response(1, b"s")),
        "a service time out of range": wire.frame(wire.request(1, b"s", 10_000_001)),
    },
}


@pytest.mark.once_a_language
def test_what_is_broken_is_counted_and_not_answered_and_its_sender_stays(spoken: Spoken, workload: str) -> None:
    broken = BROKEN[workload]
    with spoken.serving(workload) as server:
        with talking(spoken.transport, server, workload) as talk, joined(spoken.transport, server) as (bad,):
            for datagram in broken.values():
                bad.send(datagram)
                expect_nothing(bad, talk.listener, workload)
            bad.bye()
            talk.check()
        totals = server.stop()
    assert totals["protocol_errors"] == len(broken)
    assert totals["connections"] == (3 if workload == "chat" else 2)


@pytest.mark.once_a_language
def test_what_is_too_long_is_counted_and_not_answered(spoken: Spoken, workload: str) -> None:
    """The longest message has a body of `--max-frame`; echo has no header, and the same limit."""
    limit = 100
    fits = message(workload, 7, 1, 40)
    longest = {"echo": b"x" * (limit + 4), "chat": wire.frame(b"x" * limit)}.get(workload, fits)
    too_long = {"echo": b"x" * (limit + 5)}.get(workload, wire.frame(b"x" * (limit + 1)))
    with spoken.serving(workload, "--max-frame", str(limit)) as server:
        with joined(spoken.transport, server) as (client,), spoken.transport.client(server) as stranger:
            client.send(too_long)
            client.send(too_long * 3)
            stranger.send(too_long)
            expect_nothing(stranger, client, workload)
            expect_nothing(client, stranger, workload)
            client.send(longest)
            if workload == "echo":
                assert client.receive() == longest
            elif workload == "chat":
                assert stranger.receive() == longest  # it is known since
            else:
                assert client.receive() == reply(workload, 7, 1, 40)
        totals = server.stop()
    assert (totals["oversized"], totals["protocol_errors"], totals["strangers"]) == (3, 0, 0)


@pytest.mark.once_a_language
def test_random_bytes_of_a_known_client_and_of_a_stranger(spoken: Spoken, workload: str) -> None:
    fuzz = random.Random(6)
    with spoken.serving(workload) as server, talking(spoken.transport, server, workload) as talk:
        descriptors = proc.descriptors(server.pid)
        for _ in range(10):
            with joined(spoken.transport, server) as (bad,), spoken.transport.client(server) as stranger:
                whole = message(workload, bad.identity, 0, 200)
                for _ in range(30):
                    cut = fuzz.randrange(len(whole))
                    datagram = fuzz.choice((fuzz.randbytes(fuzz.randrange(300)), whole[:cut], whole[cut:], whole * 2))
                    if workload == "chat" and datagram.startswith(wire.header(200)) and len(datagram) == 204:
                        continue  # by chance nothing is wrong with it
                    bad.send(datagram)
                    stranger.send(datagram)
                    while bad.poll(0) is not None:  # in echo, garbage is a message
                        pass
                bad.bye()
            talk.check_despite_loss()
        eventually(lambda: proc.descriptors(server.pid) <= descriptors, "descriptors leak")


@pytest.mark.once_a_family
@pytest.mark.workloads("chat")
def test_a_known_client_cannot_make_others_hear_what_is_no_message(spoken: Spoken, workload: str) -> None:
    with spoken.serving(workload) as server, joined(spoken.transport, server, 2) as (bad, listener):
        for datagram in FRAMED.values():
            bad.send(datagram)
        expect_nothing(bad, listener, workload)
