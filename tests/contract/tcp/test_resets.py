"""A client that resets: when it is let go of, and what the totals say of it."""

from __future__ import annotations

import signal

import pytest

from netdyno.model.contestant import Contestant
from tests.contract.golden import wire
from tests.contract.tcp.conftest import ServedContestant, threads_for
from tests.contract.tcp.stream_talk import StreamTalk
from tests.support import proc
from tests.support.client import Client
from tests.support.patience import eventually
from tests.support.server import serving

pytestmark = pytest.mark.several_clients(True)

LONGEST_US = 10_000_000
"""The longest service that a request can ask for (protocol/WIRE.md)."""


@pytest.mark.workloads("rpc")
def test_a_reset_ends_the_wait_of_a_service(served: ServedContestant, talk: StreamTalk) -> None:
    """Neither its socket nor its thread is kept until the service time is over. A client that only ends its own stream
    has not left: it is still answered."""
    server = served.server
    with talk.client() as patient:
        patient.send(wire.frame(wire.request(1, b"s", LONGEST_US // 10)))
        server.wait_read(patient.address)
        patient.half_close()
        talk.check()
        descriptors, threads = proc.descriptors(server.pid), proc.threads(server.pid)
        crowd = [talk.client() for _ in range(10)]
        for client in crowd:
            client.send(wire.frame(wire.request(1, b"s", LONGEST_US)))
        server.wait_read(*(client.address for client in crowd))
        for client in crowd:
            client.reset()
        eventually(
            lambda: proc.descriptors(server.pid) <= descriptors and proc.threads(server.pid) <= threads,
            lambda: f"{proc.descriptors(server.pid)} descriptors, {descriptors} without those who have reset",
            LONGEST_US / 1e6 / 2,
        )
        talk.check()
        assert patient.frame() == wire.response(1, b"s")
        assert patient.rest() == b""


@pytest.mark.once_a_family
@pytest.mark.workloads("rpc")
def test_neither_a_reset_nor_a_stop_is_a_protocol_error(contestant: Contestant, workload: str) -> None:
    """Also inside a message, and where the server finds the reset together with the bytes before it. SIGCONT interrupts
    some system calls with EINTR even without a handler (signal(7))."""
    request = wire.frame(wire.request(1, b"s"))
    with (
        serving(contestant.command, "--workload", workload, *threads_for(contestant)) as server,
        StreamTalk(server, workload) as talk,
    ):
        for _ in range(5):
            talk.check()
            server.signal(signal.SIGSTOP)
            server.signal(signal.SIGCONT)
        talk.check()
        descriptors = proc.descriptors(server.pid)
        for _ in range(3):
            crowd = [talk.client() for _ in range(8)]
            for client in crowd:
                client.send(request)
                assert client.frame() == wire.response(1, b"s")
            for client in crowd[:4]:
                client.send(request[:-1])
            server.wait_read(*(client.address for client in crowd))
            server.signal(signal.SIGSTOP)
            for client in crowd[4:]:
                client.send(request[:-1])
            for client in crowd:
                client.reset()
            server.signal(signal.SIGCONT)
            talk.check()
        eventually(lambda: proc.descriptors(server.pid) <= descriptors, "a reset is never noticed")
        assert server.stop()["protocol_errors"] == 0


@pytest.mark.once_a_family
@pytest.mark.workloads("echo")
def test_bytes_that_never_left_are_not_counted(contestant: Contestant, workload: str) -> None:
    """A client that reads nothing leaves replies in the server, which the kernel never takes when it resets."""
    with (
        serving(contestant.command, "--workload", workload, *threads_for(contestant)) as server,
        StreamTalk(server, workload) as talk,
    ):
        stuck = Client(server.address, receive_buffer=4096)
        stuck.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            stuck.send(b"x" * (64 << 20))
        server.signal(signal.SIGSTOP)  # the kernel takes nothing more from it
        unread, _ = proc.queued(stuck.address, server.address)
        _, unacknowledged = proc.queued(server.address, stuck.address)
        stuck.reset()
        server.signal(signal.SIGCONT)
        talk.check()
        totals = server.stop()
        assert totals["bytes_out"] <= unread + unacknowledged + talk.speaker.taken
