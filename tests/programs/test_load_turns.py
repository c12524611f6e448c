"""netdyno-load --turns: its load in slices over the same connections, one result of those that count, what ends it
before the harness does, and what it is not begun with."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec
import pytest

from netdyno.kit.paths import build_dir, generator_path
from netdyno.measure.machine.pinning import keep_punctual, may_run_realtime
from netdyno.measure.trial.load import INVALID_LOAD
from tests.support.certificates import make_authority
from tests.support.foreign import LAST, OK, PATIENCE_S, always, end, failed, http, listening, requests
from tests.support.patience import eventually
from tests.support.server import launched
from tests.support.turns import CHAT, INTERVALS, RPC, WAITS, WINDOW_S, server_of, turns
from tests.support.websocket import agree, frame, frames

pytestmark = [pytest.mark.needs_build, pytest.mark.calm, pytest.mark.long]


@pytest.mark.parametrize(
    ("name", "serves", "asks"),
    [
        pytest.param("threads-global-lock", (), (), id="closed"),
        pytest.param("epoll-coroutines", (), ("--threads", "2", "--depth", "3"), id="two threads"),
        pytest.param("epoll-coroutines", (), ("--rate", "2000", "--arrivals", "poisson"), id="poisson"),
        pytest.param("epoll-coroutines", (), ("--rate", "2000", "--depth", "1"), id="limited flight"),
        pytest.param("epoll-coroutines", (), ("--round", "10ms"), id="rounds"),
        pytest.param("epoll-coroutines", (), ("--requests-per-connection", "7"), id="made anew"),
        pytest.param("threads-global-lock", (*CHAT, "all"), (*CHAT, "all"), id="chat to all"),
        pytest.param(
            "epoll-coroutines",
            (*CHAT, "others"),
            (*CHAT, "others", "--rate", "500", "--threads", "2"),
            id="chat to others",
        ),
        pytest.param("threads-global-lock", ("--workload", "http"), ("--threads", "2"), id="foreign http"),
    ],
)
def test_the_slices_that_count_are_the_window_and_all_are_the_life(
    name: str, serves: Sequence[str], asks: Sequence[str], tmp_path: Path
) -> None:
    with server_of(name, *serves) as server:
        foreign = "http" in serves
        url = server.endpoint.replace("tcp://", "http://") + "/hello" if foreign else server.endpoint
        with turns(url, tmp_path / "result", "-c", "6", *asks) as generator:
            sent = []
            for number in range(9):
                sent += generator.slices(1)
                if number % 3 == 1:
                    generator.say("drop")
            result = generator.end()
        totals = server.stop()
    counted = sum(sent) - sum(sent[1::3])
    assert all(of_slice > 0 for of_slice in sent)
    assert result.messages.sent == result.messages.due == sum(sent)
    if foreign:
        assert totals["requests"] == sum(sent)
    else:
        assert (totals["bytes_in"], totals["bytes_out"]) == (result.bytes.sent, result.bytes.received)
    assert result.messages.received == result.messages.expected
    assert result.messages.lost == result.messages.duplicated == result.messages.corrupt == 0
    assert failed(result) == set()
    assert result.plan.duration_s == pytest.approx(6 * WINDOW_S)
    assert len(result.timeseries.completed) == 6 * INTERVALS
    assert 0 < result.requests.completed <= counted
    assert result.latency.response_ns.count == result.requests.sent <= counted
    assert result.connection_mean_ns is not None
    assert 0 < result.connection_mean_ns.count <= 6 * 6
    if "--requests-per-connection" not in asks:
        assert result.connections.established == result.connections.attempted == result.connect_ns.count == 6


def test_nothing_counts_where_all_was_dropped_and_where_nothing_was_requested(tmp_path: Path) -> None:
    with server_of("threads-global-lock") as server:
        for slices in (0, 2):
            with turns(server.endpoint, tmp_path / "result", "-c", "2") as generator:
                for _ in range(slices):
                    generator.slices(1)
                    generator.say("drop")
                generator.say("end")
                result = generator.ended({1})
                assert generator.process.stderr is not None
                assert "no valid slice" in generator.process.stderr.read()
            assert (result.requests.completed, result.timeseries.completed, result.plan.duration_s) == (0, (), 0)
            assert (result.messages.received > 0) == (slices > 0)


def test_programs_with_the_same_seed_have_the_same_arrivals(tmp_path: Path) -> None:
    """The arrivals agree slice by slice, and a slice that one program missed shifts nothing."""
    asks = ("-c", "3", "--rate", "5000", "--arrivals", "poisson", "--seed", "7")
    made: list[dict[int, int]] = []
    with server_of("threads-global-lock") as server:
        for misses in (False, True):
            with turns(server.endpoint, tmp_path / "result", *asks) as generator:
                sent: dict[int, int] = {}
                for turn in range(9):
                    generator.say("go 1") if misses and turn == 2 else generator.go()
                    event = generator.event()
                    if event["event"] == "slice":
                        sent[turn] = int(event["sent"])
                result = generator.end()
                assert result.messages.sent == sum(sent.values())
                made.append(sent)
    whole, with_a_miss = made
    assert 2 not in with_a_miss
    both = set(whole) & set(with_a_miss)
    assert len({whole[turn] for turn in both}) > 2
    assert [whole[turn] for turn in both] == [with_a_miss[turn] for turn in both]


def test_between_slices_it_rests(tmp_path: Path) -> None:
    chat = (*CHAT, "all", "--rate", "500", "--threads", "2")
    with (
        server_of("epoll-coroutines", *CHAT, "all") as server,
        turns(server.endpoint, tmp_path / "result", "-c", "6", *chat) as generator,
    ):
        generator.slices(2)
        before, began = generator.cpu_ns(), time.monotonic_ns()
        time.sleep(0.5)
        used = generator.cpu_ns() - before
        assert used < 0.01 * (time.monotonic_ns() - began)
        generator.end()


def test_an_answer_that_comes_later_than_the_slice_is_of_it(tmp_path: Path) -> None:
    asks = (*RPC, "-c", "2", "--service-time", "50ms", "--rate", "200")
    with (
        server_of("threads-global-lock", *WAITS) as server,
        turns(server.endpoint, tmp_path / "result", *asks) as generator,
    ):
        assert generator.slices(3) == [10, 9, 10]  # 9.6 are due in 48 ms: all slices have one schedule
        result = generator.end()
    assert (result.messages.received, result.messages.lost) == (29, 0)
    assert result.latency.response_ns.count == result.requests.due


PAUSED_S = 0.02
"""Seconds for which nothing else runs on the core, from 10 ms after a slice's beginning. Many short parts come a little
more often than the witness wakes, so that some of them meet it wherever the first one falls."""
TAKES_A_CORE = f"""
import os, sys, time
core, parts = map(int, sys.argv[1:])
os.sched_setaffinity(0, [core])
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
for line in sys.stdin:
    begin = int(line) / 1e9 + 0.01
    for part in range(parts):
        time.sleep(max(0, begin + 0.95 * part * {PAUSED_S} / parts - time.monotonic()))
        until = time.monotonic() + {PAUSED_S} / parts * (1 if parts == 1 else 0.4)
        while time.monotonic() < until: pass
"""


@pytest.mark.parametrize(
    ("on_own_core", "parts", "part_seen"),
    [
        pytest.param(True, 1, 0.7, id="one long"),
        pytest.param(True, 20, 0.03, id="many short"),
        pytest.param(False, 1, 0.5, id="on the server's core"),
    ],
)
def test_a_witness_tells_how_long_nothing_could_run_on_its_core(
    on_own_core: bool, parts: int, part_seen: float, tmp_path: Path
) -> None:
    """A server's core is not looked at: what a system call takes there is the server's."""
    if not may_run_realtime(90):
        pytest.skip("this user may run nothing at real-time priority (CAP_SYS_NICE)")
    others, own = sorted(os.sched_getaffinity(0))[-2:]
    taken = str(own if on_own_core else others)
    with ExitStack() as started:
        server = started.enter_context(server_of("threads-global-lock"))
        with keep_punctual((own,), realtime=False):
            generator = started.enter_context(turns(server.endpoint, tmp_path / "result", "-c", "2", "--witness"))
        command = [sys.executable, "-c", TAKES_A_CORE, taken, str(parts)]
        taker = started.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, text=True))
        assert taker.stdin is not None
        take_core = partial(print, file=taker.stdin, flush=True)
        free_s, taken_s = zip(*((generator.paused_s(), generator.paused_s(take_core)) for _ in range(9)), strict=True)
        taker.stdin.close()
        generator.end()
    assert min(free_s) < 0.5 * PAUSED_S
    # The machine has pauses of its own, which only add to the others: those of its calmest slices are compared.
    assert (min(taken_s) - min(free_s) > part_seen * PAUSED_S) == on_own_core


def test_a_foreign_server_may_close_what_is_idle_between_slices(tmp_path: Path) -> None:
    idle: list[int] = []

    def serve(connection: socket.socket, number: int) -> None:
        if number > 1:
            return always(OK)(connection, number)
        connection.settimeout(0.3)  # of the first two connections, of which each is idle after the first slice
        try:
            always(OK)(connection, number)
        except TimeoutError:
            idle.append(number)
            connection.settimeout(None)
            end(connection)
        return None

    with http(serve) as url, turns(url, tmp_path / "result", "-c", "2") as generator:
        generator.slices(1)
        eventually(lambda: len(idle) == 2, "no connection was closed")
        generator.slices(2)
        result = generator.end()
    assert (result.connections.established, result.messages.lost, failed(result)) == (4, 0, set())
    assert sum(result.errors.values()) == 0


@pytest.mark.parametrize("kind", ["tls", "websocket", "unix", "closes each"])
def test_what_lies_between_takes_turns_too(kind: str, tmp_path: Path) -> None:
    asks: tuple[str, ...] = ("-c", "3")
    serve, family, file = always(OK), socket.AF_INET, None
    url = "http://localhost:{port}/"
    if kind == "tls":
        authority = make_authority(tmp_path)
        if authority is None:
            pytest.skip("openssl is not installed")
        context, plain = authority.sign("localhost"), serve

        def serve(connection: socket.socket, number: int) -> None:
            with context.wrap_socket(connection, server_side=True) as encrypted:
                plain(encrypted, number)

        asks, url = (*asks, "--cacert", str(authority.file)), "https://localhost:{port}/"
    elif kind == "websocket":

        def serve(connection: socket.socket, number: int) -> None:
            agree(connection)
            for opcode, payload in frames(connection):
                connection.sendall(frame(payload, opcode))

        url = "ws://localhost:{port}/"
    elif kind == "unix":
        family, file = socket.AF_UNIX, str(tmp_path / "socket")
        asks, url = (*asks, "--unix-socket", file), "http://localhost/"
    else:

        def serve(connection: socket.socket, number: int) -> None:
            next(requests(connection))
            connection.sendall(LAST)
            end(connection)

    with listening(serve, family, file) as address:
        named = url.format(port=address[1])
        with turns(named, tmp_path / "result", *asks) as generator:
            sent = generator.slices(3)
            result = generator.end()
    assert result.messages.sent == result.messages.received == sum(sent) > 0
    assert failed(result) == set()
    if kind == "tls":
        assert not isinstance(result.tls, msgspec.UnsetType)
        assert result.tls.handshake_ns.count == 3


# --- ends -----------------------------------------------------------------------------------------------------------


def test_a_slice_with_a_message_that_none_answers_is_the_last(tmp_path: Path) -> None:
    asks = (*RPC, "--service-time", "1s", "--timeout", "400ms")
    with (
        server_of("threads-global-lock", *WAITS) as server,
        turns(server.endpoint, tmp_path / "result", "-c", "2", *asks) as generator,
    ):
        generator.slices(1)
        result = generator.ended({1})
    assert result.messages.lost == result.errors["timeout"] == 2


def test_a_slice_of_a_chat_that_a_listener_does_not_hear_is_the_last(tmp_path: Path) -> None:
    """Every message came back to its sender all the same."""
    listeners: list[socket.socket] = []
    deaf = threading.Event()
    talks = threading.Lock()

    def serve(connection: socket.socket, _number: int) -> None:
        listeners.append(connection)
        while data := connection.recv(1 << 16):
            with talks:
                for listener in [connection] if deaf.is_set() else listeners:
                    listener.sendall(data)

    asks = (*CHAT, "all", "--rate", "200", "--timeout", "400ms")
    with (
        listening(serve) as (host, port),
        turns(f"tcp://{host}:{port}", tmp_path / "result", "-c", "2", *asks) as generator,
    ):
        heard = sum(generator.slices(2))
        deaf.set()
        (unheard,) = generator.slices(1)
        result = generator.ended({INVALID_LOAD})
    assert result.messages.lost == unheard > 0
    assert result.messages.sent == heard + unheard


@pytest.mark.parametrize("within", [True, False], ids=["within a slice", "between slices"])
@pytest.mark.parametrize("asks", [(), (*CHAT, "all", "--threads", "2")], ids=["closed", "chat"])
def test_a_server_that_ends_ends_the_program(within: bool, asks: Sequence[str], tmp_path: Path) -> None:
    with launched([str(build_dir() / "servers" / "threads-global-lock")], *asks[:4]) as server:
        server.wait_ready()
        with turns(server.endpoint, tmp_path / "result", "-c", "4", *asks, "--duration", "300ms") as generator:
            generator.slices(1)
            if not within:
                server.process.kill()
            begins = generator.go()
            if within:
                time.sleep((begins - time.monotonic_ns()) / 1e9 + 0.05)
                server.process.kill()
            assert generator.event()["event"] == "slice"
            result = generator.ended({INVALID_LOAD})
    assert result.errors["closed_by_server"] + result.errors["reset"] == 4
    assert "connections" in failed(result)


@pytest.mark.parametrize("slices", [1, 2])
def test_an_interrupt_between_slices_ends_the_program(slices: int, tmp_path: Path) -> None:
    with (
        server_of("threads-global-lock") as server,
        turns(server.endpoint, tmp_path / "result", "-c", "2") as generator,
    ):
        generator.slices(slices)
        time.sleep(0.05)  # it waits for a line
        generator.process.send_signal(signal.SIGINT)
        result = generator.ended()
    assert result.plan.duration_s == pytest.approx(slices * WINDOW_S)


def test_an_interrupt_within_a_slice_ends_it_and_the_program(tmp_path: Path) -> None:
    with (
        server_of("threads-global-lock") as server,
        turns(server.endpoint, tmp_path / "result", "-c", "2", "--duration", "20s") as generator,
    ):
        begins = generator.go()
        time.sleep((begins - time.monotonic_ns()) / 1e9 + 0.2)
        generator.process.send_signal(signal.SIGINT)
        assert generator.event()["event"] == "slice"
        result = generator.ended()
    assert 0.05 < result.plan.duration_s < 15
    assert result.messages.lost == 0


def test_a_generator_that_loses_the_harness_ends_with_what_it_has(tmp_path: Path) -> None:
    with (
        server_of("threads-global-lock") as server,
        turns(server.endpoint, tmp_path / "result", "-c", "2") as generator,
    ):
        generator.slices(2)
        assert generator.process.stdin is not None
        generator.process.stdin.close()
        result = generator.ended()
    assert result.plan.duration_s == pytest.approx(2 * WINDOW_S)


@pytest.mark.parametrize(
    "line", ["stop", "go", "go ", "go now", "go 99999999999999999999", f"go {2**63 - 1}", "go -1", "go 1 2", ""]
)
def test_a_line_that_is_none_is_reported_and_ends_it(line: str, tmp_path: Path) -> None:
    with (
        server_of("threads-global-lock") as server,
        turns(server.endpoint, tmp_path / "result", "-c", "2") as generator,
    ):
        generator.slices(1)
        generator.say(line)
        assert generator.process.wait(PATIENCE_S) == 1
        assert generator.process.stderr is not None
        complaint = generator.process.stderr.read()
    assert complaint.count("\n") == 1
    assert f"'{line}' is none of 'go N', 'drop', 'end'" in complaint


@pytest.mark.parametrize(
    "arguments",
    [
        ("-n", "5"),
        ("--share", "1/2", "-c", "2"),
        ("--await-go",),
        ("--rate", "1k/1s,2k/1s"),
        ("--workload", "chat", "-c", "3", "--slow-readers", "1"),
    ],
    ids=lambda words: words[0],
)
def test_what_contradicts_turns_is_one_line_and_exit_2(arguments: Sequence[str]) -> None:
    command = [str(generator_path(build_dir())), "tcp://127.0.0.1:1", "--turns", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--turns" in done.stderr
