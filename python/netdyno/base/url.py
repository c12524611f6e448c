"""URLs of servers, by the same rules as the C++ programs (lib/cli/url.cpp)."""

from __future__ import annotations

import re
from typing import NamedTuple

from netdyno.base.errors import UserError

# The host: letters, digits and what a name or an address is made of, so that a typing error is not left to the
# resolver; an IPv6 address stands in brackets (RFC 3986, 3.2.2), with a zone where it needs one (RFC 4007).
_URL = re.compile(
    r"(?P<transport>[^:/?\s]+)://(?:\[(?P<ipv6>[0-9A-Za-z.%_-]*:[0-9A-Za-z:.%_-]*)\]|(?P<host>[0-9A-Za-z._-]+))"
    r":(?P<port>\d{1,5})(?:\?.*)?",
    re.ASCII,
)


class TcpUrl(NamedTuple):
    """Where a server listens; the host without its brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"tcp://[{self.host}]:{self.port}" if ":" in self.host else f"tcp://{self.host}:{self.port}"


def parse_tcp_url(text: str) -> TcpUrl:
    """The place behind "tcp://host:port". Raises UserError that says what is wrong with the text."""
    return _place(text, "tcp", "tcp://127.0.0.1:7000")


def parse_tls_url(text: str) -> TcpUrl:
    """The place behind "tls://host:port", where a scheduler of a cluster listens. Raises UserError."""
    return _place(text, "tls", "tls://10.0.0.1:8786")


def _place(text: str, transport: str, example: str) -> TcpUrl:
    match = _URL.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise UserError(f"{text!r} is no URL; want e.g. {example}")
    if match["transport"] != transport:
        raise UserError(f"{text!r}: transport {match['transport']!r} is not spoken here, only {transport}")
    if int(match["port"]) == 0:
        raise UserError(f"{text!r}: port 0 cannot be connected to")
    return TcpUrl(match["ipv6"] or match["host"], int(match["port"]))
