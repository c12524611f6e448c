"""The queue of epoll-worker-pool is bounded: where it is full, no client is read until there is room."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from netdyno.contestants.contestants import discover, find_by_name
from tests.contract.talk import message, reply
from tests.support import proc
from tests.support.chosen import startable
from tests.support.client import Client
from tests.support.patience import eventually
from tests.support.server import serving

MOST_JOBS = 16 + 256
"""Jobs with --threads 1: 16 workers, and 16 waiting requests for each of them."""
TOO_MANY = 9


@pytest.mark.needs_build
def test_nobody_is_read_while_the_queue_is_full() -> None:
    contestant = startable(find_by_name(discover(), "epoll-worker-pool"), "server")
    options = ("--workload", "rpc", "--service-time", "500ms", "--service-kind", "wait")
    with serving(contestant.command, *options) as server, ExitStack() as stack:
        clients = [stack.enter_context(Client(server.address)) for _ in range(MOST_JOBS + TOO_MANY)]
        for client in clients:
            client.send(message("rpc", client.identity, 0))
        port = server.address[1]

        def unread() -> int:
            return sum(1 for row in proc.tcp_table(port) if row.local[1] == port and row.unread > 0)

        eventually(lambda: unread() == TOO_MANY, lambda: f"{unread()} clients are not read, and not {TOO_MANY}")
        eventually(lambda: unread() == 0, "who was not read is not read when there is room")
        for client in clients:
            answer = reply("rpc", client.identity, 0)
            assert client.receive(len(answer)) == answer
        assert proc.status(server.pid, "Threads") == 1 + 16
