"""Servers that deal out connections in turn say how many each of their threads got; a sum that is not all of them fails
wherever such a server is stopped (tests/support/server.py)."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from netdyno.question.contestants.contestants import discover, find_by_name
from tests.support.chosen import startable
from tests.support.client import Client
from tests.support.server import serving

IN_TURN = ("asio-context-per-thread", "epoll-coroutine-pool", "folly-async")


@pytest.mark.needs_build
@pytest.mark.parametrize("name", ["asio-context-per-thread", "folly-async"])
def test_one_of_the_threads_accepts_and_the_main_thread_waits(name: str) -> None:
    """As in source D, whose N threads include the one that listens."""
    contestant = startable(find_by_name(discover(), name), "server")
    with serving(contestant.command, "--threads", "2") as server:
        server.wait_at_rest()
        main_thread = Path(f"/proc/{server.pid}/task/{server.pid}/schedstat")
        before = main_thread.read_text()
        for _ in range(5):
            with Client(server.address) as client:
                client.send(b"x")
                assert client.receive(1) == b"x"
        assert main_thread.read_text() == before


@pytest.mark.needs_build
@pytest.mark.parametrize("name", IN_TURN)
@pytest.mark.parametrize(("threads", "shares"), [(1, [5]), (3, [2, 2, 1])])
def test_each_thread_gets_its_share(name: str, threads: int, shares: list[int]) -> None:
    contestant = startable(find_by_name(discover(), name), "server")
    with serving(contestant.command, "--threads", str(threads)) as server, ExitStack() as stack:
        for client in [stack.enter_context(Client(server.address)) for _ in range(5)]:
            client.send(b"x")
            assert client.receive(1) == b"x"
        server.stop()
    assert json.loads(server.lines[-1])["connections_per_thread"] == shares
