"""A greenlet per connection on gevent, with calls that look blocking, and one lock held across the whole broadcast."""

from __future__ import annotations

import os
import sys
from collections import deque
from contextlib import suppress
from socket import IPPROTO_TCP, SHUT_RD, SHUT_RDWR, TCP_NODELAY
from time import monotonic, monotonic_ns

from gevent import Greenlet, signal_handler, sleep, spawn
from gevent.event import Event
from gevent.lock import BoundedSemaphore as Lock
from gevent.socket import socket, wait_read, wait_write

from netdyno_server.blocking import (
    EXHAUSTED,
    EXHAUSTED_PAUSE_S,
    SEND_TIMEOUT_S,
    Patience,
    close,
    shut_down,
)
from netdyno_server.lifecycle import (
    SHUTDOWN_GRACE_S,
    STOP_SIGNALS,
    announce_ready,
    is_reset,
    listen_or_exit,
    print_totals,
)
from netdyno_server.options import Options, read_options
from netdyno_server.session import Effect, Totals, burn_cpu
from netdyno_server.workloads import make_session

BURN_SLICE_NS = 10_000_000


def send_all(client: socket, data: bytes, patience: Patience) -> None:
    """Send all bytes; while the socket takes none, other greenlets run. Raises BlockingIOError where that lasts too
    long, another OSError where the peer is gone."""
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


def wait_unless_reset(client: socket, duration_ns: int) -> bool:
    """Let others run for this long; False at once when the peer resets the connection. gevent reports a reset as input:
    behind other input it is not noticed."""
    deadline = monotonic() + duration_ns / 1e9
    with suppress(TimeoutError):
        wait_read(client.fileno(), duration_ns / 1e9)
        if is_reset(client.fileno()):
            return False
    while (remaining_s := deadline - monotonic()) > 0:
        sleep(remaining_s)
    return True


def burn(duration_ns: int) -> None:
    """Keep the core busy, in slices between which others run: a signal could not be seen otherwise."""
    while duration_ns := burn_cpu(duration_ns, BURN_SLICE_NS):
        sleep(0)


class Server:
    """All connections, and the state that they share. Each counts for itself until it is done."""

    def __init__(self, options: Options, listener: socket) -> None:
        self._options = options
        self._listener = listener
        self._joins = not (options.split or options.single)
        self._lock = Lock()
        self._clients: set[socket] = set()  # guarded by the lock: the recipients of a broadcast
        self._running: set[Totals] = set()  # guarded by the lock: of connections that are not done
        self._totals = Totals()  # guarded by the lock: of those that are
        self._queued: deque[tuple[tuple[bytes, ...], socket]] = deque()  # frames with their senders, to be sent
        self._ending = False
        self._all_gone = Event()

    def accept_all(self) -> None:
        """Accept until the listener is shut down."""
        while not self._ending:
            try:
                client, _ = self._listener.accept()
                self._start(client)
            except OSError as error:
                if error.errno in EXHAUSTED:  # the queue stays readable, so look again only after a while
                    sleep(EXHAUSTED_PAUSE_S)
            except MemoryError:
                sleep(EXHAUSTED_PAUSE_S)

    def finish(self, acceptor: Greenlet) -> Totals:
        """End every stream at what has arrived, and wait until the grace is over at most. Return the totals."""
        deadline = monotonic() + SHUTDOWN_GRACE_S
        self._ending = True  # a broadcast that holds the lock waits for no further reader
        shut_down(self._listener, SHUT_RDWR)
        acceptor.join(SHUTDOWN_GRACE_S)
        if self._lock.acquire(timeout=max(0.0, deadline - monotonic())):
            for client in self._clients:
                shut_down(client, SHUT_RD)
            if not self._running:
                self._all_gone.set()
            self._lock.release()
            self._all_gone.wait(max(0.0, deadline - monotonic()))
        for totals in list(self._running):
            self._totals.add(totals)
        return self._totals

    def _start(self, client: socket) -> None:
        client.setsockopt(IPPROTO_TCP, TCP_NODELAY, self._options.nodelay)
        totals = Totals()
        totals.connections = 1
        with self._lock:
            self._clients.add(client)
            self._running.add(totals)
        try:
            spawn(self._run, client, totals)
        except (RuntimeError, MemoryError):  # no room for another: this client is closed, the others go on
            self._leave(client, totals)

    def _run(self, client: socket, totals: Totals) -> None:
        """Serve a connection to its end."""
        try:
            with suppress(OSError):  # the peer is gone
                self._serve(client, totals)
        except MemoryError:
            totals.memory_closed += 1
        self._leave(client, totals)

    def _leave(self, client: socket, totals: Totals) -> None:
        with self._lock:
            self._clients.discard(client)
        close(client)  # without the lock: it may have a flood to throw away, and nothing is sent to it any more
        with self._lock:
            self._running.discard(totals)
            self._totals.add(totals)
            if self._ending and not self._running:
                self._all_gone.set()

    def _serve(self, client: socket, totals: Totals) -> None:
        session = make_session(self._options, totals)
        is_open = True
        while is_open:
            data = client.recv(self._options.read_buffer)
            effects = session.receive(data) if data else session.end()
            if self._options.workload == "chat":
                self._broadcast(effects, client, totals)
            is_open = self._carry_out(effects, client, totals)

    def _carry_out(self, effects: list[Effect], client: socket, totals: Totals) -> bool:
        """Carry out what is no broadcast, in order. False: the connection ends."""
        for effect in effects:
            if effect[0] == "write":
                if not self._send(client, effect[1], Patience.WHILE_IT_READS, totals):
                    return False
            elif effect[0] == "wait":
                if not wait_unless_reset(client, effect[1]):
                    return False
            elif effect[0] == "until":
                if not wait_unless_reset(client, max(0, effect[1] - monotonic_ns())):
                    return False
            elif effect[0] == "burn":
                burn(effect[1])
            elif effect[0] == "close":
                return False
        return True

    def _broadcast(self, effects: list[Effect], sender: socket, totals: Totals) -> None:
        """Deliver the frames of one read, and what others have queued while this one waited for the lock. Where the
        holder of the lock has taken these frames too, they are being sent, and this one goes on; its socket is not
        closed before that is done, as to leave takes the lock."""
        self._queued.extend((effect[1], sender) for effect in effects if effect[0] == "broadcast")
        if not self._queued:
            return
        with self._lock:  # held while sending: this is the model
            frames = [self._queued.popleft() for _ in range(len(self._queued))]
            self._clients -= {client for client in self._clients if not self._deliver(frames, client, totals)}

    def _deliver(self, frames: list[tuple[tuple[bytes, ...], socket]], client: socket, totals: Totals) -> bool:
        """Send a recipient all frames in one write (joined), or each part of each in a write of its own."""
        to_all, patience = self._options.to_all, Patience.NONE if self._ending else Patience.ONE_TIMEOUT
        parts = [part for frame, sender in frames if to_all or sender is not client for part in frame]
        writes = [b"".join(parts)] if self._joins and parts else parts
        return all(self._send(client, write, patience, totals) for write in writes)

    def _send(self, client: socket, data: bytes, patience: Patience, totals: Totals) -> bool:
        """False when nothing more can be sent to the client, for which the end of its stream then comes."""
        try:
            send_all(client, data, patience)
        except OSError as error:
            totals.slow_closed += isinstance(error, BlockingIOError)
            shut_down(client, SHUT_RDWR)
            return False
        totals.bytes_out += len(data)
        return True


def main() -> None:
    options = read_options(sys.argv)
    stop = Event()
    for number in STOP_SIGNALS:
        signal_handler(number, stop.set)
    listener = socket(fileno=listen_or_exit(options).detach())
    listener.setblocking(True)
    server = Server(options, listener)
    acceptor = spawn(server.accept_all)
    announce_ready(listener)
    stop.wait()
    print_totals(server.finish(acceptor))
    os._exit(0)  # some may still block in their clients; the totals are out


main()
