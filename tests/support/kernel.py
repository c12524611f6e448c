"""Looking into another process's sockets, without strace and without its help.

A child's socket is duplicated with pidfd_getfd(2) (Linux 5.6; it needs the right to ptrace the child, which a parent
has unless a container forbids it), so that getsockopt answers for the very socket that the server uses.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.patience import eventually

PIDFD_GETFD = 438  # the same number on every architecture
SO_TIMESTAMPNS = 35  # asm-generic/socket.h; struct timespec

# Offsets in struct tcp_info (linux/tcp.h); the structure only ever grows at its end.
TCPI_SACKED = 28  # of a listening socket: its backlog (tcp_get_info in net/ipv4/tcp.c)
TCPI_TOTAL_RETRANS = 100
TCPI_DATA_SEGS_IN = 152


class DescriptorNotAllowedError(Exception):
    """The system forbids pidfd_getfd here."""


@contextmanager
def duplicated(pid: int, fd: int) -> Iterator[socket.socket]:
    """The socket behind descriptor `fd` of process `pid`. Raises NotAllowedError, or OSError when it is gone."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    try:
        copy = libc.syscall(PIDFD_GETFD, pidfd, fd, 0)
    finally:
        os.close(pidfd)
    if copy < 0:
        error = ctypes.get_errno()
        if error in (1, 38):  # EPERM, ENOSYS
            raise DescriptorNotAllowedError(f"pidfd_getfd: {os.strerror(error)}")
        raise OSError(error, os.strerror(error))
    with socket.socket(fileno=copy) as duplicate:
        yield duplicate


def tcp_info(sock: socket.socket, offset: int) -> int:
    """One 32-bit number of struct tcp_info."""
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return int(struct.unpack_from("=I", info, offset)[0])


def nodelay(sock: socket.socket) -> bool:
    """TCP_NODELAY is set."""
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


@contextmanager
def stamping_arrivals() -> Iterator[None]:
    """Within it the kernel stamps every packet as it arrives. For the first socket that asks for it (SO_TIMESTAMPNS,
    socket(7)) it begins a moment later, from a work queue (net_enable_timestamp in net/core/dev.c)."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as sender:
        receiver, _ = listener.accept()
        with receiver:
            receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)

            def is_stamped() -> bool:
                sender.sendall(b"?")
                return bool(receiver.recvmsg(1, socket.CMSG_SPACE(16))[1])

            eventually(is_stamped, "the kernel stamps nothing that arrives")
            yield
