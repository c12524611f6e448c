"""Hostile bytes over every transport, at random servers: no other client is hurt, and the server ends in order."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from random import Random

import pytest

from tests.attack.conftest import DrawContestant
from tests.contract.messages.conftest import TRANSPORTS
from tests.contract.messages.message_talk import joined, talking
from tests.contract.messages.transport import HELO, WELC, control
from tests.contract.talk import message
from tests.contract.tcp.conftest import threads_for
from tests.contract.tcp.stream_talk import StreamTalk
from tests.support.chosen import list_tested_workloads
from tests.support.client import Client
from tests.support.mutation import mutated, pieces
from tests.support.patience import eventually
from tests.support.server import Server, serving

ROUNDS = 4
CROWD = 25
MESSAGES = 200
"""Of each of two clients in each round."""
ZMTP = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL" + bytes(48) + b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x06DEALER\0\0"


def draw_stream(chance: Random, workload: str, identity: int) -> bytes:
    """Draw some messages, a bad one among them."""
    good = [message(workload, identity, number, chance.choice((28, 40, 1000))) for number in range(3)]
    good.insert(chance.randrange(4), mutated(chance, good[0]))
    return b"".join(good)


def leave(chance: Random, client: Client) -> None:
    """Leave in one of the possible ways: wait for the server to close after a half close, reset, or just close."""
    way = chance.randrange(4)
    with suppress(ConnectionError):
        if way == 0:
            client.half_close()
            client.rest_until_closed()
    if way == 1:
        client.reset()
    client.close()


@pytest.mark.needs_build
def test_streams_of_bad_bytes_hurt_no_other(seed: int, draw: DrawContestant) -> None:
    chance = Random(seed)
    contestant = draw(chance, "tcp")
    workload = chance.choice(list_tested_workloads(contestant))
    with serving(contestant.command, "--workload", workload, *threads_for(contestant)) as server:
        for _ in range(ROUNDS):
            with ExitStack() as stack:
                crowd = [stack.enter_context(Client(server.address)) for _ in range(CROWD)]
                streams = [
                    (client, iter(pieces(chance, draw_stream(chance, workload, client.identity)))) for client in crowd
                ]
                while streams:
                    client, left = stream = chance.choice(streams)
                    piece = next(left, None)
                    if piece is None:
                        streams.remove(stream)
                        leave(chance, client)
                    else:
                        with suppress(ConnectionError):  # it was closed for what it said before
                            client.send(piece)
            eventually(lambda: not server.has_connections(), "a hostile connection stays open in the server")
            with StreamTalk(server, workload, skips_damaged=True) as talk:
                talk.check()


def letters(chance: Random, workload: str, identity: int) -> Iterator[bytes]:
    """Messages of which most are bad. Chat has none by which another could be taken in: they are cut or too long."""
    good = [message(workload, identity, number, chance.choice((28, 40, 1000))) for number in range(3)]
    for _ in range(MESSAGES):
        if chance.random() < 0.2:
            yield mutated(chance, control(chance.choice((HELO, WELC, b"BYE!", b"FULL")), chance.getrandbits(64)))
        elif workload == "chat":
            yield chance.choice(good)[: chance.randrange(28)] + chance.choice((b"", b"x" * 2000))
        else:
            yield mutated(chance, chance.choice(good))


def knock(chance: Random, server: Server) -> None:
    """Send what a server of a message library may receive before the first message."""
    with socket.create_connection(server.address, 5) as knocker, suppress(ConnectionError):
        for piece in pieces(chance, mutated(chance, ZMTP)):
            knocker.sendall(piece)


@pytest.mark.needs_build
@pytest.mark.parametrize("name", sorted(TRANSPORTS))
def test_bad_messages_hurt_no_other(seed: int, name: str, draw: DrawContestant) -> None:
    chance = Random(seed)
    transport = TRANSPORTS[name]
    contestant = draw(chance, name)
    workload = chance.choice(list_tested_workloads(contestant))
    with transport.serving(contestant, "--workload", workload) as server:
        for _ in range(ROUNDS):
            with talking(transport, server, workload, alone=False) as talk:
                with joined(transport, server) as (known,), transport.client(server) as stranger:
                    for letter in letters(chance, workload, known.identity):
                        known.send(letter)
                        stranger.send(letter)
                        while known.poll(0) is not None:
                            pass
                    if chance.random() < 0.5:
                        known.bye()
                if transport.connected:
                    for _ in range(CROWD):
                        knock(chance, server)
                talk.check_despite_loss()
