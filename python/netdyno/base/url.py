"""URLs of servers, by the same rules as the C++ programs (lib/cli/url.cpp)."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple

from netdyno.base.errors import UserError

# The host: letters, digits and what a name or an address is made of, so that a typing error is not left to the
# resolver; an IPv6 address stands in brackets (RFC 3986, 3.2.2), with a zone where it needs one (RFC 4007).
_URL = re.compile(
    r"(?P<transport>[^:/?\s]+)://(?:\[(?P<ipv6>[0-9A-Za-z.%_-]*:[0-9A-Za-z:.%_-]*)\]|(?P<host>[0-9A-Za-z._-]+))"
    r":(?P<port>\d{1,5})(?P<query>\?.*)?",
    re.ASCII,
)


_OWN_ADDRESS = re.compile(r"&server=[0-9.]+\Z", re.ASCII)
"""What a server of `multicast` adds (protocol/WIRE.md): its address on the one interface of the network that it is in,
which is private to the trial."""


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


def endpoint(told: str, said: str) -> str | None:
    """Where to reach a server that was told to listen at one URL and says that it does so at another: the URL it was
    told, with the port it says where it was told 0. None where it says another place. A server that listens on all
    addresses may say so; `localhost` is the loopback, of either family. Pure."""
    asked, named = _URL.fullmatch(told), _URL.fullmatch(said)
    if asked is None or named is None or asked["transport"] != named["transport"]:
        return None
    if _OWN_ADDRESS.sub("", named["query"] or "") != (asked["query"] or ""):
        return None
    port = int(named["port"])
    if not 0 < port <= 65535 or int(asked["port"]) not in (0, port):
        return None
    host = _reached(asked["ipv6"] or asked["host"], named["ipv6"] or named["host"])
    if host is None:
        return None
    bracketed = f"[{host}]" if ":" in host else host
    return f"{asked['transport']}://{bracketed}:{port}{named['query'] or ''}"


def _reached(told: str, said: str) -> str | None:
    """The host at which to reach who says this one; None where it is not the one it was told."""
    if said == told:
        return told
    asked, named = _address(told), _address(said)
    if asked is None:
        return None
    if asked == named or (named is not None and named.is_unspecified):
        return told
    if not asked.is_loopback:
        return None
    return told if said == "localhost" else said if said in ("127.0.0.1", "::1") else None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:  # a name
        return None


def _place(text: str, transport: str, example: str) -> TcpUrl:
    match = _URL.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise UserError(f"{text!r} is no URL; want e.g. {example}")
    if match["transport"].lower() != transport:  # RFC 3986, 3.1
        raise UserError(f"{text!r}: transport {match['transport']!r} is not spoken here, only {transport}")
    if int(match["port"]) == 0:
        raise UserError(f"{text!r}: port 0 cannot be connected to")
    return TcpUrl(match["ipv6"] or match["host"], int(match["port"]))
