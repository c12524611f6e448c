"""What a process for each client means for the others: a crash, a limit of the system, and the end of the parent."""

from __future__ import annotations

import os
import resource
import select
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from netdyno.question.contestants.contestants import discover, find_by_name
from tests.contract.tcp.stream_talk import StreamTalk
from tests.support import proc
from tests.support.chosen import startable
from tests.support.client import Client
from tests.support.patience import eventually
from tests.support.server import Server, serving

pytestmark = pytest.mark.needs_build
WITH_ONE_CHILD = (
    *("prlimit", "--nproc=2", "setpriv", "--reuid", "64998"),
    *("--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override"),
)
"""How a server is started that may have one child: the kernel does not limit root, and no other program runs as this
user."""


@contextmanager
def talking(*prefix: str) -> Iterator[tuple[Server, StreamTalk]]:
    """A server, and a client whose child stands beside whatever the test does."""
    contestant = startable(find_by_name(discover(), "process-per-connection"), "server")
    with serving((*prefix, *contestant.command), "--workload", "echo") as server, StreamTalk(server, "echo") as talk:
        talk.check()
        yield server, talk


def find_child_of(server: Server, client: Client) -> int:
    """Return the process that serves a client."""
    (child,) = (
        child
        for child, sockets in proc.tcp_sockets_of_family(server.pid, server.address[1])
        if child != server.pid and any(row.remote == client.address for row in sockets.values())
    )
    return child


def converse(talk: StreamTalk, client: Client) -> None:
    """Say something and have it answered."""
    number, message = talk.message(client)
    client.send(message)
    talk.expect(client, number)


def test_a_child_that_crashes_costs_its_client_alone() -> None:
    with talking() as (server, talk):
        if proc.sanitized(server.pid):
            pytest.skip("a sanitizer reports the signal as a bug of the server")
        with talk.client() as client:
            converse(talk, client)
            child = find_child_of(server, client)
            os.kill(child, signal.SIGSEGV)
            assert client.rest_until_closed() == b""
        eventually(lambda: len(proc.children(server.pid)) == 1, "the child that crashed is not reaped")
        eventually(lambda: f"child {child} was ended by signal 11" in server.stderr(), "the crash passes in silence")
        with talk.client() as next_client:
            converse(talk, next_client)
        talk.check()
        totals = server.stop()
        assert (totals["requests"], totals["connections"]) == (4, 3)  # those of the crashed child included


def test_no_child_outlives_its_parent() -> None:
    with talking() as (server, talk), talk.client() as client:
        converse(talk, client)
        children = [os.pidfd_open(child) for child in proc.children(server.pid)]
        assert len(children) == 2
        server.signal(signal.SIGKILL)
        server.process.wait()
        assert all(proc.ends(child) for child in children), "a child lives on"


def test_a_child_that_does_not_end_is_killed() -> None:
    with talking() as (server, talk):
        os.kill(find_child_of(server, talk.speaker), signal.SIGSTOP)
        assert server.stop()["connections"] == 1


def test_a_client_is_closed_where_no_process_is_left() -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs a user without other processes, so root and setpriv(1)")
    with talking(*WITH_ONE_CHILD) as (server, talk):
        for _ in range(3):
            with talk.client() as client:
                assert client.rest_until_closed() == b""
        talk.check()
        talk.speaker.close()
        eventually(lambda: not proc.children(server.pid), "the child of a client that has left stays")
        with talk.client() as client:
            converse(talk, client)
        assert server.stop()["connections"] == 5


def test_a_client_waits_while_there_is_no_descriptor_for_it() -> None:
    """Meanwhile the server does not spin. The clients that it has hold none of its own descriptors."""
    with talking() as (server, talk):
        own = len(list(os.scandir(f"/proc/{server.pid}/fd")))
        soft, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (own, hard))
        with talk.client() as client:
            number, message = talk.message(client)
            client.send(message)
            cpu = proc.cpu_seconds(server.pid)
            answered, _, _ = select.select([client.socket], [], [], 1.0)
            assert not answered, "the server has more descriptors than its limit"
            assert proc.cpu_seconds(server.pid) - cpu < 0.6, "the server spins while it is out of descriptors"
            talk.check()
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (soft, hard))
            talk.expect(client, number)
