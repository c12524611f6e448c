#!/usr/bin/env python3
"""Whether netdyno-load reads of an HTTP server what wrk reads of it: closed loop, the same server, the same blocks.

A block is a fresh server that both load in turns, each twice, in random order. So each block gives a ratio of the two,
and beside it a ratio of each to itself, which is the noise: what two runs of one program differ by here. Server on core
0, load on core 1, one thread each, the same connections, a request target of the same length. Run by hand on a quiet
machine; where wrk is missing it says so and ends.

    bench/wrk_cross_check.py [--server epoll-reactor] [--blocks 8] [--seconds 2] [--connections 1 ...] [--realtime]

They differ in two respects, both of wrk (wrk.c, 4.1.0). To the times that it has measured it adds those that it takes
for left out, wherever one is longer than twice the mean interval of its connection (stats_correct), which lengthens its
tail; and it only counts bytes, where netdyno-load verifies every reply.
"""

from __future__ import annotations

import json
import random
import shlex
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from pathlib import Path
from urllib.parse import urlsplit

from serving import LOAD_CORE, SERVER_CORE, Served, comparison_options, on_core, serving, without_audit_failures

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from netdyno.instruments.calibrate import others

TARGET = 64
"""Bytes of a request target after its first "/", which the server sends back."""


@dataclass(frozen=True)
class Read:
    """What one run read: requests a second, and latencies in microseconds."""

    rate: float
    mean_us: float
    p50_us: float
    p99_us: float


NAMES = {"rate": "requests/s", "mean_us": "mean", "p50_us": "p50", "p99_us": "p99"}


@dataclass(frozen=True)
class Bench:
    build: Path
    server: Sequence[str]
    connections: int
    seconds: int
    realtime: bool

    def on(self, core: int) -> list[str]:
        return on_core(core, realtime=self.realtime)

    def serving(self) -> AbstractContextManager[Served]:
        """A fresh server."""
        name, *more = self.server
        return serving([*self.on(SERVER_CORE), str(self.build / "servers" / name), "--workload", "http", *more])

    def output(self, command: Sequence[str]) -> str:
        """What a load says."""
        full = [*self.on(LOAD_CORE), *command]
        return subprocess.run(full, check=True, capture_output=True, text=True, timeout=self.seconds + 60).stdout


def ours(bench: Bench, url: str) -> Read:
    """netdyno-load, whose own audits must pass."""
    program = str(bench.build / "loadgen/netdyno-load")
    load = [
        "--workload",
        "http",
        "-c",
        str(bench.connections),
        "--size",
        str(TARGET),
        "--duration",
        f"{bench.seconds}s",
    ]
    result = without_audit_failures(json.loads(bench.output([program, url, *load, "--warmup", "0ms", "--json", "-"])))
    times = result["latency"]["response_ns"]
    return Read(result["requests"]["per_second"], *(times[name] / 1e3 for name in ("mean", "p50", "p99")))


def wrk(bench: Bench, url: str) -> Read:
    """wrk, whose every response must have been read and be one of 2xx or 3xx."""
    target = f"http://{urlsplit(url).netloc}/{'x' * TARGET}"
    text = bench.output(["wrk", "-t1", f"-c{bench.connections}", f"-d{bench.seconds}s", "--latency", target])
    for complaint in ("Socket errors", "Non-2xx"):
        if complaint in text:
            raise SystemExit(f"wrk failed: {text}")
    said = others.parse(text, "wrk")
    return Read(said.rate_hz, said.mean_ns / 1e3, said.percentiles_ns["p50"] / 1e3, said.percentiles_ns["p99"] / 1e3)


LOADS: dict[str, Callable[[Bench, str], Read]] = {"netdyno-load": ours, "wrk": wrk}


def block(bench: Bench, rng: random.Random) -> dict[str, list[Read]]:
    """Each load twice against one server, in random order."""
    order = [*LOADS, *LOADS]
    rng.shuffle(order)
    found: dict[str, list[Read]] = {name: [] for name in LOADS}
    with bench.serving() as served:
        url = served.url
        ours(bench, url)  # so that none of them meets a cold server
        for name in order:
            found[name].append(LOADS[name](bench, url))
    return found


def compare(bench: Bench, blocks: int, rng: random.Random) -> None:
    """Print every block, then each figure's ratio with its spread beside the noise."""
    print(
        f"{' '.join(bench.server)}, http, closed loop, {bench.connections} connections, {TARGET}-byte target, "
        f"{bench.seconds} s a run, in each block both twice; times in us"
    )
    print(f"{'':>5}" + "".join(f"  {NAMES[f.name]:>10} ours {'wrk':>9}" for f in fields(Read)))
    found = []
    for number in range(1, blocks + 1):
        found.append(block(bench, rng))
        print(f"{number:>5}" + "".join(_pair(found[-1], f.name) for f in fields(Read)), flush=True)
    for field in fields(Read):
        print(_judged(found, field.name))
    print(_little(found, bench.connections))


def _pair(one: dict[str, list[Read]], name: str) -> str:
    own, other = (mean(one[load], name) for load in LOADS)
    digits = 0 if name == "rate" else 1
    return f"  {own:>15.{digits}f} {other:>9.{digits}f}"


def mean(runs: Sequence[Read], name: str) -> float:
    """Geometric, as ratios are what counts."""
    return statistics.geometric_mean(getattr(one, name) for one in runs)


def _judged(found: Sequence[dict[str, list[Read]]], name: str) -> str:
    """netdyno-load over wrk, and how far two runs of the same load are apart: the larger over the smaller."""
    ratios = [mean(one["netdyno-load"], name) / mean(one["wrk"], name) for one in found]
    low, middle, high = quartiles(ratios)
    noise = [_apart(one[load], name) for one in found for load in LOADS]
    return (
        f"{NAMES[name]:>10}: ours / wrk {middle:.3f} (quartiles {low:.3f} to {high:.3f}, blocks {min(ratios):.3f} to "
        f"{max(ratios):.3f}); two runs of the same load are {100 * (statistics.median(noise) - 1):.1f}% apart, "
        f"at most {100 * (max(noise) - 1):.1f}%"
    )


def _little(found: Sequence[dict[str, list[Read]]], connections: int) -> str:
    """Little's law of each: in a closed loop rate times mean is the number of connections, whatever the server does.
    Who is far from it has a mean that is not of the requests that it counts."""
    products = {
        load: statistics.median(mean(one[load], "rate") * mean(one[load], "mean_us") for one in found) / 1e6
        for load in LOADS
    }
    said = ", ".join(f"{load} {product:.2f}" for load, product in products.items())
    return f"rate x mean, which is {connections} by Little's law: {said}\n"


def _apart(runs: Sequence[Read], name: str) -> float:
    values = [getattr(one, name) for one in runs]
    return float(max(values) / min(values))


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) < 2:
        return (values[0],) * 3
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def main() -> None:
    parser = comparison_options(__doc__, server="epoll-reactor", blocks=8, seconds=2, connections=1)
    parser.add_argument("--realtime", action="store_true", help="all programs under SCHED_FIFO")
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        print("skipped: wrk is not installed (Debian: apt-get install wrk)")
        return
    rng = random.Random(options.seed)
    for connections in options.connections:
        bench = Bench(options.build, shlex.split(options.server), connections, options.seconds, options.realtime)
        compare(bench, options.blocks, rng)


if __name__ == "__main__":
    main()
