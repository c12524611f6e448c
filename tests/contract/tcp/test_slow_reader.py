"""A client that stops reading: what it may cost the server, and whom it may hold up."""

from __future__ import annotations

import select
from contextlib import ExitStack

import pytest

from netdyno.model.contestant import Contestant
from tests.contract.golden import wire
from tests.contract.talk import message
from tests.contract.tcp.conftest import room_for, threads_for
from tests.contract.tcp.talk import Talk, joined
from tests.support import proc
from tests.support.client import Client
from tests.support.patience import eventually
from tests.support.server import Server, serving

FRAME = 64 << 10
# More than the kernel buffers of one connection ever hold (tcp_wmem and tcp_rmem: 4 and 6 MiB by default).
BEYOND_KERNEL_BUFFERS = 24 << 20
NEVER_CLOSED = 96 << 20
SMALL_BUFFER = 4096
MEMORY_BOUND = 48 << 20


class Crowd:
    """A reader that has stopped reading, and two clients that want to go on."""

    def __init__(self, server: Server, stack: ExitStack) -> None:
        self.server = server
        self.slow = stack.enter_context(Client(server.address, receive_buffer=SMALL_BUFFER))
        self.slow.send(message("chat", self.slow.identity, self.slow.next_number()))
        server.wait_read(self.slow.address)
        self.speaker = stack.enter_context(joined(server, "chat"))
        self.listener = stack.enter_context(joined(server, "chat"))

    def say(self) -> int:
        """One large message that the listener must get, whole, whatever the slow reader does. Its number."""
        number = self.speaker.next_number()
        self.speaker.send(message("chat", self.speaker.identity, number, FRAME))
        heard = (-1, -1)
        while heard != (self.speaker.identity, number):
            heard = wire.read_stamp(self.listener.frame())
        return number

    def heard_at_last(self) -> list[int]:
        """What the slow reader gets of the speaker's large messages when it reads at last, until it is closed."""
        stream = self.slow.rest_until_closed()
        numbers = []
        while len(stream) >= wire.FRAME_HEADER:
            size = int.from_bytes(stream[: wire.FRAME_HEADER], "big")
            body = stream[wire.FRAME_HEADER : wire.FRAME_HEADER + size]
            stream = stream[wire.FRAME_HEADER + size :]
            if len(body) < size:
                break  # it was closed inside a message
            sender, number = wire.read_stamp(body)
            numbers += [number] if sender == self.speaker.identity and number else []
        return numbers


@pytest.mark.asynchronous(True)
@pytest.mark.workloads("chat")
def test_a_slow_reader_holds_up_nobody_and_misses_nothing(contestant: Contestant, workload: str) -> None:
    """As long as its outbox has room, it is only late."""
    options = ("--workload", workload, "--outbox-limit", "1GiB", *threads_for(contestant))
    with serving(contestant.command, *options) as server, ExitStack() as stack:
        crowd = Crowd(server, stack)
        said = [crowd.say() for _ in range(BEYOND_KERNEL_BUFFERS // FRAME)]
        heard: list[int] = []
        while heard[-1:] != said[-1:]:
            sender, number = wire.read_stamp(crowd.slow.frame())
            heard += [number] if sender == crowd.speaker.identity and number else []
        assert heard == said
        assert server.stop()["slow_closed"] == 0


@pytest.mark.workloads("chat")
def test_a_slow_reader_is_closed_and_counted(contestant: Contestant, workload: str) -> None:
    """Asynchronous models bound its outbox. Blocking ones bound the time that a send may take (2 s), during which the
    others wait; each of them then gets all that was said."""
    options = ("--workload", workload, "--outbox-limit", "256KiB", *threads_for(contestant))
    with serving(contestant.command, *options) as server, ExitStack() as stack:
        crowd = Crowd(server, stack)
        crowd.say()
        open_before, memory = proc.descriptors(server.pid), proc.resident_bytes(server.pid)
        said: list[int] = []
        while proc.descriptors(server.pid) == open_before:
            said.append(crowd.say())
            assert len(said) * FRAME < NEVER_CLOSED, "a reader that reads nothing is never closed"
        if not proc.sanitized(server.pid):
            assert proc.resident_bytes(server.pid) - memory < MEMORY_BOUND
        for _ in range(20):
            crowd.say()
        numbers = crowd.heard_at_last()
        assert numbers == list(range(1, len(numbers) + 1)), "what it got before it was closed has gaps"
        assert len(numbers) <= len(said) + 1
        assert server.stop()["slow_closed"] == 1


@pytest.mark.asynchronous(True)
@pytest.mark.workloads("chat")
def test_the_outbox_limit_decides_when_a_reader_is_too_slow(contestant: Contestant, workload: str) -> None:
    """The same silence is forgiven with a large limit (above) and ends sooner the smaller the limit is."""
    lasted = []
    for limit_mib in (1, 24):
        options = ("--workload", workload, "--outbox-limit", f"{limit_mib}MiB", *room_for(contestant, 3))
        with serving(contestant.command, *options) as server, ExitStack() as stack:
            crowd = Crowd(server, stack)
            open_before, count = proc.descriptors(server.pid), 0
            while proc.descriptors(server.pid) == open_before:
                crowd.say()
                count += 1
                assert count * FRAME < NEVER_CLOSED, "a reader that reads nothing is never closed"
            lasted.append(count * FRAME)
    assert lasted[0] >= 1 << 20
    assert lasted[1] >= 24 << 20
    assert lasted[1] - lasted[0] > 12 << 20  # 23 MiB, less what the kernel's buffers vary


@pytest.mark.workloads("chat")
def test_a_reader_that_keeps_up_gets_what_is_larger_than_the_limit(contestant: Contestant, workload: str) -> None:
    """The limit is on what waits, and nothing waits for one who reads."""
    options = ("--workload", workload, "--outbox-limit", "1KiB", *threads_for(contestant))
    with serving(contestant.command, *options) as server, ExitStack() as stack:
        speaker, listener = (stack.enter_context(joined(server, workload)) for _ in range(2))
        for _ in range(3):
            number = speaker.next_number()
            speaker.send(message(workload, speaker.identity, number, 16 << 10))
            while wire.read_stamp(listener.frame()) != (speaker.identity, number):
                pass
        assert server.stop()["slow_closed"] == 0


@pytest.mark.workloads("echo", "lines", "rpc", "http")
def test_a_client_that_asks_and_never_reads(contestant: Contestant, workload: str) -> None:
    """The server stops reading from it, or closes it; it neither hoards replies nor lets others wait."""
    with serving(contestant.command, "--workload", workload, *threads_for(contestant, clients=4)) as server:
        with Talk(server, workload) as talk, Client(server.address, receive_buffer=SMALL_BUFFER) as greedy:
            talk.check()
            memory = proc.resident_bytes(server.pid)
            stream = b"".join(talk.message(greedy, size=1000)[1] for _ in range(1000))
            sent = _send_until_it_blocks(greedy, stream, 96)
            assert sent < 96 * len(stream), "the server takes requests without end whose replies nobody reads"
            talk.check()
            if not proc.sanitized(server.pid):
                assert proc.resident_bytes(server.pid) - memory < MEMORY_BOUND
        with Talk(server, workload) as talk:
            talk.check()
        eventually(lambda: proc.status(server.pid, "Threads") < 20, "its thread stays")


def _send_until_it_blocks(client: Client, stream: bytes, times: int) -> int:
    """Send `stream` over and over until nothing more is taken for a while, or the server closes. Bytes sent."""
    client.socket.setblocking(False)
    sent = 0
    view = memoryview(stream * 2)
    while sent < times * len(stream):
        _, writable, _ = select.select([], [client.socket], [], 0.5)
        if not writable:
            break
        try:
            at = sent % len(stream)
            sent += client.socket.send(view[at : at + len(stream)])
        except (BrokenPipeError, ConnectionResetError):
            break
    return sent
