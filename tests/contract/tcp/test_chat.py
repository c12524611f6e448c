"""Chat when all members talk at once: whole frames, each exactly once, those of one sender in order."""

from __future__ import annotations

import random
import selectors
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import pytest

from netdyno.model.contestant import Contestant
from tests.contract.golden import wire
from tests.contract.talk import message
from tests.contract.tcp.conftest import ServedContestant, threads_for
from tests.contract.tcp.stream_talk import StreamTalk, joined
from tests.support.client import Client
from tests.support.patience import PATIENCE_S
from tests.support.server import Server, serving


class Member:
    """A client that talks and listens at the same time. Its message 0 was spent on joining and may reach others."""

    def __init__(self, client: Client, sizes: Sequence[int]) -> None:
        self.client = client
        self.heard: dict[int, int] = {}
        frames = (message("chat", client.identity, number, size) for number, size in enumerate(sizes, start=1))
        self._unsent = deque(memoryview(frame) for frame in frames)

    @property
    def wants_to_send(self) -> bool:
        """It has more to say."""
        return bool(self._unsent)

    def send_some(self) -> None:
        """As much as the socket takes now, which may end anywhere inside a frame."""
        sent = self.client.socket.send(self._unsent[0])
        if sent < len(self._unsent[0]):
            self._unsent[0] = self._unsent[0][sent:]
        else:
            self._unsent.popleft()

    def hear_some(self) -> None:
        """What has arrived; each complete frame must be the next one of its sender."""
        self.client.pull()
        for frame in self.client.frames():
            sender, number = wire.read_stamp(frame)
            before = self.heard.get(sender, 0)
            assert number in (before + 1, 0), f"of client {sender}: message {number} after {before}"
            assert number or not before, f"of client {sender}: message 0 after {before}"
            self.heard[sender] = number


def everybody_talks(
    server: Server, members: int, sizes: Sequence[int], to_self: bool, receive_buffer: int | None = None
) -> None:
    """Return when every member has heard all that there is to hear, and not a message more."""
    with ExitStack() as stack:
        clients = [stack.enter_context(joined(server, "chat", receive_buffer)) for _ in range(members)]
        crowd = [Member(client, sizes) for client in clients]
        selector = stack.enter_context(selectors.DefaultSelector())
        for member in crowd:
            member.client.socket.setblocking(False)
            selector.register(member.client.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, member)
        identities = {member.client.identity for member in crowd}

        def complete(member: Member) -> bool:
            senders = identities if to_self else identities - {member.client.identity}
            return all(member.heard.get(sender, 0) == len(sizes) for sender in senders)

        incomplete = list(crowd)
        while incomplete := [member for member in incomplete if not complete(member)]:
            ready = selector.select(PATIENCE_S)
            assert ready, f"nothing more comes: {[member.heard for member in crowd]}"
            for key, events in ready:
                if events & selectors.EVENT_READ:
                    key.data.hear_some()
                if events & selectors.EVENT_WRITE:
                    _send(key.data, selector)
        if not to_self:
            assert not [member for member in crowd if member.client.identity in member.heard], "a member heard itself"


def _send(member: Member, selector: selectors.BaseSelector) -> None:
    if member.wants_to_send:
        member.send_some()
    else:
        selector.modify(member.client.socket, selectors.EVENT_READ, member)


SMALL_BUFFER = 16 << 10
SIZES = tuple(random.Random(seed).choice((28, 60, 700, 5000)) for seed in range(40))


@pytest.mark.unsafe(False)
@pytest.mark.workloads("chat")
def test_everybody_talks_to_the_others(served: ServedContestant) -> None:
    everybody_talks(served.server, 8, SIZES, to_self=False)


@pytest.mark.unsafe(False)
@pytest.mark.workloads("chat")
def test_everybody_talks_to_all_in_two_writes(contestant: Contestant, workload: str) -> None:
    """The sender is a recipient too: its own replies meet the broadcasts of the others. At last no send takes a whole
    frame, so frames would mix where a write is not guarded to its end."""
    with talking_to_all(contestant, workload, "split") as server:
        everybody_talks(server, 8, SIZES, to_self=True)
        everybody_talks(server, 4, [300_000, 28, 100_000], to_self=True, receive_buffer=SMALL_BUFFER)


@pytest.mark.once_a_family
@pytest.mark.unsafe(False)
@pytest.mark.workloads("chat")
def test_everybody_talks_to_all(contestant: Contestant, workload: str) -> None:
    with talking_to_all(contestant, workload, "gathered") as server:
        everybody_talks(server, 12, [28, 400, 64] * 4, to_self=True)
        everybody_talks(server, 4, [300_000, 28, 100_000] * 2, to_self=True, receive_buffer=SMALL_BUFFER)


@contextmanager
def talking_to_all(contestant: Contestant, workload: str, mode: str) -> Iterator[Server]:
    """A server that closes no reader as too slow."""
    options = ("--audience", "all", "--outbox-limit", "256MiB", "--write-mode", mode, *threads_for(contestant))
    with serving(contestant.command, "--workload", workload, *options) as server:
        yield server
        assert server.stop()["slow_closed"] == 0


@pytest.mark.workloads("chat")
def test_members_come_and_go_while_others_talk(served: ServedContestant, talk: StreamTalk) -> None:
    """A broadcast meets connections in every state; the two that stay hear everything."""
    for _ in range(50):
        guests = [talk.client() for _ in range(3)]
        number, payload = talk.message(talk.speaker)
        talk.speaker.send(payload)
        guests[0].reset()
        guests[1].send(b"\0\0")
        guests[1].close()
        talk.expect(talk.speaker, number)
        guests[2].close()
