#!/usr/bin/env python3
"""What it costs netdyno-load to wait for the moment of a message, and what sending on time gains: each --spin, and a
look every 40 us, 200 us and 1 ms, side by side in blocks, each block in random order; beside tcpkali over echo, where
it is installed.

CPU is that of the whole program over its whole life, of tcpkali as of ours, over the messages of that life; its p50 is
what it says. Server on core 0, load on core 1. A fresh server and load each time. Run by hand on a quiet machine:

    bench/waiting_cost.py [--build build/release] [--blocks 5] [--seconds 3] [--realtime] [--tcpkali FILE]
"""

from __future__ import annotations

import json
import random
import re
import resource
import shutil
import statistics
import subprocess
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from serving import LOAD_CORE, ROOT, SERVER_CORE, on_core, serving, without_audit_failures

WAYS = {
    "on": ("--spin", "on"),
    "auto": ("--spin", "auto"),
    "off": ("--spin", "off"),
    "looks at 40 us": ("--look-every", "40us"),
    "looks at 200 us": ("--look-every", "200us"),
    "looks at 1 ms": ("--look-every", "1ms"),
}
TCPKALI = {"tcpkali": (), "tcpkali, no merging": ("--write-combine", "off")}
"""By default it sends several messages by one call; the second sends each alone, as we do."""
MESSAGE = "PING 0123456789 0123456789 012\n"
"""Of 31 bytes. tcpkali knows it by its first word: its own marker costs it more CPU than the sending."""
FIRST = "on"
"""What the others are held against."""


@dataclass(frozen=True)
class Load:
    """What is asked of a server."""

    workload: str
    connections: int
    each_hz: float
    peer: bool


LOADS = (Load("http", 64, 10_000 / 64, peer=False), Load("echo", 100, 1000, peer=True))


@dataclass(frozen=True)
class Read:
    """What one run read, in microseconds; tcpkali knows no send lag."""

    cpu: float
    p50: float
    p99: float | None = None
    lag_p50: float | None = None
    lag_p99: float | None = None


def ours(load: Load, way: Sequence[str], url: str, options: Namespace) -> Read:
    rate = f"{load.connections * load.each_hz:g}"
    what = ["--workload", load.workload, "-c", str(load.connections), "--rate", rate]
    window = ["--warmup", "0", "--duration", f"{options.seconds}s", "--json", "-"]
    program = str(options.build / "loadgen/netdyno-load")
    text, cpu_s = _run([program, url, *what, *window, *way], options)
    return read_ours(without_audit_failures(json.loads(text)), cpu_s)


def read_ours(result: Any, cpu_s: float) -> Read:
    response, lag = result["latency"]["response_ns"], result["send_lag_ns"]
    times = (response["p50"], response["p99"], lag["p50"], lag["p99"])
    return Read(1e6 * cpu_s / result["messages"]["received"], *(value / 1e3 for value in times))


def tcpkali(load: Load, way: Sequence[str], url: str, options: Namespace) -> Read | None:
    """None where it did not get its connections, or had no figures."""
    count = str(load.connections)
    what = ["-c", count, "--connect-rate", "1000", "-r", f"{load.each_hz:g}", "-T", f"{options.seconds}s", *way]
    message = ["-em", MESSAGE.encode("unicode_escape").decode(), "--latency-marker", MESSAGE.split()[0]]
    asked = [options.tcpkali, *what, *message, "--latency-percentiles", "50,99", urlsplit(url).netloc]
    text, cpu_s = _run(asked, options)
    return read_tcpkali(text, cpu_s)


def read_tcpkali(text: str, cpu_s: float) -> Read | None:
    received = re.search(r"Total data received: .*\((\d+) bytes\)", text)
    times = re.search(r"Message latency at percentiles: ([\d.]+)/([\d.]+) ms", text)
    if received is None or times is None or int(received[1]) < len(MESSAGE):
        return None
    messages = int(received[1]) // len(MESSAGE)
    return Read(1e6 * cpu_s / messages, 1e3 * float(times[1]), 1e3 * float(times[2]))


def _run(command: Sequence[str], options: Namespace) -> tuple[str, float]:
    """What it printed, and the CPU seconds of its life. It is ended where it does not end, as tcpkali may not."""
    before = _children_s()
    ended = ["timeout", "--kill-after=1", str(options.seconds + 10)]
    run = [*ended, *_priority(options), *on_core(LOAD_CORE), *command]
    done = subprocess.run(run, check=False, capture_output=True, text=True)
    return done.stdout, _children_s() - before


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _priority(options: Namespace) -> list[str]:
    """Round robin: under SCHED_FIFO a thread of tcpkali that never waits would keep its other one off the core."""
    return ["chrt", "--rr", "1"] if options.realtime else []


def measured(load: Load, name: str, options: Namespace) -> Read | None:
    server = [*_priority(options), *on_core(SERVER_CORE), str(options.build / "servers" / options.server)]
    with serving([*server, "--listen", "tcp://127.0.0.1:0", "--workload", load.workload]) as served:
        if name in TCPKALI:
            return tcpkali(load, TCPKALI[name], served.url, options)
        return ours(load, WAYS[name], served.url, options)


def table(load: Load, found: dict[str, list[Read | None]]) -> str:
    """Medians, and the median of the ratios to spinning `on`, block by block. Pure."""
    per_second = load.connections * load.each_hz
    columns = [field.name for field in fields(Read)]
    lines = [f"{load.workload}, {load.connections} connections, {per_second:,.0f}/s; us; in brackets: to spin {FIRST}"]
    lines.append(f"{'':<20}" + "".join(f"{name:>18}" for name in columns))
    for way, reads in found.items():
        line = f"{way:<20}"
        for column in columns:
            pairs = [
                (getattr(read, column), getattr(first, column))
                for read, first in zip(reads, found[FIRST], strict=True)
                if read is not None and first is not None
            ]
            line += f"{_cell([(value, base) for value, base in pairs if value is not None and base is not None]):>18}"
        if missing := reads.count(None):
            line += f"  ({missing} of {len(reads)} without figures)"
        lines.append(line)
    return "\n".join(lines)


def _cell(pairs: Sequence[tuple[float, float]]) -> str:
    if not pairs:
        return "-"
    ratios = [value / base for value, base in pairs if base > 0]
    ratio = f" [{statistics.median(ratios):.2f}]" if ratios else ""
    return f"{statistics.median(value for value, _ in pairs):.1f}{ratio}"


def main() -> None:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--server", default="epoll-reactor")
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--realtime", action="store_true", help="before all else that runs here (root)")
    parser.add_argument("--tcpkali", default=shutil.which("tcpkali"))
    options = parser.parse_args()
    rng = random.Random(options.seed)
    if options.tcpkali is None:
        print("without tcpkali, which is not installed (in no Debian: github.com/satori-com/tcpkali)")
    for load in LOADS:
        names = [*WAYS, *(TCPKALI if load.peer and options.tcpkali else ())]
        found: dict[str, list[Read | None]] = {name: [] for name in names}
        for _ in range(options.blocks):
            order = list(names)
            rng.shuffle(order)
            for name in order:
                found[name].append(measured(load, name, options))
        print(table(load, found), flush=True)


if __name__ == "__main__":
    main()
