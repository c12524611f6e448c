"""The addresses of a host, in the order in which to try them, as in the C++ programs (lib/net/resolve.cpp)."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import NamedTuple


class SocketAddress(NamedTuple):
    """One address as the socket module takes it."""

    family: socket.AddressFamily
    address: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]

    @property
    def host(self) -> str:
        """The numeric address, with its zone where it has one."""
        return str(self.address[0])


def resolve(host: str, port: int) -> list[SocketAddress]:
    """Return the addresses for a stream, at least one: as the system ranks them (RFC 6724), and the families in turn
    (RFC 8305, 4), so that an unreachable family costs one try. Blocks. Raises OSError, and UnicodeError for an
    impossible name."""
    known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return take_families_in_turn([SocketAddress(family, address) for family, _, _, _, address in known])


def take_families_in_turn(candidates: Sequence[SocketAddress]) -> list[SocketAddress]:
    """Alternate the addresses of the first one's family with all others, each in their own order. Pure."""
    first = [candidate for candidate in candidates if candidate.family == candidates[0].family]
    of_other_families = [candidate for candidate in candidates if candidate.family != candidates[0].family]
    return [
        candidate for candidate in chain.from_iterable(zip_longest(first, of_other_families)) if candidate is not None
    ]
