"""The queue of epoll-worker-pool is bounded: where it is full, no client is read until there is room.

Requests in service wait for ten seconds, or for a reset of their client. So a test makes room when it wants some."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from netdyno.question.contestants.contestants import discover, find_by_name
from tests.contract.golden import wire
from tests.support import proc
from tests.support.chosen import startable
from tests.support.client import Client
from tests.support.patience import eventually
from tests.support.server import Server, serving

pytestmark = pytest.mark.needs_build
WORKERS = 16
"""The workers for each of --threads, while all are busy. As many requests again may wait for each of them."""
LONG_US = 10_000_000
TOO_MANY = 9


def ask(number: int, service_us: int) -> bytes:
    """Return a request for so much service."""
    return wire.frame(wire.request(number, b"s", service_us))


@contextmanager
def crowded(threads: int, clients: int) -> Iterator[tuple[Server, list[Client]]]:
    """A server, and connected clients. The first of them, one for each worker, are still to be the first that ask."""
    contestant = startable(find_by_name(discover(), "epoll-worker-pool"), "server")
    options = ("--workload", "rpc", "--service-kind", "wait", "--threads", str(threads))
    with serving(contestant.command, *options) as server, ExitStack() as stack:
        crowd = [stack.enter_context(Client(server.address)) for _ in range(clients)]
        yield server, crowd
        for client in crowd:
            if client.is_open:
                client.reset()  # its service ends, too


def wait_until_all_work(server: Server, workers: int, clients: list[Client]) -> None:
    """Each of these clients has a worker."""
    server.wait_read(*(client.address for client in clients))
    eventually(
        lambda: proc.status(server.pid, "Threads") == 1 + workers,
        lambda: f"{proc.status(server.pid, 'Threads')} threads, and not a loop's and {workers} workers",
    )


def count_unread(server: Server) -> int:
    """Return how many clients the server has not read."""
    port = server.address[1]
    return sum(1 for row in proc.tcp_table(port) if row.local[1] == port and row.unread > 0)


def expect_unread(server: Server, count: int) -> None:
    eventually(
        lambda: count_unread(server) == count,
        lambda: f"{count_unread(server)} clients are not read, and not {count}",
    )


def test_none_is_read_while_the_queue_is_full() -> None:
    """One client has sent two requests at once. When its first is answered, the second takes the place of that one, and
    none that waits is read instead."""
    threads, workers = 2, 2 * WORKERS
    with crowded(threads, workers * (1 + WORKERS) + TOO_MANY) as (server, crowd):
        served, others = crowd[:workers], crowd[workers:]
        served[0].send(ask(0, 500_000) + ask(1, LONG_US))
        for client in served[1:]:
            client.send(ask(0, LONG_US))
        wait_until_all_work(server, workers, served)
        for client in others:
            client.send(ask(0, LONG_US))
        expect_unread(server, TOO_MANY)
        assert served[0].frame() == wire.response(0, b"s")
        for _ in range(20):
            assert count_unread(server) == TOO_MANY
        for client in served[1 : 1 + TOO_MANY]:
            client.reset()
        expect_unread(server, 0)
        assert proc.status(server.pid, "Threads") == 1 + workers


def test_room_that_one_client_has_no_job_for_is_the_next_ones() -> None:
    """A client that has sent a part of a request waits before one whose request takes no service. The latter is
    answered before any job ends but that which made the room."""
    with crowded(1, WORKERS * (1 + WORKERS) + 2) as (server, crowd):
        served, (in_part, whole) = crowd[:-2], crowd[-2:]
        for client in served[:WORKERS]:
            client.send(ask(0, LONG_US))
        wait_until_all_work(server, WORKERS, served[:WORKERS])
        for client in served[WORKERS:]:
            client.send(ask(0, LONG_US))
        server.wait_read(*(client.address for client in served))
        in_part.send(ask(0, 0)[:-1])
        whole.send(ask(0, 0))
        for _ in range(20):
            assert count_unread(server) == 2
        served.pop(0).reset()
        assert whole.frame() == wire.response(0, b"s")
        answered, _, _ = select.select([client.socket for client in served], [], [], 0)
        assert answered == [], "it waited for the end of another job"
