"""The addresses of a host, in the order in which they are to be tried, as in the C++ programs (lib/net/resolve.cpp)."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import NamedTuple


class Found(NamedTuple):
    """One address as the socket module takes it."""

    family: socket.AddressFamily
    address: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]

    @property
    def host(self) -> str:
        """The numeric address, with its zone where it has one."""
        return str(self.address[0])


def resolve(host: str, port: int) -> list[Found]:
    """At least one, for a stream: as the system ranks them (RFC 6724), and the families in turn (RFC 8305, 4), so that
    one family that leads nowhere costs one try. Blocks. Raises OSError, and UnicodeError for what can be no name."""
    known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return take_families_in_turn([Found(family, address) for family, _, _, _, address in known])


def take_families_in_turn(found: Sequence[Found]) -> list[Found]:
    """Those of the first one's family and all others, alternately, each in the order they have. Pure."""
    first = [one for one in found if one.family == found[0].family]
    others = [one for one in found if one.family != found[0].family]
    return [one for one in chain.from_iterable(zip_longest(first, others)) if one is not None]
