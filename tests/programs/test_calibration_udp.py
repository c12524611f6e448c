"""The calibration server over UDP does to datagrams what it is programmed to do, and says so. Delays are lower bounds
here, which no busy machine can break; counts are exact."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from netdyno.question.contestants.contestants import find_by_name
from netdyno.verbs.instruments.calibrate.done import ServerTotals
from tests.contract.golden import wire
from tests.contract.messages.transport import MessageClient
from tests.contract.messages.transports.udp import UdpClient
from tests.support.chosen import discover_once
from tests.support.programmed import FAULTS, NUMBERS, done, expect_counted, spoken
from tests.support.server import Server, expect_refused, run, serving

pytestmark = pytest.mark.needs_build
COMMAND = find_by_name(discover_once(), "calibration-udp").command
MS = 10**6


@contextmanager
def known(server: Server) -> Iterator[MessageClient]:
    """A client that the server knows."""
    with UdpClient(server.address) as client:
        client.join()
        yield client


def test_an_answer_is_held_back_for_its_delay_and_holds_up_no_other() -> None:
    """One after the other they would take 5 s."""
    with serving(COMMAND, "--workload", "rpc", "--delay", "constant:100ms") as server:
        with known(server) as client:
            begin = time.monotonic()
            for number in range(50):
                client.send(wire.frame(wire.request(number, b"s")))
            assert client.receive() == wire.frame(wire.response(0, b"s"))
            assert time.monotonic() - begin >= 0.1
            for number in range(1, 50):
                assert client.receive() == wire.frame(wire.response(number, b"s"))
            assert time.monotonic() - begin < 4
        summary = done(server)
    assert (summary.arrived, summary.delay_programmed_ns.count, summary.delay_programmed_ns.mean) == (50, 50, 100 * MS)
    assert summary.delay_actual_ns.mean >= 100 * MS


def test_an_answer_that_is_due_sooner_overtakes(tmp_path: Path) -> None:
    file = tmp_path / "delays"
    file.write_text("700ms\n1ms\n")
    with serving(COMMAND, "--workload", "echo", "--delay", f"file:{file}") as server:
        with known(server) as client:
            client.send(b"first\n")
            client.send(b"second\n")
            assert [client.receive(), client.receive()] == [b"second\n", b"first\n"]
        summary = done(server)
    assert summary.held_for_order == 0
    assert summary.delay_actual_ns.max >= 700 * MS


@pytest.mark.parametrize("workload", ["echo", "rpc"])
def test_every_fault_is_carried_out_and_counted(workload: str) -> None:
    """The datagram that makes a client known gets no fault."""
    say, expected = spoken(workload)
    with serving(COMMAND, "--workload", workload, *FAULTS) as server:
        with known(server) as client:
            for number in NUMBERS:
                client.send(say(number))
            assert [client.receive() for _ in expected] == expected
        expect_counted(done(server))


@pytest.mark.calm
def test_a_stalled_server_answers_none_and_then_all() -> None:
    with serving(COMMAND, "--workload", "echo", "--stall", "at=100ms,for=1500ms") as server, known(server) as first:
        begin = time.monotonic()
        first.send(b"first\n")
        assert first.receive() == b"first\n"
        while time.monotonic() - begin < 0.3:
            time.sleep(0.01)  # until well into the stall
        first.send(b"second\n")
        assert first.receive() == b"second\n"
        assert time.monotonic() - begin >= 1.6
        (stall,) = done(server).stalls
    assert (stall.programmed_ns, stall.connection) == (1500 * MS, None)
    assert stall.began_ns + stall.actual_ns >= 1600 * MS


def test_what_is_not_due_yet_is_answered_before_the_end() -> None:
    with serving(COMMAND, "--workload", "echo", "--delay", "constant:1s") as server, known(server) as client:
        client.send(b"message\n")
        client.join()  # comes after it, so the message was read
        summary = done(server)
        assert client.receive() == b"message\n"
    assert summary.delay_actual_ns.mean >= 1000 * MS


def test_what_waits_is_bounded() -> None:
    options = ("--workload", "echo", "--delay", "constant:1s", "--outbox-limit", "1")
    with serving(COMMAND, *options) as server:
        with known(server) as client:
            client.send(b"taken\n")
            client.join()  # comes after it, so the message waits for its answer by now
            client.send(b"dropped\n")
            assert client.receive() == b"taken\n"
            client.send(b"taken again\n")
            assert client.receive() == b"taken again\n"
        totals = server.stop()
    assert totals["receive_dropped"] == 1
    assert msgspec.convert(totals["calibration"], ServerTotals).arrived == 2


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--delay", "gamma:1ms"),
        ("--stall", "at=1s"),
        ("--stall", "at=1s,for=1s,connection=1"),
        ("--lose", "-1"),
        ("--workload", "chat"),
        ("--receive-buffer", "64KiB"),
    ],
)
def test_a_bad_value_is_one_clear_line(option: str, value: str) -> None:
    expect_refused(run(COMMAND, option, value), option)
