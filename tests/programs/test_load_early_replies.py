"""netdyno-load against servers that answer before they have the whole request."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.support.foreign import OK, always, expect_all_right, failed, http, replies_of, result_of, tcp

pytestmark = pytest.mark.needs_build

SIZE = 16 << 20
"""More than the buffers of a connection hold."""
TOO_SOON = "a reply before the request was sent whole"
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
HELD = ("--send-buffer", "64KiB", "--timeout", "30s")


def answer_head(connection: socket.socket, answer: bytes) -> None:
    """Answer the beginning of a request, and leave."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    connection.recv(1000)
    connection.sendall(answer)


@pytest.fixture
def body(tmp_path: Path) -> str:
    (tmp_path / "body").write_bytes(b"x" * SIZE)
    return f"@{tmp_path}/body"


@pytest.mark.parametrize(
    ("answer", "fault"),
    [(OK, TOO_SOON), (BUSY, "503 Service Unavailable, before the request was sent whole")],
    ids=["success", "refusal"],
)
def test_a_reply_before_its_request_was_sent_whole_is_no_success(answer: bytes, fault: str, body: str) -> None:
    with http(lambda connection, _: answer_head(connection, answer)) as url:
        result = result_of(url, "-n", "3", "-d", body, *HELD, ends={1})
    assert (result.messages.received, replies_of(result).unexpected) == (0, 3)
    assert [(kind.what, kind.count) for kind in replies_of(result).faults] == [(fault, 3)]
    assert result.bytes.sent < 3 * SIZE
    assert "verification" in failed(result)


def test_bytes_that_are_answered_too_soon_are_no_success(body: str) -> None:
    with tcp(lambda connection, _: answer_head(connection, b"+OK\n")) as url:
        result = result_of(url, "-n", "2", "--send", body, *HELD, ends={1})
    assert [(kind.what, kind.count) for kind in replies_of(result).faults] == [(TOO_SOON, 2)]


def test_a_large_request_that_is_read_whole_before_its_reply_is_a_success(body: str) -> None:
    with http(always(OK)) as url:
        expect_all_right(result_of(url, "-n", "3", "-d", body, *HELD))
