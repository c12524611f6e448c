"""The stacks of boost-fibers: a connection without memory for a stack is closed, and a stack serves again and again."""

from __future__ import annotations

import resource
from contextlib import ExitStack

import pytest

from netdyno.question.contestants.contestants import discover, find_by_name
from tests.support import proc
from tests.support.chosen import startable
from tests.support.client import Client, ClosedError
from tests.support.server import Server, serving

STACK = 128 << 10
"""Bytes of a stack (servers/boost-fibers/fiber.hpp)."""
FIRST, CROWD = 20, 60
CONNECTIONS = 200


def command() -> tuple[str, ...]:
    return startable(find_by_name(discover(), "boost-fibers"), "server").command


def mapped_bytes(server: Server) -> int:
    return proc.status(server.pid, "VmSize") << 10


def is_served(client: Client) -> bool:
    try:
        client.send(b"x")
        return client.receive(1) == b"x"
    except (ClosedError, ConnectionResetError, BrokenPipeError):
        return False


def serve_in_turn(server: Server) -> None:
    """One connection, from beginning to end."""
    with Client(server.address) as client:
        assert is_served(client)
        client.half_close()
        assert client.rest() == b""


@pytest.mark.needs_build
def test_a_connection_without_memory_for_its_stack_is_closed_and_the_others_are_served() -> None:
    """The first crowd leaves stacks and heap for as many; beyond them there is room for a few stacks."""
    with serving(command()) as server, ExitStack() as stack:
        member = stack.enter_context(Client(server.address))
        with ExitStack() as first:
            assert all(is_served(first.enter_context(Client(server.address))) for _ in range(FIRST))
        serve_in_turn(server)
        _, hard = resource.prlimit(server.pid, resource.RLIMIT_AS)
        resource.prlimit(server.pid, resource.RLIMIT_AS, (mapped_bytes(server) + 4 * STACK, hard))
        with ExitStack() as second:
            crowd = [second.enter_context(Client(server.address)) for _ in range(CROWD)]
            served = sum(map(is_served, crowd))
            assert FIRST <= served < CROWD
            assert is_served(member)
        serve_in_turn(server)


@pytest.mark.needs_build
def test_the_stack_of_a_closed_connection_serves_the_next() -> None:
    with serving(command()) as server:
        sizes = []
        for _ in range(CONNECTIONS):
            serve_in_turn(server)
            sizes.append(mapped_bytes(server))
        assert sizes[-1] - sizes[CONNECTIONS // 10] < CONNECTIONS // 4 * STACK
