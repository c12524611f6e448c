"""A thread per connection with blocking I/O, and one lock held across the whole broadcast. The contestants that use
this differ in the interpreter alone: with its lock, or without."""

from __future__ import annotations

import os
import select
import signal
import struct
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from socket import IPPROTO_TCP, MSG_DONTWAIT, SHUT_RD, SHUT_RDWR, SO_SNDTIMEO, SOL_SOCKET, TCP_NODELAY, socket
from threading import Event, Lock, Thread
from time import monotonic, monotonic_ns, sleep

from netdyno_server.blocking import (
    EXHAUSTED,
    EXHAUSTED_PAUSE_S,
    SEND_TIMEOUT_S,
    Patience,
    close,
    shut_down,
)
from netdyno_server.lifecycle import SHUTDOWN_GRACE_S, STOP_SIGNALS, announce_ready, listen_or_exit, print_totals
from netdyno_server.options import Options
from netdyno_server.session import Effect, Totals, burn_cpu
from netdyno_server.workloads import make_session

SEND_TIMEOUT = struct.pack("@ll", int(SEND_TIMEOUT_S), 0)
"""As struct timeval."""


def spawn(work: Callable[..., None], *arguments: object) -> Thread:
    """Do the work on a thread of its own. Raises RuntimeError where there are no more threads."""
    thread = Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread


def send_all(client: socket, data: bytes, patience: Patience) -> None:
    """Send all bytes; the thread blocks in send(2). Raises BlockingIOError where the send timeout of the socket is
    over, another OSError where the peer is gone."""
    flags = MSG_DONTWAIT if patience is Patience.NONE else 0
    sent = client.send(data, flags)
    while sent < len(data):
        if patience is Patience.ONE_TIMEOUT:  # only its timeout cuts a blocking send short (send(2), socket(7))
            flags = MSG_DONTWAIT
        sent += client.send(memoryview(data)[sent:], flags)


def wait_unless_reset(client: socket, duration_ns: int) -> bool:
    """Block for this long, as a sleep does; False at once when the peer resets the connection. poll(2) counts whole
    milliseconds, so the rest is slept."""
    deadline = monotonic() + duration_ns / 1e9
    poller = select.poll()
    poller.register(client, 0)  # POLLHUP and POLLERR are reported without being requested
    if poller.poll(duration_ns // 1_000_000):
        return False
    sleep(max(0.0, deadline - monotonic()))
    return True


def burn(duration_ns: int) -> None:
    """Keep the core busy. Where the interpreter has a lock, it gives it to another thread every 5 ms."""
    burn_cpu(duration_ns, sys.maxsize)


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

    def finish(self, acceptor: Thread) -> Totals:
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
        client.setsockopt(SOL_SOCKET, SO_SNDTIMEO, SEND_TIMEOUT)
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


def serve(options: Options) -> None:
    """Serve until a signal asks to end, and end the program."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # in every thread: they wait for sigwait(3)
    listener = socket(fileno=listen_or_exit(options).detach())
    listener.setblocking(True)
    server = Server(options, listener)
    acceptor = spawn(server.accept_all)
    announce_ready(listener)
    signal.sigwait(STOP_SIGNALS)
    print_totals(server.finish(acceptor))
    os._exit(0)  # some may still block in their clients; the totals are out
