"""A thread that finds a recipient's socket taken leaves its message to the thread that holds it: all messages left so
go out in one system call (docs/adr/deliveries.md)."""

from __future__ import annotations

import select
from contextlib import ExitStack
from pathlib import Path

import pytest

from netdyno.question.contestants.contestants import discover, find_by_name
from tests.contract.golden import wire
from tests.contract.talk import message
from tests.contract.tcp.stream_talk import joined
from tests.support import proc
from tests.support.client import Client
from tests.support.patience import PATIENCE_S
from tests.support.server import Server, serving
from tests.support.socket_calls import count_sending_calls

MORE_THAN_A_CONNECTION_HOLDS = 16 << 20
"""Bytes: tcp_wmem and tcp_rmem are 4 and 6 MiB at most by default."""


@pytest.mark.needs_build
@pytest.mark.parametrize("name", ["threads-global-lock", "threads-snapshot"])
@pytest.mark.parametrize(("deliveries", "calls"), [("joined", 2), ("single", 4)])
def test_what_waits_for_a_reader_leaves_by_the_deliveries(
    name: str, deliveries: str, calls: int, strace_program: str, tmp_path: Path
) -> None:
    """A large message fills the reader's socket. Its thread waits there, and three others with small ones behind it."""
    command = find_by_name(discover(), name).command
    options = ("--workload", "chat", "--max-frame", str(MORE_THAN_A_CONNECTION_HOLDS), "--deliveries", deliveries)
    with serving(command, *options) as server, ExitStack() as stack:
        reader, loud, *speakers = (stack.enter_context(joined(server, "chat")) for _ in range(5))
        number = loud.next_number()
        loud.send(message("chat", loud.identity, number))
        while wire.read_stamp(reader.frame()) != (loud.identity, number):
            pass  # so nothing else is on its way to the reader
        rows = proc.tcp_sockets(server.pid, server.address[1])
        descriptors = {fd for fd, row in rows.items() if row.remote == reader.address}

        def converse() -> None:
            large = wire.frame(bytes(MORE_THAN_A_CONNECTION_HOLDS))
            small = [message("chat", speaker.identity, speaker.next_number()) for speaker in speakers]
            loud.send(large)
            wait_until_all_wait(server, loud)
            for speaker, data in zip(speakers, small, strict=True):
                speaker.send(data)
            wait_until_all_wait(server, *speakers)
            take_all(reader, len(large) + sum(map(len, small)), speakers)

        assert count_sending_calls(strace_program, server.pid, descriptors, converse, tmp_path) == calls


def wait_until_all_wait(server: Server, *speakers: Client) -> None:
    """Wait until the speakers' threads have read everything and wait for the reader, or behind the thread that does."""
    server.wait_at_rest(*(client.address for client in speakers))


def take_all(reader: Client, size: int, speakers: list[Client]) -> None:
    """Read so many bytes, and meanwhile all that comes to the speakers: they are no slow readers."""
    sockets = [client.socket for client in (reader, *speakers)]
    while size > 0:
        readable, _, _ = select.select(sockets, [], [], PATIENCE_S)
        assert readable, f"{size} bytes never came"
        for ready in readable:
            taken = len(ready.recv(1 << 20))
            size -= taken if ready is reader.socket else 0
