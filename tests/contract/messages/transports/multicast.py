"""UDP multicast: a client has a socket of its own, and one more that is in the group while the server knows it. All of
it in a private network namespace."""

from __future__ import annotations

import atexit
import select
import socket
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import parse_qs

import pytest

from netdyno.measure.machine.links.namespace import Namespace, NotAllowedError, make_namespace
from netdyno.model.contestant import Contestant
from tests.contract.messages.transport import BYE, HELO, MessageClient, TransportUnderTest, control
from tests.support.inside import Inside, inside
from tests.support.kernel import SO_TIMESTAMPNS
from tests.support.server import Finished, Server, launched, run

LISTEN = "multicast://239.255.0.1:0?interface=lo"
LOOPBACK = "127.0.0.1"
IP_MULTICAST_ALL = 49  # linux/in.h
LARGEST = 1 << 16


class MulticastClient(MessageClient):
    """What comes to its two sockets is taken in the order in which the kernel got it. It joins the group before it says
    HELO, and leaves it after BYE!. Where it is not to hear itself, as with the audience `others` of other transports,
    it leaves out once each message that it has said."""

    def __init__(self, sockets: Inside, server: Server, hears_itself: bool) -> None:
        super().__init__()
        query = parse_qs(server.endpoint.partition("?")[2])
        self._group = server.address
        self._hears_itself = hears_itself
        self._own_messages: Counter[bytes] = Counter()
        self._came: list[tuple[int, bytes, bool]] = []
        self.socket = sockets.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect((query["server"][0], server.address[1]))
        self._member = sockets.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._member.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._member.setsockopt(socket.IPPROTO_IP, IP_MULTICAST_ALL, 0)
        self._member.bind(self._group)
        self._is_member = False
        for endpoint in (self.socket, self._member):
            endpoint.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)

    def send(self, message: bytes) -> None:
        if message.startswith(control(HELO, 0)[:8]) and not self._is_member:
            self._membership(socket.IP_ADD_MEMBERSHIP)
        self._own_messages[message] += 1
        self.socket.send(message)
        if message == control(BYE, self.token) and self._is_member:
            self._membership(socket.IP_DROP_MEMBERSHIP)

    def _membership(self, change: int) -> None:
        request = socket.inet_aton(self._group[0]) + socket.inet_aton(LOOPBACK)
        self._member.setsockopt(socket.IPPROTO_IP, change, request)
        self._is_member = change == socket.IP_ADD_MEMBERSHIP

    def poll(self, patience_s: float) -> bytes | None:
        deadline = time.monotonic() + patience_s
        both = (self.socket, self._member)
        while True:
            while self._came:
                _, message, by_group = self._came.pop(0)
                if self._hears_itself or not by_group or not self._take_own(message):
                    return message
            patience_s = max(0.0, deadline - time.monotonic())
            readable, _, _ = select.select(both, [], [], patience_s)
            if not readable:
                return None
            while arrivals := [(*arrival, source is self._member) for source in both for arrival in _arrivals(source)]:
                self._came += arrivals  # until nothing is left: what comes from now on came after all of these
            self._came.sort(key=lambda arrival: arrival[0])

    def _take_own(self, message: bytes) -> bool:
        own = self._own_messages[message] > 0
        self._own_messages[message] -= own
        return own

    def close(self) -> None:
        self.socket.close()
        self._member.close()


def _arrivals(source: socket.socket) -> Iterator[tuple[int, bytes]]:
    """All that has come to a socket, each with its time in nanoseconds."""
    while select.select([source], [], [], 0)[0]:
        try:
            message, ancillary, _, _ = source.recvmsg(LARGEST, socket.CMSG_SPACE(16))
        except ConnectionRefusedError:
            continue  # the server has ended; what it said before may still stand behind this
        seconds, ns = struct.unpack("qq", ancillary[0][2])
        yield seconds * 1_000_000_000 + ns, message


class Multicast(TransportUnderTest):
    """A group on the loopback interface of a namespace that all tests share."""

    name = "multicast"
    audiences = ("all",)
    sends_once = True

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._made: tuple[Namespace, Inside] | None = None

    def arguments(self) -> tuple[str, ...]:
        return ("--listen", LISTEN)

    def prefix(self) -> tuple[str, ...]:
        return self._private()[0].enter

    def client(self, server: Server) -> MulticastClient:
        arguments = [*server.process.args] if isinstance(server.process.args, list) else []
        return MulticastClient(self._private()[1], server, hears_itself="--audience" in arguments)

    @contextmanager
    def launched(self, contestant: Contestant, *arguments: str) -> Iterator[Server]:
        with launched((*self.prefix(), *contestant.command), *self._add_options(arguments)) as server:
            yield server

    def run(self, contestant: Contestant, *arguments: str) -> Finished:
        return run((*self.prefix(), *contestant.command), *self._add_options(arguments))

    def _add_options(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """With an interface in `--listen`, which a test that knows of none leaves out."""
        if not any(argument.startswith("--listen") for argument in arguments):
            return (*self.arguments(), *arguments)
        whole = (
            f"{argument}?interface=lo" if argument.startswith("multicast://239.") and "?" not in argument else argument
            for argument in arguments
        )
        return tuple(whole)

    def _private(self) -> tuple[Namespace, Inside]:
        if self._made is None:
            try:
                made = self._stack.enter_context(make_namespace())
            except NotAllowedError as error:
                pytest.skip(f"no namespaces here: {error}")
            self._made = made, self._stack.enter_context(inside(made))
            atexit.register(self._stack.close)
        return self._made
