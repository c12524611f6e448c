"""The comparison of ways to wait: what it reads, and how it pairs."""

from __future__ import annotations

import pytest

from tests.support import bench_script

waiting_cost = bench_script.load("waiting_cost")
SAID = """\
Total data received: 60.5 KiB (62000 bytes)
Message latency at percentiles: 2.4/20.5 ms (50/99%)
"""


def test_tcpkali_is_read() -> None:
    read = waiting_cost.read_tcpkali(SAID, 0.01)
    assert (read.cpu, read.p50, read.p99, read.lag_p50) == (5.0, 2400.0, 20500.0, None)


@pytest.mark.parametrize("line", ["Total", "Message latency"])
def test_without_figures_there_is_no_read(line: str) -> None:
    kept = (one for one in SAID.splitlines() if not one.startswith(line))
    assert waiting_cost.read_tcpkali("\n".join(kept), 0.01) is None


def test_ratios_are_those_of_blocks() -> None:
    def read(us: float) -> object:
        return waiting_cost.Read(us, us, us, us, us)

    # The machine is twice as slow in the second block: the ratio is the same in each.
    load = waiting_cost.LOADS[1]
    found = {"on": [read(10), read(20)], "off": [read(9), read(18)], "tcpkali": [waiting_cost.Read(5, 100), None]}
    told = waiting_cost.table(load, found).splitlines()
    assert told[0].startswith("echo, 100 connections, 100,000/s")
    assert told[3].split() == ["off", *["13.5", "[0.90]"] * 5]
    assert told[4].split()[:6] == ["tcpkali", "5.0", "[0.50]", "100.0", "[10.00]", "-"]
    assert told[4].endswith("(1 of 2 without figures)")


def test_our_times_and_cpu_are_per_message() -> None:
    times = {"p50": 40_000, "p99": 80_000}
    result = {"latency": {"response_ns": times}, "send_lag_ns": {"p50": 0, "p99": 5000}, "messages": {"received": 4}}
    assert waiting_cost.read_ours(result, 0.00002) == waiting_cost.Read(5.0, 40.0, 80.0, 0.0, 5.0)
