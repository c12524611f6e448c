#!/usr/bin/env python3
"""Measures how much of a bare epoll loop's speed netdyno-load keeps, with every reply verified and timed.

Both load the same bare echo server, pinned to core 0, from core 1: closed loop, 31-byte messages. The machine's speed
drifts by more than the expected difference, so the two alternate, each round gives one ratio, and the ratios are the
result. Run by hand on a quiet machine:

    bench/generator_vs_bare.py [--build build/release] [--rounds 9] [--seconds 2] [--connections 100 1000] [--realtime]

With --realtime (root, or a limit of RLIMIT_RTPRIO) both sides of both pairs run under SCHED_FIFO, so that no other work
of the machine takes a core from any of them; the kernel keeps 5% for the rest (sched(7)).
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from serving import LOAD_CORE, SERVER_CORE, Served, on_core, serving, without_audit_failures

REALTIME = False
"""Whether both sides run at real-time priority."""


@dataclass(frozen=True)
class Rate:
    """Round trips a second, and the CPU microseconds that each cost the generator."""

    per_second: float
    cpu_us: float


def bare_server(build: Path) -> AbstractContextManager[Served]:
    """Start a fresh server on SERVER_CORE."""
    return serving([*on_core(SERVER_CORE, realtime=REALTIME), str(build / "bench/bare_server")])


def output(command: list[str], prefix: list[str]) -> Any:
    return json.loads(subprocess.run([*prefix, *command], check=True, capture_output=True, text=True).stdout)


def bare(build: Path, connections: int, seconds: float) -> Rate:
    with bare_server(build) as served:
        command = [
            str(build / "bench/bare_load"),
            str(urlsplit(served.url).port),
            str(connections),
            "0.3",
            str(seconds),
        ]
        result = output(command, on_core(LOAD_CORE, realtime=REALTIME))
    return Rate(result["per_second"], 1e6 * (result["cpu_user_s"] + result["cpu_system_s"]) / result["completed"])


def run_ours(build: Path, connections: int, seconds: float, prefix: list[str]) -> Any:
    with bare_server(build) as served:
        command = [str(build / "loadgen/netdyno-load"), served.url, "-c", str(connections), "--size", "31"]
        result = output([*command, "--warmup", "300ms", "--duration", f"{seconds}s", "--json", "-"], prefix)
    return without_audit_failures(result)


def ours(build: Path, connections: int, seconds: float) -> Rate:
    result = run_ours(build, connections, seconds, on_core(LOAD_CORE, realtime=REALTIME))
    cpu = result["generator"]["cpu_user_s"] + result["generator"]["cpu_system_s"]
    return Rate(result["requests"]["per_second"], 1e6 * cpu / result["requests"]["completed"])


def compare(build: Path, connections: int, rounds: int, seconds: float) -> None:
    print(f"{connections} connections, 31-byte echo, closed loop, {seconds:g} s a run")
    print(f"{'round':>5} {'bare/s':>9} {'ours/s':>9} {'ratio':>6} {'bare us':>8} {'ours us':>8}")
    ratios, bare_us, our_us = [], [], []
    for number in range(rounds):
        # Every other round the other way round, so that drift favours neither.
        order = (bare, ours) if number % 2 == 0 else (ours, bare)
        rates = {measure.__name__: measure(build, connections, seconds) for measure in order}
        bare_rate, our_rate = rates["bare"], rates["ours"]
        ratios.append(our_rate.per_second / bare_rate.per_second)
        bare_us.append(bare_rate.cpu_us)
        our_us.append(our_rate.cpu_us)
        print(
            f"{number + 1:>5} {bare_rate.per_second:>9.0f} {our_rate.per_second:>9.0f} {ratios[-1]:>6.3f} "
            f"{bare_rate.cpu_us:>8.2f} {our_rate.cpu_us:>8.2f}",
            flush=True,
        )
    low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else (ratios[0],) * 3
    print(
        f"median ratio {statistics.median(ratios):.3f} ({interval_of_median(ratios)}, quartiles {low:.3f} to "
        f"{high:.3f}); CPU per message: bare {statistics.median(bare_us):.2f} us, ours "
        f"{statistics.median(our_us):.2f} us\n"
    )


def interval_of_median(values: Sequence[float]) -> str:
    """Return the interval between two of the values, as far in as at least 95% allow: each lies on either side of the
    true median with a chance of one half, whatever their distribution."""
    count = len(values)
    tail, rank = 0.0, 0  # the chance that fewer than `rank` values, or more than `count - rank`, lie below it
    while (tail := tail + 2 * math.comb(count, rank) / 2**count) <= 0.05:
        rank += 1
    if rank == 0:
        return "too few rounds for an interval"
    ordered = sorted(values)
    return f"95% {ordered[rank - 1]:.3f} to {ordered[count - rank]:.3f}"


def memory(build: Path, connections: int) -> None:
    """Print the peak memory of one process with many connections."""
    result = run_ours(build, connections, 2, [])
    established, peak = result["connections"]["established"], result["generator"]["max_rss_bytes"]
    print(f"{established} of {connections} connections established, peak memory {peak / 2**20:.1f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path(__file__).resolve().parents[1] / "build/release")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--connections", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--realtime", action="store_true")
    options = parser.parse_args()
    global REALTIME
    REALTIME = options.realtime
    for connections in options.connections:
        compare(options.build, connections, options.rounds, options.seconds)
    memory(options.build, 10_000)


if __name__ == "__main__":
    main()
