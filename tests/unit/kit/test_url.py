"""URLs are read by the same rules as in the C++ programs."""

from __future__ import annotations

import pytest

from netdyno.kit.errors import UserError
from netdyno.kit.url import TcpUrl, endpoint, parse_tcp_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("tcp://127.0.0.1:7000", TcpUrl("127.0.0.1", 7000)),
        ("tcp://some-host.example:1", TcpUrl("some-host.example", 1)),
        ("tcp://[::1]:65535", TcpUrl("::1", 65535)),
        ("tcp://[fe80::1%eth0]:80", TcpUrl("fe80::1%eth0", 80)),
        ("tcp://localhost:80?x=y", TcpUrl("localhost", 80)),
        ("TCP://localhost:80", TcpUrl("localhost", 80)),
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
        ("udp://127.0.0.1:7000", "transport 'udp' is not supported"),
        ("tcp://127.0.0.1:0", "port 0 cannot be connected to"),
    ],
)
def test_anything_else_is_an_error_of_one_line(text: str, why: str) -> None:
    with pytest.raises(UserError, match=why) as error:
        parse_tcp_url(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("listen", "announced", "reached"),
    [
        ("tcp://127.0.0.1:0", "tcp://127.0.0.1:7000", "tcp://127.0.0.1:7000"),
        ("tcp://127.0.0.1:0", "tcp://0.0.0.0:7000", "tcp://127.0.0.1:7000"),
        ("tcp://10.0.0.1:0", "tcp://[::]:7000", "tcp://10.0.0.1:7000"),
        ("tcp://127.0.0.1:0", "tcp://localhost:7000", "tcp://127.0.0.1:7000"),
        ("tcp://127.0.0.1:0", "tcp://[::1]:7000", "tcp://[::1]:7000"),
        ("tcp://[::1]:0", "tcp://[0:0:0:0:0:0:0:1]:7000", "tcp://[::1]:7000"),
        ("tcp://127.0.0.1:9000", "tcp://127.0.0.1:9000", "tcp://127.0.0.1:9000"),
        ("zmq+tcp://127.0.0.1:0", "zmq+tcp://127.0.0.1:7000", "zmq+tcp://127.0.0.1:7000"),
        (
            "multicast://239.255.0.1:0?interface=lo",
            "multicast://239.255.0.1:7000?interface=lo&server=127.0.0.1",
            "multicast://239.255.0.1:7000?interface=lo&server=127.0.0.1",
        ),
        ("tcp://127.0.0.1:0", "tcp://192.0.2.1:7000", None),
        ("tcp://127.0.0.1:0", "tcp://127.0.0.2:7000", None),
        ("tcp://127.0.0.1:0", "tcp://example.org:7000", None),
        ("tcp://10.0.0.1:0", "tcp://localhost:7000", None),
        ("tcp://10.0.0.1:0", "tcp://127.0.0.1:7000", None),
        ("tcp://127.0.0.1:0", "udp://127.0.0.1:7000", None),
        ("tcp://127.0.0.1:9000", "tcp://127.0.0.1:9001", None),
        ("tcp://127.0.0.1:0", "tcp://127.0.0.1:0", None),
        ("tcp://127.0.0.1:0", "tcp://127.0.0.1:70000", None),
        ("tcp://127.0.0.1:0", "tcp://user@127.0.0.1:7000", None),
        ("multicast://239.255.0.1:0?interface=lo", "multicast://239.255.0.1:7000?interface=eth0", None),
    ],
)
def test_a_server_is_reached_only_where_it_had_to_listen(listen: str, announced: str, reached: str | None) -> None:
    assert endpoint(listen, announced) == reached
