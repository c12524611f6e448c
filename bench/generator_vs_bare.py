#!/usr/bin/env python3
"""Measures how much of the speed of bare loops netdyno-load keeps, with every reply verified and timed. In a closed
loop: of one over epoll, and of one over io_uring, which shows what the generator could gain from that. At a rate: of
one that wakes for nothing but the next message, 64 connections.

All load the same bare echo server, pinned to core 0, from core 1, with 31-byte messages. The machine's speed drifts by
more than the expected difference, so they take turns, each round gives ratios, and the ratios are the result. Run by
hand on a quiet machine:

    bench/generator_vs_bare.py [--build build/release] [--rounds 9] [--seconds 2] [--connections 100 1000]
        [--rates 1000 10000] [--realtime]

With --realtime (root, or a limit of RLIMIT_RTPRIO) both sides of all pairs run under SCHED_FIFO, so that no other work
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
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from serving import LOAD_CORE, SERVER_CORE, RunningServer, drop_audit_failures, pin_to_core, start_server

REALTIME = False
"""Whether both sides run at real-time priority."""
OURS = "ours"
PACED_CONNECTIONS = 64


@dataclass(frozen=True)
class MeasuredRate:
    """Round trips a second, and the CPU microseconds that each cost the generator."""

    per_second: float
    cpu_us: float


@dataclass(frozen=True)
class LoadCase:
    """A load: the bare loops that make it (bench/bare_load.cpp), and the options that netdyno-load makes it with."""

    title: str
    bare_loops: tuple[str, ...]
    connections: int
    options: tuple[str, ...] = ()

    @staticmethod
    def make_closed(connections: int) -> LoadCase:
        return LoadCase(f"{connections} connections, closed loop", ("epoll", "uring"), connections)

    @staticmethod
    def make_at_rate(rate: int) -> LoadCase:
        return LoadCase(f"{rate:,} messages a second", (str(rate),), PACED_CONNECTIONS, ("--rate", str(rate)))


def start_bare_server(build: Path) -> AbstractContextManager[RunningServer]:
    """Start a fresh server on SERVER_CORE."""
    return start_server([*pin_to_core(SERVER_CORE, realtime=REALTIME), str(build / "bench/bare_server")])


def run_load(command: list[str], prefix: list[str]) -> Any:
    """Return the JSON that a load printed. SystemExit where it measured nothing; that it was late says its result."""
    done = subprocess.run([*prefix, *command], check=False, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise SystemExit(f"{command[0]}: {done.stderr}")
    return json.loads(done.stdout)


def measure_bare(build: Path, loop: str, connections: int, seconds: float) -> MeasuredRate:
    with start_bare_server(build) as served:
        command = [
            str(build / "bench/bare_load"),
            loop,
            str(urlsplit(served.url).port),
            str(connections),
            "0.3",
            str(seconds),
        ]
        result = run_load(command, pin_to_core(LOAD_CORE, realtime=REALTIME))
    return MeasuredRate(
        result["per_second"], 1e6 * (result["cpu_user_s"] + result["cpu_system_s"]) / result["completed"]
    )


def run_ours(build: Path, case: LoadCase, seconds: float, prefix: list[str]) -> Any:
    with start_bare_server(build) as served:
        command = [str(build / "loadgen/netdyno-load"), served.url, "-c", str(case.connections), "--size", "31"]
        result = run_load(
            [*command, *case.options, "--warmup", "300ms", "--duration", f"{seconds}s", "--json", "-"], prefix
        )
    return drop_audit_failures(result)


def measure_ours(build: Path, case: LoadCase, seconds: float) -> MeasuredRate:
    result = run_ours(build, case, seconds, pin_to_core(LOAD_CORE, realtime=REALTIME))
    cpu = result["generator"]["cpu_user_s"] + result["generator"]["cpu_system_s"]
    return MeasuredRate(result["requests"]["per_second"], 1e6 * cpu / result["requests"]["completed"])


def compare(build: Path, case: LoadCase, rounds: int, seconds: float) -> None:
    print(f"{case.title}, 31-byte echo, {seconds:g} s a run")
    names = (*case.bare_loops, OURS)
    print(f"{'round':>5}" + "".join(f" {name + '/s':>9} {'CPU us':>7}" for name in names))
    runs: dict[str, list[MeasuredRate]] = {name: [] for name in names}
    for number in range(rounds):
        for name in rotate(names, number):  # so that drift favours none
            rate = (
                measure_ours(build, case, seconds)
                if name == OURS
                else measure_bare(build, name, case.connections, seconds)
            )
            runs[name].append(rate)
        last = (runs[name][-1] for name in names)
        print(
            f"{number + 1:>5}" + "".join(f" {rate.per_second:>9.0f} {rate.cpu_us:>7.2f}" for rate in last), flush=True
        )
    for first, second in combinations(reversed(names), 2):
        print(f"{first} / {second}: {say_ratios(runs[first], runs[second])}")
    print()


def rotate(names: Sequence[str], by: int) -> list[str]:
    start = by % len(names)
    return [*names[start:], *names[:start]]


def say_ratios(above: Sequence[MeasuredRate], below: Sequence[MeasuredRate]) -> str:
    """Return the medians of the rounds' ratios, of the rate and of the CPU that a message costs."""
    rates = [upper.per_second / lower.per_second for upper, lower in zip(above, below, strict=True)]
    costs = [upper.cpu_us / lower.cpu_us for upper, lower in zip(above, below, strict=True)]
    return (
        f"rate x{statistics.median(rates):.3f} ({format_interval_of_median(rates)}), "
        f"CPU x{statistics.median(costs):.3f} ({format_interval_of_median(costs)})"
    )


def format_interval_of_median(values: Sequence[float]) -> str:
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


def print_memory(build: Path, connections: int) -> None:
    """Print the peak memory of one process with many connections."""
    result = run_ours(build, LoadCase.make_closed(connections), 2, [])
    established, peak = result["connections"]["established"], result["generator"]["max_rss_bytes"]
    print(f"{established} of {connections} connections established, peak memory {peak / 2**20:.1f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path(__file__).resolve().parents[1] / "build/release")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--connections", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--rates", type=int, nargs="*", default=[1000, 10_000])
    parser.add_argument("--realtime", action="store_true")
    options = parser.parse_args()
    global REALTIME
    REALTIME = options.realtime
    for case in (*map(LoadCase.make_closed, options.connections), *map(LoadCase.make_at_rate, options.rates)):
        compare(options.build, case, options.rounds, options.seconds)
    print_memory(options.build, 10_000)


if __name__ == "__main__":
    main()
