"""The parts that servers share whose connections block, each in a thread or greenlet of its own."""

from __future__ import annotations

import enum
import errno
import socket
from contextlib import suppress

EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""The errors of accept(2) after which a connection stays in the queue; the others concern its peer alone."""
EXHAUSTED_PAUSE_S = 0.01
SEND_TIMEOUT_S = 2.0
"""The time for which a blocking send waits for a reader that takes nothing, before that reader is closed."""
_MOST_SCRAPS = 256
"""The reads that throw away what a peer still sends; a peer that sends on and on is reset after all."""


class Patience(enum.Enum):
    """The time for which a send waits for a reader that takes its bytes slowly: as long as each send timeout sees some
    taken (only the reader's own thread waits), one send timeout in all (others wait meanwhile), or none."""

    WHILE_IT_READS = enum.auto()
    ONE_TIMEOUT = enum.auto()
    NONE = enum.auto()


def shut_down(sock: socket.socket, how: int) -> None:
    """Shut down a socket in which another thread or greenlet may block: that sees the end of the stream, once it has
    read what has arrived. By an object of its own, since gevent's raises an error there instead."""
    with suppress(OSError):  # the peer is gone
        alias = socket.socket(fileno=sock.fileno())
        try:
            alias.shutdown(how)
        finally:
            alias.detach()


def close(sock: socket.socket) -> None:
    """End a connection's stream, throw away what has arrived, and close it. A close with unread input resets the
    connection (RFC 1122, 4.2.2.13), and the peer may lose the replies under way to it (RFC 9112, 9.6)."""
    with suppress(OSError):  # nothing more has arrived, or the peer is gone
        sock.setblocking(False)
        sock.shutdown(socket.SHUT_WR)
        for _ in range(_MOST_SCRAPS):
            if not sock.recv(64 << 10):
                break
    sock.close()
