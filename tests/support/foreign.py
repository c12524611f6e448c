"""Servers that are not ours, made by a function for each of their connections, and the generator against them."""

from __future__ import annotations

import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from netdyno.kit.paths import build_dir, generator_path
from netdyno.measure.audits.plausible import populations
from netdyno.measure.trial.load import INVALID_LOAD
from netdyno.model.load_result import LoadResult, Replies

PATIENCE_S = 60
MEASURED = {0, INVALID_LOAD}
"""How it ends when it has measured: a busy machine may be why its figures are invalid."""
QUICK = ("--warmup", "0", "--duration", "150ms", "--timeout", "2s")
MANY = ("-n", "40", "--timeout", "2s")
"""A number of messages, for tests that need several: in QUICK's window a busy machine may have time for one only."""
Serve = Callable[[socket.socket, int], None]
"""Serves one connection, the how manieth of all; it is closed then."""

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LAST = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"


@contextmanager
def listening(serve: Serve, family: socket.AddressFamily = socket.AF_INET, address: Any = None) -> Iterator[Any]:
    """A server, and the address where it listens. Once the load is over, what it received is read before it ends."""
    attended: list[threading.Thread] = []
    with socket.socket(family, socket.SOCK_STREAM) as listens:
        listens.bind(address or ("::1" if family is socket.AF_INET6 else "127.0.0.1", 0))
        listens.listen(64)

        def accept() -> None:
            number = 0
            while True:
                try:
                    connection, _ = listens.accept()
                except OSError:
                    return
                attended.append(threading.Thread(target=attend, args=(connection, number), daemon=True))
                attended[-1].start()
                number += 1

        def attend(connection: socket.socket, number: int) -> None:
            with connection, suppress(OSError):
                serve(connection, number)

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield listens.getsockname()
        finally:
            listens.shutdown(socket.SHUT_RDWR)
            until = time.monotonic() + PATIENCE_S
            accepting.join(PATIENCE_S)
            for thread in attended:
                thread.join(max(0.0, until - time.monotonic()))


@contextmanager
def http(serve: Serve) -> Iterator[str]:
    with listening(serve) as (host, port):
        yield f"http://{host}:{port}/"


def requests(connection: socket.socket) -> Iterator[bytes]:
    """The requests of a connection: heads, each with what its length says."""
    pending = b""
    while True:
        head, end, rest = pending.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        size = int(length[1]) if length else 0
        if end and len(rest) >= size:
            pending = rest[size:]
            yield head + end + rest[:size]
        elif more := connection.recv(1 << 16):
            pending += more
        else:
            return


def always(answer: bytes) -> Serve:
    return replying(answer)


def end(connection: socket.socket) -> None:
    """End the stream, and take what still comes, so that the end is no reset (RFC 1122, 4.2.2.13)."""
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(1 << 16):
        pass


def resets(connection: socket.socket) -> None:
    """Let its close send a reset (socket(7), SO_LINGER)."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


EndConnection = Callable[[socket.socket], None]


def replying(
    reply: bytes | Callable[[int, bytes], bytes],
    *,
    last: int | None = None,
    ending: EndConnection = end,
    read: Callable[[socket.socket], Iterator[bytes]] = requests,
    seen: list[bytes] | None = None,
) -> Serve:
    """Answer each request of a connection with `reply`, which may depend on its number there, from 0, and on the
    request; with `last` its number is that of the last one, after which the connection gets its ending. `seen` takes
    the requests."""

    def serve(connection: socket.socket, _number: int) -> None:
        for count, request in enumerate(read(connection)):
            if seen is not None:
                seen.append(request)
            connection.sendall(reply if isinstance(reply, bytes) else reply(count, request))
            if count == last:
                ending(connection)
                return

    return serve


def load(*arguments: str, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """`before`: what to put before the command."""
    command = [*before, str(generator_path(build_dir())), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    if "--json" not in arguments:
        expect_one_line(done.stdout + done.stderr)
    return done


def expect_error(arguments: Sequence[str], words: str) -> None:
    """One line says what is wrong, and nothing is done."""
    done = load(*arguments)
    assert (done.returncode, done.stdout) == (2, ""), done
    (line,) = done.stderr.splitlines()
    assert words in line
    assert len(line) < 3000


def result_of(*arguments: str, ends: set[int] = MEASURED, before: Sequence[str] = ()) -> LoadResult:
    done = load(*arguments, "--json", "-", before=before)
    assert done.returncode in ends, done
    result: LoadResult = msgspec.json.decode(done.stdout, type=LoadResult)
    expect_one_account(result, answers_in_order="--send" in arguments or result.plan.url.startswith("http"))
    return result


def expect_one_account(result: LoadResult, *, answers_in_order: bool = True) -> None:
    """The parts of each population come to the whole (protocol/load-result.md, Populations)."""
    assert [bound for bound in populations(result) if bound.broken] == []
    assert len(result.timeseries.completed) == -(-round(result.plan.duration_s * 1e9) // result.timeseries.interval_ns)
    assert sum(result.timeseries.completed) == result.requests.completed
    known = [p50 is not None for p50 in result.timeseries.p50_ns]
    assert known == [completed > 0 for completed in result.timeseries.completed]
    if not answers_in_order:
        return
    life, replies = result.messages, replies_of(result)
    assert life.due == life.expected == life.received + replies.unexpected + life.lost
    if replies.other_faults == 0:
        named = sum(fault.count for fault in replies.faults if fault.counted == "messages")
        assert life.received + named == life.due + life.late, "each message has its reply or its fault"


def expect_one_line(text: str) -> None:
    """No part that a summary prints is more than its whole, and what became of the messages comes to those due."""
    for part, whole in re.findall(r"(?<![.\d])(\d+) of (\d+)(?![.\d])", text):
        assert int(part) <= int(whole), text
    for figures in re.findall(
        r"^replies +as expected (\d+), others (\d+), without an answer (\d+), of (\d+) due;", text, re.M
    ):
        *became, due = map(int, figures)
        assert sum(became) == due, text


def replies_of(result: LoadResult) -> Replies:
    assert isinstance(result.replies, Replies)
    return result.replies


def failed(result: LoadResult) -> set[str]:
    """The audits that failed, but those that a busy machine can make fail."""
    return {audit.name for audit in result.audits if not audit.passed} - {"generator", "achieved_rate", "little"}


def expect_all_right(result: LoadResult) -> None:
    assert result.messages.received == result.messages.sent > 0
    assert result.messages.lost == replies_of(result).unexpected == 0
    assert replies_of(result).faults == ()
    assert result.bytes.received == result.bytes.expected
    assert failed(result) == set()


def lines_of(connection: socket.socket) -> Iterator[bytes]:
    with connection.makefile("rb") as lines:
        yield from lines


@contextmanager
def tcp(serve: Serve) -> Iterator[str]:
    with listening(serve) as (host, port):
        yield f"tcp://{host}:{port}"
