"""The calibration server does what it is programmed to do, and says so. Delays are lower bounds here, which no busy
machine can break; counts are exact."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from netdyno.kit.statistics import hdr
from netdyno.measure.machine import server_proc
from netdyno.question.contestants.contestants import find_by_name
from netdyno.verbs.instruments.calibrate.done import ServerTotals
from tests.contract.golden import wire
from tests.support.chosen import discover_once
from tests.support.client import Client
from tests.support.kernel import stamping_arrivals
from tests.support.patience import eventually
from tests.support.programmed import FAULTS, NUMBERS, done, expect_counted, spoken
from tests.support.server import Server, expect_refused, run, serving

pytestmark = pytest.mark.needs_build
COMMAND = find_by_name(discover_once(), "calibration").command
MS = 10**6


def ask(client: Client, count: int) -> list[bytes]:
    """The answers to that many lines, sent at once and followed by the end of the stream."""
    client.send(b"".join(b"line %d\n" % number for number in range(1, count + 1)))
    client.half_close()
    return client.rest().splitlines(keepends=True)


def programmed(*options: str, count: int) -> ServerTotals:
    """The summary of the server after that many answers under a programme."""
    with serving(COMMAND, "--workload", "lines", *options) as server:
        with Client(server.address) as client:
            assert len(ask(client, count)) == count
        return done(server)


def histogram(text: str) -> Counter[int]:
    """The number of times that each delay was programmed, in whole milliseconds."""
    decoded = hdr.decode(text)
    pairs = zip(decoded.highest, decoded.counts, strict=True)
    return Counter({round(int(value) / MS): int(count) for value, count in pairs})


@pytest.fixture
def delayed() -> Iterator[Server]:
    """A server that answers after 100 ms."""
    with serving(COMMAND, "--workload", "rpc", "--delay", "constant:100ms") as server:
        yield server


def test_an_answer_is_held_back_for_its_delay(delayed: Server) -> None:
    with Client(delayed.address) as client:
        begin = time.monotonic()
        client.send(wire.frame(wire.request(1, b"s")))
        assert client.frame() == wire.response(1, b"s")
        assert time.monotonic() - begin >= 0.1
    summary = done(delayed)
    assert (summary.arrived, summary.delay_programmed_ns.count, summary.delay_programmed_ns.mean) == (1, 1, 100 * MS)
    assert summary.delay_actual_ns.mean >= 100 * MS


def test_answers_that_wait_hold_up_none(delayed: Server) -> None:
    """One after the other they would take 5 s."""
    with Client(delayed.address) as client:
        begin = time.monotonic()
        client.send(b"".join(wire.frame(wire.request(number, b"s")) for number in range(50)))
        assert [client.frame() for _ in range(50)] == [wire.response(number, b"s") for number in range(50)]
        assert time.monotonic() - begin < 4


def test_it_tells_how_long_a_request_waited_to_be_read() -> None:
    """The second connection is not read for half a second, and its request is the only one after the warm-up."""
    options = ("--arrival-times", "--warm-up", "1", "--stall", "at=0s,for=500ms,connection=2")
    with stamping_arrivals(), serving(COMMAND, "--workload", "lines", *options) as server:
        with Client(server.address) as first, Client(server.address) as second:
            first.send(b"line 1\n")
            assert first.receive(7) == b"line 1\n"
            second.send(b"line 2\n")
            assert second.receive(7) == b"line 2\n"
        read_lag = done(server).read_lag_ns
    assert read_lag is not None
    assert read_lag.count == 1
    assert 100 * MS < read_lag.max < 10_000 * MS


def test_by_default_it_requests_no_arrival_times() -> None:
    read_lag = programmed(count=3).read_lag_ns
    assert read_lag is not None
    assert read_lag.count == 0


def test_the_delays_of_a_file_come_in_its_order_over_and_over(tmp_path: Path) -> None:
    file = tmp_path / "delays"
    file.write_text("# rising, so that none waits for an earlier one\n1ms\n3ms\n\n5ms\n")
    summary = programmed("--delay", f"file:{file}", count=3)
    assert histogram(summary.delay_programmed_ns.histogram) == {1: 1, 3: 1, 5: 1}
    assert summary.held_for_order == 0
    # the fourth is 1 ms, and waits for the third of its connection
    summary = programmed("--delay", f"file:{file}", count=4)
    assert histogram(summary.delay_programmed_ns.histogram) == {1: 1, 3: 1, 5: 2}
    assert summary.held_for_order == 1


def test_a_seed_gives_the_same_delays_again() -> None:
    """There are many connections, each with one answer, so that none is held back by another."""

    def drawn(*options: str) -> str:
        with serving(COMMAND, "--workload", "lines", "--delay", "exponential:2ms", *options) as server:
            for _ in range(100):
                with Client(server.address) as client:
                    assert ask(client, 1) == [b"line 1\n"]
            return done(server).delay_programmed_ns.histogram

    assert drawn() == drawn("--seed", "1")
    assert drawn() != drawn("--seed", "2")


@pytest.mark.calm
def test_exponential_delays_have_their_mean() -> None:
    """1000 draws with a fixed seed: the mean's deviation is known, and would be 3% by chance."""
    with serving(COMMAND, "--workload", "lines", "--delay", "exponential:100us") as server:
        with Client(server.address) as client:
            for _ in range(1000):
                client.send(b"line\n")
                assert client.receive(5) == b"line\n"
        delays = done(server).delay_programmed_ns
    assert delays.count == 1000
    assert delays.mean == pytest.approx(100_000, rel=0.1)
    assert delays.p50 == pytest.approx(69_300, rel=0.15)


def test_bimodal_delays_have_two_values() -> None:
    summary = programmed("--delay", "bimodal:0ms,40ms,0", count=1)
    assert histogram(summary.delay_programmed_ns.histogram) == {40: 1}
    summary = programmed("--delay", "bimodal:2ms,40ms,1", count=500)
    assert histogram(summary.delay_programmed_ns.histogram) == {2: 500}


def test_the_warm_up_is_left_out_of_the_delays() -> None:
    summary = programmed("--warm-up", "30", count=100)
    assert summary.arrived == 100
    assert summary.delay_programmed_ns.count == summary.delay_actual_ns.count == 70


@pytest.mark.parametrize("workload", ["lines", "rpc"])
def test_every_fault_is_carried_out_and_counted(workload: str) -> None:
    say, expected = spoken(workload)
    with serving(COMMAND, "--workload", workload, *FAULTS) as server:
        with Client(server.address) as client:
            client.send(b"".join(map(say, NUMBERS)))
            client.half_close()
            assert client.rest() == b"".join(expected)
        expect_counted(done(server))


@pytest.mark.calm
def test_a_stalled_server_answers_none_and_then_all() -> None:
    with (
        serving(COMMAND, "--workload", "lines", "--stall", "at=100ms,for=1500ms") as server,
        Client(server.address) as first,
    ):
        begin = time.monotonic()
        first.send(b"first\n")
        assert first.receive(6) == b"first\n"
        while time.monotonic() - begin < 0.3:
            time.sleep(0.01)  # until well into the stall
        with Client(server.address) as second:  # the kernel connects it
            second.send(b"second\n")
            assert second.receive(7) == b"second\n"
            assert time.monotonic() - begin >= 1.6
        (stall,) = done(server).stalls
    assert stall.programmed_ns == 1500 * MS
    assert stall.actual_ns > 500 * MS
    assert stall.began_ns >= 100 * MS
    assert stall.began_ns + stall.actual_ns >= 1600 * MS
    assert stall.connection is None


@pytest.mark.calm
def test_a_stalled_connection_holds_up_no_other() -> None:
    with (
        serving(COMMAND, "--workload", "lines", "--stall", "at=0ms,for=2s,connection=2") as server,
        Client(server.address) as first,
    ):
        begin = time.monotonic()
        first.send(b"first\n")
        assert first.receive(6) == b"first\n"
        with Client(server.address) as second:
            second.send(b"second\n")
            for _ in range(10):
                first.send(b"again\n")
                assert first.receive(6) == b"again\n"
            beside = time.monotonic() - begin
            assert second.receive(7) == b"second\n"
            assert time.monotonic() - begin >= 2
        assert beside < 2
        (stall,) = done(server).stalls
    assert (stall.connection, stall.programmed_ns, stall.actual_ns) == (2, 2000 * MS, 2000 * MS)


@pytest.mark.calm
def test_a_stall_does_not_hold_up_the_end() -> None:
    with (
        serving(COMMAND, "--workload", "lines", "--stall", "at=0ms,for=1m") as server,
        Client(server.address) as client,
    ):
        client.send(b"line\n")
        (stall,) = done(server).stalls  # the conformance suite's limit: a clean end within seconds
    assert stall.actual_ns < 30_000 * MS


def test_it_tells_when_requests_came() -> None:
    with serving(COMMAND, "--workload", "lines", "--record-arrivals", "3") as server:
        with Client(server.address) as client:
            for _ in range(5):
                client.send(b"line\n")
                assert client.receive(5) == b"line\n"
        summary = done(server)
    assert summary.arrived == 5
    assert len(summary.arrivals_ns) == 3
    assert summary.arrivals_ns[0] == 0 < summary.arrivals_ns[1] < summary.arrivals_ns[2] < summary.arrivals_span_ns


@pytest.mark.calm
def test_a_witness_sees_when_nothing_runs() -> None:
    """The whole process is stopped, as when the machine lets nothing run."""
    core = min(os.sched_getaffinity(0))
    with (
        serving(COMMAND, "--workload", "lines", "--witness", f"generator={core}") as server,
        Client(server.address) as client,
    ):
        client.send(b"first\n")
        assert client.receive(6) == b"first\n"
        eventually(lambda: has_woken(server.pid), "the witness never wakes")
        os.kill(server.pid, signal.SIGSTOP)
        eventually(lambda: is_stopped(server.pid), "it goes on")
        stopped = time.monotonic()
        while time.monotonic() - stopped < 0.3:
            time.sleep(0.01)
        os.kill(server.pid, signal.SIGCONT)
        client.send(b"again\n")
        assert client.receive(6) == b"again\n"
        summary = done(server)
    longest = max(summary.pauses, key=lambda pause: pause.ns)
    assert longest.core == "generator"
    assert longest.ns > 290 * MS
    assert longest.began_ns + longest.ns > 290 * MS
    assert summary.look_ns == MS // 2
    assert all(pause.ns >= summary.look_ns for pause in summary.pauses)


def has_woken(pid: int) -> bool:
    """Every thread beside the main one has slept more often than its beginning can explain: it watches by now."""
    tasks = server_proc.understand(server_proc.take(pid)).tasks
    return len(tasks) > 1 and all(task.voluntary > 10 for tid, task in tasks.items() if tid != pid)


def is_stopped(pid: int) -> bool:
    """Whether all of its threads are stopped (proc_pid_stat(5))."""
    stats = [stat.read_text() for stat in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


def test_without_a_witness_there_are_no_pauses() -> None:
    assert programmed(count=1).pauses == ()


def test_a_missing_core_is_reported() -> None:
    """The highest number there can be (core_numbers); no machine that runs this has it."""
    ended = run(COMMAND, "--witness", "generator=8191")
    assert ended.code == 1
    assert "core 8191" in ended.stderr


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--delay", "constant"),
        ("--delay", "constant:5"),
        ("--delay", "gamma:1ms"),
        ("--delay", "bimodal:1ms,2ms"),
        ("--delay", "bimodal:1ms,2ms,1.5"),
        ("--delay", "exponential:2h"),
        ("--delay", "file:/nowhere/at/all"),
        ("--stall", "at=1s"),
        ("--stall", "at=1s,for=0s"),
        ("--stall", "at=1s,for=1s,connection=0"),
        ("--stall", "at=1s,for=1s,client=1"),
        ("--lose", "-1"),
        ("--lose", "0"),
        ("--duplicate", "0"),
        ("--corrupt", "0"),
        ("--workload", "chat"),
        ("--witness", "generator"),
        ("--witness", "=1"),
        ("--witness", "generator=first"),
        ("--witness", "generator=-1"),
        ("--witness", "generator=8192"),
    ],
)
def test_a_bad_value_is_one_clear_line(option: str, value: str) -> None:
    expect_refused(run(COMMAND, option, value), option)
