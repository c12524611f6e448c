"""Peers that say nothing, say it slowly, or do not listen, at servers drawn by chance: others are answered meanwhile,
and the server ends in order while they are still there."""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from random import Random

import pytest

from tests.attack.conftest import DrawContestant
from tests.contract.messages.conftest import TRANSPORTS
from tests.contract.messages.message_talk import joined, talking
from tests.contract.talk import message
from tests.contract.tcp.conftest import threads_for
from tests.contract.tcp.stream_talk import StreamTalk
from tests.contract.tcp.stream_talk import joined as has_joined
from tests.support import proc
from tests.support.chosen import discovered, list_tested_workloads, startable
from tests.support.client import Client
from tests.support.patience import eventually
from tests.support.server import serving

PEERS = 10
ROUNDS = 20
FLOOD = 64 << 10
"""Bytes that who does not listen may say in a round."""
FLOODED, FLOODERS = 4000, 50
FLOOD_MEMORY = 2 << 20
GRACE_S = 4.0
"""The 2 s that a server has to end, and as much for a busy machine, as in tests/contract/tcp/test_shutdown.py."""


def hinder(chance: Random, client: Client, workload: str, dripped: bytes) -> None:
    """One round of a peer that is slow to speak, or deaf."""
    client.socket.setblocking(False)
    with suppress(BlockingIOError, ConnectionError):
        if dripped:
            client.send(dripped)
        elif chance.random() < 0.5:
            unit = message(workload, client.identity, client.next_number(), 1000)
            client.send(unit * (FLOOD // len(unit)))


@pytest.mark.needs_build
def test_slow_streams_hold_up_no_other(seed: int, draw: DrawContestant) -> None:
    chance = Random(seed)
    contestant = draw(chance, "tcp")
    workload = chance.choice(list_tested_workloads(contestant))
    with serving(contestant.command, "--workload", workload, *threads_for(contestant)) as server, ExitStack() as stack:
        deaf = [stack.enter_context(Client(server.address, 4096)) for _ in range(PEERS)]
        dripping = [stack.enter_context(Client(server.address)) for _ in range(PEERS)]
        for _ in range(PEERS):
            stack.enter_context(has_joined(server, workload))  # and says no more
        drips = {client: message(workload, client.identity, 0, 2 * ROUNDS)[:ROUNDS] for client in dripping}
        # Chat is not asked of the deaf: what they say would be for the others.
        talkers = [] if workload == "chat" else deaf
        with StreamTalk(server, workload) as talk:
            for number in range(ROUNDS):
                for client in chance.sample(talkers, len(talkers) // 2):
                    hinder(chance, client, workload, b"")
                for client in dripping:
                    hinder(chance, client, workload, drips[client][number : number + 1])
                talk.check()
        server.stop()


@pytest.mark.needs_build
@pytest.mark.parametrize("name", sorted(TRANSPORTS))
def test_silent_and_deaf_clients_hold_up_no_other(seed: int, name: str, draw: DrawContestant) -> None:
    chance = Random(seed)
    transport = TRANSPORTS[name]
    contestant = draw(chance, name)
    workload = chance.choice(list_tested_workloads(contestant))
    with (
        transport.serving(contestant, "--workload", workload) as server,
        joined(transport, server, PEERS) as deaf,
        joined(transport, server, PEERS),  # and say no more
        talking(transport, server, workload, alone=False) as talk,
    ):
        for _ in range(ROUNDS):
            for client in chance.sample(deaf, PEERS // 2):
                for _ in range(chance.choice((1, 20))):
                    client.send(message(workload, client.identity, client.next_number(), 1000))
            talk.check_despite_loss()


@pytest.mark.needs_build
@pytest.mark.parametrize("name", ["epoll-reactor", "qt-thread-per-client"])
def test_a_flood_of_connections_leaves_no_memory_and_ends_at_once(seed: int, name: str) -> None:
    """They say nothing, garbage or half a frame and are gone. In qt-thread-per-client each has a thread, and
    the thread that accepts must get round to those that have ended."""
    chance = Random(seed)
    contestant = startable(next(candidate for candidate in discovered("server") if candidate.name == name), "server")
    with serving(contestant.command, "--workload", "chat") as server, ExitStack() as stack:
        memory = proc.resident_bytes(server.pid)
        for _ in range(FLOODED // FLOODERS):
            clients = [Client(server.address) for _ in range(FLOODERS)]
            for client in clients:
                flood(chance, client)
            for client in clients:
                chance.choice((client.reset, client.close))()
        if not proc.sanitized(server.pid):
            # Those who went last may still be there, each with a thread.
            eventually(lambda: proc.resident_bytes(server.pid) - memory < FLOOD_MEMORY, "the flood leaves memory")
        for _ in range(FLOODERS):
            flood(chance, stack.enter_context(Client(server.address)))
        signalled = time.monotonic()
        server.stop()
        assert time.monotonic() - signalled < GRACE_S


def flood(chance: Random, client: Client) -> None:
    """Send nothing, garbage, or the beginning of a long frame."""
    half = (1 << 20).to_bytes(4, "big") + bytes(chance.randrange(1, 4000))
    with suppress(ConnectionError):
        client.send(chance.choice((b"", chance.randbytes(100), half)))
