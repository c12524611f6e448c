"""Readings of /proc: the arithmetic on made-up readings, the reading itself on a process of known behaviour."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from netdyno.measure.machine import server_proc
from netdyno.measure.machine.server_proc import ServerReading, ThreadCounters, compute_observation, scale_to_part
from netdyno.model.observation import ServerObservation
from tests.support.patience import eventually

HELD = 16 << 20
STILL = f"""
import resource, sys, threading, time
held = b"x" * {HELD}
end = threading.Event()
others = [threading.Thread(target=end.wait) for _ in range(int(sys.argv[1]))]
for each in others: each.start()

def switches(): return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
def tell(): print(time.process_time(), switches(), flush=True)

while switches() < 100: time.sleep(0.0001)
tell()
for _ in sys.stdin: tell()
end.set()
"""
"""Begins and ends no thread while it is observed, as the process of the tests itself may. Whenever it is asked it tells
the CPU time and the voluntary switches of all its threads."""
Still = subprocess.Popen[str]


@contextmanager
def still(waiting: int) -> Iterator[Still]:
    """Start a process of a main thread and so many others, which all wait. It has printed one line."""
    command = (sys.executable, "-I", "-S", "-c", STILL, str(waiting))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process  # its input is closed after that, which ends it


def read_usage(process: Still) -> tuple[float, int]:
    """Read the next line that it prints: CPU time in seconds, and voluntary switches."""
    assert process.stdout is not None
    cpu_s, voluntary = process.stdout.readline().split()
    return float(cpu_s), int(voluntary)


def ask(process: Still) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def reading(at_s: float, cpu_s: float, ticks: tuple[int, int], tasks: dict[int, ThreadCounters]) -> ServerReading:
    return ServerReading(
        at_s, cpu_s, *ticks, rss_peak_bytes=1 << 20, threads=len(tasks), tasks=tasks, harness_cpu_s=at_s / 100
    )


def test_a_window_is_the_difference_of_two_readings() -> None:
    before = reading(10.0, 5.0, (100, 100), {1: ThreadCounters(10, 1, 1000)})
    after = reading(11.0, 5.8, (120, 160), {1: ThreadCounters(30, 4, 5000), 2: ThreadCounters(7, 0, 10**9)})
    seen = compute_observation(before, after, {"requests": 3})
    assert seen.cpu_user_s == pytest.approx(0.2)
    assert seen.cpu_system_s == pytest.approx(0.6)
    assert (seen.voluntary_switches, seen.involuntary_switches) == (27, 3)
    assert seen.run_queue_wait_s == pytest.approx(1.000004)
    assert (seen.window_s, seen.threads, seen.totals) == (1.0, 2, {"requests": 3})
    assert seen.harness_cpu_s == pytest.approx(0.01)


def test_of_a_thread_that_left_before_the_end_nothing_is_known() -> None:
    before = reading(0.0, 0.0, (0, 0), {1: ThreadCounters(0, 0, 0), 2: ThreadCounters(5, 0, 0)})
    after = reading(1.0, 1.0, (1, 1), {1: ThreadCounters(2, 0, 0)})
    lost = compute_observation(before, after, {})
    assert (lost.voluntary_switches, lost.threads_unread) == (2, 1)


def test_a_part_of_an_observation_has_its_shares_of_the_counts_and_its_own_cpu() -> None:
    before = reading(0.0, 0.0, (0, 0), {1: ThreadCounters(0, 0, 0)})
    after = reading(2.0, 1.0, (30, 10), {1: ThreadCounters(100, 20, 10**9)})
    part = scale_to_part(
        compute_observation(before, after, {}),
        switches_share=0.5,
        wait_share=0.75,
        cpu_s=0.4,
        window_s=1.5,
        harness_cpu_s=0.001,
    )
    assert (part.voluntary_switches, part.involuntary_switches, part.run_queue_wait_s) == (50, 10, 0.75)
    assert part.cpu_user_s == pytest.approx(0.3)
    assert part.cpu_system_s == pytest.approx(0.1)
    assert (part.window_s, part.harness_cpu_s) == (1.5, 0.001)


def test_a_part_leaves_only_what_is_no_amount_of_its_time() -> None:
    """A field that `scale_to_part` forgets would be the whole's."""
    fields = ServerObservation.__struct_fields__
    values: dict[str, Any] = dict.fromkeys(fields, 1000)
    whole = ServerObservation(**values)
    part = scale_to_part(whole, switches_share=0.5, wait_share=0.5, cpu_s=1.0, window_s=0.5, harness_cpu_s=0.1)
    assert {name for name in fields if getattr(part, name) == 1000} == {
        *("rss_peak_bytes", "rss_ready_bytes", "threads", "threads_unread", "threads_sampled", "totals"),
        *("connections_per_thread", "tick_lag_ns", "quota_use"),
    }


def test_some_of_many_threads_stand_for_all_but_the_main_one() -> None:
    """A main thread that switched 1000 times, and two of 400 others, which switched 10 and 20 times."""
    counters = {1: ThreadCounters(0, 0, 0), 7: ThreadCounters(5, 0, 0), 9: ThreadCounters(0, 0, 0)}
    before = msgspec.structs.replace(reading(0.0, 0.0, (0, 0), counters), threads=401)
    after = reading(
        1.0, 1.0, (1, 1), {1: ThreadCounters(1000, 0, 10), 7: ThreadCounters(15, 1, 100), 9: ThreadCounters(20, 0, 0)}
    )
    after = msgspec.structs.replace(after, threads=401)
    seen = compute_observation(before, after, {}, main=1)
    assert (seen.voluntary_switches, seen.involuntary_switches) == (1000 + 200 * 30, 200)
    assert seen.run_queue_wait_s == pytest.approx((10 + 200 * 100) / 1e9)
    assert (seen.threads, seen.threads_sampled, seen.threads_unread) == (401, 3, 0)
    assert compute_observation(before, after, {}).threads_sampled == 0, "all that there were had been read"


def test_of_many_threads_some_are_chosen_once() -> None:
    waiting = server_proc.MOST_THREADS_READ + 50
    with still(waiting) as process:
        read_usage(process)
        chosen = server_proc.choose_threads(process.pid)
        assert len(set(chosen)) == server_proc.MOST_THREADS_READ
        assert chosen[0] == str(process.pid)
        taken = server_proc.take(process.pid, chosen)
        assert set(taken.tasks) == set(chosen)
        assert server_proc.understand(taken).threads == 1 + waiting
        assert len(server_proc.take(process.pid).tasks) == 1 + waiting


def test_of_few_threads_all_are_read() -> None:
    with still(server_proc.MOST_THREADS_READ - 1) as process:
        read_usage(process)
        assert server_proc.choose_threads(process.pid) == ()


def test_too_few_ticks_are_divided_as_over_the_whole_life() -> None:
    before = reading(0.0, 0.0, (3, 1), {})
    after = reading(1.0, 0.004, (3, 1), {})
    assert compute_observation(before, after, {}).cpu_user_s == pytest.approx(0.003)
    nothing = reading(0.0, 0.0, (0, 0), {})
    assert compute_observation(nothing, nothing, {}).cpu_user_s == 0.0


def test_a_process_is_read_truly() -> None:
    with still(waiting=1) as process:
        cpu_s, voluntary = read_usage(process)
        seen = server_proc.understand(server_proc.take(process.pid))
        ask(process)
        cpu_s_later, voluntary_later = read_usage(process)
    assert seen.threads == len(seen.tasks) == 2
    assert HELD < seen.rss_peak_bytes < 4 * HELD
    assert 0 < cpu_s <= seen.cpu_s <= cpu_s_later
    assert 100 <= voluntary <= sum(task.voluntary for task in seen.tasks.values()) <= voluntary_later


def test_the_clock_of_a_process_counts_what_it_uses() -> None:
    before = time.clock_gettime(server_proc.cpu_clock(os.getpid()))
    used = time.process_time()
    while time.process_time() - used < 0.01:
        pass
    assert time.clock_gettime(server_proc.cpu_clock(os.getpid())) - before >= 0.01


def test_a_process_that_is_gone_is_an_error() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    with pytest.raises(OSError, match="No such"):
        server_proc.understand(server_proc.take(pid))


def test_a_name_with_blanks_and_brackets_does_not_shift_the_fields(tmp_path: Path) -> None:
    name = Path("/proc/self/comm")
    old = name.read_text()
    name.write_text("a) b (c")
    try:
        assert server_proc.understand(server_proc.take(os.getpid())).threads >= 1
    finally:
        name.write_text(old)


NETSTAT = """TcpExt: SyncookiesSent ListenOverflows ListenDrops
TcpExt: 1 22 23
IpExt: InNoRoutes
IpExt: 9
"""
SNMP = """Tcp: ActiveOpens RetransSegs
Tcp: 5 6
Udp: InDatagrams NoPorts RcvbufErrors
Udp: 1 2 3
"""


def test_counters_are_picked_by_group_and_name() -> None:
    counters = server_proc.parse_counters(NETSTAT + SNMP)
    assert counters == {
        "ListenOverflows": 22,
        "ListenDrops": 23,
        "RetransSegs": 6,
        "UdpInDatagrams": 1,
        "UdpNoPorts": 2,
        "UdpRcvbufErrors": 3,
    }


SOCKETS = """  sl  local_address rem_address st tx_queue rx_queue tm->when retrnsmt   uid timeout inode ref ptr drops
  302: 0100007F:1B58 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4711 2 0000000000000000 17
 1234: 0100007F:1B59 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4712 2 0000000000000000 0
"""


def test_the_drops_of_each_socket_are_read_from_the_kernels_table() -> None:
    assert server_proc.parse_sockets(SOCKETS) == [("4711", 17), ("4712", 0)]


def test_datagrams_that_found_no_room_are_counted_for_the_process_that_owns_the_socket() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reader,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as writer,
    ):
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)  # the kernel makes it its least, a few kilobytes
        reader.bind(("127.0.0.1", 0))
        before, kernel_before = (
            server_proc.read_socket_drops(os.getpid()),
            server_proc.parse_counters(server_proc.take_kernel()),
        )
        for _ in range(100):
            writer.sendto(bytes(1000), reader.getsockname())

        def dropped() -> int:
            return server_proc.read_socket_drops(os.getpid()) - before

        # a busy kernel puts off what it does with what was sent (softirqs)
        eventually(lambda: dropped() >= 50, lambda: f"{dropped()} of 100 are dropped")
        at_least = dropped()
        kernel = server_proc.increase(kernel_before, server_proc.parse_counters(server_proc.take_kernel()))
    assert at_least < 100
    assert kernel["UdpRcvbufErrors"] >= at_least


def test_an_increase_is_per_counter() -> None:
    assert server_proc.increase({"a": 1}, {"a": 4, "b": 2}) == {"a": 3, "b": 2}


def test_this_kernel_has_the_counters_that_explain_a_failed_connect() -> None:
    assert {"ListenOverflows", "ListenDrops", "TCPSynRetrans", "RetransSegs"} <= server_proc.parse_counters(
        server_proc.take_kernel()
    ).keys()
