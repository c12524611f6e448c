"""Sockets of a network namespace, in the hands of a process that is outside it. A socket belongs to the namespace that
it was made in, not to its holder's (network_namespaces(7)): a helper inside makes it and hands it over (unix(7))."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from netdyno.measure.machine.links.namespace import Namespace
from netdyno.model.transports import SERVER_ADDRESS
from tests.support.proc import SOON_S

HELPER = """
import socket
asked = socket.socket(fileno=0)
while words := asked.recv(100):
    with socket.socket(*(int(word) for word in words.split())) as made:
        socket.send_fds(asked, [b"made"], [made.fileno()])
"""


class Inside:
    """Makes sockets in a namespace."""

    def __init__(self, helper: socket.socket) -> None:
        self._helper = helper

    def socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        """A socket of the namespace; AssertionError when the helper cannot make one."""
        self._helper.send(f"{int(family)} {int(kind)} {protocol}".encode())
        word, fds, _, _ = socket.recv_fds(self._helper, 100, 1)
        assert word == b"made", "the helper inside the namespace made no socket"
        return socket.socket(fileno=fds[0])


@contextmanager
def inside(namespace: Namespace) -> Iterator[Inside]:
    """The sockets that it makes outlive it; the namespace they belong to stays for as long as they do."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with here:
        helper = subprocess.Popen([*namespace.enter, sys.executable, "-I", "-S", "-c", HELPER], stdin=there.fileno())
        with helper:
            there.close()
            try:
                yield Inside(here)
            finally:
                here.close()  # which ends it


@contextmanager
def open_conversation(server: Namespace, load: Namespace) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection across a link, the load's end first; the load's buffer takes all that a test sends."""
    with inside(server) as at_server, inside(load) as at_load:
        listener = at_server.socket(socket.AF_INET, socket.SOCK_STREAM)
        client = at_load.socket(socket.AF_INET, socket.SOCK_STREAM)
        with listener, client:
            listener.bind((SERVER_ADDRESS, 0))
            listener.listen()
            client.settimeout(SOON_S)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            client.connect(listener.getsockname())
            served, _ = listener.accept()
            with served:
                served.settimeout(SOON_S)
                yield client, served
