"""A greenlet per connection on gevent, with calls that look blocking, and one lock held across the whole broadcast."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

import gevent
from gevent import Greenlet, signal_handler
from gevent.event import Event
from gevent.lock import BoundedSemaphore
from gevent.socket import socket, wait_read, wait_write
from servers._shared.python.blocking_server import Server

from netdyno_server.blocking import SEND_TIMEOUT_S, Patience
from netdyno_server.lifecycle import STOP_SIGNALS, announce_ready, is_reset, listen_or_exit, print_totals
from netdyno_server.options import read_options
from netdyno_server.session import burn_cpu

BURN_SLICE_NS = 10_000_000


class GreenletServer(Server):
    """Runs other greenlets in each call that would block."""

    def spawn(self, work: Callable[..., None], *arguments: object) -> Greenlet:
        return gevent.spawn(work, *arguments)

    def sleep(self, seconds: float) -> None:
        gevent.sleep(seconds)

    def send_all(self, client: socket, data: bytes, patience: Patience) -> None:
        """While the socket takes none, other greenlets run."""
        unsent, deadline = memoryview(data), 0.0
        while unsent:
            try:
                unsent = unsent[client.send(unsent, 0, 0.0) :]
            except BlockingIOError:
                if patience is Patience.NONE:
                    raise
                if patience is Patience.WHILE_IT_READS or not deadline:
                    deadline = monotonic() + SEND_TIMEOUT_S
                wait_write(client.fileno(), max(0.0, deadline - monotonic()), BlockingIOError())

    def wait_unless_reset(self, client: socket, duration_ns: int) -> bool:
        """Let others run. gevent reports a reset as input: behind other input it is not noticed."""
        deadline = monotonic() + duration_ns / 1e9
        with suppress(TimeoutError):
            wait_read(client.fileno(), duration_ns / 1e9)
            if is_reset(client.fileno()):
                return False
        while (remaining_s := deadline - monotonic()) > 0:
            gevent.sleep(remaining_s)
        return True

    def burn(self, duration_ns: int) -> None:
        """In slices between which others run: a signal could not be seen otherwise."""
        while duration_ns := burn_cpu(duration_ns, BURN_SLICE_NS):
            gevent.sleep(0)


def main() -> None:
    options = read_options(sys.argv)
    stop = Event()
    for number in STOP_SIGNALS:
        signal_handler(number, stop.set)
    listener = socket(fileno=listen_or_exit(options).detach())
    listener.setblocking(True)
    server = GreenletServer(options, listener, BoundedSemaphore(), Event())
    acceptor = server.spawn(server.accept_all)
    announce_ready(listener)
    stop.wait()
    print_totals(server.finish(acceptor))
    os._exit(0)  # some may still block in their clients; the totals are out


main()
