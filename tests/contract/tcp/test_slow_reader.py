"""A client that stops reading: what it may cost the server, and which clients it may hold up."""

from __future__ import annotations

import re
import select
import signal
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from random import Random

import pytest

from netdyno.kit.paths import ROOT
from netdyno.model.contestant import Contestant
from tests.contract.golden import wire
from tests.contract.talk import STAMP, message
from tests.contract.tcp.conftest import ServedContestant, room_for, threads_for
from tests.contract.tcp.stream_talk import StreamTalk, expect_reply, joined
from tests.support import proc
from tests.support.client import Client
from tests.support.patience import eventually
from tests.support.server import Server, serving

FRAME = 64 << 10
SMALL_BUFFER = 4096
READING_BUFFER = 64 << 10
BEYOND_KERNEL_BUFFERS = 2 << 20
"""More than the kernel ever holds of a connection to a client with one of these receive buffers (support/client.py)."""
NEVER_CLOSED = 96 << 20
MEMORY_BOUND = 48 << 20
SLOW_READERS = 10
FRAME_OVERHEAD = 128  # what a frame that waits counts beside its bytes, in every server (protocol/WIRE.md)
MEMORY_BESIDE = 24 << 20
"""The memory of a server that holds what it may, for itself and for other things."""
YOUNG_GENERATION = 32 << 20
"""V8's: two halves of 16 MiB, which it keeps once messages came fast, with 3 to 10 MiB in use. What outlives them is
garbage in the old one until helper threads get a core: in one run where they got none, 52 MiB for 11 with cores."""
HALF_SENDERS = 40
COLLECTED = ("erlang", "go", "java", "command")
"""Kinds of contestants whose runtime decides when memory goes back to the system."""


@dataclass(frozen=True)
class HoldLimit:
    """What protocol/WIRE.md lets a server hold for messages that are not complete, as it is stated there."""

    part: Fraction
    of_each: int
    spare: int

    @staticmethod
    def stated(*, collected: bool) -> HoldLimit:
        text = " ".join((ROOT / "protocol" / "WIRE.md").read_text(encoding="utf-8").split())
        parts = re.findall(r"at most (\d+/\d+) of what has arrived (?:of it )?and (\d+) KiB", text)
        spare = re.findall(r"but for (\d+) MiB in all", text)
        assert (len(parts), len(spare)) == (2, 2), "protocol/WIRE.md does not state the bound"
        part, kib = parts[collected]
        return HoldLimit(Fraction(part), int(kib) << 10, int(spare[collected]) << 20)

    def held(self, arrived: int, connections: int) -> Fraction:
        """The most that so many connections may take while all of it is there."""
        return self.kept(connections) + arrived * self.part

    def kept(self, connections: int) -> int:
        """The most that may be left when the messages are gone."""
        return self.spare + connections * self.of_each


class Crowd:
    """A reader that has stopped reading, and two clients that want to go on."""

    def __init__(self, server: Server, stack: ExitStack) -> None:
        self.server = server
        self.slow = stack.enter_context(Client(server.address, receive_buffer=SMALL_BUFFER))
        self.slow.send(message("chat", self.slow.identity, self.slow.next_number()))
        server.wait_read(self.slow.address)
        self.speaker = stack.enter_context(joined(server, "chat"))
        self.listener = stack.enter_context(joined(server, "chat"))

    @property
    def holds_slow(self) -> bool:
        """The server has not closed the slow reader. A count of its descriptors would not say so for sure: a runtime
        opens and closes some of its own."""
        return proc.is_open(self.server.address, self.slow.address)

    def say(self) -> int:
        """One large message that the listener must get, whole, whatever the slow reader does. Its number."""
        number = self.speaker.next_number()
        self.speaker.send(message("chat", self.speaker.identity, number, FRAME))
        heard = (-1, -1)
        while heard != (self.speaker.identity, number):
            heard = wire.read_stamp(self.listener.frame())
        return number

    def heard_at_last(self) -> list[int]:
        """Read what the slow reader gets of the speaker's large messages when it reads at last, until it is closed."""
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


@pytest.mark.once_a_family
@pytest.mark.asynchronous(True)
@pytest.mark.workloads("chat")
def test_a_slow_reader_holds_up_none_and_misses_nothing(contestant: Contestant, workload: str) -> None:
    """As long as its outbox has room, it is only late."""
    options = ("--workload", workload, "--outbox-limit", "1GiB", *threads_for(contestant))
    with serving(contestant.command, *options) as server, ExitStack() as stack:
        crowd = Crowd(server, stack)
        sent = [crowd.say() for _ in range(BEYOND_KERNEL_BUFFERS // FRAME)]
        heard: list[int] = []
        while heard[-1:] != sent[-1:]:
            sender, number = wire.read_stamp(crowd.slow.frame())
            heard += [number] if sender == crowd.speaker.identity and number else []
        assert heard == sent
        assert server.stop()["slow_closed"] == 0


@pytest.mark.workloads("chat")
def test_a_slow_reader_is_closed_and_counted(contestant: Contestant, workload: str) -> None:
    """Asynchronous models bound its outbox. Blocking ones bound the time that a send may take (2 s), during which the
    others wait; each of them then gets all that was said."""
    options = ("--workload", workload, "--outbox-limit", "256KiB", *threads_for(contestant))
    with serving(contestant.command, *options) as server, ExitStack() as stack:
        crowd = Crowd(server, stack)
        crowd.say()
        memory = proc.resident_bytes(server.pid)
        sent: list[int] = []
        while crowd.holds_slow:
            sent.append(crowd.say())
            assert len(sent) * FRAME < NEVER_CLOSED, "a reader that reads nothing is never closed"
        if not proc.sanitized(server.pid):
            assert proc.resident_bytes(server.pid) - memory < MEMORY_BOUND
        for _ in range(20):
            crowd.say()
        numbers = crowd.heard_at_last()
        assert numbers == list(range(1, len(numbers) + 1)), "what it got before it was closed has gaps"
        assert len(numbers) <= len(sent) + 1
        assert server.stop()["slow_closed"] == 1


@pytest.mark.asynchronous(True)
@pytest.mark.workloads("chat")
def test_what_waits_for_slow_readers_counts_with_what_it_takes_to_keep_it(
    contestant: Contestant, workload: str
) -> None:
    """Frames of one byte: to keep one takes many times its size. What the kernel takes for a reader is filled with long
    ones before."""
    limit = 2 << 20
    options = ("--workload", workload, "--outbox-limit", str(limit), *room_for(contestant, SLOW_READERS + 1))
    with serving(contestant.command, *options) as server, ExitStack() as stack:
        speaker = stack.enter_context(joined(server, workload))
        without_readers = proc.descriptors(server.pid)
        readers = [
            stack.enter_context(Client(server.address, receive_buffer=SMALL_BUFFER)) for _ in range(SLOW_READERS)
        ]
        for reader in readers:
            reader.send(message(workload, reader.identity, 0))
            server.wait_read(reader.address)
        memory = proc.resident_bytes(server.pid)
        _fill_kernel_buffers(server, speaker, readers[0])
        tiny_frames = wire.frame(b"x") * 1000
        sent, most = 0, 0
        while proc.descriptors(server.pid) > without_readers:
            speaker.send(tiny_frames)
            server.wait_read(speaker.address)
            sent += 1000
            # The kernel may take more for some of them than for the first, and a server that joins them hands it many.
            counted = sent * (len(wire.frame(b"x")) + FRAME_OVERHEAD)
            assert counted < 16 * limit, "readers that read nothing are never closed, or late"
            most = max(most, proc.resident_bytes(server.pid) - memory)
        if not proc.sanitized(server.pid):
            beside = MEMORY_BESIDE + (YOUNG_GENERATION if "node" in contestant.manifest.run else 0)
            assert most < limit * SLOW_READERS * 3 // 2 + beside
        assert server.stop()["slow_closed"] == SLOW_READERS


def _fill_kernel_buffers(server: Server, speaker: Client, reader: Client) -> None:
    """Speaks until the kernel takes no more for one that does not read."""
    taken = -1
    while (now := proc.queued(server.address, reader.address)[1]) > taken:
        taken = now
        for _ in range(2):
            speaker.send(message("chat", speaker.identity, speaker.next_number(), FRAME))
        server.wait_read(speaker.address)


@pytest.mark.once_a_family
@pytest.mark.workloads("chat")
def test_half_of_a_message_takes_memory_as_it_arrives_and_gives_it_back(contestant: Contestant, workload: str) -> None:
    """And not what was announced, or what growing leaves behind: pieces of any size come to many connections in turn,
    and one that came last stays, so that what lies below it in a heap is not given back by chance."""
    chance, announced = Random(7), 2 << 20
    bound = HoldLimit.stated(collected=contestant.manifest.kind in COLLECTED)
    options = ("--workload", workload, "--max-frame", str(announced), *room_for(contestant, HALF_SENDERS + 1))
    with serving(contestant.command, *options) as server:
        descriptors, memory = proc.descriptors(server.pid), proc.resident_bytes(server.pid)
        with ExitStack() as stack:
            left = {
                stack.enter_context(Client(server.address)): chance.randrange(announced // 4, announced)
                for _ in range(HALF_SENDERS)
            }
            arrived = sum(left.values())
            for client in left:
                client.send(announced.to_bytes(wire.FRAME_HEADER, "big"))
            while left:
                sample = chance.sample(list(left), min(len(left), HALF_SENDERS // 4))
                for client in sample:
                    size = min(left[client], chance.randrange(1, announced // 3))
                    client.send(bytes(size))
                    left[client] -= size
                    if not left[client]:
                        del left[client]
                server.wait_read(*(client.address for client in sample))
            before_last = proc.descriptors(server.pid)
            last = Client(server.address)
            last.send(announced.to_bytes(wire.FRAME_HEADER, "big")[:3])
            eventually(lambda: proc.descriptors(server.pid) > before_last, "the last one is not let in")
            server.wait_read(last.address)
            held, of_last = proc.resident_bytes(server.pid) - memory, proc.descriptors(server.pid) - before_last
        eventually(lambda: proc.descriptors(server.pid) <= descriptors + of_last, "not all who went are let go")
        if not proc.sanitized(server.pid):
            assert held <= bound.held(arrived, HALF_SENDERS + 1)
            eventually(
                lambda: proc.resident_bytes(server.pid) - memory <= bound.kept(HALF_SENDERS + 1),
                lambda: f"it keeps {proc.resident_bytes(server.pid) - memory:,} of {bound.kept(HALF_SENDERS + 1):,}",
            )
        last.close()
        assert server.stop()["protocol_errors"] == HALF_SENDERS + 1


@pytest.mark.once_a_family
@pytest.mark.workloads("chat")
def test_a_reader_that_keeps_up_gets_what_is_larger_than_the_limit(contestant: Contestant, workload: str) -> None:
    """The limit is on what waits beside one frame, which always may, however little of it the kernel takes at once."""
    options = ("--workload", workload, "--outbox-limit", "1KiB", "--max-frame", "16MiB", *threads_for(contestant))
    with serving(contestant.command, *options) as server, ExitStack() as stack:
        speaker = stack.enter_context(joined(server, workload))
        listener = stack.enter_context(joined(server, workload, receive_buffer=READING_BUFFER))
        for size in (16 << 10, 16 << 10, BEYOND_KERNEL_BUFFERS, BEYOND_KERNEL_BUFFERS):
            number = speaker.next_number()
            speaker.send(message(workload, speaker.identity, number, size))
            while wire.read_stamp(listener.frame()) != (speaker.identity, number):
                pass
        assert server.stop()["slow_closed"] == 0


@pytest.mark.once_a_family
@pytest.mark.workloads("chat")
def test_the_smallest_limit_lets_one_frame_wait(contestant: Contestant, workload: str) -> None:
    """Many are sent at once, and one after the other arrives."""
    options = ("--workload", workload, "--outbox-limit", "1", "--audience", "others", *threads_for(contestant))
    with serving(contestant.command, *options) as server, ExitStack() as stack:
        speaker = stack.enter_context(joined(server, workload))
        reader = stack.enter_context(Client(server.address))
        reader.send(message(workload, reader.identity, 0))
        assert wire.read_stamp(speaker.frame()) == (reader.identity, 0)
        numbers = [speaker.next_number() for _ in range(20)]
        speaker.send(b"".join(message(workload, speaker.identity, number, 1000) for number in numbers))
        heard: list[int] = []
        while len(heard) < len(numbers):
            number = wire.read_stamp(reader.frame())[1]
            heard += [number] if number else []  # not how the speaker joined
        assert heard == numbers
        assert server.stop()["slow_closed"] == 0


@pytest.mark.once_a_family
@pytest.mark.asynchronous(True)
@pytest.mark.workloads("chat")
def test_a_reader_that_keeps_up_stays_beside_forty_that_do_not(contestant: Contestant, workload: str) -> None:
    """And gets all that is said, though what is said at once is many times the limit: its socket could take that. A
    server that has not got round to sending is behind itself, and makes the speaker wait."""
    limit, burst, slow_readers = 8 << 10, 40 << 10, 40
    options = ("--workload", workload, "--outbox-limit", str(limit), *threads_for(contestant))
    with serving(contestant.command, *options) as server, ExitStack() as stack:
        speaker, listener = (stack.enter_context(joined(server, workload)) for _ in range(2))
        for _ in range(slow_readers):
            reader = stack.enter_context(Client(server.address, receive_buffer=SMALL_BUFFER))
            reader.send(message(workload, reader.identity, 0))
            server.wait_read(reader.address)
        for size, times in ((100, 3), (2000, 5), (6000, 12)):
            for _ in range(times):
                numbers = [speaker.next_number() for _ in range(burst // size)]
                speaker.send(b"".join(message(workload, speaker.identity, number, size) for number in numbers))
                heard: list[int] = []
                while len(heard) < len(numbers):
                    sender, number = wire.read_stamp(listener.frame())
                    heard += [number] if sender == speaker.identity and number else []
                assert heard == numbers
        assert 0 < server.stop()["slow_closed"] <= slow_readers


@pytest.mark.once_a_family
@pytest.mark.asynchronous(True)
@pytest.mark.workloads("chat")
def test_the_outbox_limit_decides_when_a_reader_is_too_slow(contestant: Contestant, workload: str) -> None:
    """Count what is being sent as well as what comes after it: this reader reads once, so that the server sends all
    that waits. No reader is closed before the limit, or late."""
    limit, almost, beside = 4 << 20, 7 << 19, 1 << 20
    options = ("--workload", workload, "--outbox-limit", str(limit), *room_for(contestant, 3))
    with serving(contestant.command, *options) as server, ExitStack() as stack:
        crowd = Crowd(server, stack)
        sent, read = 0, 1 << 20

        def in_kernel() -> int:
            unread = proc.queued(crowd.slow.address, server.address)[0]
            return unread + proc.queued(server.address, crowd.slow.address)[1]

        while sent - in_kernel() < almost:
            crowd.say()
            sent += FRAME
        held_by_kernel = in_kernel()
        crowd.slow.receive(read)
        eventually(lambda: in_kernel() > held_by_kernel // 2, "what waits is not sent to one who reads")
        while crowd.holds_slow:
            held_by_kernel = max(held_by_kernel, in_kernel())
            crowd.say()
            sent += FRAME
            assert sent - read < limit + held_by_kernel + beside, "it takes more than the limit"
        assert sent > limit, "it takes less than the limit"


@pytest.mark.once_a_family
@pytest.mark.asynchronous(True)
@pytest.mark.workloads("chat")
def test_a_client_that_has_read_since_the_server_looked_is_not_slow(contestant: Contestant, workload: str) -> None:
    """The server stands still meanwhile. Then it finds at once that more than the limit was said, and that this reader,
    whose socket had taken nothing, takes more."""
    if contestant.manifest.kind == "java" or "node" in contestant.manifest.run:
        pytest.skip("its runtime tells what a socket takes when the loop turns (protocol/WIRE.md)")
    limit, speakers, per_speaker = 1 << 20, 20, 64
    options = ("--workload", workload, "--outbox-limit", str(limit), "--read-buffer", "128KiB")
    with serving(contestant.command, *options, *room_for(contestant, speakers + 2)) as server, ExitStack() as stack:
        reader, first = (stack.enter_context(joined(server, workload)) for _ in range(2))
        _fill_kernel_buffers(server, first, reader)
        crowd = [stack.enter_context(joined(server, workload)) for _ in range(speakers)]
        server.signal(signal.SIGSTOP)
        for speaker in crowd:
            numbers = [speaker.next_number() for _ in range(per_speaker)]
            speaker.send(b"".join(message(workload, speaker.identity, number, 1000) for number in numbers))
        eventually(lambda: _takes_all(reader, server), "the kernel does not hand over what it holds for a reader")
        server.signal(signal.SIGCONT)
        heard = {speaker.identity: [0] for speaker in crowd}
        while sum(map(len, heard.values())) < speakers * (1 + per_speaker):
            sender, number = wire.read_stamp(reader.frame())
            if sender in heard and number:
                heard[sender].append(number)
        assert all(numbers == list(range(1 + per_speaker)) for numbers in heard.values())


def _takes_all(reader: Client, server: Server) -> bool:
    """Takes what is there, without waiting. True when the kernel holds no more for it."""
    if select.select([reader.socket], [], [], 0)[0]:
        reader.pull()
    return not proc.queued(server.address, reader.address)[1] and not proc.queued(reader.address, server.address)[0]


@pytest.mark.once_a_family
@pytest.mark.workloads("rpc")
def test_what_comes_while_a_reply_is_sent_is_served_last(contestant: Contestant, workload: str) -> None:
    """The first reply is more than the kernel takes. The second request was read with the end of the first, and waits;
    the third comes while the first reply is sent."""
    options = ("--workload", workload, "--service-time", "10ms", "--max-frame", "16MiB", *threads_for(contestant, 1))
    with (
        serving(contestant.command, *options) as server,
        Client(server.address, receive_buffer=SMALL_BUFFER) as client,
    ):
        sizes = (BEYOND_KERNEL_BUFFERS, STAMP, STAMP)
        first, second, third = (message(workload, client.identity, number, size) for number, size in enumerate(sizes))
        client.send(first + second)
        client.pull()
        client.send(third)
        for number, size in enumerate(sizes):
            expect_reply(workload, client, number, size)
        assert server.stop()["requests"] == len(sizes)


@pytest.mark.several_clients(True)
@pytest.mark.workloads("rpc", "http")
def test_a_client_that_asks_and_never_reads(served: ServedContestant, talk: StreamTalk) -> None:
    """The server stops reading from it, or closes it; it neither hoards replies nor lets others wait."""
    server = served.server
    threads = proc.threads(server.pid)
    with Client(server.address, receive_buffer=SMALL_BUFFER) as greedy:
        memory = proc.resident_bytes(server.pid)
        stream = b"".join(talk.message(greedy, size=1000)[1] for _ in range(1000))
        sent = _send_until_it_blocks(greedy, stream, 96)
        assert sent < 96 * len(stream), "the server takes requests without end whose replies nobody reads"
        talk.check()
        if not proc.sanitized(server.pid):
            assert proc.resident_bytes(server.pid) - memory < MEMORY_BOUND
    if served.contestant.manifest.threads == "per-connection":
        eventually(lambda: proc.threads(server.pid) <= threads, "its thread stays")


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
            offset = sent % len(stream)
            sent += client.socket.send(view[offset : offset + len(stream)])
        except (BrokenPipeError, ConnectionResetError):
            break
    return sent
