"""netdyno-load --reconnect: the workload http with servers that close connections after a reply, as HTTP allows."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from netdyno.model.load_result import LoadResult
from tests.support.foreign import (
    MANY,
    MEASURED,
    EndConnection,
    Serve,
    end,
    failed,
    listening,
    load,
    replying,
    requests,
    resets,
    result_of,
)
from tests.support.patience import eventually
from tests.support.turns import turns

pytestmark = pytest.mark.needs_build

HTTP = ("--workload", "http")


def reply_to(request: bytes, *, is_last: bool = False) -> bytes:
    target = request.split(b" ")[1]
    close = b"connection: Close\r\n" if is_last else b""
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s" % (len(target), close, target)


def closing_after(replies: int, *, announced: bool, ending: EndConnection = end) -> Serve:
    last = replies - 1
    return replying(
        lambda count, request: reply_to(request, is_last=announced and count == last), last=last, ending=ending
    )


def result_with(serve: Serve, *options: str, ends: set[int] = MEASURED) -> LoadResult:
    with listening(serve) as (host, port):
        return result_of(f"tcp://{host}:{port}", *HTTP, *options, *MANY, ends=ends)


@pytest.mark.parametrize("options", [(), ("--rate", "500"), ("--depth", "4")], ids=["closed", "open", "pipelined"])
@pytest.mark.parametrize("announced", [True, False], ids=["announced", "unannounced"])
def test_the_next_connection_carries_on_and_each_is_counted(announced: bool, options: tuple[str, ...]) -> None:
    result = result_with(closing_after(5, announced=announced), "--reconnect", "-c", "2", *options)
    connections = result.connections
    assert result.messages.received == result.messages.sent == 40
    assert connections.closed_after_reply >= 6
    assert connections.attempted == connections.established >= connections.closed_after_reply
    assert sum(result.errors.values()) == 0
    assert failed(result) <= {"generator", "achieved_rate", "little"}, "of a busy machine"
    assert result.plan.reconnects


def test_a_connection_is_opened_for_its_first_message_where_that_is_requested() -> None:
    """An idle connection holds a server whose worker waits for its request."""
    result = result_with(
        closing_after(1, announced=True), "--reconnect", "-c", "50", "--rate", "500", "--connect-rate", "when-due"
    )
    assert result.messages.received == result.messages.sent == 40
    assert result.connections.attempted == result.connections.established == 40


def test_the_summary_says_so() -> None:
    with listening(closing_after(10, announced=True)) as (host, port):
        done = load(f"tcp://{host}:{port}", *HTTP, "--reconnect", *MANY)
    assert re.search(r"^ +4 closed by the server after a reply$", done.stdout, re.MULTILINE), done.stdout


def test_a_contestant_keeps_its_connections() -> None:
    result = result_with(closing_after(5, announced=True), ends={3})
    assert (result.errors["closed_by_server"], result.connections.established) == (1, 1)
    assert result.connections.closed_after_reply == 0


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 200 OK\r\nContent-Le"], ids=["without a reply", "within a reply"])
def test_a_close_in_place_of_a_reply_is_an_error(reply: bytes) -> None:
    def serve(connection: socket.socket, number: int) -> None:
        for count, request in enumerate(requests(connection)):
            if count == 3 * number:  # the second one has brought replies, and this one comes in part
                connection.sendall(reply)
                end(connection)
                return
            connection.sendall(reply_to(request))

    result = result_with(serve, "--reconnect", "-c", "1", ends={1})
    assert result.errors["closed_by_server"] == 1
    assert "connections" in failed(result)


def test_a_reset_with_a_request_in_flight_is_an_error() -> None:
    serve = replying(lambda count, request: reply_to(request) if count < 3 else b"", last=3, ending=resets)
    result = result_with(serve, "--reconnect", ends={3})
    assert (result.errors["reset"], result.messages.received) == (1, 3)


def test_an_idle_connection_that_was_to_stay_is_an_error() -> None:
    closed: list[int] = []

    def serve(connection: socket.socket, number: int) -> None:
        if number == 1:
            closed.append(number)
            end(connection)
        else:
            closing_after(10**6, announced=False)(connection, number)

    options = ("-c", "2", "--busy-connections", "1", "--reconnect")
    with listening(serve) as (host, port):
        result = result_of(f"tcp://{host}:{port}", *HTTP, *options, "--duration", "300ms", "--warmup", "0", ends={3})
    assert closed == [1]
    assert result.errors["closed_by_server"] == 1


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "unannounced"])
def test_slices_go_on_over_new_connections(announced: bool, tmp_path: Path) -> None:
    serve = closing_after(20, announced=announced)
    with listening(serve) as (host, port):
        url = f"tcp://{host}:{port}"
        with turns(url, tmp_path / "result", *HTTP, "--reconnect", "-c", "2") as generator:
            sent = generator.slices(3)
            result = generator.end()
    assert result.messages.sent == result.messages.received == sum(sent) > 0
    assert (result.connections.closed_after_reply > 0) == (result.connections.established > 2)
    assert sum(result.errors.values()) == 0


def test_connections_that_are_closed_between_slices_are_opened_by_the_next(tmp_path: Path) -> None:
    idle: list[int] = []

    def serve(connection: socket.socket, number: int) -> None:
        connection.settimeout(0.3 if number < 2 else None)
        try:
            closing_after(10**6, announced=False)(connection, number)
        except TimeoutError:
            idle.append(number)
            connection.settimeout(None)
            end(connection)

    with listening(serve) as (host, port):
        url = f"tcp://{host}:{port}"
        with turns(url, tmp_path / "result", *HTTP, "--reconnect", "-c", "2") as generator:
            generator.slices(1)
            eventually(lambda: len(idle) == 2, "no connection was closed")
            generator.slices(2)
            result = generator.end()
    assert (result.connections.established, result.connections.closed_after_reply) == (4, 2)
    assert (result.messages.lost, sum(result.errors.values())) == (0, 0)
