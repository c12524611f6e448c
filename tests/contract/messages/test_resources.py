"""What bad company may cost a server in memory and descriptors, over many rounds, and what a slow reader holds up."""

from __future__ import annotations

import pytest

from tests.contract.golden import wire
from tests.contract.messages.conftest import Spoken
from tests.contract.messages.message_talk import joined, talking
from tests.contract.talk import message
from tests.support import proc
from tests.support.patience import eventually

MEMORY_BOUND = 16 << 20
WAITING_BOUND = 24 << 20
"""Of 40 MB that are sent: a pool's threads get the cores later than the one that receives, and what waits for them is
bounded by each client's queue."""
ROUNDS_BEFORE, ROUNDS, CLIENTS = 2, 4, 120
ROOM = 400
"""Fewer than all that come, and more than all that vanish: it must be given back."""


def test_neither_memory_nor_descriptors_grow_with_those_that_come_and_go(spoken: Spoken, workload: str) -> None:
    """A session of 64 KiB that is lost for each of them would be 30 MiB here."""
    with spoken.serving(workload, "--peer-timeout", "1s", "--peers", str(ROOM)) as server:
        descriptors = proc.descriptors(server.pid)
        after = []
        for _ in range(ROUNDS_BEFORE + ROUNDS):
            for number in range(CLIENTS):
                with joined(spoken.transport, server) as (client,):
                    client.send(message(workload, client.identity, 0, 1000))
                    if number % 4:
                        client.bye()  # the others vanish
            with talking(spoken.transport, server, workload, alone=False):
                pass  # what those have said may come only now
            # but for the last client that talked, over a transport that has connections
            eventually(lambda: proc.descriptors(server.pid) <= descriptors + 1, "not all who went are let go")
            after.append(proc.resident_bytes(server.pid))
        assert spoken.transport.connected or proc.descriptors(server.pid) == descriptors
        if not proc.sanitized(server.pid):
            assert max(after[ROUNDS_BEFORE:]) - max(after[:ROUNDS_BEFORE]) < MEMORY_BOUND, [
                size >> 20 for size in after
            ]


@pytest.mark.once_a_family
@pytest.mark.workloads("echo", "chat")
def test_a_client_that_does_not_read_stops_none(spoken: Spoken, workload: str) -> None:
    """Much more is sent to it than its socket's buffer takes."""
    size, how_many = 1000, 1500
    with spoken.serving(workload) as server, talking(spoken.transport, server, workload) as talk:
        with joined(spoken.transport, server, 2) as (slow, flooding):
            memory = proc.resident_bytes(server.pid)
            for number in range(how_many):
                (flooding if workload == "chat" else slow).send(message(workload, slow.identity, number, size))
                if number % 100 == 0:
                    talk.check_despite_loss()
            talk.check_despite_loss()
            if not proc.sanitized(server.pid):
                assert proc.resident_bytes(server.pid) - memory < MEMORY_BOUND
            slow.bye()
            flooding.bye()
        for client in talk.clients:
            while client.poll(0.2) is not None:
                pass


@pytest.mark.once_a_family
@pytest.mark.workloads("rpc")
def test_requests_that_wait_are_bounded_in_memory(spoken: Spoken, workload: str) -> None:
    """Each of the clients sends on while its first request is served."""
    with (
        spoken.serving(workload, "--socket-buffer", "2MiB") as server,
        talking(spoken.transport, server, workload) as talk,
        joined(spoken.transport, server, 10) as crowd,
    ):
        memory = proc.resident_bytes(server.pid)
        for client in crowd:
            client.send(wire.frame(wire.request(0, b"s", 2_000_000)))
        for number in range(1, 500):
            for client in crowd:
                client.send(message(workload, client.identity, number, 8000))
            if number % 50 == 0:
                talk.check_despite_loss()
        if not proc.sanitized(server.pid):
            assert proc.resident_bytes(server.pid) - memory < WAITING_BOUND
        for client in crowd:
            client.bye()
        talk.check_despite_loss()
