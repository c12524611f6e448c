"""Protocol classes on one event loop: the loop calls them on events, and they call its transport. The contestants that
use this differ in the loop alone."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, cast

from netdyno_server.lifecycle import (
    LINGER_S,
    SHUTDOWN_GRACE_S,
    STOP_SIGNALS,
    announce_ready,
    count_handed_bytes,
    ignore_further_signals,
    is_reset,
    listen_or_exit,
    print_totals,
    takes_more,
)
from netdyno_server.options import Options
from netdyno_server.session import FRAME_OVERHEAD, Effect, Totals, burn_cpu
from netdyno_server.workloads import make_session

if TYPE_CHECKING:
    from servers._shared.asyncio.backend_pool import BackendPool

HIGH_WATER = 64 << 10
"""The bytes that may wait in a transport before it reports so; the default of both loops."""
HIGH_WATER_OF_CHAT = 16 << 10
"""Less, as frames are short, and some transports keep each of them by itself."""
BURN_SLICE_NS = 10_000_000


class Connection(asyncio.BufferedProtocol):
    """One client. The bytes of a read go to the session, and its effects are carried out one after the other; an effect
    that takes time ends `_carry_out`, and a callback of the loop goes on with it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = server.loop
        self._options = server.options
        self._totals = server.totals
        self._session = make_session(server.options, server.totals)
        self._effects: Iterator[Effect] = iter(())  # to carry out
        self._busy = False  # an effect takes time
        self._held = b""  # arrived meanwhile: one read, for then reading pauses
        self._ended = False  # by the peer
        self._closing = False  # by the session
        self._full = False  # the transport holds more than it should
        self._given = 0  # bytes of replies and frames, to the transport
        self._chats = server.options.workload == "chat"
        self._joins = not (server.options.split or server.options.single)
        self._outbox = bytearray()  # frames that wait for the end of the turn, or until the transport has room
        self._waiting = 0  # their number

    # --- what the loop calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, self._options.nodelay)
        high_water = HIGH_WATER_OF_CHAT if self._chats else HIGH_WATER
        self._transport.set_write_buffer_limits(min(high_water, self._options.outbox_limit))
        self._server.join(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._server.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(self._server.read_buffer[:nbytes])
        if self._busy:
            self._held = data
            self._transport.pause_reading()
        else:
            self._carry_out(self._session.receive(data))

    def eof_received(self) -> bool:
        if is_reset(self._descriptor()):  # libuv reports a reset as an end where bytes came with it
            self.give_up()
            return True
        self._ended = True
        if self._closing:
            self._transport.close()
        elif not self._busy:
            self._carry_out(self._session.end())
        return True  # the transport stays open for pending replies

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._send_outbox()
        if not self._busy:
            self._read_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self._busy = True  # nothing is carried out any more
        if exc is not None:
            self._uncount_unsent()
        self._server.left(self)

    # --- what the server calls ---

    def deliver(self, parts: tuple[bytes, ...]) -> None:
        """Queue a frame for the end of the turn, or send it at once (single, split); where the transport has no room,
        it waits until that has. Close a reader for which too much waits, but only if its socket takes nothing: the loop
        may have had no turn yet in which to see that it takes more."""
        if self._transport.is_closing():
            return
        if not (self._full or self._joins):
            self._send(parts)
            return
        if not self._outbox:
            self._server.flush_later(self)
        for part in parts:
            self._outbox += part
        self._waiting += 1
        held_bytes = len(self._outbox) + self._waiting * FRAME_OVERHEAD + self._transport.get_write_buffer_size()
        if held_bytes > self._options.outbox_limit and not takes_more(self._descriptor()):
            self._totals.slow_closed += 1
            self.give_up()

    def flush(self) -> None:
        """Send the queued frames, if the transport has room."""
        if not (self._full or self._transport.is_closing()):
            self._send_outbox()

    def stop_receiving(self) -> None:
        """End the input at what has arrived. Both loops' own sockets refuse that, so it needs another object."""
        with self._own_socket() as own_socket, suppress(OSError):  # the peer is gone
            own_socket.shutdown(socket.SHUT_RD)

    @contextmanager
    def _own_socket(self) -> Iterator[socket.socket]:
        own_socket = socket.socket(fileno=self._descriptor())
        try:
            yield own_socket
        finally:
            own_socket.detach()

    def _descriptor(self) -> int:
        descriptor: int = self._transport.get_extra_info("socket").fileno()
        return descriptor

    def give_up(self) -> None:
        """Drop the connection with all unsent bytes."""
        self._uncount_unsent()
        self._transport.abort()

    def _uncount_unsent(self) -> None:
        """Take the bytes that were lost with the connection off the totals: the transport does not report them."""
        with self._own_socket() as own_socket:
            lost = self._given - count_handed_bytes(own_socket)
        self._given -= lost
        self._totals.bytes_out -= lost

    def _send_outbox(self) -> None:
        """Send the queued frames in one piece: the transport no longer knows them as frames."""
        if self._outbox:
            unsent, self._outbox, self._waiting = bytes(self._outbox), bytearray(), 0
            self._send((unsent,))

    # --- effects ---

    def _carry_out(self, effects: list[Effect]) -> None:
        self._effects = iter(effects)
        self._go_on()

    def _go_on(self) -> None:
        """Carry out effects, from the first that is left, until one takes time."""
        for effect in self._effects:
            if effect[0] == "write":
                self._send((effect[1],))
            elif effect[0] == "broadcast":
                self._server.broadcast(effect[1], self)
            elif effect[0] == "wait":
                self._busy = True
                if self._server.backend:
                    return self._server.backend.ask(effect[1], self._reply)
                return self._wait(monotonic() + effect[1] / 1e9)
            elif effect[0] == "until":
                if (due_s := effect[1] / 1e9) > monotonic():
                    self._busy = True
                    return self._wait(due_s)
            elif effect[0] == "burn":
                self._busy = True
                return self._burn(effect[1])
            else:
                self._finish()
        self._busy = False
        return self._read_on()

    def _read_on(self) -> None:
        """Go on with the data that were held back, then with the socket; but a client that does not take its replies is
        not read. Broadcasts are no replies: their bound is the outbox limit."""
        if self._transport.is_closing():
            return
        if self._full and not self._chats and not self._closing:
            self._transport.pause_reading()
        elif self._held:
            held_data, self._held = self._held, b""
            self._carry_out(self._session.receive(held_data))
        elif not self._ended:
            self._transport.resume_reading()
        elif not self._closing:
            self._carry_out(self._session.end())

    def _send(self, parts: tuple[bytes, ...]) -> None:
        for part in parts:
            if not self._transport.is_closing():
                self._transport.write(part)
                self._given += len(part)
                self._totals.bytes_out += len(part)

    def _wait(self, deadline: float) -> None:
        """Wait until the deadline. Some timers come a little early: then another follows."""
        remaining_s = deadline - monotonic()
        if self._transport.is_closing():
            return
        if remaining_s > 0:
            step_s = self._server.timer_step_s
            later_s = math.ceil(remaining_s / step_s) * step_s if step_s else remaining_s
            self._loop.call_later(later_s, self._wait, deadline)
        else:
            self._go_on()

    def _reply(self) -> None:
        """Go on after the backend's reply."""
        if not self._transport.is_closing():
            self._go_on()

    def _burn(self, remaining_ns: int) -> None:
        """Keep the core busy, in slices between which the loop turns: a signal could not be seen otherwise."""
        if self._transport.is_closing():
            return
        if remaining_ns := burn_cpu(remaining_ns, BURN_SLICE_NS):
            self._loop.call_soon(self._burn, remaining_ns)
        else:
            self._go_on()

    def _finish(self) -> None:
        """Close once all is sent. Where the peer has not ended its stream, only ours is ended, and further input is
        read (the session ignores it): a close with unread bytes resets the connection, and the peer would lose the
        replies that are on their way (RFC 9112, 9.6)."""
        self._closing = True
        self._server.mute(self)
        if self._transport.is_closing():
            return
        self._send_outbox()
        if self._ended:
            self._transport.close()
            return
        with suppress(OSError):  # the peer is gone
            self._transport.write_eof()
        self._loop.call_later(LINGER_S, self._end_linger)

    def _end_linger(self) -> None:
        if self._transport.is_closing():
            return
        if self._transport.get_write_buffer_size():
            self._loop.call_later(LINGER_S, self._end_linger)
        else:
            self._transport.abort()


def make_pool(options: Options, loop: asyncio.AbstractEventLoop) -> BackendPool | None:
    """Return the pool of connections to the backend; None without service kind backend."""
    if not options.pool:
        return None
    from servers._shared.asyncio.backend_pool import BackendPool  # most starts need none

    return BackendPool(options, loop)


ACCEPTS_AT_ONCE = 100
"""asyncio has one number for the kernel's queue and for how often it accepts in a turn. Without a descriptor left it
fails each time, and writes a traceback: with 4096 in a turn it was busy for half a second in each."""


class Server:
    """All connections, and the state that they share in one thread."""

    def __init__(self, options: Options, loop: asyncio.AbstractEventLoop, timer_step_s: float) -> None:
        self.options = options
        self.loop = loop
        self.timer_step_s = timer_step_s
        self.backend = make_pool(options, loop)
        self.totals = Totals()
        self.read_buffer = memoryview(bytearray(options.read_buffer))  # the bytes of a read are taken at once
        self._everybody: set[Connection] = set()
        self._members: set[Connection] = set()  # of the chat
        self._unflushed: list[Connection] = []
        self._stopping = False

    def run(self) -> None:
        """Serve until the signal to end, and until all connections are done or the grace is over."""
        loop, sock = self.loop, listen_or_exit(self.options)
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._stop)
        server_creation = loop.create_server(lambda: Connection(self), sock=sock, backlog=ACCEPTS_AT_ONCE)
        self._listener = loop.run_until_complete(server_creation)
        sock.listen(self.options.backlog)  # listen(2): a later call changes the length of the queue
        loop.call_soon(announce_ready, sock)  # by the loop: between two runs, uvloop does not check signals
        loop.run_forever()
        print_totals(self.totals)

    def join(self, connection: Connection) -> None:
        self.totals.connections += 1
        self._everybody.add(connection)
        self._members.add(connection)
        if self._stopping:
            connection.stop_receiving()

    def mute(self, connection: Connection) -> None:
        """Exclude a connection from broadcasts."""
        self._members.discard(connection)

    def left(self, connection: Connection) -> None:
        self._members.discard(connection)
        self._everybody.discard(connection)
        self._end_if_all_are_gone()

    def broadcast(self, parts: tuple[bytes, ...], sender: Connection) -> None:
        """Deliver a frame to all members; their transports get the same objects."""
        for member in self._members:
            if member is not sender or self.options.to_all:
                member.deliver(parts)

    def flush_later(self, connection: Connection) -> None:
        """Flush a connection at the end of this turn of the loop, so that the frames of several senders leave in one
        write."""
        if not self._unflushed:
            self.loop.call_soon(self._flush)
        self._unflushed.append(connection)

    def _flush(self) -> None:
        unflushed, self._unflushed = self._unflushed, []
        for connection in unflushed:
            connection.flush()

    def _stop(self) -> None:
        """Stop accepting, and end every stream at what has arrived."""
        if self._stopping:
            return
        self._stopping = True
        ignore_further_signals()
        self._listener.close()
        for connection in self._everybody:
            connection.stop_receiving()
        self.loop.call_later(SHUTDOWN_GRACE_S, self._give_up)
        self._end_if_all_are_gone()

    def _give_up(self) -> None:
        for connection in self._everybody:
            connection.give_up()
        self.loop.stop()

    def _end_if_all_are_gone(self) -> None:
        if self._stopping and not self._everybody:
            self.loop.stop()


def serve(options: Options, loop: asyncio.AbstractEventLoop, timer_step_s: float = 0.0) -> None:
    """Run a server's whole life. `timer_step_s`: the loop's timers count in these steps, and round."""
    Server(options, loop, timer_step_s).run()
