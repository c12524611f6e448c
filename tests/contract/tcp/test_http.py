"""HTTP as others speak it: Python's http.client, curl, and the finer points of RFC 9112 that WIRE.md promises."""

from __future__ import annotations

import http.client
import shutil
import subprocess
import time
from contextlib import closing
from email.utils import formatdate, parsedate_to_datetime

import pytest

from tests.contract.tcp.conftest import ServedContestant
from tests.contract.tcp.stream_talk import HttpReply, StreamTalk

TICK_S = 0.01
"""The most by which time(2) may be late: it reads the clock of the last tick."""

pytestmark = pytest.mark.workloads("http")


@pytest.mark.once_a_language
def test_python_http_client(served: ServedContestant, talk: StreamTalk) -> None:
    host, port = served.server.address
    connection = http.client.HTTPConnection(host, port, timeout=30)
    for number in range(20):
        connection.request("GET", f"/python?{number}", headers={"X-Something": "else", "Accept-Language": "eo, *"})
        response = connection.getresponse()
        assert response.status == 200
        assert response.read() == f"/python?{number}".encode()
    connection.close()
    talk.check()


@pytest.mark.once_a_language
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl(served: ServedContestant, talk: StreamTalk) -> None:
    host, port = served.server.address
    urls = [f"http://{host}:{port}/curl/{number}" for number in range(3)]
    done = subprocess.run(
        ["curl", "--silent", "--show-error", "--fail", "--noproxy", "*", "-w", "[%{http_code} %{num_connects}]", *urls],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"/curl/0[200 1]/curl/1[200 0]/curl/2[200 0]", "curl could not keep its connection"
    talk.check()


@pytest.mark.once_a_language
def test_a_reply_has_the_date(served: ServedContestant, talk: StreamTalk) -> None:
    host, port = served.server.address
    with closing(http.client.HTTPConnection(host, port, timeout=30)) as connection:
        for seconds in (0.0, 1.1):  # it changes with each second
            time.sleep(seconds)
            before = int(time.time() - TICK_S)
            connection.request("GET", "/")
            response = connection.getresponse()
            response.read()
            date = response.headers["Date"]
            assert before <= parsedate_to_datetime(date).timestamp() <= time.time()
            assert formatdate(parsedate_to_datetime(date).timestamp(), usegmt=True) == date
    talk.check()


@pytest.mark.once_a_language
def test_head_and_keep_alive_of_old(served: ServedContestant, talk: StreamTalk) -> None:
    host, port = served.server.address
    connection = http.client.HTTPConnection(host, port, timeout=30)
    for method, body in (("HEAD", b""), ("GET", b"/x"), ("HEAD", b"")):
        connection.request(method, "/x")
        response = connection.getresponse()
        assert (response.status, response.headers["Content-Length"], response.read()) == (200, "2", body)
    connection.close()
    with talk.client() as client:
        for _ in range(2):
            client.send(b"GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            reply = HttpReply(client)
            assert (reply.status, reply.body, reply.headers["connection"]) == (200, b"/old", "keep-alive")
        talk.check()


@pytest.mark.once_a_family
def test_pipelining_with_a_close_at_the_end(talk: StreamTalk) -> None:
    with talk.client() as client:
        get = b"GET /%d HTTP/1.1\r\nHost: x\r\n%s\r\n"
        client.send(b"".join(get % (number, b"") for number in range(100)) + get % (100, b"Connection: close\r\n"))
        for number in range(101):
            reply = HttpReply(client)
            assert (reply.status, reply.body) == (200, b"/%d" % number)
            assert reply.closes == (number == 100)
        assert client.rest() == b""


@pytest.mark.once_a_language
@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /x HTTP/1.0\r\n", 200),
        (b"GET /x HTTP/1.1\r\nHost: x\r\nCONNECTION: Close\r\n", 200),
        (b"GET /x HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, close\r\n", 200),
        (b"GET /x\r\nHost: x\r\n", 400),
        (b"GET /x HTTP/3\r\nHost: x\r\n", 400),
        (b"GET /x HTTP/1.1\r\nHost: x\r\nno colon\r\n", 400),
        (b"GET /x HTTP/1.1\r\n", 400),
        (b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n", 501),
        (b"GET /x HTTP/1.1\r\nHost: x\r\ncontent-length: 5\r\n", 400),
        (b"GET /x HTTP/1.1\r\nHost: x\r\ntransfer-encoding: chunked\r\n", 400),
        (b"GET /x HTTP/1.1\r\nX: " + b"x" * (16 << 10) + b"\r\n", 400),
    ],
)
def test_a_request_after_which_the_server_closes(talk: StreamTalk, head: bytes, status: int) -> None:
    with talk.client() as client:
        client.send(head + b"\r\n")
        reply = HttpReply(client)
        assert reply.status == status
        assert reply.closes
        assert reply.body == (b"/x" if status == 200 else b"")
        assert client.rest_until_closed() == b""
        talk.check()


@pytest.mark.once_a_language
def test_the_replies_before_a_bad_request_are_sent(talk: StreamTalk) -> None:
    with talk.client() as client:
        get = b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n"
        client.send(get % 1 + get % 2 + b"nonsense\r\n\r\n" + get % 3)
        assert [HttpReply(client).status for _ in range(3)] == [200, 200, 400]
        assert client.rest_until_closed() == b""
