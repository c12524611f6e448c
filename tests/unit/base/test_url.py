"""URLs are read by the same rules as in the C++ programs."""

from __future__ import annotations

import pytest

from netdyno.base.errors import UserError
from netdyno.base.url import TcpUrl, parse_tcp_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("tcp://127.0.0.1:7000", TcpUrl("127.0.0.1", 7000)),
        ("tcp://some-host.example:1", TcpUrl("some-host.example", 1)),
        ("tcp://[::1]:65535", TcpUrl("::1", 65535)),
        ("tcp://[fe80::1%eth0]:80", TcpUrl("fe80::1%eth0", 80)),
        ("tcp://localhost:80?x=y", TcpUrl("localhost", 80)),
    ],
)
def test_a_url_says_where(text: str, url: TcpUrl) -> None:
    assert parse_tcp_url(text) == url


def test_a_url_reads_as_it_is_written() -> None:
    for text in ("tcp://127.0.0.1:7000", "tcp://[::1]:7000"):
        assert str(parse_tcp_url(text)) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is no URL"),
        ("127.0.0.1:7000", "is no URL"),
        ("tcp:/127.0.0.1:7000", "is no URL"),
        ("tcp://127.0.0.1", "is no URL"),
        ("tcp://:7000", "is no URL"),
        ("tcp://::1:7000", "is no URL"),
        ("tcp://[localhost]:7000", "is no URL"),
        ("tcp://a b:7000", "is no URL"),
        ("tcp://host:70000", "is no URL"),
        ("tcp://host:\N{ARABIC-INDIC DIGIT SEVEN}", "is no URL"),
        ("tcp://host:7000\n", "is no URL"),
        ("udp://127.0.0.1:7000", "transport 'udp' is not spoken here"),
        ("tcp://127.0.0.1:0", "port 0 cannot be connected to"),
    ],
)
def test_anything_else_is_an_error_of_one_line(text: str, why: str) -> None:
    with pytest.raises(UserError, match=why) as error:
        parse_tcp_url(text)
    assert "\n" not in str(error.value)
