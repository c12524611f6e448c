"""Clients over a stream: how replies are taken off it and checked, and a conversation that others must not touch."""

from __future__ import annotations

from types import TracebackType

from tests.contract.golden import wire
from tests.contract.talk import STAMP, message, reply
from tests.support.client import Client, Received, pull_any
from tests.support.server import Server


class HttpReply:
    """One HTTP response, whatever headers the server adds to what WIRE.md asks for."""

    def __init__(self, client: Client | Received) -> None:
        head = client.receive_until(b"\r\n\r\n").decode("ascii").split("\r\n")
        version, status, *_ = head[0].split(" ")
        assert version == "HTTP/1.1", head[0]
        self.status = int(status)
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])}
        self.body = client.receive(int(self.headers["content-length"]))

    @property
    def closes(self) -> bool:
        """The server announces that it closes."""
        return self.headers.get("connection", "").lower() == "close"


def expect_reply(workload: str, client: Client, number: int, size: int = STAMP, sender: int | None = None) -> None:
    """Take the reply to `message` off the stream and check every byte of it. In chat the `sender` is another."""
    identity = client.identity if sender is None else sender
    expected = reply(workload, identity, number, size)
    match workload:
        case "echo" | "lines":
            assert client.receive(len(expected)) == expected
        case "rpc" | "chat":
            assert wire.frame(client.frame()) == expected
        case "http":
            answer = HttpReply(client)
            assert (answer.status, answer.body) == (200, expected)
            assert answer.headers["content-type"].startswith("text/plain")


def ask(workload: str, client: Client) -> None:
    """Send one message and take its reply. Of chat there is none."""
    number = client.next_number()
    client.send(message(workload, client.identity, number))
    expect_reply(workload, client, number)


def joined(server: Server, workload: str, receive_buffer: int | None = None) -> Client:
    """A new client that the server knows of: connected is not yet accepted, and chat reaches only known clients.
    In chat its message 0 is spent on this. The caller closes it."""
    client = Client(server.address, receive_buffer)
    if workload == "chat":
        client.send(message(workload, client.identity, client.next_number()))
        server.wait_read(client.address)
    return client


class StreamTalk:
    """Healthy clients that another client's bad manners must not touch.

    Request and reply are one client's affair, but for chat, where a second one listens. All that the listener gets is a
    complete message with a right stamp; of each client its numbers come in order, each once. After clients whose
    messages were damaged, the last of them may still be on its way between the threads of a chat: `skips_damaged`.
    """

    def __init__(
        self, server: Server, workload: str, make_client: type[Client] = Client, *, skips_damaged: bool = False
    ) -> None:
        self.workload = workload
        self._skips_damaged = skips_damaged
        self.server = server
        self._make_client = make_client
        self.speaker = make_client(server.address) if workload != "chat" else joined(server, workload)
        self.listener = joined(server, workload) if workload == "chat" else self.speaker
        self._heard: dict[int, int] = {}

    def __enter__(self) -> StreamTalk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.speaker.close()
        self.listener.close()

    def check(self) -> None:
        """Say something and have it answered, right in every byte."""
        number = self.speaker.next_number()
        self.speaker.send(message(self.workload, self.speaker.identity, number))
        self.expect(self.speaker, number)

    def client(self) -> Client:
        """Another client of the same server. The caller closes it."""
        return self._make_client(self.server.address)

    def message(self, client: Client, size: int = STAMP) -> tuple[int, bytes]:
        """The next message of a client, with its number."""
        number = client.next_number()
        return number, message(self.workload, client.identity, number, size)

    def expect(self, client: Client, *numbers: int, size: int = STAMP) -> None:
        """These messages of `client` are answered, in order; in chat they reach the listener."""
        for number in numbers:
            if self.workload != "chat":
                expect_reply(self.workload, client, number, size)
            else:
                self._listen_for(client.identity, number, size)

    def _listen_for(self, identity: int, number: int, size: int) -> None:
        while True:
            body = self._next_heard()
            stamp = self._read_stamp(body)
            if stamp is None:
                continue
            self._note(*stamp)
            if stamp == (identity, number):
                assert len(body) == size
                return

    def _read_stamp(self, body: bytes) -> tuple[int, int] | None:
        """The client and the number; None where the message is damaged and may be."""
        try:
            return wire.read_stamp(body)
        except wire.MalformedError:
            if self._skips_damaged:
                return None
            raise

    def _note(self, sender: int, sequence: int) -> None:
        """Each number follows the one before; a number 0 said while the listener joined may have been missed."""
        before = self._heard.get(sender)
        allowed = (0, 1) if before is None else (before + 1,)
        assert sequence in allowed, f"client {sender}: message {sequence} after {before}"
        self._heard[sender] = sequence

    def _next_heard(self) -> bytes:
        """The listener's next frame. The speaker reads too: it must not turn into a slow reader."""
        while not self.listener.has_frame():
            pull_any(self.listener, self.speaker)
            while self.speaker.has_frame():
                self._read_stamp(self.speaker.frame())
        return self.listener.frame()


class TalkInTurns(StreamTalk):
    """The same with a server that serves one client at a time: healthy clients come when those of the test have left,
    and leave before the next."""

    def __init__(self, server: Server, workload: str) -> None:
        self.workload = workload
        self.server = server
        self._make_client = Client
        self._skips_damaged = False
        self._clients: list[Client] = []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is left open."""

    def check(self) -> None:
        """Say something and have it answered, unless a client of the test is connected."""
        self._clients = [client for client in self._clients if client.is_open]
        if not self._clients:
            with StreamTalk(self.server, self.workload) as talk:
                talk.check()

    def client(self) -> Client:
        """A client of the server. The caller closes it."""
        self._clients.append(super().client())
        return self._clients[-1]
