#!/usr/bin/env python3
"""Compares the figures of tcpkali with those of netdyno-load, and with the packets: source D's load, 1000 messages a
second on each connection, against the same server in the same blocks (docs/traps.md).

The truth is the kernel's: tcpdump stamps each packet on the loopback, and a message took the time from the packet that
carried it to the one that carried it back. Of many connections one in eight is captured. The excess of a load program's
figure over that is its own: the wait for its own loop, before a message leaves or after its echo has come.

In a study tcpkali reports its own figures (clients/tcpkali); here they are held against the packets. Server on core 0,
load and capture on core 1. Run by hand on a quiet machine, as root or with CAP_NET_RAW; where something is missing it
prints so and ends.

    bench/tcpkali_cross_check.py [--server asio-callbacks] [--blocks 5] [--seconds 3] [--connections 100 ...]
"""

from __future__ import annotations

import json
import random
import re
import resource
import shlex
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from serving import (
    LOAD_CORE,
    SERVER_CORE,
    RunningServer,
    comparison_options,
    on_core,
    quartiles,
    serving,
    without_audit_failures,
)

NEEDED = {
    "tcpkali": "in no Debian; build it from github.com/satori-com/tcpkali",
    "tcpdump": "Debian: apt-get install tcpdump",
}
SIZE, RATE = 31, 1000
"""Bytes of a message, and messages a second on each connection, as in source D."""
RAMP_S = 1
"""All connections are opened within it, as in source D: the rate per second is their number."""
FEW = 64
"""Up to this many connections all are captured."""
CAPTURED_BITS = 0xE
"""Bits of a client's port: of more connections those whose bits are all 0 are captured. The last bit is of no use:
Linux gives even ports to sockets that connect, and odd ones to those that bind first."""


@dataclass(frozen=True)
class LoadReading:
    """The figures of a load and of the packets for the same messages (medians, microseconds), and the load's CPU
    cost."""

    rate: float
    p50_us: float
    packets_us: float
    cpu_us: float


@dataclass(frozen=True)
class Bench:
    build: Path
    server: Sequence[str]
    connections: int
    seconds: int


Latencies = tuple[float, float]
"""Messages a second, and the median in microseconds."""


def ours(bench: Bench, url: str) -> Latencies:
    """Run netdyno-load; all of its replies must be right."""
    count = str(bench.connections)
    load = ["--workload", "echo", "-c", count, "--connect-rate", count, "--size", str(SIZE), "--arrivals", "constant"]
    window = ["--rate", f"{RATE}/conn", "--warmup", "0ms", "--duration", f"{bench.seconds}s", "--json", "-"]
    result = json.loads(_run_load(bench, [str(bench.build / "loadgen/netdyno-load"), url, *load, *window]))
    result = without_audit_failures(result)
    return result["requests"]["per_second"], result["latency"]["response_ns"]["p50"] / 1e3


def tcpkali(bench: Bench, url: str) -> Latencies:
    """Run tcpkali by source D's command."""
    count = str(bench.connections)
    load = ["-c", count, "--connect-rate", count, "-r", str(RATE), "-T", f"{RAMP_S + bench.seconds}s"]
    message = ["-em", "\\{message.marker}\\n", "--write-combine", "off", "--latency-percentiles", "50"]
    return parse(_run_load(bench, ["tcpkali", *load, *message, urlsplit(url).netloc]))


LOADS: dict[str, Callable[[Bench, str], Latencies]] = {"netdyno-load": ours, "tcpkali": tcpkali}


def parse(text: str) -> Latencies:
    """Parse tcpkali's last lines. SystemExit where it has no figures, as at many connections. Pure."""
    rate = re.search(r"Aggregate message rate: ([\d.]+)", text)
    median = re.search(r"Message latency at percentiles: ([\d.]+) ms", text)
    if rate is None or median is None:
        raise SystemExit(f"tcpkali ended without figures: {text[-500:]}")
    return float(rate[1]), 1e3 * float(median[1])


def _run_load(bench: Bench, command: Sequence[str]) -> str:
    command_on_core = [*on_core(LOAD_CORE), *command]
    process = subprocess.run(command_on_core, check=False, capture_output=True, text=True, timeout=bench.seconds + 60)
    if process.returncode not in {0, 3}:  # 3: not believed (docs/load.md), which is looked at below
        raise SystemExit(f"{command[0]} failed: {(process.stdout + process.stderr)[-500:]}")
    return process.stdout


# --- the packets -------------------------------------------------------------------------------------------------


@contextmanager
def captured(port: int, connections: int, file: Path) -> Iterator[None]:
    """Capture some of a server's connections with tcpdump, into a file."""
    port_filter = f"& {CAPTURED_BITS if connections > FEW else 0} = 0"
    packets = f"tcp and ((dst port {port} and tcp[0:2] {port_filter}) or (src port {port} and tcp[2:2] {port_filter}))"
    options = ["-i", "lo", "-s", "80", "-B", "65536", "-U", "--time-stamp-precision=nano", "-w", str(file), packets]
    with subprocess.Popen([*on_core(LOAD_CORE), "tcpdump", *options], stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        line = running.stderr.readline()
        while line and "listening on" not in line:
            line = running.stderr.readline()
        if not line:
            raise SystemExit("tcpdump captured nothing: it needs root or CAP_NET_RAW")
        try:
            yield
        finally:
            time.sleep(0.5)  # what it has read and not written yet
            running.terminate()
            output = running.stderr.read()
    dropped = re.search(r"(\d+) packets dropped by kernel", output)
    if dropped is not None and int(dropped[1]) > 0:
        print(f"        {dropped[1]} packets were not captured: those of their messages are left out", file=sys.stderr)


@dataclass(frozen=True)
class Packet:
    """A packet that carries data, or opens a connection."""

    ns: int
    source: int
    target: int
    sequence: int
    length: int
    opens: bool


def packets(capture: bytes) -> Iterator[Packet]:
    """Read the packets of a capture in nanoseconds of IPv4 over Ethernet, as which the loopback appears. Pure."""
    if capture[:4] != struct.pack("<I", 0xA1B23C4D):
        raise ValueError("not a capture in nanoseconds of this machine's byte order")
    offset = 24
    while offset + 16 <= len(capture):
        seconds, nanoseconds, stored_length, _ = struct.unpack_from("<IIII", capture, offset)
        frame, offset = capture[offset + 16 : offset + 16 + stored_length], offset + 16 + stored_length
        if len(frame) < stored_length:
            return
        header = 4 * (frame[14] & 0xF)
        tcp = 14 + header
        source, target, sequence = struct.unpack_from(">HHI", frame, tcp)
        length = int.from_bytes(frame[16:18], "big") - header - 4 * (frame[tcp + 12] >> 4)
        opens = bool(frame[tcp + 13] & 2)
        if opens or length > 0:
            yield Packet(seconds * 10**9 + nanoseconds, source, target, sequence, length, opens)


def echo_times(capture: Sequence[Packet], port: int, seconds: float) -> list[float]:
    """Return the nanoseconds from a message's packet to its echo's, in the last `seconds`, each message once. A stream
    comes back as it went, so a byte is known by its place in it. Pure."""
    first: dict[tuple[int, int], int] = {}
    waiting: dict[int, deque[tuple[int, int, int]]] = {}
    begin = capture[-1].ns - seconds * 1e9 if capture else 0.0
    times: list[float] = []
    for packet in capture:
        direction = (packet.source, packet.target)
        if packet.opens:
            first[direction] = (packet.sequence + 1) % 2**32
            continue
        if direction not in first:
            continue
        end = (packet.sequence - first[direction]) % 2**32 + packet.length
        if packet.target == port:
            waiting.setdefault(packet.source, deque()).append((end, packet.ns, packet.length))
            continue
        pending = waiting.get(packet.target, deque())
        while pending and pending[0][0] <= end:
            _, sent_ns, length = pending.popleft()
            if sent_ns >= begin:
                times += [packet.ns - sent_ns] * max(1, round(length / SIZE))
    return times


# --- the comparison ----------------------------------------------------------------------------------------------


def measured(bench: Bench, served: RunningServer, load: Callable[[Bench, str], Latencies]) -> LoadReading:
    port = urlsplit(served.url).port or 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "packets"
        before = _read_children_cpu_s()
        with captured(port, bench.connections, file):
            rate, p50_us = load(bench, served.url)
            cpu_s = _read_children_cpu_s() - before
        times = echo_times(list(packets(file.read_bytes())), port, bench.seconds)
    if not times:
        raise SystemExit("no message was captured")
    messages = rate * bench.seconds
    return LoadReading(rate, p50_us, statistics.median(times) / 1e3, 1e6 * cpu_s / messages)


def _read_children_cpu_s() -> float:
    """Return the CPU time of the programs that have ended: the load's, while server and capture run on."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def compare(bench: Bench, blocks: int, rng: random.Random) -> None:
    """Print every block, then the medians."""
    print(
        f"{' '.join(bench.server)}, {bench.connections} connections x {RATE} messages a second of {SIZE} bytes, "
        f"{bench.seconds} s a run; medians in us"
    )
    reads_by_load: dict[str, list[LoadReading]] = {name: [] for name in LOADS}
    name, *options = bench.server
    for number in range(1, blocks + 1):
        order = list(LOADS)
        rng.shuffle(order)
        for load in order:
            server = [*on_core(SERVER_CORE), str(bench.build / "servers" / name), "--listen", "tcp://127.0.0.1:0"]
            with serving([*server, "--workload", "echo", *options]) as served:
                reads_by_load[load].append(measured(bench, served, LOADS[load]))
        print(
            f"{number:>5}  " + "; ".join(f"{load} {words(reads[-1])}" for load, reads in reads_by_load.items()),
            flush=True,
        )
    for load, reads in reads_by_load.items():
        print(judged(load, reads))


def words(read: LoadReading) -> str:
    return f"{read.rate:,.0f}/s, says {read.p50_us:,.0f}, packets {read.packets_us:,.0f}, CPU {read.cpu_us:.1f}"


def judged(name: str, reads: Sequence[LoadReading]) -> str:
    """Relate the figures of one load to those of the packets. Pure."""
    ratios = [read.p50_us / read.packets_us for read in reads]
    middle = LoadReading(
        *(statistics.median(values) for values in zip(*(vars(read).values() for read in reads), strict=True))
    )
    return f"{name}: {words(middle)} us a message; says / packets {statistics.median(ratios):.3g} {quartiles(ratios)}"


def main() -> None:
    parser = comparison_options(__doc__, server="asio-callbacks", blocks=5, seconds=3, connections=100)
    options = parser.parse_args()
    missing = [f"{name} is not installed ({how})" for name, how in NEEDED.items() if shutil.which(name) is None]
    if missing:
        print(f"skipped: {'; '.join(missing)}")
        return
    rng = random.Random(options.seed)
    for connections in options.connections:
        compare(Bench(options.build, shlex.split(options.server), connections, options.seconds), options.blocks, rng)


if __name__ == "__main__":
    main()
