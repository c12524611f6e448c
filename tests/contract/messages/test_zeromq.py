"""What only ZeroMQ has: connections below the messages, and so peers that speak no ZeroMQ at all, routing ids that
clients choose, messages of several parts, and queues with a high-water mark."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
import zmq

from tests.contract.golden import wire
from tests.contract.messages.conftest import Spoken
from tests.contract.messages.message_talk import expect_nothing, joined, speak, talking
from tests.contract.messages.transport import BYE, HELO, WELC, MessageClient, control
from tests.contract.messages.transports.zmq import CONTEXT, ZmqClient
from tests.contract.talk import message, reply
from tests.support import proc
from tests.support.patience import PATIENCE_S, eventually
from tests.support.server import Server

pytestmark = pytest.mark.transports("zmq+tcp")

MEMORY_BOUND = 16 << 20
NO_ANSWER_S = 0.3
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(16) + bytes(1) + bytes(31)
"""ZMTP 3.0, mechanism NULL (rfc.zeromq.org/spec/23)."""


def ready(routing_id: bytes) -> bytes:
    """The command that ends the handshake, of a DEALER with a routing id."""

    def metadata(name: bytes, value: bytes) -> bytes:
        return bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value

    body = b"\x05READY" + metadata(b"Socket-Type", b"DEALER") + metadata(b"Identity", routing_id)
    return b"\x06" + len(body).to_bytes(8, "big") + body


def one_part(body: bytes) -> bytes:
    """A message as ZMTP has it on the wire."""
    return bytes([0, len(body)]) + body


STRANGE = {
    "nothing": b"",
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: netdyno\r\n\r\n",
    "a long HTTP request": b"GET / HTTP/1.1\r\nHost: netdyno\r\nCookie: " + b"x" * 3000 + b"\r\n\r\n",
    "garbage": b"\xde\xad\xbe\xef" * 500,
    "half a greeting": GREETING[:20],
    "a greeting and nothing after it": GREETING,
    "a greeting and garbage": GREETING + b"\xde\xad\xbe\xef" * 500,
    "a mechanism that the server does not have": GREETING.replace(b"NULL", b"CURV") + bytes(200),
    "a message before the handshake's end": GREETING + one_part(control(HELO, 1)) * 3,
}


@contextmanager
def raw(server: Server, greeting: bytes) -> Iterator[socket.socket]:
    """A connection that is no ZeroMQ client's, and has said that much."""
    with socket.create_connection(server.address, PATIENCE_S) as connection:
        connection.sendall(greeting)
        yield connection


@contextmanager
def shaken_hands(server: Server, routing_id: bytes) -> Iterator[socket.socket]:
    """A connection after the handshake of ZMTP, of a DEALER by its bytes."""
    with raw(server, GREETING + ready(routing_id)) as connection:
        stream = b""
        while b"READY" not in stream:
            more = connection.recv(1000)
            assert more, stream
            stream += more
        yield connection


def all_that_comes(connection: socket.socket) -> bytes:
    """Return what was sent here, until nothing comes for a while or the connection ends."""
    connection.settimeout(NO_ANSWER_S)
    stream = b""
    with suppress(TimeoutError):
        while more := connection.recv(1000):
            stream += more
    return stream


@pytest.mark.once_a_family
def test_a_client_without_zeromq_is_no_member_and_harms_none(spoken: Spoken, workload: str) -> None:
    with spoken.serving(workload) as server:
        with talking(spoken.transport, server, workload) as talk:
            descriptors = proc.descriptors(server.pid)
            with ExitStack() as silent_from_now_on:
                for greeting in STRANGE.values():
                    for _ in range(5):
                        silent_from_now_on.enter_context(raw(server, greeting))
                    talk.check()
            eventually(lambda: proc.descriptors(server.pid) <= descriptors, "descriptors leak")
        totals = server.stop()
    assert totals["connections"] == (2 if workload == "chat" else 1)


@pytest.mark.once_a_family
def test_a_client_by_its_bytes_is_served_and_one_with_a_forged_routing_id_is_not(spoken: Spoken) -> None:
    """A routing id has 255 bytes at most; libzmq lets a longer one through."""
    with spoken.serving("echo") as server:
        with talking(spoken.transport, server, "echo") as talk:
            with shaken_hands(server, b"x" * 255) as good:
                good.sendall(one_part(control(HELO, 7)))
                stream = b""
                while control(WELC, 7) not in stream:
                    more = good.recv(1000)
                    assert more, stream
                    stream += more
            with shaken_hands(server, b"x" * 256) as bad:
                bad.sendall(one_part(control(HELO, 8)) * 2)
                talk.check()
                with joined(spoken.transport, server):  # a client that came after it was served
                    assert WELC not in all_that_comes(bad)
        totals = server.stop()
    assert (totals["connections"], totals["protocol_errors"]) == (3, 2)


@pytest.mark.once_a_family
def test_an_endless_message_costs_its_sender_the_connection_and_no_memory(spoken: Spoken) -> None:
    """It is not only too long, it is never read (ZMQ_MAXMSGSIZE)."""
    with spoken.serving("echo") as server, talking(spoken.transport, server, "echo") as talk:
        memory = proc.resident_bytes(server.pid)
        for size in (4 << 20, 1 << 40, 1 << 62):
            with shaken_hands(server, b"greedy") as connection:
                connection.sendall(b"\x02" + size.to_bytes(8, "big") + b"x" * 1000)
                with suppress(ConnectionResetError):  # what it had sent was not read
                    while connection.recv(1000):
                        pass
            talk.check()
        if not proc.sanitized(server.pid):
            assert proc.resident_bytes(server.pid) - memory < MEMORY_BOUND


def welcomed(server: Server, routing_id: bytes, patience_s: float) -> bool:
    """A new connection with this id is heard. libzmq decides that once, when the connection is made."""
    with ZmqClient(server, routing_id) as client:
        client.send(control(HELO, client.token))
        return client.poll(patience_s) == control(WELC, client.token)


@pytest.mark.once_a_family
def test_the_routing_id_of_another_is_worth_nothing(spoken: Spoken) -> None:
    """ROUTER_HANDOVER is off: libzmq ignores a second client with the same id. The server's I/O thread decides which is
    the second: so that one connects when the first is known. And the server's own thread gives an id back some time
    after the descriptor is closed: a client that comes in between is ignored for as long as it is connected."""
    with spoken.serving("echo") as server:
        descriptors = proc.descriptors(server.pid)
        with ZmqClient(server, b"twin") as first:
            first.join()
            with ZmqClient(server, b"twin") as second:
                second.send(control(BYE, first.token))
                second.send(message("echo", second.identity, 0))
                second.send(control(HELO, second.token))
                with talking(spoken.transport, server, "echo") as talk:
                    talk.check()
                    assert second.poll(NO_ANSWER_S) is None
                expect_nothing(first, first, "echo")
        eventually(lambda: proc.descriptors(server.pid) <= descriptors, "their connections stay")
        assert any(welcomed(server, b"twin", patience_s) for patience_s in (0.5, 1, 2, 4, 8, 16)), "the id is not free"
        totals = server.stop()
    assert (totals["protocol_errors"], totals["strangers"], totals["requests"]) == (0, 0, 4)


@pytest.mark.once_a_family
def test_a_message_of_several_parts_is_counted_and_its_sender_stays(spoken: Spoken, workload: str) -> None:
    with spoken.serving(workload) as server:
        with (
            talking(spoken.transport, server, workload) as talk,
            ZmqClient(server) as client,
            ZmqClient(server) as stranger,
        ):
            client.join()
            whole = message(workload, client.identity, 0)
            parts = [(whole, whole), (b"", whole), (whole[:4], whole[4:]), (control(HELO, 1), b""), (whole,) * 1000]
            for multipart in parts:
                client.send_parts(*multipart)
                stranger.send_parts(*multipart)
            expect_nothing(client, talk.listener, workload)
            client.bye()
            expect_nothing(stranger, talk.listener, workload)
            stranger.bye()
        totals = server.stop()
    assert totals["protocol_errors"] == 2 * len(parts)


@pytest.mark.once_a_family
def test_a_socket_of_another_kind_is_no_client(spoken: Spoken, workload: str) -> None:
    """A REQ puts an empty part before its message. A PUB is refused by libzmq."""
    with spoken.serving(workload) as server:
        with talking(spoken.transport, server, workload) as talk:
            for kind in (zmq.REQ, zmq.PUB):
                with CONTEXT.socket(kind) as stray:
                    stray.setsockopt(zmq.LINGER, 0)
                    stray.connect(server.endpoint.removeprefix("zmq+"))
                    stray.send(control(HELO, 1))
                    talk.check()
                    assert not stray.poll(int(NO_ANSWER_S * 1000), zmq.POLLIN) if kind == zmq.REQ else True
        totals = server.stop()
    assert totals["protocol_errors"] == 1


def all_until_now(client: MessageClient) -> list[bytes]:
    """What has been sent to the client so far: until a new HELO, repeated where its queue has no room for the answer,
    is welcomed."""
    heard: list[bytes] = []
    for token in range(100):
        client.send(control(HELO, token))
        while (got := client.poll(1.0)) is not None:
            if got == control(WELC, token):
                client.token = token
                return heard
            if not is_control(got):
                heard.append(got)
    raise AssertionError("never welcomed")


def is_control(message: bytes) -> bool:
    """It is none of the workload."""
    return message.startswith(bytes(4))


@pytest.mark.once_a_family
@pytest.mark.workloads("chat")
def test_a_reader_that_stops_loses_what_is_beyond_the_mark_and_no_other_anything(spoken: Spoken, workload: str) -> None:
    """More than the kernel's buffers take, of messages that are shared: they cost the server no memory each."""
    size, how_many, hwm = 60_000, 500, 20
    with spoken.serving(workload, "--hwm", str(hwm)) as server:
        with talking(spoken.transport, server, workload) as talk, ZmqClient(server, receive_hwm=1) as slow:
            slow.join()
            memory = proc.resident_bytes(server.pid)
            for number in range(how_many):
                talk.speaker.send(message(workload, 1, number, size))
                assert talk.listener.receive() == message(workload, 1, number, size)
            if not proc.sanitized(server.pid):
                assert proc.resident_bytes(server.pid) - memory < MEMORY_BOUND
            heard = [wire.read_stamp(wire.frames(got)[0])[1] for got in all_until_now(slow)]
            assert heard == sorted(set(heard))
            assert hwm < len(heard) < how_many
            talk.check()  # it reads again, so it hears again
            slow.receive()
            slow.bye()
        totals = server.stop()
    assert totals["send_dropped"] == how_many - len(heard)
    assert totals["slow_closed"] == 0


@pytest.mark.once_a_family
@pytest.mark.workloads("echo")
def test_answers_beyond_the_mark_are_dropped_and_counted(spoken: Spoken, workload: str) -> None:
    size, how_many, hwm = 60_000, 500, 20
    with spoken.serving(workload, "--hwm", str(hwm)) as server, ZmqClient(server, receive_hwm=1) as slow:
        with talking(spoken.transport, server, workload) as talk:
            slow.join()
            memory = proc.resident_bytes(server.pid)
            for number in range(how_many):
                slow.send(message(workload, 1, number, size))
                if number % 50 == 0:
                    talk.check()
            answered = len(all_until_now(slow))
            assert hwm < answered < how_many
            if not proc.sanitized(server.pid):
                assert proc.resident_bytes(server.pid) - memory < MEMORY_BOUND
        totals = server.stop()
        while (got := slow.receive()) != control(BYE, slow.token):  # the welcome may have overtaken answers
            answered += not is_control(got)
    assert totals["send_dropped"] > 0
    assert answered + totals["send_dropped"] + totals["receive_dropped"] == how_many


@pytest.mark.once_a_family
@pytest.mark.workloads("rpc")
def test_requests_beyond_half_the_mark_are_dropped_and_counted(spoken: Spoken, workload: str) -> None:
    """Half of it, so that the answers to what was taken find room together. On a machine where not all is taken while
    the first is served, once more."""
    how_many, hwm, room, service_s = 50, 10, 5, 1.0
    for _ in range(10):
        with spoken.serving(workload, "--hwm", str(hwm)) as server:
            with talking(spoken.transport, server, workload) as talk, joined(spoken.transport, server) as (eager,):
                began = time.monotonic()
                eager.send(wire.frame(wire.request(0, b"s", int(service_s * 1e6))))
                for number in range(1, how_many):
                    eager.send(message(workload, eager.identity, number))
                assert eager.hello() == WELC  # so all of it was taken or dropped
                in_time = time.monotonic() - began < service_s
                talk.check()
                if in_time:
                    assert eager.receive() == wire.frame(wire.response(0, b"s"))
                    for number in range(1, room):
                        assert eager.receive() == reply(workload, eager.identity, number)
                    expect_nothing(eager, eager, workload)
            totals = server.stop()
        if in_time:
            assert totals["receive_dropped"] == how_many - room
            assert totals["send_dropped"] == 0
            return
    raise AssertionError(f"never did it take {how_many} requests within {service_s:g} s")


@pytest.mark.once_a_family
@pytest.mark.workloads("chat")
def test_a_client_that_is_gone_is_forgotten_with_the_first_message_that_it_does_not_get(
    spoken: Spoken, workload: str
) -> None:
    """ZeroMQ decides when to report that: so the test talks until the place is free. All known clients have spoken, so
    none gives way. And only the one client is left to vanish."""
    with spoken.serving(workload, "--peers", "3") as server, ExitStack() as until_it_ends:
        with talking(spoken.transport, server, workload) as talk:
            descriptors = proc.descriptors(server.pid)
            with ZmqClient(server) as gone:
                gone.expect_welcome()  # after one HELO: the answer to another might tell that it is gone, uncounted
                speak([*talk.clients, gone], [*talk.clients, gone], workload)
            eventually(lambda: proc.descriptors(server.pid) == descriptors, "its connection stays")
            late = until_it_ends.enter_context(ZmqClient(server))

            def welcome() -> bool:
                talk.check()
                return late.hello() == WELC

            eventually(welcome, "its place is not free")
        totals = server.stop()
    assert totals["send_dropped"] == 1
    assert totals["peers_expired"] == 0


@pytest.fixture
def many_descriptors() -> Iterator[int]:
    """As many descriptors as this process may have; the server inherits that."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.once_a_family
def test_thousands_connect_at_once_and_leave(spoken: Spoken, many_descriptors: int) -> None:
    how_many = 2000
    if many_descriptors < 3 * how_many:
        pytest.skip(f"needs {3 * how_many} descriptors, and the hard limit is {many_descriptors}")
    with spoken.serving("echo") as server:
        descriptors = proc.descriptors(server.pid)
        crowd = [ZmqClient(server) for _ in range(how_many)]
        for client in crowd:
            client.send(control(HELO, client.token))
        for client in crowd:
            assert client.receive() == control(WELC, client.token)
        for client in crowd:
            client.send(message("echo", client.identity, 0))
        for client in crowd:
            assert client.receive() == reply("echo", client.identity, 0)
            client.close()
        eventually(lambda: proc.descriptors(server.pid) <= descriptors, "descriptors leak")
        totals = server.stop()
    assert (totals["connections"], totals["requests"]) == (how_many, how_many)


@pytest.mark.once_a_family
def test_io_threads_are_as_many_as_are_requested(spoken: Spoken) -> None:
    threads = []
    for how_many in (1, 4):
        with spoken.serving("echo", "--io-threads", str(how_many)) as server:
            with talking(spoken.transport, server, "echo") as talk:
                talk.check()
            threads.append(proc.status(server.pid, "Threads"))
    assert threads[1] - threads[0] == 3


@pytest.mark.once_a_family
@pytest.mark.parametrize("option", ["--io-threads", "--hwm"])
def test_a_bad_value(spoken: Spoken, option: str) -> None:
    for value in ("", "0", "-1", "many", "99999999"):
        finished = spoken.run(option, value)
        assert (finished.code, finished.stdout) == (2, ""), finished
        assert option in finished.stderr
