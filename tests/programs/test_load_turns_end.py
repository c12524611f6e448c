"""netdyno-load --turns: what ends it before the harness does, and what it is not begun with."""

from __future__ import annotations

import signal
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from netdyno.kit.paths import build_dir, generator_path
from netdyno.measure.trial.load import INVALID_LOAD
from tests.support.foreign import PATIENCE_S, failed, listening
from tests.support.server import launched
from tests.support.turns import CHAT, RPC, WAITS, WINDOW_S, server_of, turns

pytestmark = [pytest.mark.needs_build, pytest.mark.calm]


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
