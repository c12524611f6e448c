"""netdyno-load over WebSocket: what it says, what it verifies, and how it ends."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import msgspec
import pytest

from netdyno.model.load_result import LoadResult
from tests.support.certificates import make_authority
from tests.support.foreign import MANY, QUICK, Serve, end, expect_error, failed, listening, load, replies_of, result_of
from tests.support.patience import eventually
from tests.support.websocket import BINARY, CLOSE, PING, PONG, TEXT, accept_of, agree, frame, frames, read_head

pytestmark = pytest.mark.needs_build


def echo(connection: socket.socket, _number: int) -> None:
    agree(connection)
    for opcode, payload in frames(connection):
        connection.sendall(frame(payload, opcode))
        if opcode == CLOSE:
            return


@contextmanager
def websocket(serve: Serve) -> Iterator[str]:
    with listening(serve) as (host, port):
        yield f"ws://{host}:{port}/"


def expect_all_right(result: LoadResult) -> None:
    assert result.messages.received == result.messages.sent > 0
    assert result.bytes.received == result.bytes.expected == result.plan.size * result.messages.received
    assert replies_of(result).faults == ()
    assert failed(result) == set()


@pytest.mark.parametrize(
    "options",
    [(), ("--rate", "200"), ("--depth", "4"), ("--requests-per-connection", "3")],
    ids=lambda words: " ".join(words),
)
def test_an_echo(options: tuple[str, ...]) -> None:
    with websocket(echo) as url:
        result = result_of(url, "-c", "3", *options, *MANY)
    expect_all_right(result)
    assert result.plan.url == url
    assert (result.connections.established > 3) == ("--requests-per-connection" in options)


@pytest.mark.parametrize("size", [29, 125, 126, 65535, 65536, 1 << 20])
def test_messages_of_each_kind_of_length(size: int) -> None:
    with websocket(echo) as url:
        options = ("--depth", "2", "--size", str(size), "--send-buffer", "8KiB")
        expect_all_right(result_of(url, "-c", "2", *options, *QUICK))


def test_what_is_written_down(tmp_path: Path) -> None:
    heads: list[bytes] = []
    masks: list[bytes] = []
    received: list[tuple[int, bytes]] = []

    def serve(connection: socket.socket, _number: int) -> None:
        heads.append(agree(connection))
        for opcode, payload in frames(connection, masks):
            received.append((opcode, payload))
            connection.sendall(frame(payload, opcode))

    file = str(tmp_path / "socket")
    with listening(serve, socket.AF_UNIX, file):
        expect_all_right(result_of("ws://localhost/a?b=c", "--unix-socket", file, "-H", "Origin: x", "-c", "2", *MANY))
    head_pattern = re.compile(
        rb"GET /a\?b=c HTTP/1\.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        rb"Sec-WebSocket-Version: 13\r\nOrigin: x\r\nSec-WebSocket-Key: ([A-Za-z0-9+/]{22}==)\r\n\r\n"
    )
    keys = [head_pattern.fullmatch(head) for head in heads]
    assert all(keys)
    assert len({key[1] for key in keys if key}) == 2, "another for each connection"
    assert len(set(masks)) > 0.9 * len(masks) > 5, "another for each frame"
    assert all(len(payload) == 31 and payload.endswith(b"\n") for opcode, payload in received if opcode == TEXT)
    assert [payload for opcode, payload in received if opcode != TEXT] == [b"\x03\xe8"] * 2, "a close, 1000, at the end"


def test_a_host_that_is_given_takes_the_place_of_that_of_the_url() -> None:
    heads: list[bytes] = []

    def serve(connection: socket.socket, _number: int) -> None:
        heads.append(agree(connection))
        for opcode, payload in frames(connection):
            connection.sendall(frame(payload, opcode))

    with websocket(serve) as url:
        expect_all_right(result_of(url, "-H", "host: x", *QUICK))
    assert re.findall(rb"\r\n(host: .*)\r\n", heads[0], re.IGNORECASE) == [b"host: x"]


@pytest.mark.parametrize("pieces", [False, True], ids=["whole", "in pieces"])
def test_what_a_server_says_on_the_way_to_its_answer_is_passed_over(pieces: bool) -> None:
    """103 before 101 (RFC 9110, 15.2: a client takes any number of them)."""
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100\r\n\r\n"

    def serve(connection: socket.socket, number: int) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        for piece in [bytes([byte]) for byte in interim] if pieces else [interim]:
            connection.sendall(piece)
        echo(connection, number)

    with websocket(serve) as url:
        expect_all_right(result_of(url, "-c", "2", *MANY))


@pytest.mark.parametrize("audience", ["all", "others"])
def test_a_chat(audience: str) -> None:
    members: list[socket.socket] = []
    lock = threading.Lock()

    def serve(connection: socket.socket, _number: int) -> None:
        agree(connection)
        with lock:
            members.append(connection)
        for opcode, payload in frames(connection):
            if opcode == CLOSE:
                break
            with lock:
                for member in members:
                    if audience == "all" or member is not connection:
                        member.sendall(frame(payload, BINARY))
        with lock:
            members.remove(connection)

    with websocket(serve) as url:
        options = ("--workload", "chat", "--audience", audience, "-c", "4", "--rate", "100")
        result = result_of(url, *options, *QUICK)
    assert result.messages.received == result.messages.sent * (4 if audience == "all" else 3) > 0
    assert result.bytes.received == result.bytes.expected
    assert failed(result) == set()


def test_frames_in_parts_and_between_them_pings_which_are_answered() -> None:
    pongs: list[bytes] = []

    def serve(connection: socket.socket, _number: int) -> None:
        agree(connection)
        count = 0
        for opcode, payload in frames(connection):
            if opcode == PONG:
                pongs.append(payload)
            if opcode != TEXT:
                continue
            count += 1
            parts = frame(payload[:7], TEXT, last=False) + frame(b"%d" % count, PING) + frame(b"", 0, last=False)
            parts += frame(payload[7:], 0) + frame(b"nobody asked", PONG)
            for begin in range(0, len(parts), 11):
                connection.sendall(parts[begin : begin + 11])
                time.sleep(0.0002)

    with websocket(serve) as url:
        result = result_of(url, *QUICK)
    expect_all_right(result)
    assert pongs == [b"%d" % (number + 1) for number in range(result.messages.sent)]


def test_a_ping_in_the_middle_of_a_message_is_answered_after_it() -> None:
    """The server does not read at first, and the message has no room in the buffers of the sockets."""
    received: list[tuple[int, int]] = []

    def serve(connection: socket.socket, _number: int) -> None:
        agree(connection)
        eventually(lambda: bool(connection.recv(1, socket.MSG_PEEK)), "the message begins")
        connection.sendall(frame(b"now", PING))
        time.sleep(0.1)
        for opcode, payload in frames(connection):
            received.append((opcode, len(payload)))
            connection.sendall(frame(payload, opcode))

    with websocket(serve) as url:
        expect_all_right(result_of(url, "--size", "1MiB", "--send-buffer", "8KiB", *QUICK[:-2]))
    assert received[:2] == [(TEXT, 1 << 20), (PONG, 3)]


def test_over_tls_and_ipv6(tmp_path: Path) -> None:
    authority = make_authority(tmp_path)
    if authority is None:
        pytest.skip("openssl is not installed")
    context = authority.sign("localhost")

    def serve(connection: socket.socket, number: int) -> None:
        with context.wrap_socket(connection, server_side=True) as over_tls:
            spoken.add(over_tls.selected_alpn_protocol())
            echo(over_tls, number)

    spoken: set[str | None] = set()
    with listening(serve, socket.AF_INET6) as address:
        url = f"wss://[::1]:{address[1]}/"
        result = result_of(url, "--cacert", str(authority.file), "-c", "2", "--size", "100KiB", *QUICK)
        refused = load(url, *QUICK)
    expect_all_right(result)
    assert spoken == {"http/1.1"}, "the handshake is HTTP/1.1 (RFC 8441 has that of HTTP/2)"
    assert result.plan.url == url
    assert "got none: the server's certificate is signed by no authority that is trusted here" in refused.stderr


# --- what is wrong, in words ---------------------------------------------------------------------------------------


def answering(answer: bytes) -> Serve:
    def serve(connection: socket.socket, _number: int) -> None:
        read_head(connection)
        connection.sendall(answer)
        end(connection)

    return serve


def agreeing(head: bytes) -> Serve:
    """The right key, under this head."""

    def serve(connection: socket.socket, _number: int) -> None:
        key = re.search(rb"Sec-WebSocket-Key: (\S+)", read_head(connection))
        assert key
        connection.sendall(head + b"Sec-WebSocket-Accept: " + accept_of(key[1]) + b"\r\n\r\n")
        end(connection)

    return serve


def endless_head(connection: socket.socket, _number: int) -> None:
    read_head(connection)
    connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\n")
    while True:
        connection.sendall(b"X: " + b"y" * 8000 + b"\r\n")


AGREED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
WRONGLY = "the server answers the WebSocket handshake wrongly: "
REFUSED: dict[str, tuple[Serve, str]] = {
    "status": (
        answering(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
        "the server refuses the WebSocket handshake: 404 Not Found",
    ),
    "key": (
        answering(AGREED + b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"),
        WRONGLY + "its Sec-WebSocket-Accept does not belong to the key",
    ),
    "extension": (
        agreeing(AGREED + b"Sec-WebSocket-Extensions: permessage-deflate\r\n"),
        WRONGLY + "it takes an extension that was not offered",
    ),
    "no upgrade": (
        agreeing(AGREED.replace(b"Upgrade: websocket\r\n", b"")),
        WRONGLY + "its Upgrade is not websocket",
    ),
    "no connection": (
        agreeing(AGREED.replace(b"Connection: Upgrade", b"Connection: keep-alive")),
        WRONGLY + "its Connection does not say Upgrade",
    ),
    "version": (agreeing(AGREED.replace(b"HTTP/1.1", b"HTTP/1.0")), WRONGLY + "it is no HTTP/1.1"),
    "subprotocol": (
        agreeing(AGREED + b"Sec-WebSocket-Protocol: chat\r\n"),
        WRONGLY + "it takes the subprotocol 'chat', which was not offered",
    ),
    "no key": (answering(AGREED + b"\r\n"), WRONGLY + "its Sec-WebSocket-Accept does not belong to the key"),
    "redis": (answering(b"+PONG\r\n"), "the server answers no HTTP to the WebSocket handshake: +PONG"),
    "broken": (
        answering(b"HTTP/1.1 x\r\n\r\n"),
        "the server's answer to the WebSocket handshake cannot be read: bad status",
    ),
    "nothing": (answering(b""), "the connection ended in the WebSocket handshake"),
    "cut": (answering(AGREED), "the connection ended in the WebSocket handshake"),
    "endless": (endless_head, "the server's answer to the WebSocket handshake does not end"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_handshake_that_fails_is_one_sentence(name: str) -> None:
    serve, words = REFUSED[name]
    with websocket(serve) as url:
        done = load(url, "-c", "2", *QUICK)
    assert done.returncode == 1, done
    assert done.stderr == f"netdyno-load: requested 2 connections to {url}, got none: {words}\n"


@pytest.mark.parametrize(("taken", "is_right"), [("chat", True), ("superchat", True), ("Chat", False), ("cha", False)])
def test_a_subprotocol_is_one_of_those_that_were_offered(taken: str, is_right: bool) -> None:
    def serve(connection: socket.socket, number: int) -> None:
        agreeing(AGREED + b"Sec-WebSocket-Protocol: %s\r\n" % taken.encode())(connection, number)

    with websocket(serve) as url:
        done = load(url, "-H", "Sec-WebSocket-Protocol: chat, superchat", *QUICK)
    assert ("which was not offered" in done.stderr) != is_right, done


NO_WEBSOCKET = "what the server sends is no WebSocket: "
BAD: dict[str, tuple[bytes, str]] = {
    "close": (frame(b"\x03\xf0no more", CLOSE), "the server closes the WebSocket: 1008 no more"),
    "bare close": (frame(b"", CLOSE), "the server closes the WebSocket"),
    "masked": (b"\x81\x81abcdx", NO_WEBSOCKET + "a masked frame, which only clients send"),
    "extension": (b"\xc1\x01x", NO_WEBSOCKET + "a frame of an extension that was not agreed on"),
    "opcode": (b"\x83\x01x", NO_WEBSOCKET + "a frame of an unknown kind"),
    "ping in parts": (frame(b"", PING, last=False), NO_WEBSOCKET + "a control frame that is too long or in parts"),
    "long ping": (frame(b"x" * 126, PING), NO_WEBSOCKET + "a control frame that is too long or in parts"),
    "middle": (frame(b"x", 0), NO_WEBSOCKET + "the middle of a message without its beginning"),
    "within": (frame(b"", last=False) + frame(b"x"), NO_WEBSOCKET + "a message within another"),
    "surrogate": (frame(b"\xed\xa0\x80"), NO_WEBSOCKET + "text that is not UTF-8"),
    "cut character": (frame(b"x\xc3"), NO_WEBSOCKET + "text that is not UTF-8"),
    "cut character in parts": (frame(b"\xc3", last=False) + frame(b"x", 0), NO_WEBSOCKET + "text that is not UTF-8"),
    "long length": (b"\x81\x7e\0\x01x", NO_WEBSOCKET + "a frame whose length has too many bytes"),
    "longer length": (b"\x81\x7f" + b"\0" * 6 + b"\1\0", NO_WEBSOCKET + "a frame whose length has too many bytes"),
    "half a status": (frame(b"\x03", CLOSE), "the server closes the WebSocket wrongly: with half a status"),
    "no status": (frame(b"\x03\xed", CLOSE), "the server closes the WebSocket wrongly: with the status 1005"),
    "no reason": (
        frame(b"\x03\xe8\xff", CLOSE),
        "the server closes the WebSocket wrongly: with a reason that is not UTF-8",
    ),
    "negative": (b"\x81\x7f" + b"\xff" * 8, NO_WEBSOCKET + "a frame whose length is negative"),
}


REPLIES = {
    "close": b"\x03\xf0",
    "half a status": b"\x03\xea",
    "no status": b"\x03\xea",
    "no reason": b"\x03\xe8",
}
"""The status in the client's reply to a close; 1002 for one that may not be sent."""


@pytest.mark.parametrize("name", BAD)
def test_it_says_what_was_wrong(name: str) -> None:
    answer, words = BAD[name]
    closes: list[bytes] = []

    def serve(connection: socket.socket, _number: int) -> None:
        agree(connection)
        for count, (opcode, payload) in enumerate(frames(connection)):
            if opcode == CLOSE:
                closes.append(payload)
                return
            connection.sendall(frame(payload) if count < 3 else answer)

    with websocket(serve) as url:  # whose only connection is gone then, and the window over
        result = result_of(url, "--warmup", "0", "--duration", "10s", "--timeout", "2s", ends={3})
    assert result.messages.received == 3
    (fault,) = replies_of(result).faults
    assert (fault.what, fault.count) == (words, 1)
    broken = words.startswith(NO_WEBSOCKET)
    assert (result.errors["protocol"], result.errors["closed_by_server"]) == ((1, 0) if broken else (0, 1))
    assert closes == ([] if broken else [REPLIES.get(name, b"")])


@pytest.mark.parametrize("answers", [0, 5], ids=["never stood", "closed"])
def test_what_is_due_on_a_connection_that_is_gone_is_an_error(answers: int) -> None:
    def serve(connection: socket.socket, number: int) -> None:
        if number == 0 and answers == 0:
            return
        agree(connection)
        for count, (opcode, payload) in enumerate(frames(connection), 1):
            connection.sendall(frame(payload, opcode))
            if opcode == CLOSE or (number == 0 and count == answers):
                end(connection)
                return

    with websocket(serve) as url:
        options = ("-c", "2", "--rate", "200", "-n", "40", "--timeout", "10s")
        result = result_of(url, *options, ends={3})
    assert result.messages.sent + result.errors["timeout"] == 40
    assert result.errors["timeout"] >= 10
    assert sum(result.timeseries.errors) >= 10


def test_what_is_no_echo_is_reported() -> None:
    def serve(connection: socket.socket, _number: int) -> None:
        agree(connection)
        for count, (opcode, payload) in enumerate(frames(connection)):
            connection.sendall(frame(payload.upper() if count == 3 else payload, opcode))

    with websocket(serve) as url:
        result = result_of(url, "--rate", "100", *QUICK, ends={3})
    assert (result.messages.corrupt, result.messages.lost) == (1, 1)
    assert "verification" in failed(result)


def test_pings_without_end_take_no_memory() -> None:
    """The server never reads the answers."""

    def serve(connection: socket.socket, _number: int) -> None:
        agree(connection)
        many = frame(b"x" * 125, PING) * 500
        while True:
            connection.sendall(many)

    began = time.monotonic()
    with websocket(serve) as url:
        result = result_of(url, "--warmup", "0", "--duration", "200ms", "--timeout", "200ms", ends={1})
    assert time.monotonic() - began < 10
    assert result.generator.max_rss_bytes < 64 << 20


@pytest.mark.parametrize("seed", range(3))
def test_whatever_a_server_answers_it_ends_in_time_and_says_so(seed: int) -> None:
    """Frames with bytes that are changed, missing, twice there or another's, endless ones, and ends in the midst."""

    def damaged(random: Random, good: bytes) -> bytes:
        answer = bytearray(good)
        for _ in range(random.choice((0, 0, 0, 1, 3))):
            position = random.randrange(len(answer) + 1)
            damage = random.randrange(4)
            if damage == 0 and position < len(answer):
                answer[position] = random.randrange(256)
            elif damage == 1:
                del answer[position : position + random.randrange(20)]
            elif damage == 2:
                answer[position:position] = answer[: random.randrange(len(answer) + 1)]
            else:
                answer[position:position] = random.choice(
                    (frame(b"p", PING), frame(b"", CLOSE), b"\x82\x7f\x7f" + b"\xff" * 7, b"\0")
                )
        return bytes(answer)

    def serve(connection: socket.socket, number: int) -> None:
        random = Random(1000 * seed + number)
        with suppress(AssertionError):
            agree(connection)
            if number % 16 == 15:
                connection.sendall(b"\x82\x7f\x7f" + b"\xff" * 7)
                while True:
                    connection.sendall(random.randbytes(1 << 16))
            for opcode, payload in frames(connection):
                answer = damaged(random, frame(payload, opcode))
                cut = random.randrange(len(answer) + 1)
                connection.sendall(answer[:cut])
                if random.random() < 0.05:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    return
                connection.sendall(answer[cut:])

    with websocket(serve) as url:
        began = time.monotonic()
        # A connection that ends is gone, so there are many.
        options = ("-c", "40", "--depth", "3", "--warmup", "0", "--duration", "200ms", "--timeout", "200ms")
        done = load(url, *options, "--json", "-")
    assert time.monotonic() - began < 10
    assert done.returncode in {1, 3}, done
    assert all(line.startswith("netdyno-load: ") for line in done.stderr.splitlines()), done.stderr
    result = msgspec.json.decode(done.stdout, type=LoadResult)
    assert result.messages.sent > 40
    assert result.messages.corrupt + sum(result.errors.values()) > 5
    assert result.generator.max_rss_bytes < 64 << 20


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ws://127.0.0.1:x/",), "is no URL"),
        (("ws://127.0.0.1/", "--workload", "rpc"), "carries echo and chat"),
        (("ws://127.0.0.1/", "--send", "x"), "is not for ws://"),
        (("ws://127.0.0.1/", "-d", "x"), "is not for ws://"),
        (("ws://127.0.0.1/", "--insecure"), "is for https://"),
        (("ws://127.0.0.1/", "--size", "28"), "at least 29 bytes"),
        (("ws://127.0.0.1/", "--workload", "chat", "--size", "28", "-c", "2"), "at least 29 bytes"),
        (("ws://127.0.0.1/", "--write-mode", "split"), "leaves whole"),
    ],
)
def test_what_cannot_be_meant_is_one_line_and_exit_2(arguments: tuple[str, ...], words: str) -> None:
    expect_error(arguments, words)
