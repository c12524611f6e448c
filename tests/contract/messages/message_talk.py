"""Clients over a transport that carries messages: a conversation that others must not touch, and proof of silence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tests.contract.messages.transport import MessageClient, TransportUnderTest
from tests.contract.talk import message, reply
from tests.support.server import Server

PATIENCE_WITH_LOSS_S = 1.0
"""The wait for one message where some may be lost, before the next is sent."""


class MessageTalk:
    """Healthy clients that another's bad manners must not touch: one that speaks and, in chat, one that listens."""

    def __init__(self, transport: TransportUnderTest, server: Server, workload: str) -> None:
        self.workload = workload
        self.speaker = transport.client(server)
        self.listener = transport.client(server) if workload == "chat" else self.speaker
        for client in self.clients:
            client.join()

    @property
    def clients(self) -> set[MessageClient]:
        """Those that it has."""
        return {self.speaker, self.listener}

    def check(self) -> None:
        """Say something and have it answered once, right in every byte, before anything else."""
        number = self.speaker.next_number()
        self.speaker.send(message(self.workload, self.speaker.identity, number))
        self.listener.expect(reply(self.workload, self.speaker.identity, number))

    def check_despite_loss(self) -> None:
        """Say something until it is answered, as where the server's buffers may be full."""
        for _ in range(60):
            number = self.speaker.next_number()
            self.speaker.send(message(self.workload, self.speaker.identity, number))
            expected = reply(self.workload, self.speaker.identity, number)
            while (heard := self.listener.poll(PATIENCE_WITH_LOSS_S)) not in (None, expected):
                pass
            if heard is not None:
                return
        raise AssertionError("a known client is not answered any more")


def speak(clients: Iterable[MessageClient], hearers: Iterable[MessageClient], workload: str) -> None:
    """Each of them says something, and it is heard: by the others among `hearers` in chat, as an answer by itself
    elsewhere. So it has spoken, and does not give way where the table is full. What came before is passed over."""
    hearers = list(hearers)
    for client in clients:
        number = client.next_number()
        client.send(message(workload, client.identity, number))
        expected = reply(workload, client.identity, number)
        for hearer in (member for member in hearers if member is not client) if workload == "chat" else (client,):
            while hearer.receive() != expected:
                pass


def expect_nothing(client: MessageClient, witness: MessageClient, workload: str) -> None:
    """Check that all that `client` has sent so far has no effect, now or later, and that nothing else was sent to it.
    Afterwards it is known, and has sent one message more.

    The proof is an answer that cannot overtake another: requests of one client are served in order, so the next thing
    after the welcome is the answer to a new request. Chat has no answers; there the next thing that `witness`, which
    is known too, hears is the new message, and every effect of the older ones is on its way before a welcome that is
    requested only then."""
    client.expect_welcome()
    number = client.next_number()
    client.send(message(workload, client.identity, number))
    (witness if workload == "chat" else client).expect(reply(workload, client.identity, number))
    if workload == "chat":
        client.expect_welcome()


@contextmanager
def talking(
    transport: TransportUnderTest, server: Server, workload: str, *, alone: bool = True
) -> Iterator[MessageTalk]:
    """A conversation that is answered before and after the block; what goes wrong in it is the block's fault. Unless it
    is `alone`, in chat it may hear what others have said, too."""
    talk = MessageTalk(transport, server, workload)
    check = talk.check if alone else talk.check_despite_loss
    try:
        check()
        yield talk
        check()
    finally:
        for client in talk.clients:
            client.close()


@contextmanager
def joined(transport: TransportUnderTest, server: Server, how_many: int = 1) -> Iterator[list[MessageClient]]:
    """Yield this many clients that the server knows. They vanish when the block is done."""
    clients: list[MessageClient] = []
    try:
        for _ in range(how_many):
            clients.append(transport.client(server))
            clients[-1].join()
        yield clients
    finally:
        for client in clients:
            client.close()
