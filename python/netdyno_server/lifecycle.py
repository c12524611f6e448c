"""The steps of a server's life from its first line of output to its last."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import socket
import struct
import sys

from netdyno_server.options import Options
from netdyno_server.session import Totals

STOP_SIGNALS = frozenset(
    number
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN  # nohup(1)
)
SHUTDOWN_GRACE_S = 2.0
"""The time that a server may still work on what is in flight after the signal to end."""
LINGER_S = 1.0
"""The time in which a connection that was closed for the peer's fault may deliver the last replies."""

_HINTS = {
    errno.EADDRINUSE: "another program listens there: choose another port, or port 0 for a free one",
    errno.EACCES: "ports below 1024 need rights: choose a higher one",
    errno.EADDRNOTAVAIL: "that address is not one of this machine's",
}


def listen_or_exit(options: Options) -> socket.socket:
    """Return a bound, listening, non-blocking socket. Ends the program where it cannot be made."""
    host, port = options.listen
    try:
        listener = _bind(host, port)
        listener.listen(options.backlog)
        listener.setblocking(False)
    except (OSError, UnicodeError) as error:
        hint = _HINTS.get(error.errno or 0, "") if isinstance(error, OSError) else ""
        url = format_url(host, port)
        print(f"{options.program}: cannot listen on {url}{hint and '; ' + hint}: {error}", file=sys.stderr)
        sys.exit(1)
    return listener


def _bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to the first address of the host that is free. Raises OSError, that of the first
    address."""
    first_error: OSError | None = None
    for family, kind, number, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        listener = socket.socket(family, kind, number)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError as error:
            listener.close()
            first_error = first_error or error
        else:
            return listener
    raise first_error or OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))


def format_url(host: str, port: int) -> str:
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def takes_more(descriptor: int) -> bool:
    """Whether the kernel takes bytes for the peer of a socket now: a peer that reads leaves room for more."""
    poller = select.poll()
    poller.register(descriptor, select.POLLOUT)
    return poller.poll(0) == [(descriptor, select.POLLOUT)]


def is_reset(descriptor: int) -> bool:
    """Whether a connection that this side has not ended is over in both directions: the peer has reset it."""
    poller = select.poll()
    poller.register(descriptor, 0)
    return any(events & (select.POLLHUP | select.POLLERR) for _, events in poller.poll(0))


def count_handed_bytes(sock: socket.socket) -> int:
    """Return the bytes that the kernel has taken from this side of a connection, by TCP_INFO (tcp(7), struct tcp_info):
    those sent, each counted once, and those not sent yet."""
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 216)
    (not_sent,) = struct.unpack_from("=I", info, 144)
    sent, retransmitted = struct.unpack_from("=QQ", info, 200)
    handed_over: int = sent - retransmitted + not_sent
    return handed_over


def announce_ready(listener: socket.socket) -> None:
    """Print the line that announces that the server accepts."""
    host, port = listener.getsockname()[:2]
    print(json.dumps({"ready": True, "endpoint": format_url(host, port), "pid": os.getpid()}), flush=True)


def print_totals(totals: Totals) -> None:
    """Print the line that ends a server's life."""
    print(json.dumps(vars(totals)), flush=True)


def ignore_further_signals() -> None:
    """Block further signals; call it at the signal to end: Python gives signals their default action back while it
    takes itself apart, and one that came then would kill a server that has done all its work."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
