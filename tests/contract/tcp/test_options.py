"""Every option has an effect that can be seen from outside; one that had none would be a lie in every experiment."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from netdyno.model.contestant import Contestant
from tests.contract.golden import wire
from tests.contract.talk import message
from tests.contract.tcp.conftest import ServedContestant, room_for
from tests.contract.tcp.stream_talk import StreamTalk, ask, expect_reply, joined
from tests.support import kernel, proc
from tests.support.client import Client
from tests.support.patience import eventually
from tests.support.server import Server, serving


def ask_socket(server: Server, row: Callable[[proc.TcpRow], bool], question: Callable[..., int]) -> list[int]:
    """The answers of the server's own sockets that `row` selects; a stated skip where that is forbidden."""
    answers = []
    for pid, sockets in proc.tcp_sockets_of_family(server.pid, server.address[1]):
        for fd, entry in sockets.items():
            if row(entry):
                try:
                    with kernel.duplicated(pid, fd) as socket:
                        answers.append(question(socket))
                except kernel.DescriptorNotAllowedError as error:
                    pytest.skip(f"cannot look into the server's sockets here: {error}")
    return answers


@pytest.mark.one_workload
def test_nodelay(served: ServedContestant, talk: StreamTalk) -> None:
    with talk.client() as client:
        number, payload = talk.message(client)
        client.send(payload)
        talk.expect(client, number)
        assert set(nodelay(served.server, client)) == {True}  # of every descriptor of the connection


def nodelay(server: Server, client: Client) -> list[int]:
    """Read TCP_NODELAY of each descriptor of the client's connection; test_level_ground.py looks for it off."""
    return ask_socket(server, lambda row: row.remote == client.address, kernel.nodelay)


@pytest.mark.once_a_family
@pytest.mark.workloads("echo")
def test_backlog_and_read_buffer(contestant: Contestant, workload: str) -> None:
    """WIRE.md: in echo `requests` counts the reads that brought something."""
    text = b"x" * 300
    with serving(contestant.command, "--workload", workload, "--backlog", "9", "--read-buffer", "7") as server:
        assert set(_backlogs(server)) == {9}
        with Client(server.address) as client:
            client.send(text)  # one segment, which the kernel hands over as one
            assert client.receive(len(text)) == text
        assert server.stop()["requests"] == 43


def _backlogs(server: Server) -> list[int]:
    """Return the backlogs of its listening sockets."""
    return ask_socket(
        server, lambda row: row.state == proc.LISTEN, lambda socket: kernel.tcp_info(socket, kernel.TCPI_SACKED)
    )


@pytest.mark.workloads("rpc", "chat")
def test_write_mode_gathered(served: ServedContestant) -> None:
    _expect_segments(served.server, served.workload, ROUNDS)


@pytest.mark.workloads("lines", "rpc", "chat", "http")
def test_write_mode_split(contestant: Contestant, workload: str) -> None:
    options = ("--workload", workload, "--write-mode", "split", "--nodelay", "on", *room_for(contestant, 2))
    with serving(contestant.command, *options) as server:
        _expect_segments(server, workload, 2 * ROUNDS)


def _expect_segments(server: Server, workload: str, expected: int) -> None:
    """With Nagle's algorithm off every write is a segment, and the client's kernel counts what it gets. (TCP_INFO,
    tcpi_data_segs_in, Linux 4.6.)"""
    with ExitStack() as stack:
        sender = stack.enter_context(joined(server, workload))
        receiver = stack.enter_context(joined(server, workload)) if workload == "chat" else sender
        segments = _segments(server, workload, sender, receiver, expected)
        for _ in range(2):  # on a busy machine a segment may still be in its queue, and the next write joins it
            if segments != expected:
                segments = _segments(server, workload, sender, receiver, expected)
        assert segments == expected


ROUNDS = 10


def _segments(server: Server, workload: str, sender: Client, receiver: Client, expected: int) -> int:
    """Return the number of segments that brought the replies of ROUNDS rounds."""
    before, sent_again = -1, _sent_again(server, receiver)
    for _ in range(ROUNDS + 1):  # the first is for what joining may still have on its way
        number = sender.next_number()
        payload = message(workload, sender.identity, number)
        sender.send(payload + payload if workload == "lines" else payload)
        _take(workload, sender, receiver, number)
        before = kernel.tcp_info(receiver.socket, kernel.TCPI_DATA_SEGS_IN) if before < 0 else before
    segments = kernel.tcp_info(receiver.socket, kernel.TCPI_DATA_SEGS_IN) - before
    if segments > expected:  # on a busy machine the kernel sends some twice: loss probes (RFC 8985)
        segments -= _sent_again(server, receiver) - sent_again
    return segments


def _sent_again(server: Server, receiver: Client) -> int:
    return sum(
        ask_socket(
            server,
            lambda row: row.remote == receiver.address,
            lambda socket: kernel.tcp_info(socket, kernel.TCPI_TOTAL_RETRANS),
        )
    )


def _take(workload: str, sender: Client, receiver: Client, number: int) -> None:
    if workload == "chat":
        stamp = b""
        while stamp != wire.stamp(sender.identity, number, 40):
            stamp = receiver.frame()
        return
    for _ in range(2 if workload == "lines" else 1):
        expect_reply(workload, receiver, number)


@pytest.mark.several_clients(True)
@pytest.mark.once_a_language
@pytest.mark.workloads("rpc", "http")
def test_service_time_is_spent(contestant: Contestant, workload: str) -> None:
    """At least that long: a lower bound, which no busy machine can break. What a request asks for comes on top."""
    options = ("--workload", workload, "--service-time", "50ms", *room_for(contestant, 2))
    with (
        serving(contestant.command, *options) as server,
        StreamTalk(server, workload) as talk,
    ):
        begin = time.monotonic()
        talk.check()
        talk.check()
        assert time.monotonic() - begin >= 0.100
        if workload == "rpc":
            begin = time.monotonic()
            with talk.client() as client:
                client.send(wire.frame(wire.request(1, b"s", 30_000)))
                assert client.frame() == wire.response(1, b"s")
            assert time.monotonic() - begin >= 0.080


@pytest.mark.once_a_family
@pytest.mark.workloads("http")
def test_a_short_service_time_costs_little_cpu(contestant: Contestant, workload: str) -> None:
    """The CPU time that some clocks tell moves in steps of milliseconds, and work of 10 us would take as long."""

    def measure_cpu_s(service_time: str, requests: int) -> float:
        """The CPU of a request."""
        options = ("--workload", workload, "--service-kind", "cpu", "--service-time", service_time)
        with (
            serving(contestant.command, *options, *room_for(contestant, 1)) as server,
            Client(server.address) as client,
        ):
            for _ in range(requests):  # caches and compilers are cold
                ask(workload, client)
            before = proc.cpu_seconds(server.pid)
            for _ in range(requests):
                ask(workload, client)
            return (proc.cpu_seconds(server.pid) - before) / requests

    assert measure_cpu_s("10us", 400) < measure_cpu_s("5ms", 40) / 5


@pytest.mark.several_clients(True)
@pytest.mark.workloads("rpc")
def test_waiting_holds_up_no_other_connection_and_costs_no_cpu(served: ServedContestant, talk: StreamTalk) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(talk.client()) for _ in range(50)]
        cpu, begin = proc.cpu_seconds(served.server.pid), time.monotonic()
        for client in clients:
            client.send(wire.frame(wire.request(client.identity, b"s", 300_000)))
        for client in clients:
            assert client.frame() == wire.response(client.identity, b"s")
        # One after the other they would take 15 s.
        assert time.monotonic() - begin < 7.5
        if not proc.sanitized(served.server.pid):
            assert proc.cpu_seconds(served.server.pid) - cpu < 1.5


@pytest.mark.several_clients(True)
@pytest.mark.once_a_family
@pytest.mark.workloads("rpc")
def test_a_long_wait_of_one_client_and_quick_answers_for_another(served: ServedContestant, talk: StreamTalk) -> None:
    with talk.client() as patient, talk.client() as quick:
        patient.send(wire.frame(wire.request(1, b"long", 1_000_000)))
        served.server.wait_read(patient.address)
        for number in range(20):
            quick.send(wire.frame(wire.request(number, b"q")))
            assert quick.frame() == wire.response(number, b"q")
        assert patient.frame() == wire.response(1, b"long")


@pytest.mark.once_a_family
@pytest.mark.workloads("rpc")
def test_requests_of_one_connection_are_served_in_order(talk: StreamTalk) -> None:
    durations_us = [100_000, 0, 20_000, 1, 0]
    with talk.client() as client:
        client.send(b"".join(wire.frame(wire.request(token, b"s", us)) for token, us in enumerate(durations_us)))
        for token in range(len(durations_us)):
            assert client.frame() == wire.response(token, b"s")


@pytest.mark.once_a_family
@pytest.mark.one_workload
@pytest.mark.workloads("rpc", "http")
def test_burning_costs_that_much_cpu(contestant: Contestant, workload: str) -> None:
    options = ("--workload", workload, "--service-time", "25ms", "--service-kind", "cpu")
    with serving(contestant.command, *options) as server, Client(server.address) as client:
        before = proc.cpu_seconds(server.pid)
        client.send(b"".join(message(workload, client.identity, number) for number in range(4)))
        for number in range(4):
            expect_reply(workload, client, number)
        assert proc.cpu_seconds(server.pid) - before >= 0.08  # 0.1 s less two ticks of 10 ms


def test_a_thread_per_connection(contestant: Contestant) -> None:
    if contestant.manifest.threads != "per-connection":
        pytest.skip("not this model")
    with serving(contestant.command, "--workload", "echo") as server, StreamTalk(server, "echo") as talk:
        talk.check()
        alone = proc.threads(server.pid)
        with ExitStack() as stack:
            for _ in range(10):
                stack.enter_context(Client(server.address))
            eventually(lambda: proc.threads(server.pid) == alone + 10, "10 connections do not bring 10 threads")
        eventually(lambda: proc.threads(server.pid) == alone, "threads of closed connections stay")
