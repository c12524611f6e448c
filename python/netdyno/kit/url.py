"""URLs of servers, by the same rules as the C++ programs (lib/cli/url.cpp)."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple

from netdyno.kit.errors import UserError

# The host: letters, digits and what a name or an address is made of, so that a typing error is not left to the
# resolver; an IPv6 address stands in brackets (RFC 3986, 3.2.2), with a zone where it needs one (RFC 4007).
_URL = re.compile(
    r"(?P<transport>[^:/?\s]+)://(?:\[(?P<ipv6>[0-9A-Za-z.%_-]*:[0-9A-Za-z:.%_-]*)\]|(?P<host>[0-9A-Za-z._-]+))"
    r":(?P<port>\d{1,5})(?P<query>\?.*)?",
    re.ASCII,
)


_OWN_ADDRESS = re.compile(r"&server=[0-9.]+\Z", re.ASCII)
"""The part of a URL that a server of `multicast` adds (protocol/WIRE.md): its address on the one interface of the
trial's private network."""


class TcpUrl(NamedTuple):
    """The place at which a server listens; the host without its brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"tcp://[{self.host}]:{self.port}" if ":" in self.host else f"tcp://{self.host}:{self.port}"


def parse_tcp_url(text: str) -> TcpUrl:
    """Parse the place behind "tcp://host:port". Raises UserError with what is wrong with the text."""
    return _parse_place(text, "tcp", "tcp://127.0.0.1:7000")


def parse_tls_url(text: str) -> TcpUrl:
    """Parse the place behind "tls://host:port", where a scheduler of a cluster listens. Raises UserError."""
    return _parse_place(text, "tls", "tls://10.0.0.1:8786")


def endpoint(configured: str, reported: str) -> str | None:
    """Return the URL at which to reach a server that was `configured` to listen at one URL and `reported` another: the
    configured URL, with the reported port where it was 0. None where the places differ. A server that listens on all
    addresses may report that; `localhost` is the loopback, of either family. Pure."""
    expected, actual = _URL.fullmatch(configured), _URL.fullmatch(reported)
    if expected is None or actual is None or expected["transport"] != actual["transport"]:
        return None
    if _OWN_ADDRESS.sub("", actual["query"] or "") != (expected["query"] or ""):
        return None
    port = int(actual["port"])
    if not 0 < port <= 65535 or int(expected["port"]) not in (0, port):
        return None
    host = _find_reachable_host(expected["ipv6"] or expected["host"], actual["ipv6"] or actual["host"])
    if host is None:
        return None
    bracketed = f"[{host}]" if ":" in host else host
    return f"{expected['transport']}://{bracketed}:{port}{actual['query'] or ''}"


def _find_reachable_host(configured: str, reported: str) -> str | None:
    """Return the host at which to reach a server that reported one; None where it is not the configured one."""
    if reported == configured:
        return configured
    expected, actual = _parse_address(configured), _parse_address(reported)
    if expected is None:
        return None
    if expected == actual or (actual is not None and actual.is_unspecified):
        return configured
    if not expected.is_loopback:
        return None
    return configured if reported == "localhost" else reported if reported in ("127.0.0.1", "::1") else None


def _parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:  # a name
        return None


def _parse_place(text: str, transport: str, example: str) -> TcpUrl:
    match = _URL.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise UserError(f"{text!r} is no URL; want e.g. {example}")
    if match["transport"].lower() != transport:  # RFC 3986, 3.1
        raise UserError(f"{text!r}: transport {match['transport']!r} is not supported, only {transport}")
    if int(match["port"]) == 0:
        raise UserError(f"{text!r}: port 0 cannot be connected to")
    return TcpUrl(match["ipv6"] or match["host"], int(match["port"]))
