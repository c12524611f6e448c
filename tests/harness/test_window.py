"""The moments at which the server is read, with this process as the server."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from netdyno.measure.machine import cpu_share, server_proc
from netdyno.measure.machine.server_processes import Origin
from netdyno.measure.trial import window
from netdyno.measure.trial.window import Watch
from netdyno.model.options import settings
from netdyno.question import experiment
from tests.support.fixtures import PYTHON

TOML = """
question = "When?"
contestants = ["*"]
blocks = 1
warmup = "{warmup}"
duration = "{duration}"
[[scenario]]
name = "echo"
workload = "echo"
"""


MIB = 1 << 20
FORGETS = """
import os
held = b"x" * (64 << 20)
print(flush=True)
input()
del held
os.write(os.memfd_create("kept"), b"x" * (32 << 20))
with open("/proc/self/clear_refs", "w") as file: file.write("5")
print(flush=True)
input()
"""
"""Holds 64 MiB, and from the first line on none of it, but 32 MiB in a file; the kernel has forgotten its peak."""


def watch(warmup: str, pid: int = os.getpid(), endpoint: str = "", duration: str = "10s") -> Watch:
    (scenario,) = experiment.parse(TOML.format(warmup=warmup, duration=duration), "when", "here").scenarios
    return Watch(Origin(pid), settings(scenario, {}), Path("/proc/self/net"), endpoint=endpoint)


def test_the_readings_are_rehearsed_shortly_before_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    take = server_proc.take

    def counted(pid: int, chosen: Sequence[str] = ()) -> server_proc.ProcessSnapshot:
        if pid == os.getpid():  # it may have children, of the tests before this one
            taken.append(pid)
        return take(pid, chosen)

    monkeypatch.setattr(server_proc, "take", counted)
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    watched = watch("500ms")
    assert watched.next_wait(1100.0) == 100
    watched.connected()
    assert watched.next_wait(1100.0) == pytest.approx(0.4)
    now += 0.39
    watched.maybe_take()
    assert taken == []
    now += 0.02
    assert watched.next_wait(1100.0) == 0
    watched.maybe_take()
    watched.maybe_take()
    assert taken == [os.getpid()]
    assert watched.next_wait(1100.0) == pytest.approx(0.065)
    now += 1
    watched.window_start()
    now += 10
    watched.window_end()
    watched.generator_ended()
    assert taken == [os.getpid()] * 3
    assert watched.observation({}).window_s == pytest.approx(10), "a rehearsal is no reading"


def test_nothing_that_takes_long_is_read_within_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """To read fifty threads at its ends was most of the p99 of a window of 0.6 s."""
    taken_at: list[float] = []
    take, now = server_proc.take, 1000.0

    def note_moment(pid: int, chosen: Sequence[str] = ()) -> server_proc.ProcessSnapshot:
        taken_at.append(now)
        return take(pid, chosen)

    monkeypatch.setattr(server_proc, "take", note_moment)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    watched = watch("500ms")
    watched.connected()
    for moment in (1000.45, 1000.48):
        now = moment
        watched.maybe_take()
    assert {*taken_at} == {1000.45, 1000.48}
    now = 1000.5
    watched.window_start()
    while now < 1010.5:
        now += min(watched.next_wait(1010.5), 0.25)
        watched.maybe_take()
    watched.window_end()
    assert {*taken_at} == {1000.45, 1000.48}
    now += watched.next_wait(1020)
    watched.maybe_take()
    watched.generator_ended()
    assert sorted({*taken_at}) == [1000.45, 1000.48, pytest.approx(1010.51)]
    assert watched.observation({}).window_s == 10


def test_a_server_is_charged_for_what_it_used_between_the_ends_of_the_window() -> None:
    watched = watch("25ms")
    watched.connected()
    watched.maybe_take()
    use_cpu(0.05)
    watched.window_start()
    began_s = time.process_time()
    use_cpu(0.1)
    used_s = time.process_time() - began_s
    watched.window_end()
    use_cpu(0.05)
    watched.generator_ended()
    observed = watched.observation({})
    assert observed.cpu_s == pytest.approx(used_s, abs=0.02)
    assert observed.harness_cpu_s == pytest.approx(used_s, abs=0.02)


def use_cpu(seconds: float) -> None:
    began_s = time.process_time()
    while time.process_time() < began_s + seconds:
        pass


@pytest.mark.parametrize(("cost_s", "readings"), [(0.0, 18), (0.003, 15)])
def test_readings_take_a_small_share_of_a_core_whatever_one_costs(
    monkeypatch: pytest.MonkeyPatch, cost_s: float, readings: int
) -> None:
    now = used_s = 1000.0
    read_at: list[float] = []

    def read_cores(*_: object) -> None:
        nonlocal used_s
        used_s += cost_s
        read_at.append(now)

    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(time, "process_time", lambda: used_s)
    monkeypatch.setattr(cpu_share, "compute_observation", read_cores)
    watched = watch("0ms")
    watched.window_start()
    for _ in range(1000):
        now += 0.01
        watched.maybe_take()
    assert len(read_at) == readings
    assert read_at[0] == pytest.approx(1000.5, abs=0.011)
    assert read_at[-1] <= 1009.51, "one that could save no time would only stop the server"
    watched.window_end()
    now += 1
    seen = len(read_at)
    watched.maybe_take()
    assert len(read_at) == seen, "after the window nothing strikes the trial out any more"


def test_a_window_that_does_not_end_is_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now, read_at = 1000.0, list[float]()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(cpu_share, "compute_observation", lambda *_: read_at.append(now))
    watched = watch("0ms", duration="600ms")
    watched.window_start()
    while now < 1002:
        now += 0.01
        watched.maybe_take()
    assert read_at == [pytest.approx(moment, abs=0.02) for moment in (1001.1, 1001.6)]


def test_no_table_of_sockets_is_read_while_replies_are_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes 20 ms of the server's core. Before the last replies that was the p99 of a hundred connections."""
    scans: list[str] = []
    moment = "at first"

    def scan(*_: object) -> tuple[int, ...]:
        scans.append(moment)
        return ()

    monkeypatch.setattr(window, "find_elsewhere", scan)
    watched = watch("0ms", endpoint="tcp://127.0.0.1:1")
    moment = "within the window"
    watched.window_start()
    watched.maybe_take()
    watched.window_end()
    moment = "once the load has ended"
    watched.generator_ended()
    assert scans == ["at first", "once the load has ended"]


@pytest.mark.parametrize(("scan_s", "scans"), [(0.02, 2), (0.3, 1)])
def test_the_sockets_are_scanned_at_the_beginning_of_a_warm_up_that_is_long_enough(
    monkeypatch: pytest.MonkeyPatch, scan_s: float, scans: int
) -> None:
    """At its end a scan would delay the chunks of streams that end in the window, or last into it."""
    now, scanned = 1000.0, list[float]()

    def scan(*_: object) -> tuple[int, ...]:
        nonlocal now
        scanned.append(now)
        now += scan_s
        return ()

    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(window, "find_elsewhere", scan)
    watched = watch("500ms", endpoint="tcp://127.0.0.1:1")
    connected_s = now
    watched.connected()
    while now < connected_s + 0.5:
        now += max(watched.next_wait(connected_s + 0.5), 0.001)
        watched.maybe_take()
    assert len(scanned) == scans
    assert max(scanned) < connected_s + 0.03


def test_a_peak_that_the_server_has_the_kernel_forget_is_not_forgotten() -> None:
    """It is in what was read before; what a server holds in files in memory was in no figure of its own at all."""
    with subprocess.Popen([*PYTHON, "-c", FORGETS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdout.readline()
        watched = watch("0ms", server.pid)
        watched.window_start()
        server.stdin.write(b"\n")
        server.stdin.flush()
        server.stdout.readline()
        watched.window_end()
        watched.generator_ended()
        assert server_proc.read_peak_memory(server.pid) < 32 * MIB
        assert 96 * MIB < watched.observation({}).rss_peak_bytes < 128 * MIB
        server.stdin.close()


def test_without_a_warm_up_the_cpu_of_a_long_reading_is_of_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    take = server_proc.take

    def take_long(pid: int, chosen: Sequence[str] = ()) -> server_proc.ProcessSnapshot:
        use_cpu(0.1)
        return take(pid, chosen)

    monkeypatch.setattr(server_proc, "take", take_long)
    watched = watch("0ms")
    watched.connected()
    watched.maybe_take()
    began_s = time.process_time()
    watched.window_start()
    used_s = time.process_time() - began_s
    watched.window_end()
    watched.generator_ended()
    observed = watched.observation({})
    assert observed.cpu_s == pytest.approx(used_s, abs=0.03)
    assert observed.harness_cpu_s == pytest.approx(used_s, abs=0.03)
    assert observed.window_s >= 0.1


def test_without_a_warm_up_the_window_comes_first() -> None:
    watched = watch("0ms")
    watched.window_start()
    watched.window_end()
    watched.generator_ended()
    assert watched.observation({}).threads >= 1
    assert "ListenOverflows" in watched.kernel()
