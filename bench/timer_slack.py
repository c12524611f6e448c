#!/usr/bin/env python3
"""What the kernel's timer slack is worth to each server where requests wait: the scenario `wait` of quick, in pairs.

A block is each server with the kernel's default of 50 us and with the 1 ns that the harness gives, in random order,
each a fresh process. So each block gives a ratio of the two. Server on core 0, load on core 1, at real-time priority
where this user may have that. Run by hand on a quiet machine; on one that is not, root may put the servers before the
rest by --nice -20, which changes nothing of the slack, as real-time priority would.

    bench/timer_slack.py [--blocks 12] [--seconds 1] [--service 500us] [--rate 10000] [--nice 0] [--server NAME ...]

docs/measurements/level-ground.md has what it said.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from serving import LOAD_CORE, SERVER_CORE, quartiles, serving

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from netdyno.base.paths import build_dir, generator_path
from netdyno.machine import pinning, program_settings
from netdyno.machine.process import REALTIME_PRIORITY

SERVERS = ("threads-snapshot", "epoll-reactor", "epoll-coroutines")
DEFAULT_SLACK_NS = 50_000
SLACKS_NS = (DEFAULT_SLACK_NS, program_settings.TIMER_SLACK_NS)
AUTOGROUP = Path("/proc/self/autogroup")


class Read(NamedTuple):
    """What one run read. Latencies and the server's CPU per message in microseconds."""

    p50_us: float
    p99_us: float
    cpu_us: float


def main() -> None:
    wanted = parse_arguments()
    runs: dict[tuple[str, int], list[Read]] = {(name, slack): [] for name in wanted.server for slack in SLACKS_NS}
    for block in range(wanted.blocks):
        order = list(runs)
        random.shuffle(order)
        for name, slack_ns in order:
            runs[name, slack_ns].append(measure(name, slack_ns, wanted))
        print(f"block {block + 1} of {wanted.blocks}", file=sys.stderr, flush=True)
    print(table(runs))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--service", default="500us")
    parser.add_argument("--rate", type=int, default=10000)
    parser.add_argument("--nice", type=int, default=0)
    parser.add_argument("--server", action="append")
    parsed = parser.parse_args()
    parsed.server = parsed.server or SERVERS
    return parsed


def measure(name: str, slack_ns: int, wanted: argparse.Namespace) -> Read:
    """One fresh server with that slack, and a load against it. CalledProcessError where the load fails."""
    command = [str(build_dir() / "servers" / name), "--workload", "rpc"]
    command += ["--service-time", wanted.service, "--service-kind", "wait"]
    with serving(command, as_a_server(slack_ns, wanted.nice)) as served:
        load = [str(generator_path(build_dir())), served.url, "--workload", "rpc", "-c", "50", "--size", "64"]
        load += ["--rate", str(wanted.rate), "--arrivals", "poisson", "--warmup", "200ms", "--json", "-"]
        load += ["--duration", f"{wanted.seconds:g}s"]
        told = subprocess.run(load, stdout=subprocess.PIPE, preexec_fn=as_a_load(), check=False)
    latency = json.loads(told.stdout)["latency"]["response_ns"]
    return Read(latency["p50"] / 1e3, latency["p99"] / 1e3, 1e6 * served.cpu_s / served.totals["requests"])


def as_a_server(slack_ns: int, nice: int) -> Callable[[], None]:
    """What a server gets before its exec: as in a trial, but for these two."""
    given = program_settings.choose(slack_ns)._replace(nice=nice)

    def prepare() -> None:
        given.apply()
        os.sched_setaffinity(0, [SERVER_CORE])
        os.setsid()
        if AUTOGROUP.exists():  # sched(7): niceness is compared within a session only, and these are two
            AUTOGROUP.write_text(str(nice))

    return prepare


def as_a_load() -> Callable[[], None]:
    """What the generator gets before its exec, as in a trial."""
    given, realtime = program_settings.choose(), pinning.may_run_realtime()

    def prepare() -> None:
        given.apply()
        os.sched_setaffinity(0, [LOAD_CORE])
        if realtime:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(REALTIME_PRIORITY))

    return prepare


def table(runs: dict[tuple[str, int], list[Read]]) -> str:
    """Medians of the blocks with each slack, and the ratio of the two within blocks with its quartiles. Pure."""
    lines = [f"{'':<24}{'':<8}{'50 us':>9}{'1 ns':>9}  1 ns / 50 us [quartiles]"]
    for name in dict.fromkeys(name for name, _ in runs):
        slack, none = (runs[name, slack_ns] for slack_ns in SLACKS_NS)
        for figure in Read._fields:
            before, after = ([getattr(read, figure) for read in reads] for reads in (slack, none))
            ratios = [one / other for one, other in zip(after, before, strict=True)]
            lines.append(
                f"{name:<24}{figure:<8}{statistics.median(before):9.1f}{statistics.median(after):9.1f}  "
                f"{statistics.median(ratios):.3f} {quartiles(ratios)}"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
