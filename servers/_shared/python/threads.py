"""A thread for each connection with blocking I/O. The contestants that use this differ in the interpreter alone: with
its lock, or without."""

from __future__ import annotations

import os
import select
import signal
import struct
import sys
import time
from collections.abc import Callable
from socket import MSG_DONTWAIT, SO_SNDTIMEO, SOL_SOCKET, socket
from threading import Event, Lock, Thread

from servers._shared.python.blocking_server import Server

from netdyno_server.blocking import SEND_TIMEOUT_S, Patience
from netdyno_server.lifecycle import STOP_SIGNALS, announce_ready, listen_or_exit, print_totals
from netdyno_server.options import Options
from netdyno_server.session import burn_cpu

SEND_TIMEOUT = struct.pack("@ll", int(SEND_TIMEOUT_S), 0)
"""As struct timeval."""


class ThreadServer(Server):
    """Blocks a thread in each call."""

    def spawn(self, work: Callable[..., None], *arguments: object) -> Thread:
        thread = Thread(target=work, args=arguments, daemon=True)
        thread.start()
        return thread

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def send_all(self, client: socket, data: bytes, patience: Patience) -> None:
        """The thread blocks in send(2), up to the send timeout of the socket."""
        flags = MSG_DONTWAIT if patience is Patience.NONE else 0
        sent = client.send(data, flags)
        while sent < len(data):
            if patience is Patience.ONE_TIMEOUT:  # only its timeout cuts a blocking send short (send(2), socket(7))
                flags = MSG_DONTWAIT
            sent += client.send(memoryview(data)[sent:], flags)

    def wait_unless_reset(self, client: socket, duration_ns: int) -> bool:
        """Block, as a sleep does. poll(2) counts whole milliseconds, so the rest is slept."""
        deadline = time.monotonic() + duration_ns / 1e9
        poller = select.poll()
        poller.register(client, 0)  # POLLHUP and POLLERR are reported without being requested
        if poller.poll(duration_ns // 1_000_000):
            return False
        time.sleep(max(0.0, deadline - time.monotonic()))
        return True

    def burn(self, duration_ns: int) -> None:
        """Where the interpreter has a lock, it gives it to another thread every 5 ms."""
        burn_cpu(duration_ns, sys.maxsize)


def serve(options: Options) -> None:
    """Serve until a signal asks to end, and end the program."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # in every thread: they wait for sigwait(3)
    listener = socket(fileno=listen_or_exit(options).detach())
    listener.setblocking(True)
    listener.setsockopt(SOL_SOCKET, SO_SNDTIMEO, SEND_TIMEOUT)  # accepted sockets inherit it
    server = ThreadServer(options, listener, Lock(), Event())
    acceptor = server.spawn(server.accept_all)
    announce_ready(listener)
    signal.sigwait(STOP_SIGNALS)
    print_totals(server.finish(acceptor))
    os._exit(0)  # some may still block in their clients; the totals are out
