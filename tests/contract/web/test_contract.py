"""What every server of the workload web does."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPResponse

import pytest

from tests.contract.tcp.conftest import serves_one_at_a_time
from tests.contract.web.conftest import WebServer

Connect = Callable[[], HTTPConnection]
STAMP = "0000002a0000000000070badcafe"
ITEMS = [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}, {"id": 3, "name": "three"}]


def get(client: HTTPConnection, target: str, **headers: str) -> tuple[HTTPResponse, str]:
    client.request("GET", target, headers=headers)
    with client.getresponse() as response:
        return response, response.read().decode()


def skip_without_time(web_server: WebServer) -> None:
    if not web_server.contestant.manifest.spends_time:
        pytest.skip(f"{web_server.contestant.name} cannot spend a service time")


def test_a_reply_is_the_stamp(connect: Connect) -> None:
    response, body = get(connect(), f"/{STAMP}")
    assert (response.status, body) == (200, STAMP)


@pytest.mark.parametrize("size", [64, 2048, 65536])
def test_a_reply_is_filled_to_the_requested_size(connect: Connect, size: int) -> None:
    response, body = get(connect(), f"/{STAMP}?size={size}")
    assert (response.status, body) == (200, STAMP.ljust(size, "x"))


def test_a_reply_says_how_long_it_is(connect: Connect) -> None:
    response, _ = get(connect(), f"/{STAMP}?size=2048")
    assert response.getheader("Content-Length") == "2048"


def test_a_reply_comes_after_the_requested_wait(connect: Connect, web_server: WebServer) -> None:
    skip_without_time(web_server)
    begin = time.monotonic()
    _, body = get(connect(), f"/{STAMP}?wait=50000us&size=64")
    assert (body, time.monotonic() - begin >= 0.045) == (STAMP.ljust(64, "x"), True)


def test_a_reply_comes_after_the_requested_computing(connect: Connect, web_server: WebServer) -> None:
    skip_without_time(web_server)
    begin = time.monotonic()
    _, body = get(connect(), f"/{STAMP}?cpu=50000us&size=64")
    assert (body, time.monotonic() - begin >= 0.045) == (STAMP.ljust(64, "x"), True)


def test_both_times_add_up(connect: Connect, web_server: WebServer) -> None:
    skip_without_time(web_server)
    begin = time.monotonic()
    _, body = get(connect(), f"/{STAMP}?wait=40000us&cpu=40000us&size=64")
    assert (body, time.monotonic() - begin >= 0.075) == (STAMP.ljust(64, "x"), True)


def test_a_wait_holds_up_no_other_client(connect: Connect, web_server: WebServer) -> None:
    skip_without_time(web_server)
    if not web_server.contestant.manifest.asynchronous and not web_server.contestant.manifest.is_framework:
        pytest.skip("its thread waits with its client")
    waiting, quick = connect(), connect()
    waiting.request("GET", f"/{STAMP}?wait=3000000us")
    get(quick, f"/{STAMP}")
    assert waiting.sock is not None
    waiting.sock.setblocking(False)
    with pytest.raises(BlockingIOError):
        waiting.sock.recv(1)


def skip_without_streams(web_server: WebServer) -> None:
    if not web_server.contestant.manifest.has_streams:
        pytest.skip(f"{web_server.contestant.name} answers with no stream")


def list_data(size: int, count: int) -> list[str]:
    return [f"{STAMP}{number:04}".ljust(size, "x") for number in range(count)]


def test_a_stream_has_each_chunk_when_it_is_due_and_the_connection_goes_on(
    connect: Connect, web_server: WebServer
) -> None:
    skip_without_streams(web_server)
    client = connect()
    begin = time.monotonic()
    client.request("GET", f"/{STAMP}?chunks=4&every=60000us&size=64")
    with client.getresponse() as response:
        content_type = (response.getheader("Content-Type") or "").partition(";")[0]
        assert (response.status, content_type) == (200, "text/event-stream")
        assert response.chunked
        arrived = []
        for data in list_data(64, 4):
            assert response.readline() == f"data: {data}\n".encode()
            arrived.append(time.monotonic() - begin)
            assert response.readline() == b"\n"
        assert response.read() == b""
    assert all(at_s >= 0.06 * number - 0.001 for number, at_s in enumerate(arrived))
    assert arrived[0] < arrived[-1] - 0.1  # they do not come together at the end
    assert get(client, f"/{STAMP}")[1] == STAMP


def test_a_stream_holds_up_no_other_client(connect: Connect, web_server: WebServer) -> None:
    skip_without_streams(web_server)
    if serves_one_at_a_time(web_server.contestant):
        pytest.skip("it serves one client at a time")
    waiting, quick = connect(), connect()
    waiting.request("GET", f"/{STAMP}?chunks=2&every=3000000us&size=64")
    with waiting.getresponse() as response:
        assert response.readline().decode() == f"data: {list_data(64, 1)[0]}\n"
        get(quick, f"/{STAMP}")
        waiting.close()


def test_a_connection_takes_many_requests(connect: Connect) -> None:
    client = connect()
    get(client, f"/{STAMP}")
    first = client.sock
    for _ in range(20):
        assert get(client, f"/{STAMP}?size=64")[1] == STAMP.ljust(64, "x")
    assert client.sock is first


def test_a_connection_ends_where_the_client_says_so(connect: Connect) -> None:
    client = connect()
    response, body = get(client, f"/{STAMP}", Connection="close")
    assert body == STAMP
    if response.getheader("Connection") != "close":  # then http.client leaves it open
        assert client.sock is not None
        assert client.sock.recv(1) == b""


def test_a_list_is_json(connect: Connect) -> None:
    response, body = get(connect(), "/items")
    content_type = (response.getheader("Content-Type") or "").partition(";")[0]
    assert (response.status, content_type, json.loads(body)) == (200, "application/json", ITEMS)


@pytest.mark.parametrize("size", [5, 100_000])
def test_a_body_is_taken_and_counted(connect: Connect, size: int) -> None:
    client = connect()
    client.request("POST", "/items", body=b"y" * size, headers={"Content-Type": "application/octet-stream"})
    with client.getresponse() as response:
        assert (response.status, json.loads(response.read())) == (200, size)
    assert get(client, f"/{STAMP}")[1] == STAMP


def test_fifty_clients_get_their_own_replies(connect: Connect, web_server: WebServer) -> None:
    clients = [connect() for _ in range(50)]
    stamps = [f"{number:08x}{STAMP[8:]}" for number in range(50)]
    if web_server.contestant.manifest.limits_clients:
        pytest.skip("it serves no more clients than threads")
    for client, stamp in zip(clients, stamps, strict=True):
        client.request("GET", f"/{stamp}?size=64")
    assert [client.getresponse().read().decode() for client in clients] == [stamp.ljust(64, "x") for stamp in stamps]
