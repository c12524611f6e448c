"""What the tests need of a transport that carries messages (protocol/WIRE.md). A transport is a module in `transports/`
with a class that derives from `TransportUnderTest`; it is found there, and named nowhere else."""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from netdyno.model.contestant import Contestant
from tests.contract.messages import transports
from tests.support.patience import PATIENCE_S
from tests.support.server import Finished, Server, launched, run

HELO, WELC, FULL, BYE = b"HELO", b"WELC", b"FULL", b"BYE!"
LISTEN_HELLO_S = 0.5
"""The wait for an answer to one HELO, before the next."""

_ids = itertools.count(1)
_tokens = random.Random(4)


def control(letters: bytes, token: int) -> bytes:
    """A control message."""
    return bytes(4) + letters + token.to_bytes(8, "big")


class MessageClient(ABC):
    """One client of a server under test, well behaved or not. `identity` and the numbers from `next_number` go into the
    stamps of its messages, `token` into its control messages."""

    def __init__(self) -> None:
        self.identity = next(_ids)
        self.token = _tokens.getrandbits(64)
        self.taken = 0
        self._numbers = itertools.count()
        self._owed: list[bytes] = []  # answers to HELOs that came late, and may still come

    def __enter__(self) -> MessageClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def send(self, message: bytes) -> None:
        """Send one message, whatever it holds."""

    @abstractmethod
    def poll(self, patience_s: float) -> bytes | None:
        """The next message that has come from the server, control messages included; None when none comes in time."""

    @abstractmethod
    def close(self) -> None:
        """Vanish: nothing is said to the server. Calling it again changes nothing."""

    def next_number(self) -> int:
        """The sequence number of this client's next message."""
        return next(self._numbers)

    def listen(self, patience_s: float) -> bytes | None:
        """As `poll`, without answers to HELOs that come late."""
        while (message := self.poll(patience_s)) is not None and message in self._owed:
            self._owed.remove(message)
        return message

    def receive(self) -> bytes:
        """The next message; AssertionError when none comes. `taken` counts the bytes, but not of control messages."""
        message = self.listen(PATIENCE_S)
        assert message is not None, f"client {self.identity}: waited {PATIENCE_S:g} s and nothing came"
        if not message.startswith(bytes(4)):
            self.taken += len(message)
        return message

    def expect(self, expected: bytes) -> None:
        """The next thing that comes is this."""
        got = self.receive()
        assert got == expected, f"client {self.identity}: got {got!r} and not {expected!r}"

    def hello(self, token: int | None = None) -> bytes:
        """Say HELO, again where it is late or lost, and return the letters of the answer. What else comes before it is
        passed over: a new client may have the address of one that has vanished, and get what was meant for that one."""
        self.token = _tokens.getrandbits(64) if token is None else token
        answers = (control(WELC, self.token), control(FULL, self.token))
        deadline = time.monotonic() + PATIENCE_S
        hellos = 0
        while time.monotonic() < deadline:
            self.send(control(HELO, self.token))
            hellos += 1
            while (answer := self.poll(LISTEN_HELLO_S)) is not None:
                if answer in answers:
                    self._owed += [answer] * (hellos - 1)  # each HELO is answered, if it is not lost
                    return answer[4:8]
        raise AssertionError(f"client {self.identity}: waited {PATIENCE_S:g} s and no HELO is answered")

    def join(self) -> None:
        """Become known."""
        assert self.hello() == WELC

    def expect_welcome(self) -> None:
        """The next thing that comes is the welcome to a new HELO. A server gives it at once: it may overtake answers to
        what was said before."""
        token = _tokens.getrandbits(64)
        self.send(control(HELO, token))
        self.token = token
        self.expect(control(WELC, token))

    def bye(self) -> None:
        """Leave in order."""
        self.send(control(BYE, self.token))

    def expect_bye(self) -> None:
        """The next thing that comes is the server's farewell, with this client's token."""
        self.expect(control(BYE, self.token))


class TransportUnderTest(ABC):
    """How servers of one transport are started and talked to."""

    name: str
    """As in server.json."""
    audiences: tuple[str, ...] = ("others", "all")
    sends_once = False
    """A chat message is sent once, whatever the number of its listeners."""
    bounds_requests = True
    """The server drops what a client sends beyond a bound while it is served. Else the transport makes it wait."""
    connected = False
    """A client costs the server a descriptor, until it is known to be gone."""
    longest = 65507
    """Bytes that a message can have, whatever `--max-frame`."""
    hosts: tuple[str, ...] = ()
    """Besides the default: hosts of `--listen` that a server must take."""

    def arguments(self) -> tuple[str, ...]:
        """Return the options that every server needs to be tested on this transport; by default none."""
        return ()

    def prefix(self) -> tuple[str, ...]:
        """What is put before a server's command; by default nothing."""
        return ()

    @abstractmethod
    def client(self, server: Server) -> MessageClient:
        """A new client that the server does not know yet. The caller closes it."""

    @contextmanager
    def launched(self, contestant: Contestant, *arguments: str) -> Iterator[Server]:
        """The server as a process, whatever comes of it."""
        with launched((*self.prefix(), *contestant.command), *self.arguments(), *arguments) as server:
            yield server

    def run(self, contestant: Contestant, *arguments: str) -> Finished:
        """Run a server that ends by itself."""
        return run((*self.prefix(), *contestant.command), *self.arguments(), *arguments)

    @contextmanager
    def serving(self, contestant: Contestant, *arguments: str) -> Iterator[Server]:
        """A server that serves. When the block ends well, it must still be there and free of reports."""
        with self.launched(contestant, *arguments) as server:
            server.wait_ready()
            assert server.transport == self.name, server.endpoint
            yield server
            if server.process.returncode is None:
                server.expect_alive()
                server.stop()


def find_transports() -> dict[str, TransportUnderTest]:
    """All of them, by name."""
    for module in pkgutil.iter_modules(transports.__path__):
        importlib.import_module(f"{transports.__name__}.{module.name}")
    return {made.name: made for made in (kind() for kind in TransportUnderTest.__subclasses__())}
