"""A task for each connection with calls that block it, and one lock held across the whole broadcast. The contestants
that use this differ in what a task is: a thread, with the interpreter's lock or without, or a greenlet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from socket import IPPROTO_TCP, SHUT_RD, SHUT_RDWR, TCP_NODELAY, socket
from time import monotonic, monotonic_ns
from types import TracebackType
from typing import Protocol

from netdyno_server.blocking import EXHAUSTED, EXHAUSTED_PAUSE_S, Patience, close, shut_down
from netdyno_server.lifecycle import SHUTDOWN_GRACE_S
from netdyno_server.options import Options
from netdyno_server.session import Effect, Totals
from netdyno_server.workloads import make_session


class Task(Protocol):
    """A thread or a greenlet."""

    def join(self, timeout: float | None = None) -> None: ...


class LockOfTasks(Protocol):
    """A lock that lets other tasks run while one waits for it."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...
    def release(self) -> None: ...
    def __enter__(self) -> bool: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class EventOfTasks(Protocol):
    """An event that lets other tasks run while one waits for it."""

    def set(self) -> None: ...
    def wait(self, timeout: float | None = None) -> bool: ...


class Server(ABC):
    """All connections, and the state that they share. Each counts for itself until it is done."""

    def __init__(self, options: Options, listener: socket, lock: LockOfTasks, all_gone: EventOfTasks) -> None:
        self._options = options
        self._listener = listener
        self._joins = not (options.split or options.single)
        self._lock = lock
        self._clients: set[socket] = set()  # guarded by the lock: the recipients of a broadcast
        self._running: set[Totals] = set()  # guarded by the lock: of connections that are not done
        self._totals = Totals()  # guarded by the lock: of those that are
        self._queued: deque[tuple[tuple[bytes, ...], socket]] = deque()  # frames with their senders, to be sent
        self._ending = False
        self._all_gone = all_gone

    @abstractmethod
    def spawn(self, work: Callable[..., None], *arguments: object) -> Task:
        """Do the work in a task of its own. Raises RuntimeError where there are no more."""

    @abstractmethod
    def sleep(self, seconds: float) -> None: ...

    @abstractmethod
    def send_all(self, client: socket, data: bytes, patience: Patience) -> None:
        """Send all bytes. Raises BlockingIOError where the client takes none for too long, another OSError where it is
        gone."""

    @abstractmethod
    def wait_unless_reset(self, client: socket, duration_ns: int) -> bool:
        """Wait for this long; False at once when the peer resets the connection."""

    @abstractmethod
    def burn(self, duration_ns: int) -> None:
        """Keep the core busy."""

    def accept_all(self) -> None:
        """Accept until the listener is shut down."""
        while not self._ending:
            try:
                client, _ = self._listener.accept()
                self._start(client)
            except OSError as error:
                if error.errno in EXHAUSTED:  # the queue stays readable, so try again only after a while
                    self.sleep(EXHAUSTED_PAUSE_S)
            except MemoryError:
                self.sleep(EXHAUSTED_PAUSE_S)

    def finish(self, acceptor: Task) -> Totals:
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
            self.spawn(self._run, client, totals)
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
                if not self.wait_unless_reset(client, effect[1]):
                    return False
            elif effect[0] == "until":
                if not self.wait_unless_reset(client, max(0, effect[1] - monotonic_ns())):
                    return False
            elif effect[0] == "burn":
                self.burn(effect[1])
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
            self.send_all(client, data, patience)
        except OSError as error:
            totals.slow_closed += isinstance(error, BlockingIOError)
            shut_down(client, SHUT_RDWR)
            return False
        totals.bytes_out += len(data)
        return True
