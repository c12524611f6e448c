"""netdyno-load against servers that are not ours, well and badly behaved: what it makes of them, and how it ends."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import msgspec
import pytest

from netdyno.kit.paths import build_dir, generator_path
from netdyno.model.load_result import FirstExchange, LoadResult
from tests.support.foreign import (
    LAST,
    MANY,
    MEASURED,
    OK,
    PATIENCE_S,
    QUICK,
    EndConnection,
    Serve,
    always,
    end,
    expect_all_right,
    expect_error,
    expect_one_account,
    expect_one_line,
    failed,
    http,
    lines_of,
    listening,
    load,
    replies_of,
    replying,
    requests,
    resets,
    result_of,
    tcp,
)
from tests.support.patience import eventually

pytestmark = pytest.mark.needs_build

SO_ATTACH_FILTER = 26  # asm-generic/socket.h
ALL_RIGHT = always(OK)
RESET_IN_FLIGHT = "the connection was reset with a request in flight"


@pytest.mark.parametrize("rate", [(), ("--rate", "500")], ids=["closed", "open"])
@pytest.mark.parametrize("announced", [True, False], ids=["announced", "unannounced"])
def test_a_connection_that_the_server_closes_after_its_reply_is_reconnected(
    announced: bool, rate: tuple[str, ...]
) -> None:
    with http(replying(lambda count, _: LAST if announced and count == 4 else OK, last=4)) as url:
        result = result_of(url, "-c", "2", *rate, *MANY)
    expect_all_right(result)
    assert result.connections.established == result.connections.attempted == result.connect_ns.count
    assert result.connections.established >= result.messages.sent // 5 > 2
    assert sum(result.errors.values()) == 0
    if announced:
        assert replies_of(result).resent == 0


def test_what_had_been_sent_when_the_connection_ended_is_sent_again() -> None:
    with http(replying(OK, last=4)) as url:
        result = result_of(url, "-c", "1", "--depth", "4", *MANY)
    expect_all_right(result)
    assert replies_of(result).resent > 0
    assert result.requests.sent == result.messages.sent, "each once"


def test_a_reset_with_a_request_in_flight_is_an_error_though_the_request_is_sent_again() -> None:
    """The reset comes at every second request of a connection: the end of a kept-alive connection sends no reset."""
    with http(replying(lambda count, _: b"" if count else OK, last=1, ending=resets)) as url:
        result = result_of(url, "-n", "10", ends={3})
        done = load(url, "-n", "10", "--assert", "errors=0")
    assert (result.messages.sent, result.messages.received, result.messages.lost) == (10, 10, 0)
    assert result.errors["reset"] == replies_of(result).resent == 9
    assert [(kind.what, kind.count) for kind in replies_of(result).faults] == [(RESET_IN_FLIGHT, 9)]
    assert re.search("^assert +errors=0: 9.0, MISSED$", done.stdout, re.MULTILINE), done.stdout


def test_what_was_on_its_way_when_the_server_ended_a_connection_is_sent_again_without_an_error() -> None:
    """A server closes an idle connection when its patience ends; a request that came meanwhile makes it a reset."""

    def serve(connection: socket.socket, number: int) -> None:
        for count, _ in enumerate(requests(connection)):
            if number == 0 and count == 1:
                connection.shutdown(socket.SHUT_WR)
                resets(connection)
                return
            connection.sendall(OK)

    with http(serve) as url:
        result = result_of(url, "-n", "10")
    expect_all_right(result)
    assert replies_of(result).resent == 1
    assert sum(result.errors.values()) == 0


def books(booked: list[bytes], ending: EndConnection = end) -> Serve:
    """Take an order with each request, and leave before the reply to every third."""
    return replying(lambda count, _: OK if count < 2 else b"", last=2, ending=ending, seen=booked)


@pytest.mark.parametrize(
    ("ending", "word", "counted"), [(end, "closed", "closed_by_server"), (resets, "reset", "reset")]
)
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_an_order_is_not_given_twice(method: str, ending: EndConnection, word: str, counted: str) -> None:
    """A client does not repeat by itself what is not idempotent (RFC 9110, 9.2.2)."""
    booked: list[bytes] = []
    with http(books(booked, ending)) as url:
        result = result_of(url, "-X", method, "-d", "order", "-n", "30", ends={3})
    assert len(booked) == 30
    assert replies_of(result).resent == 0
    assert (result.messages.received, result.messages.lost) == (20, 10)
    assert result.errors[counted] == 10
    words = f"the connection was {word} with a request in flight, which is not resent"
    assert [(kind.what, kind.count, kind.counted) for kind in replies_of(result).faults] == [(words, 10, "messages")]
    assert failed(result) == {"verification", "connections"}


@pytest.mark.parametrize("options", [("-d", "order", "--repeatable"), ("-X", "PUT", "-d", "order"), ()])
def test_what_may_be_repeated_is_and_a_note_says_so(options: tuple[str, ...]) -> None:
    booked: list[bytes] = []
    with http(books(booked)) as url:
        done = load(url, *options, "-n", "30")
    assert done.returncode in MEASURED, done
    assert len(booked) == 44
    assert re.search(
        "^replies +as expected 30, others 0, without an answer 0, of 30 due; resent 14$", done.stdout, re.M
    )
    assert re.search("^note +verification: resent 14, as their connection ended", done.stdout, re.M), done.stdout


def test_after_an_announced_end_an_order_is_given_on_the_next_connection() -> None:
    """The server carries nothing out that comes after its last reply (RFC 9112, 9.6)."""
    booked: list[bytes] = []
    with http(replying(LAST, last=0, seen=booked)) as url:
        result = result_of(url, "-d", "order", "--depth", "4", "-n", "12")
    expect_all_right(result)
    assert len(booked) == 12
    assert replies_of(result).resent > 0


@pytest.mark.parametrize(("repeatable", "sendings"), [((), 30), (("--repeatable",), 44)])
def test_of_bytes_none_knows_what_they_do(repeatable: tuple[str, ...], sendings: int) -> None:
    booked: list[bytes] = []
    with tcp(replying(lambda count, line: line if count < 2 else b"", last=2, read=lines_of, seen=booked)) as url:
        result = result_of(url, "--send", r"order {sequence}\n", "-n", "30", *repeatable)
    assert len(booked) == sendings
    assert result.messages.received == (30 if repeatable else 20)
    assert ("verification" in failed(result)) == (not repeatable)


def test_of_what_was_due_nothing_is_left_out() -> None:
    """One request a second is answered, of 400 that are due in one; the rest waits until its time is over."""

    def serve(connection: socket.socket, _number: int) -> None:
        for _ in requests(connection):
            time.sleep(0.2)
            connection.sendall(OK)

    with http(serve) as url:
        options = ("--rate", "400", "--warmup", "0", "--duration", "1s", "--timeout", "300ms")
        result = result_of(url, *options, ends={3})
    assert result.requests.due == result.messages.due == 400
    assert result.messages.sent + (result.messages.unsent or 0) == 400
    assert {kind.what for kind in replies_of(result).faults} >= {
        "never sent, as the answers before it took too long",
    }


@pytest.mark.parametrize("stays", [True, False])
def test_idle_connections_stay_or_the_load_is_not_the_requested_one(stays: bool) -> None:
    """One connection of three is busy. After its fifth request, the server closes the others."""
    connections: list[socket.socket] = []
    all_are_here = threading.Barrier(3)

    def serve(connection: socket.socket, _number: int) -> None:
        connections.append(connection)
        all_are_here.wait(PATIENCE_S)
        for count, _ in enumerate(requests(connection), 1):
            connection.sendall(OK)
            if count == 5 and not stays:
                for idle in connections:
                    if idle is not connection:
                        idle.shutdown(socket.SHUT_RDWR)

    options = ("-c", "3", "--busy-connections", "1", "--rate", "50", "--warmup", "0", "--duration", "1s")
    with http(serve) as url:
        result = result_of(url, *options, ends=MEASURED if stays else {3})
    if stays:
        expect_all_right(result)
    else:
        closed = [kind for kind in replies_of(result).faults if "to stay idle" in kind.what]
        assert [(kind.count, kind.counted) for kind in closed] == [(2, "connections")]
        assert failed(result) == {"connections"}
    assert result.messages.received == result.messages.sent > 0


def test_refused_connects_are_a_share_of_the_connects() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listens:

        def serve() -> None:
            connection, _ = listens.accept()
            with connection:
                next(requests(connection))
                listens.close()

        threading.Thread(target=serve, daemon=True).start()
        url = f"http://127.0.0.1:{listens.getsockname()[1]}/"
        done = load(url, "--warmup", "0", "--duration", "900ms", "--timeout", "500ms")
    assert re.search(r"^wrong +a connection was refused: [1-9]\d* of \d+ connects$", done.stdout, re.MULTILINE), done


def test_where_there_was_no_load_no_time_has_passed(tmp_path: Path) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/"
        done = load(url, "-n", "10", f"--csv={tmp_path}/csv", f"--prometheus={tmp_path}/prometheus")
        result = result_of(url, "-n", "10", ends={1})
    assert done.returncode == 1
    assert re.search("^- messages/s: 0 answered in 0 s; of 0 due: sent 0, answered 0$", done.stdout, re.MULTILINE), done
    assert result.plan.duration_s == 0
    assert result.timeseries.completed == ()
    assert (tmp_path / "csv").read_text().splitlines()[1:] == ["window,0,0,,,0,0,,1,,,,,,"]
    assert "netdyno_load_completed_per_second NaN\n" in (tmp_path / "prometheus").read_text()


def test_nothing_that_was_due_is_dropped_while_a_server_is_away() -> None:
    """For 0.3 s of 0.6 s no request is answered; connections are closed meanwhile, and none is accepted."""
    away = threading.Event()

    def serve(connection: socket.socket, number: int) -> None:
        for count, _ in enumerate(requests(connection), 1):
            if number == 0 and count == 10:
                away.set()
                return
            connection.sendall(OK)

    with socket.create_server(("127.0.0.1", 0)) as listens:

        def accept() -> None:
            for number in range(2):
                if number == 1:
                    away.wait(PATIENCE_S)
                    time.sleep(0.3)
                connection, _ = listens.accept()
                with connection:
                    serve(connection, number)

        threading.Thread(target=accept, daemon=True).start()
        url = f"http://127.0.0.1:{listens.getsockname()[1]}/"
        result = result_of(url, "--rate", "100", "--warmup", "0", "--duration", "600ms")
    assert result.latency.response_ns.count == result.messages.received == 60
    assert result.latency.response_ns.max >= 300e6
    assert result.latency.response_ns.mean > 70e6, "those that waited meanwhile count from when they were due"
    assert result.connections.established == 2


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\n3\r\nabc\r\n0\r\nSeen: yes\r\n\r\n"
KEPT = b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </abcdef>\r\n\r\n"
PIECE = 9
"""Bytes. INTERIM ends with one."""


@pytest.mark.parametrize(
    "answer",
    [OK, CHUNKED, INTERIM + OK, b"HTTP/1.1 204 No Content\r\n\r\n", KEPT],
    ids=["length", "chunked", "interim", "no content", "1.0 kept alive"],
)
@pytest.mark.parametrize("pieces", [False, True], ids=["whole", "in pieces"])
def test_replies_of_every_framing_are_understood(answer: bytes, pieces: bool) -> None:
    def serve(connection: socket.socket, _number: int) -> None:
        for _ in requests(connection):
            for begin in range(0, len(answer), PIECE) if pieces else (0,):
                connection.sendall(answer[begin : begin + PIECE] if pieces else answer)
                if pieces:
                    time.sleep(0.0005)

    with http(serve) as url:
        result = result_of(url, "-c", "2", *QUICK)
    expect_all_right(result)
    assert result.connections.established == 2
    assert result.bytes.received == len(answer) * result.messages.received


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_reply_may_end_with_its_connection(version: bytes) -> None:
    with http(replying(b"HTTP/" + version + b" 200 OK\r\n\r\nas long as it goes", last=0)) as url:
        result = result_of(url, "-c", "2", "--verify", "length", *MANY)
    expect_all_right(result)
    assert result.connections.established >= result.messages.sent == 40
    assert result.receive_lag_ns is not None
    assert result.receive_lag_ns.count == 0, "nobody knows when an end arrived"


def test_a_reply_to_head_has_no_body() -> None:
    with http(always(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")) as url:
        expect_all_right(result_of(url, "-X", "HEAD", *QUICK))


def test_the_request_is_what_was_requested(tmp_path: Path) -> None:
    seen: list[bytes] = []
    serve = replying(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", seen=seen)
    (tmp_path / "body").write_bytes(b'{"a":\r\n1}')
    with http(serve) as url:
        result = result_of(f"{url}a/b?c=d", "-H", "X-One: 1", "-H", "Accept: */*", "-d", f"@{tmp_path}/body", *QUICK)
    expect_all_right(result)
    assert replies_of(result).statuses == {"201": result.messages.received}
    host = url.split("/")[2].encode()
    head = b"POST /a/b?c=d HTTP/1.1\r\nHost: " + host + b"\r\nX-One: 1\r\nAccept: */*\r\nContent-Length: 9\r\n\r\n"
    assert set(seen) == {head + b'{"a":\r\n1}'}


@pytest.mark.parametrize(
    ("method", "length_line"), [("POST", b"Content-Length: 0\r\n"), ("PUT", b"Content-Length: 0\r\n"), ("DELETE", b"")]
)
def test_where_a_body_has_a_meaning_it_is_stated_that_there_is_none(method: str, length_line: bytes) -> None:
    seen: list[bytes] = []
    with http(replying(OK, seen=seen)) as url:
        expect_all_right(result_of(url, "-X", method, "-H", "Host: x", *QUICK))
    assert set(seen) == {method.encode() + b" / HTTP/1.1\r\nHost: x\r\n" + length_line + b"\r\n"}


def target_of(request: bytes) -> bytes:
    return request.split()[1]


def test_paths_are_requested_by_their_weights(tmp_path: Path) -> None:
    seen: list[bytes] = []
    (tmp_path / "paths").write_text("# two\n/b?c=1 =2\n/d?e=5\n")
    with http(replying(OK, seen=seen)) as url:
        result = result_of(url, "--path", "/a=3", "--path", f"@{tmp_path}/paths", "-c", "1", "-n", "60")
        several = load(f"{url}x", "--path", "/a")
        unlike = load(url, "--path", "a")
    expect_all_right(result)
    assert Counter(map(target_of, seen)) == {b"/a": 30, b"/b?c=1": 20, b"/d?e=5": 10}
    assert (several.returncode, unlike.returncode) == (2, 2)
    assert "--path: the URL names a path, too; leave one of them out" in several.stderr
    assert "'a' is no path" in unlike.stderr


def test_where_no_reply_is_right_the_first_exchange_is_shown() -> None:
    with http(always(b"HTTP/1.1 404 \x1b[2J\r\nContent-Length: 0\r\n\r\n")) as url:
        result = result_of(url, "-n", "4", ends={1, 3})
        done = load(url, "-n", "4")
    assert isinstance(result.first_exchange, FirstExchange)
    assert result.first_exchange.sent.startswith(r"GET / HTTP/1.1\r\nHost: ")
    assert result.first_exchange.received.startswith(r"HTTP/1.1 404 \x1b[2J\r\n")
    assert re.search(r"^first sent +GET / HTTP/1.1\\r\\n", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^first came +HTTP/1.1 404 \\x1b\[2J", done.stdout, re.MULTILINE), done.stdout


def test_several_urls_are_requested_in_turn(tmp_path: Path) -> None:
    seen: list[bytes] = []
    with http(replying(OK, seen=seen)) as url:
        (tmp_path / "urls").write_text(f"# three\n{url}a\n\n{url}b\n{url}c\n")
        expect_all_right(result_of(f"@{tmp_path}/urls", *MANY))
    assert [target_of(request) for request in seen[:6]] == [b"/a", b"/b", b"/c"] * 2


def test_a_scheme_may_be_written_in_capitals(tmp_path: Path) -> None:
    with http(ALL_RIGHT) as url:
        expect_all_right(result_of(url.replace("http", "HTTP"), *QUICK))
        (tmp_path / "urls").write_text(f"{url}\n{url.replace('http', 'Http')}x\n")
        expect_all_right(result_of(f"@{tmp_path}/urls", *QUICK))


def test_the_zone_of_an_address_is_not_sent_to_the_server() -> None:
    """It names an interface of this machine (RFC 6874, 4)."""
    seen: list[bytes] = []
    with listening(replying(OK, seen=seen), socket.AF_INET6) as address:
        expect_all_right(result_of(f"http://[::1%1]:{address[1]}/", *QUICK))
    assert {request.split(b"\r\n")[1] for request in seen} == {b"Host: [::1]:%d" % address[1]}


@pytest.mark.parametrize("rate", [(), ("--rate", "200")], ids=["closed", "open"])
@pytest.mark.parametrize("header", ["Connection: close", "connection:keep-alive , CLOSE"])
def test_after_a_request_that_asks_to_close_its_connection_none_is_sent_there(
    header: str, rate: tuple[str, ...]
) -> None:
    """The server keeps the connection open all the same (RFC 9112, 9.6)."""
    on_each: Counter[int] = Counter()

    def serve(connection: socket.socket, number: int) -> None:
        for _ in requests(connection):
            on_each[number] += 1
            connection.sendall(OK)

    with http(serve) as url:
        expect_all_right(result_of(url, "-H", header, "-c", "2", *rate, *MANY))
    assert on_each.total() == 40
    assert set(on_each.values()) == {1}


@pytest.mark.parametrize("pieces", [False, True], ids=["whole", "in pieces"])
def test_a_status_line_without_the_blank_after_its_code_is_taken(pieces: bool) -> None:
    """All clients take it, though RFC 9112, 4 asks the server for that blank."""
    answer = OK.replace(b" OK\r\n", b"\r\n")

    def serve(connection: socket.socket, _number: int) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        for _ in requests(connection):
            for piece in [answer[:11], answer[11:13], answer[13:20], answer[20:]] if pieces else [answer]:
                connection.sendall(piece)

    with http(serve) as url:
        expect_all_right(result_of(url, "-c", "2", *MANY))
        missed = load(url, "--expect-status", "201", *MANY)
    assert "no reply was right: 200 OK to " in missed.stderr


def test_over_ipv6() -> None:
    with listening(always(OK), socket.AF_INET6) as address:
        expect_all_right(result_of(f"http://[::1]:{address[1]}/", *QUICK))


def test_over_a_socket_in_the_file_system(tmp_path: Path) -> None:
    file = str(tmp_path / "socket")
    with listening(always(OK), socket.AF_UNIX, file):
        expect_all_right(result_of("http://localhost/", "--unix-socket", file, "-c", "2", *QUICK))


def test_a_socket_in_the_file_system_whose_queue_is_full_is_waited_for(tmp_path: Path) -> None:
    """The queue has room for one. A blocking connect waits for its place, and another fails, to be retried later
    (connect(2), EAGAIN)."""
    file, output = str(tmp_path / "socket"), tmp_path / "result.json"
    command = [str(generator_path(build_dir())), "http://localhost/", "--unix-socket", file, "-c", "3", *MANY]
    with socket.socket(socket.AF_UNIX) as listens, socket.socket(socket.AF_UNIX) as first:
        listens.bind(file)
        listens.listen(0)
        first.connect(file)
        with subprocess.Popen(
            [*command, "--json", str(output)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as generator:

            def waits() -> bool:
                descriptors = Path(f"/proc/{generator.pid}/task").glob("*/fd/*")  # each thread has its own
                with suppress(FileNotFoundError):
                    return sum(str(descriptor.readlink()).startswith("socket:") for descriptor in descriptors) >= 3
                return False

            eventually(lambda: generator.poll() is not None or waits(), "all want to connect")

            def accept() -> None:
                with suppress(OSError):
                    while True:
                        threading.Thread(target=attend, args=(listens.accept()[0],), daemon=True).start()

            def attend(connection: socket.socket) -> None:
                with connection, suppress(OSError):
                    ALL_RIGHT(connection, 0)

            threading.Thread(target=accept, daemon=True).start()
            _, stderr = generator.communicate(timeout=PATIENCE_S)
            listens.shutdown(socket.SHUT_RDWR)
    assert generator.returncode in MEASURED, stderr
    result = msgspec.json.decode(output.read_bytes(), type=LoadResult)
    expect_all_right(result)
    assert result.connections.attempted == result.connections.established == 3


# --- what is wrong, in words ---------------------------------------------------------------------------------------


def endless_head(connection: socket.socket, _number: int) -> None:
    for _ in requests(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            connection.sendall(b"X: " + b"y" * 8000 + b"\r\n")


def endless_chunk_line(connection: socket.socket, _number: int) -> None:
    for _ in requests(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;")
        while True:
            connection.sendall(b"y" * 8000)


BAD: dict[str, tuple[Serve, str]] = {
    "status": (always(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), "404 Not Found"),
    "own words": (always(b"HTTP/1.1 503 Gone fishing\r\nContent-Length: 0\r\n\r\n"), "503 Gone fishing"),
    "redis": (always(b"+PONG\r\n"), "the reply is no HTTP: +PONG"),
    "control characters": (always(b"\x1b[2J\r\n"), "the reply is no HTTP: ?[2J"),
    "length": (always(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"), "the reply cannot be read: bad Content-Length"),
    "two lengths": (
        always(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!"),
        "the reply cannot be read: multiple Content-Length",
    ),
    "length and chunks": (
        always(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
        "the reply cannot be read: bad Transfer-Encoding",
    ),
    "switching": (always(b"HTTP/1.1 101 Switching Protocols\r\n\r\n"), "101 Switching Protocols"),
    "cut": (replying(OK[:-1], last=0), "the connection ended in the middle of a reply"),
    "closed": (replying(b"", last=0), "the connection was closed instead of a reply"),
    "reset": (replying(b"", last=0, ending=resets), "the connection was reset instead of a reply"),
    "reset in the middle": (
        replying(b"HTTP/1.1 200 OK\r\n\r\nhalf of what goes on until the connection ends", last=0, ending=resets),
        "the connection was reset in the middle of a reply",
    ),
    "endless head": (endless_head, "the reply cannot be read: header limit exceeded"),
}


@pytest.mark.parametrize("name", BAD)
def test_it_says_what_was_wrong(name: str) -> None:
    serve, words = BAD[name]
    with http(serve) as url:
        done = load(url, "-c", "2", *MANY)
    assert done.returncode == 1, done
    (line,) = done.stderr.splitlines()
    match = re.fullmatch(rf"netdyno-load: no reply was right: {re.escape(words)} to (\d+) of (\d+)", line)
    assert match, line
    assert int(match[1]) == int(match[2]) == 40, "it goes on: the next message gets its chance"
    assert re.search(rf"^wrong +{re.escape(words)} to ", done.stdout, re.MULTILINE)


def test_a_line_without_an_end_is_a_fault() -> None:
    with http(endless_chunk_line) as url:
        done = load(url, "-c", "2", *MANY)
    assert done.returncode == 1, done
    ours, of_boost = "a line of it does not end", "bad chunk extension"  # Boost notices it itself from 1.90 on
    words = f"the reply cannot be read: ({ours}|{of_boost})"
    assert re.fullmatch(f"netdyno-load: no reply was right: {words} to 40 of 40\n", done.stderr), done.stderr
    assert re.search(rf"^wrong +{words} to ", done.stdout, re.MULTILINE)


def test_an_endless_body_ends_in_time_and_takes_no_memory() -> None:
    def serve(connection: socket.socket, _number: int) -> None:
        for _ in requests(connection):
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                connection.sendall(b"y" * 65536)

    with http(serve) as url:
        result = result_of(url, "--warmup", "0", "--duration", "100ms", "--timeout", "200ms", ends={1})
    assert replies_of(result).faults[0].what == "no answer in time"
    assert result.generator.max_rss_bytes < 64 << 20


def test_a_message_without_an_answer_costs_its_connection_and_no_other_message() -> None:
    def serve(connection: socket.socket, number: int) -> None:
        for count, _ in enumerate(requests(connection)):
            if (number, count) != (0, 3):
                connection.sendall(OK)

    with http(serve) as url:
        result = result_of(url, "--rate", "100", "-n", "20", "--timeout", "1s", ends={3})
    assert (result.messages.sent, result.messages.received, result.messages.lost) == (20, 19, 1)
    assert "verification" in failed(result), "times without those that never came are not those of the server"
    assert result.connections.established == 2
    assert result.errors["timeout"] >= 1
    assert replies_of(result).faults[0].what == "no answer in time"


def test_what_a_server_says_instead_of_a_reply_is_reported() -> None:
    """memcached does this where it has too many connections: no reply to a `get` ends like this."""

    def serve(connection: socket.socket, _number: int) -> None:
        connection.sendall(b"ERROR Too many open connections\r\n")
        end(connection)

    with tcp(serve) as url:
        done = load(url, "--send", r"get key\r\n", "--reply-until", r"END\r\n", *QUICK)
    assert done.returncode == 1
    words = "the connection ended in the middle of a reply: ERROR Too many open connections"
    assert done.stderr.startswith(f"netdyno-load: no reply was right: {words}"), done.stderr
    assert re.search(r"^response\* +none$", done.stdout, re.MULTILINE)


def test_a_closed_loop_polls_for_replies_before_it_sleeps_unless_that_is_off() -> None:
    with http(always(OK)) as url:
        spun_s = {spin: result_of(url, "--spin", spin, *MANY).generator.spun_s for spin in ("on", "off")}
    assert spun_s["off"] == 0
    assert spun_s["on"] > 0 or os.cpu_count() == 1


def test_a_request_that_the_system_of_the_server_does_not_take_differs_from_one_that_is_not_answered() -> None:
    """The accept queue was full, and the server's system has forgotten the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        most = 60  # bytes of a TCP header without any data
        filtered = struct.pack("=HBBI", 0x80, 0, 0, 0)  # A = length of the packet; linux/filter.h
        filtered += struct.pack("=HBBI", 0x25, 1, 0, most)  # if A > most, skip one
        filtered += struct.pack("=HBBI", 0x06, 0, 0, 0xFFFFFFFF) + struct.pack("=HBBI", 0x06, 0, 0, 0)
        program = ctypes.create_string_buffer(filtered)
        attached = struct.pack("HxxxxxxP", len(filtered) // 8, ctypes.addressof(program))
        try:
            server.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, attached)
        except PermissionError as error:  # net.core.bpf_jit_limit binds users
            pytest.skip(f"no filter on a socket here: {error}")
        url = f"http://127.0.0.1:{server.getsockname()[1]}/a-long-target-of-more-than-those"
        done = load(url, "-c", "2", "--warmup", "0", "--duration", "100ms", "--timeout", "600ms")
    words = "no answer in time, as the server's system never took the request (full accept queue?)"
    assert done.stderr == f"netdyno-load: no reply was right: {words} to 2 of 2\n"
    assert done.returncode == 1


def test_of_a_server_that_sometimes_fails_the_right_replies_are_measured() -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"
    with http(replying(lambda count, _: moved if count % 4 == 3 else OK)) as url:
        result = result_of(url, *MANY, ends={3})
        text = load(url, *MANY).stdout
    statuses = replies_of(result).statuses
    assert statuses["200"] == result.messages.received
    assert statuses["302"] == replies_of(result).unexpected == replies_of(result).faults[0].count
    assert statuses == {"200": 30, "302": 10}
    (verification,) = (audit for audit in result.audits if audit.name == "verification")
    assert "30 replies as expected, 10 not (by status 200: 30, 302: 10)" in verification.detail
    assert result.messages.lost == 0
    assert failed(result) == {"verification"}
    (count,) = re.findall(r"^status .* 302: (\d+)$", text, re.MULTILINE)
    assert re.search(rf"^redirects +{count}, none of which is followed$", text, re.MULTILINE)


@pytest.mark.parametrize("right", [0, 1, 3], ids=["none", "every second", "three of four"])
def test_a_server_that_answers_wrongly_in_time_is_not_called_slow(right: int) -> None:
    wrong = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    with http(replying(lambda count, _: wrong if right == 0 or count % (right + 1) == right else OK)) as url:
        done = load(url, "-c", "2", "--rate", "200", "-n", "60", "--timeout", "5s")
    assert done.returncode == (3 if right else 1), done
    assert "404 Not Found to" in done.stdout
    assert "overload" not in done.stdout


@pytest.mark.parametrize(("status", "expected"), [("404", True), ("4xx", True), ("403", False)])
def test_what_is_expected_can_be_stated(status: str, expected: bool) -> None:
    with http(always(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")) as url:
        result = result_of(url, "--expect-status", status, *QUICK, ends=MEASURED if expected else {1})
    assert (result.messages.received > 0) == expected


@pytest.mark.parametrize(
    ("check", "second_reply", "fault"),
    [
        ("status", OK.replace(b"ok", b"ko"), ""),
        ("length", OK.replace(b"ok", b"ko"), ""),
        ("length", OK.replace(b"2\r\n\r\nok", b"3\r\n\r\nok!"), "a body of 3 bytes, where the first one had 2"),
        ("hash", OK.replace(b"ok", b"ko"), "a body unlike the first one"),
    ],
)
def test_bodies_are_held_against_the_first(check: str, second_reply: bytes, fault: str) -> None:
    with http(replying(lambda count, _: second_reply if count % 2 else OK)) as url:
        result = result_of(url, "--verify", check, *MANY)
    assert {kind.what for kind in replies_of(result).faults} == ({fault} if fault else set())


@pytest.mark.parametrize("check", ["length", "hash"])
def test_the_first_body_is_that_of_all_threads(check: str) -> None:
    """Each thread has a connection with a body of its own. How many replies each thread takes is its own affair: a late
    one takes fewer."""
    answered: list[int] = [0, 0]

    def serve(connection: socket.socket, number: int) -> None:
        body = b"other" if number else b"one"
        for _ in requests(connection):
            answered[number] += 1
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with http(serve) as url:
        options = ("-c", "2", "--threads", "2", "--rate", "100")
        result = result_of(url, "--verify", check, *options, *MANY, ends={3})
    assert sorted([replies_of(result).unexpected, result.messages.received]) == sorted(answered)
    assert min(answered) > 0, "a thread asked nothing, so nothing was held against the other's"
    assert sum(answered) == 40


def test_a_stamp_comes_back_where_the_server_echoes_the_target() -> None:
    def serve(connection: socket.socket, _number: int) -> None:
        for count, request in enumerate(requests(connection)):
            body = b"/x/" if count % 2 else request.split()[1]
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with http(serve) as url:
        result = result_of(f"{url}x/", "--verify", "echo", *MANY, ends={3})
    assert [kind.what for kind in replies_of(result).faults] == ["the body is not the request's target"]
    assert result.messages.received == replies_of(result).unexpected == 20


def test_a_reply_that_none_had_requested_is_reported() -> None:
    with http(always(OK + OK)) as url:
        result = result_of(url, "--rate", "50", *QUICK, ends={3})
    assert replies_of(result).faults[0].what == "a reply that matches no request"


def test_a_server_that_has_left_is_reported_and_ends_the_run_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listens:

        def serve() -> None:
            connection, _ = listens.accept()
            with connection:
                for count, _ in enumerate(requests(connection), 1):
                    connection.sendall(OK)
                    if count == 5:
                        listens.close()
                        return

        url = f"http://127.0.0.1:{listens.getsockname()[1]}/"
        threading.Thread(target=serve, daemon=True).start()
        began = time.monotonic()
        options = ("--rate", "100", "--warmup", "0", "--duration", "400ms", "--timeout", "1500ms")
        result = result_of(url, *options, ends={3})
    assert time.monotonic() - began < 10
    assert result.messages.received == 5
    assert result.connections.refused > 1, "it tries again"
    assert "a connection was refused" in {kind.what for kind in replies_of(result).faults}
    assert result.errors["timeout"] == 35
    assert failed(result) >= {"connections"}


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_count_ends_where_the_server_has_left(threads: str) -> None:
    """A closed loop takes its next message when the one before is answered or given up, and the server is gone."""
    with socket.create_server(("127.0.0.1", 0)) as listens:

        def serve() -> None:
            connections = [listens.accept()[0] for _ in range(2)]
            arriving = [requests(connection) for connection in connections]
            listens.close()
            for incoming, connection in zip(arriving, connections, strict=True):
                next(incoming)
                connection.sendall(OK)
            for connection in connections:
                connection.close()

        url = f"http://127.0.0.1:{listens.getsockname()[1]}/"
        threading.Thread(target=serve, daemon=True).start()
        result = result_of(url, "-c", "2", "--threads", threads, "-n", "1000", "--timeout", "500ms", ends={3})
    assert result.messages.received == 2
    assert result.plan.count == 1000
    assert result.messages.due is not None
    assert result.messages.due < 1000
    assert "no connection in time" in {kind.what for kind in replies_of(result).faults}


@pytest.mark.parametrize("seed", range(4))
def test_whatever_a_server_answers_it_ends_in_time_and_says_so(seed: int) -> None:
    """Replies with bytes that are changed, missing, twice there or another's, and ends in the midst."""
    good = (OK, LAST, CHUNKED, INTERIM + OK, KEPT)

    def damaged(random: Random) -> bytes:
        reply = bytearray(random.choice(good))
        for _ in range(random.choice((0, 0, 1, 3))):
            position = random.randrange(len(reply) + 1)
            damage = random.randrange(4)
            if damage == 0 and position < len(reply):
                reply[position] = random.randrange(256)
            elif damage == 1:
                del reply[position : position + random.randrange(20)]
            elif damage == 2:
                reply[position:position] = reply[: random.randrange(len(reply) + 1)]
            else:
                reply[position:position] = random.choice(
                    (b"9" * 30, b"\r\n", b"\r\n\r\n", b"\0", b"HTTP/1.1 200 OK\r\n", b"x" * 70_000)
                )
        return bytes(reply)

    def serve(connection: socket.socket, number: int) -> None:
        random = Random(1000 * seed + number)
        for _ in requests(connection):
            reply = damaged(random)
            cut = random.randrange(len(reply) + 1)
            connection.sendall(reply[:cut])
            if random.random() < 0.1:
                return
            connection.sendall(reply[cut:])

    with http(serve) as url:
        began = time.monotonic()
        options = ("-c", "4", "--depth", "3", "--warmup", "0", "--duration", "200ms", "--timeout", "200ms")
        done = load(url, *options, "--json", "-")
    assert time.monotonic() - began < 10
    assert done.returncode in {1, 3}, done
    assert all(line.startswith("netdyno-load: ") for line in done.stderr.splitlines()), done.stderr
    result = msgspec.json.decode(done.stdout, type=LoadResult)
    assert result.messages.sent > 10
    assert 1 <= len(replies_of(result).faults) <= 8
    ended = result.messages.received + replies_of(result).unexpected + result.messages.lost
    assert 0 <= ended - result.messages.sent <= 4 * 3, "and what was due when the last connection had ended"
    assert result.generator.max_rss_bytes < 64 << 20


# --- real servers, where they are installed --------------------------------------------------------------------------

NGINX = """
daemon off; master_process off; pid {here}/pid; error_log {here}/log;
events {{ }}
http {{
  access_log off; default_type text/plain; gzip on; gzip_min_length 1; gzip_http_version 1.0; keepalive_requests 100;
  client_body_temp_path {here}; proxy_temp_path {here}; fastcgi_temp_path {here}; uwsgi_temp_path {here};
  scgi_temp_path {here};
  server {{
    listen unix:{here}/socket; root {here};
    location /echo/ {{ return 200 $request_uri; }}
    location /moved {{ return 301 /echo/; }}
  }}
}}
"""


@pytest.fixture(scope="module")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """The options that lead to a real nginx."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    here = tmp_path_factory.mktemp("nginx")
    (here / "page.txt").write_text("hello " * 5000)
    (here / "conf").write_text(NGINX.format(here=here))
    command = [program, "-c", str(here / "conf"), "-p", str(here), "-e", str(here / "log")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        eventually((here / "socket").exists, "nginx listens")
        try:
            yield ("--unix-socket", str(here / "socket"))
        finally:
            process.terminate()


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("echo/", ("--verify", "echo")),
        ("page.txt", ("--verify", "hash")),
        ("page.txt", ("--verify", "hash", "-H", "Accept-Encoding: gzip")),  # comes in chunks
        ("page.txt", ("--verify", "length", "-X", "HEAD")),
        ("echo/", ("--depth", "4")),
        ("echo/", ("-H", "Connection: close")),
        ("moved", ("--expect-status", "301")),
        ("echo/", ("--rate", "2000")),
    ],
)
def test_nginx_with_connections_for_a_hundred_requests(
    nginx: tuple[str, ...], target: str, options: tuple[str, ...]
) -> None:
    result = result_of(f"http://localhost/{target}", *nginx, "-c", "2", *options, *QUICK)
    expect_all_right(result)
    assert result.connections.established >= result.messages.sent / 100


# --- bytes of any protocol -----------------------------------------------------------------------------------------


def test_bytes_with_places_and_replies_up_to_a_mark() -> None:
    seen: list[bytes] = []

    def serve(connection: socket.socket, _number: int) -> None:
        for line in lines_of(connection):
            seen.append(line)
            for piece in (b"+OK one\r\ntw", b"o\r", b"\n", b".\r", b"\n"):
                connection.sendall(piece)
                time.sleep(0.0003)

    send = r'{"n":{sequence},"c":{connection},"r":{random:10},"{other}"}\t\x41\r\n'
    with tcp(serve) as url:
        result = result_of(url, "--send", send, "--expect", "+OK", "--reply-until", r"\r\n.\r\n", "-c", "2", *QUICK)
    expect_all_right(result)
    hits = [re.fullmatch(rb'\{"n":(\d+),"c":([01]),"r":\d,"\{other\}"\}\tA\r\n', line) for line in seen]
    assert all(hits)
    assert {int(hit[1]) for hit in hits if hit} == set(range(max(int(hit[1]) for hit in hits if hit) + 1))


def test_replies_of_a_size(tmp_path: Path) -> None:
    def serve(connection: socket.socket, _number: int) -> None:
        while len(data := connection.recv(5, socket.MSG_WAITALL)) == 5:
            connection.sendall(data[::-1] + b"\n\n")

    (tmp_path / "bytes").write_bytes(b"\0\1\2\3\4")
    with tcp(serve) as url:
        result = result_of(url, "--send", f"@{tmp_path}/bytes", "--reply-size", "7", "--depth", "3", *QUICK)
    expect_all_right(result)


@pytest.mark.parametrize(
    ("field", "reply"),
    [
        ("u8", b"\x03abc"),
        ("u32be", b"\0\0\0\x03abc"),
        ("u16le@2", b"xx\x03\0abc"),
        ("u24be@1", b"x\0\x01\x00" + b"a" * 256),
        ("u64le", b"\x00\x20\0\0\0\0\0\0" + b"a" * 8192),
        ("u32be@1-4", b"R\0\0\0\x08abcd"),  # PostgreSQL: the length counts itself
        ("u24le+1", b"\x02\0\0\x07ab"),  # MySQL: a number follows that it does not count
        ("u32be", b"\0\0\0\0"),
    ],
)
def test_replies_that_begin_with_their_length(field: str, reply: bytes) -> None:
    def serve(connection: socket.socket, _number: int) -> None:
        while data := connection.recv(1 << 16):
            replies = reply * data.count(b"\n")
            cut = len(data) % (len(replies) + 1)
            connection.sendall(replies[:1])
            connection.sendall(replies[1:cut])
            connection.sendall(replies[max(cut, 1) :])

    with tcp(serve) as url:
        options = ("--reply-length", field, "--depth", "3", "-c", "2", *QUICK)
        result = result_of(url, "--send", r"{sequence}\n", *options)
        expect_all_right(result)
        first = "".join(f"\\x{byte:02x}" for byte in reply)
        expect_all_right(result_of(url, "--send", r"{sequence}\n", "--expect", first, *options))
    assert result.bytes.received == len(reply) * result.messages.received


@pytest.mark.parametrize(
    ("field", "reply", "words"),
    [
        ("u32be", b"\xff\xff\xff\xff", "the reply says that its length is 4294967295"),
        ("u64be", b"\xff" * 8, "the reply says that its length is 18446744073709551615"),
        ("u32be-4", b"\0\0\0\x03", "the reply says that its length is 3"),
        ("u32be", b"\0\0\0\x09abc", "no answer in time: ????abc"),
    ],
)
def test_a_length_that_cannot_be_is_reported(field: str, reply: bytes, words: str) -> None:
    with tcp(replying(reply, read=lines_of)) as url:
        done = load(url, "--send", r"x\n", "--reply-length", field, *QUICK)
    assert done.returncode == 1
    assert f"no reply was right: {words} to" in done.stderr


def test_a_reply_with_another_beginning_is_reported() -> None:
    with tcp(replying(b"-ERR unknown\r\n", read=lines_of)) as url:
        done = load(url, "--send", r"PING\r\n", "--expect", "+PONG", *QUICK)
    assert done.returncode == 1
    assert "the reply begins with '-ERR unknown', not with '+PONG' to" in done.stderr


# --- how it ends ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assertions", "code"),
    [
        (("max<10s", "errors=0", "rate>=1"), 0),
        (("errors<=0", "errors>=0"), 0),
        (("errors<0",), 4),
        (("p99<1ns",), 4),
        (("max<10s", "rate>1e9"), 4),
        (("p99.9<=1us",), 4),
    ],
)
def test_a_threshold_that_is_missed_is_reported_by_the_end(assertions: tuple[str, ...], code: int) -> None:
    with http(always(OK)) as url:
        done = load(url, *QUICK, *(word for text in assertions for word in ("--assert", text)))
    assert done.returncode in {code, 3}, done  # 3: a busy machine comes before a threshold
    verdicts = re.findall(r"^assert +.*, (holds|MISSED)$", done.stdout, re.MULTILINE)
    assert len(verdicts) == len(assertions)
    assert ("MISSED" in verdicts) == (code == 4)


def test_a_time_that_none_has_measured_keeps_to_no_bound() -> None:
    """The one message is due before the window."""
    with http(always(OK)) as url:
        options = ("--rate", "1", "--warmup", "50ms", "--duration", "50ms")
        done = load(url, *options, "--assert", "p99<5ms", "--assert", "errors=0")
    assert done.returncode in {4, 3}, done
    assert re.findall(r"^assert +(.*)$", done.stdout, re.MULTILINE) == ["p99<5ms: -, MISSED", "errors=0: 0.0, holds"]


def read_signals(pid: int, masks: str) -> set[int]:
    """The signals in these masks of a process (proc_pid_status(5))."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = [int(mask, 16) for mask in re.findall(rf"^(?:{masks}):\s*(\w+)$", status, re.MULTILINE)]
    return {number for number in range(1, 32) if any(mask & 1 << (number - 1) for mask in found)}


def has_taken(process: subprocess.Popen[str], number: signal.Signals) -> bool:
    """Whether no such signal waits for the process."""
    return process.poll() is not None or number not in read_signals(process.pid, "ShdPnd|SigPnd")


def interrupted(
    *options: str,
    serve: Serve = ALL_RIGHT,
    event: str = "progress",
    times: int = 1,
    number: signal.Signals = signal.SIGINT,
) -> str:
    """The output of a load that is interrupted at its first event of a kind: `progress` comes half a second after the
    beginning of its window."""
    reader, writer = os.pipe()
    with http(serve) as url, os.fdopen(reader) as events:
        command = [str(generator_path(build_dir())), url, *options, "--events-fd", str(writer)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, pass_fds=[writer]) as generator:
            os.close(writer)
            next(line for line in events if json.loads(line)["event"] == event)
            began = time.monotonic()
            for _ in range(times):
                generator.send_signal(number)
                eventually(lambda: has_taken(generator, number), "it takes the signal")
            try:
                text, _ = generator.communicate(timeout=PATIENCE_S)
            finally:
                generator.kill()
    assert time.monotonic() - began < 10
    assert generator.returncode in MEASURED
    expect_one_line(text)
    return text


@pytest.mark.parametrize("load_options", [("-c", "4"), ("--rate", "20")], ids=["busy", "idle"])
def test_an_interrupt_ends_the_window_with_what_there_is(load_options: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    options = (*load_options, "--warmup", "0", "--duration", "30s", "--timeout", "1s", "--json", str(file))
    text = interrupted(*options)
    result = msgspec.json.decode(file.read_bytes(), type=LoadResult)
    assert 0.1 < result.plan.duration_s < 3
    assert result.requests.per_second == pytest.approx(result.requests.completed / result.plan.duration_s)
    assert "messages/s" in text
    expect_one_account(result)
    expect_all_right(result)


@pytest.mark.parametrize(
    ("number", "times"), [(signal.SIGINT, 1), (signal.SIGINT, 2), (signal.SIGTERM, 1), (signal.SIGHUP, 1)]
)
def test_a_signal_wakes_a_load_that_waits_and_keeps_what_there_is(
    number: signal.Signals, times: int, tmp_path: Path
) -> None:
    """It bounds the wait for the last answers. A second one ends that wait, and does nothing where it is over. Each is
    taken before the next, as waiting signals are merged (signal(7))."""
    file = tmp_path / "result.json"
    text = interrupted(*WITHOUT_END, "--json", str(file), serve=FIRST_ALONE, times=times, number=number)
    assert re.search("^replies +as expected 1, others 0, without an answer 1,", text, re.MULTILINE), text
    assert msgspec.json.decode(file.read_bytes(), type=LoadResult).messages.received == 1


@pytest.mark.parametrize("load_options", [("-c", "4"), ("--rate", "20")], ids=["busy", "idle"])
def test_an_interrupt_of_the_warm_up_ends_the_load(load_options: tuple[str, ...]) -> None:
    options = (*load_options, "--warmup", "300s", "--duration", "1s", "--timeout", "1s")
    loaded = threading.Event()

    def answer(connection: socket.socket, _number: int) -> None:
        for _ in requests(connection):
            loaded.set()
            connection.sendall(OK)

    with http(answer) as url:
        command = [str(generator_path(build_dir())), url, *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as generator:
            try:
                assert loaded.wait(PATIENCE_S)
                generator.send_signal(signal.SIGTERM)
                _, errors = generator.communicate(timeout=PATIENCE_S)
            finally:
                generator.kill()
    assert generator.returncode == 1
    assert "ended before the measured window began" in errors


@contextmanager
def loading(url: str, *before: str) -> Iterator[subprocess.Popen[str]]:
    """A load without an end that has connected, by a command with these words before its own."""
    reader, writer = os.pipe()
    command = [*before, str(generator_path(build_dir())), url, *WITHOUT_END, "--events-fd", str(writer)]
    popen = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, pass_fds=[writer])
    with os.fdopen(reader) as events, popen as generator:
        os.close(writer)
        try:
            next(line for line in events if json.loads(line)["event"] == "progress")
            yield generator
        finally:
            generator.kill()


def test_a_terminal_that_closes_does_not_end_a_load_under_nohup() -> None:
    with http(FIRST_ALONE) as url, loading(url, "nohup") as generator:
        assert signal.SIGHUP in read_signals(generator.pid, "SigIgn")
        assert {signal.SIGINT, signal.SIGTERM} <= read_signals(generator.pid, "SigCgt")


def find_child(pid: int) -> int:
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


@pytest.fixture
def alone() -> tuple[str, ...]:
    """The words that make a command process 1 of a namespace."""
    words = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")
    if subprocess.run([*words, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no namespace may be made here")
    return words


def test_as_process_1_of_a_container_it_ends_at_a_signal(alone: tuple[str, ...]) -> None:
    """The kernel delivers no signal to process 1 that has no handler (pid_namespaces(7))."""
    with http(FIRST_ALONE) as url, loading(url, *alone) as generator:
        os.kill(find_child(generator.pid), signal.SIGTERM)
        text, _ = generator.communicate(timeout=PATIENCE_S)
    assert "messages/s" in text


def test_as_process_1_of_a_container_it_ends_before_the_load_too(alone: tuple[str, ...]) -> None:
    with listening(FIRST_ALONE) as (host, port):
        command = [*alone, str(generator_path(build_dir())), f"http://{host}:{port}/", "--await-go"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as waiting:

            def is_ready() -> bool:
                with suppress(ValueError, FileNotFoundError):
                    return signal.SIGTERM in read_signals(find_child(waiting.pid), "SigCgt")
                return False

            eventually(is_ready, "it handles no signal")
            os.kill(find_child(waiting.pid), signal.SIGTERM)
            assert waiting.wait(PATIENCE_S) == 128 + signal.SIGTERM


def test_an_interrupt_after_the_window_ends_the_wait_for_the_last_answers() -> None:
    options = ("--rate", "20", "--warmup", "0", "--duration", "200ms", "--timeout", "10m")
    text = interrupted(*options, serve=replying(lambda count, _: OK if count < 2 else b""), event="window_end")
    assert re.search("^replies +as expected 2, others 0, without an answer 2, of 4 due;", text, re.MULTILINE), text
    assert re.search("^wrong +no answer in time to 1 of 4$", text, re.MULTILINE), text
    assert re.search("^wrong +never sent, as the answers before it took too long to 1 of 4$", text, re.MULTILINE), text


FIRST_ALONE = replying(lambda count, _: b"" if count else OK)
WITHOUT_END = ("--warmup", "0", "--duration", "10m", "--timeout", "10m", "--connect-timeout", "10m")
"""Nothing happens by itself."""


def test_a_ramp_that_is_cut_short_has_requested_its_beginning_only(tmp_path: Path) -> None:
    file, table = tmp_path / "result.json", tmp_path / "table.csv"
    options = ("--rate", "10..600/30s", "--warmup", "0", "--json", str(file), "--csv", str(table))
    text = interrupted(*options)
    plan = msgspec.json.decode(file.read_bytes(), type=LoadResult).plan
    assert plan.rate_hz == pytest.approx(10 + plan.duration_s * 590 / 30 / 2), "and not 305"
    assert f"{plan.rate_hz:.0f}/s offered" in text
    window = table.read_text().splitlines()[1].split(",")
    assert [float(field) for field in window[3:5]] == pytest.approx([plan.rate_hz] * 2)
    step = table.read_text().splitlines()[2].split(",")
    assert step[0] == "step"
    assert float(step[2]) == pytest.approx(plan.duration_s)


def test_a_rate_below_one_is_stated_as_it_is() -> None:
    with http(always(OK)) as url:
        assert ", 0.4/s offered" in load(url, "--rate", "0.4", "-n", "1").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("http://127.0.0.1:x/",), "is no URL"),
        (("http://127.0.0.1/a b",), "is no URL"),
        (("http://127.0.0.1/", "-H", "nonsense"), "is no header"),
        (("http://127.0.0.1/", "-H", "a: b\r\nc: d"), "is no header"),
        (("http://127.0.0.1/", "-H", "content-length: 5"), "follows from --data"),
        (("http://127.0.0.1/", "-H", "Transfer-Encoding:chunked"), "follows from --data"),
        (("http://127.0.0.1/", "-X", "get"), "is no method"),
        (("http://127.0.0.1/", "-H", "Connection: close", "--depth", "2"), "takes no other request"),
        (
            ("http://127.0.0.1/", "-H", "Connection: close", "--requests-per-connection", "2"),
            "takes no other request",
        ),
        (("http://127.0.0.1/", "-d", "@/nowhere"), "cannot read '/nowhere': No such file"),
        (("http://127.0.0.1/", "-d", "@/etc"), "cannot read '/etc': Is a directory"),
        (("http://127.0.0.1/", "-d", "@/proc/self/mem"), "cannot read '/proc/self/mem': Input/output error"),
        (("http://127.0.0.1/", "-d", "@/dev/zero"), "'/dev/zero' has more than 256 MiB"),
        (("tcp://127.0.0.1:1", "--send", "@/etc"), "cannot read '/etc': Is a directory"),
        (("tcp://127.0.0.1:1", "--send", "@/dev/zero"), "'/dev/zero' has more than 256 MiB"),
        (("tcp://127.0.0.1:1", "--send", "x", "--expect", "@/etc"), "cannot read '/etc': Is a directory"),
        (("tcp://127.0.0.1:1", "--send", "x", "--reply-until", "@/etc"), "cannot read '/etc': Is a directory"),
        (("@/etc",), "cannot read '/etc': Is a directory"),
        (("@/dev/zero",), "'/dev/zero' has more than 256 MiB"),
        (("http://127.0.0.1/", "--reconnect"), "always reconnect"),
        (("tcp://127.0.0.1:1", "--reconnect"), "is for --workload http"),
        (("http://127.0.0.1/", "--expect-status", "20x"), "is no status"),
        (("http://127.0.0.1/", "--workload", "echo"), "leave it out"),
        (("http://127.0.0.1/", "--send", "x"), "is for tcp://"),
        (("tcp://127.0.0.1:1", "-X", "GET"), "is for http://"),
        (("tcp://127.0.0.1:1", "--expect", "x"), "goes with --send"),
        (("tcp://127.0.0.1:1", "--send", r"\q"), "has a meaning"),
        (("tcp://127.0.0.1:1", "--send", "x", "--workload", "echo"), "leave"),
        (("tcp://127.0.0.1:1", "--send", "x", "--reply-length", "u32"), "is no length"),
        (("tcp://127.0.0.1:1", "--send", "x", "--reply-length", "u12be"), "is no length"),
        (("tcp://127.0.0.1:1", "--send", "x", "--reply-length", "u72be"), "is no length"),
        (("tcp://127.0.0.1:1", "--send", "x", "--reply-length", "u32be@-1"), "is no length"),
        (("tcp://127.0.0.1:1", "--send", "x", "--reply-length", "u32be+-1"), "is no length"),
        (("tcp://127.0.0.1:1", "--send", "x", "--reply-length", "u8", "--reply-size", "3"), "want one of them"),
        (("tcp://127.0.0.1:1", "--reply-length", "u8"), "goes with --send"),
        (("@/nowhere",), "cannot read"),
        (("x" * 100_000,), "' is no URL; want e.g."),
        (("http://127.0.0.1/", "--assert", "p98<1ms"), "is no assertion"),
        (("http://127.0.0.1/", "--assert", "p99<1"), "is no assertion"),
    ],
)
def test_what_cannot_be_meant_is_one_line_and_exit_2(arguments: tuple[str, ...], words: str) -> None:
    expect_error(arguments, words)


@pytest.mark.parametrize("words", [("http://127.0.0.1/", "-d"), ("tcp://127.0.0.1:1", "--send"), ()])
def test_a_pipe_without_a_writer_is_an_error(words: tuple[str, ...], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = load(*words, f"@{tmp_path / 'pipe'}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is a pipe to which no program writes" in done.stderr


def test_the_urls_of_a_file_are_of_one_server(tmp_path: Path) -> None:
    (tmp_path / "urls").write_text("http://127.0.0.1:1/\nhttp://127.0.0.1:2/\n")
    done = load(f"@{tmp_path}/urls")
    assert done.returncode == 2
    assert "is another server than" in done.stderr


def test_it_says_how_to_load_a_server_that_is_not_ours() -> None:
    with http(always(OK)) as url:
        done = load(url.replace("http", "tcp").rstrip("/"), "--workload", "http", "--size", "40", *QUICK)
    assert done.returncode == 1
    assert "load any other by http://... or --send" in done.stderr


def test_the_keys_of_a_trial_are_as_they_were() -> None:
    """The result of our own servers has no `replies`."""
    with tcp(replying(lambda _, line: line, read=lines_of)) as url:
        done = load(url, "--json", "-", *QUICK)
    assert "replies" not in json.loads(done.stdout)
