#!/usr/bin/env python3
"""What tcpkali says of a server beside what netdyno-load says, and beside the packets: source D's load, 1000 messages a
second on each connection, against the same server in the same blocks (docs/traps.md).

The truth is the kernel's: tcpdump stamps each packet on the loopback, and a message took the time from the packet that
carried it to the one that carried it back. Of many connections one in eight is captured. What a load program says
beyond that is its own: the wait for its own loop, before a message leaves or after its echo has come.

In a study tcpkali says its own figures (clients/tcpkali); here they are held against the packets. Server on core 0,
load and capture on core 1. Run by hand on a quiet machine, as root or with CAP_NET_RAW; where something is missing it
says so and ends.

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
    Served,
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
"""Bytes of a message, and messages a second on each connection, as source D has them."""
RAMP_S = 1
"""All connections are opened within it, as in source D: at a rate of as many a second as there are."""
FEW = 64
"""Up to so many connections all are captured."""
CAPTURED_BITS = 0xE
"""Of a client's port: of more connections those whose bits are all 0 are captured. The last bit says nothing: Linux
gives even ports to those who connect, and odd ones to those who bind first."""


@dataclass(frozen=True)
class Read:
    """What a load said, what the packets say of the same messages (medians, microseconds), and what it cost."""

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


Said = tuple[float, float]
"""Messages a second, and the median in microseconds."""


def ours(bench: Bench, url: str) -> Said:
    """netdyno-load, whose replies must all be right."""
    count = str(bench.connections)
    load = ["--workload", "echo", "-c", count, "--connect-rate", count, "--size", str(SIZE), "--arrivals", "constant"]
    window = ["--rate", f"{RATE}/conn", "--warmup", "0ms", "--duration", f"{bench.seconds}s", "--json", "-"]
    result = json.loads(_output(bench, [str(bench.build / "loadgen/netdyno-load"), url, *load, *window]))
    result = without_audit_failures(result)
    return result["requests"]["per_second"], result["latency"]["response_ns"]["p50"] / 1e3


def tcpkali(bench: Bench, url: str) -> Said:
    """tcpkali by source D's command."""
    count = str(bench.connections)
    load = ["-c", count, "--connect-rate", count, "-r", str(RATE), "-T", f"{RAMP_S + bench.seconds}s"]
    message = ["-em", "\\{message.marker}\\n", "--write-combine", "off", "--latency-percentiles", "50"]
    return parse(_output(bench, ["tcpkali", *load, *message, urlsplit(url).netloc]))


LOADS: dict[str, Callable[[Bench, str], Said]] = {"netdyno-load": ours, "tcpkali": tcpkali}


def parse(text: str) -> Said:
    """What tcpkali prints at its end. SystemExit where it has no figures, as at many connections. Pure."""
    rate = re.search(r"Aggregate message rate: ([\d.]+)", text)
    median = re.search(r"Message latency at percentiles: ([\d.]+) ms", text)
    if rate is None or median is None:
        raise SystemExit(f"tcpkali ended without figures: {text[-500:]}")
    return float(rate[1]), 1e3 * float(median[1])


def _output(bench: Bench, command: Sequence[str]) -> str:
    full = [*on_core(LOAD_CORE), *command]
    done = subprocess.run(full, check=False, capture_output=True, text=True, timeout=bench.seconds + 60)
    if done.returncode not in {0, 3}:  # 3: not believed (docs/load.md), which is looked at below
        raise SystemExit(f"{command[0]} failed: {(done.stdout + done.stderr)[-500:]}")
    return done.stdout


# --- the packets -------------------------------------------------------------------------------------------------


@contextmanager
def captured(port: int, connections: int, file: Path) -> Iterator[None]:
    """tcpdump over some of a server's connections, into a file."""
    some = f"& {CAPTURED_BITS if connections > FEW else 0} = 0"
    packets = f"tcp and ((dst port {port} and tcp[0:2] {some}) or (src port {port} and tcp[2:2] {some}))"
    how = ["-i", "lo", "-s", "80", "-B", "65536", "-U", "--time-stamp-precision=nano", "-w", str(file), packets]
    with subprocess.Popen([*on_core(LOAD_CORE), "tcpdump", *how], stderr=subprocess.PIPE, text=True) as running:
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
            ended = running.stderr.read()
    dropped = re.search(r"(\d+) packets dropped by kernel", ended)
    if dropped is not None and int(dropped[1]) > 0:
        print(f"        {dropped[1]} packets were not captured: those of their messages are left out", file=sys.stderr)


@dataclass(frozen=True)
class Packet:
    """One that carries data, or opens a connection."""

    ns: int
    source: int
    target: int
    sequence: int
    length: int
    opens: bool


def packets(capture: bytes) -> Iterator[Packet]:
    """Of a capture in nanoseconds of IPv4 over Ethernet, which the loopback pretends to be. Pure."""
    if capture[:4] != struct.pack("<I", 0xA1B23C4D):
        raise ValueError("not a capture in nanoseconds of this machine's byte order")
    at = 24
    while at + 16 <= len(capture):
        seconds, nanoseconds, stored, _ = struct.unpack_from("<IIII", capture, at)
        frame, at = capture[at + 16 : at + 16 + stored], at + 16 + stored
        if len(frame) < stored:
            return
        header = 4 * (frame[14] & 0xF)
        tcp = 14 + header
        source, target, sequence = struct.unpack_from(">HHI", frame, tcp)
        length = int.from_bytes(frame[16:18], "big") - header - 4 * (frame[tcp + 12] >> 4)
        opens = bool(frame[tcp + 13] & 2)
        if opens or length > 0:
            yield Packet(seconds * 10**9 + nanoseconds, source, target, sequence, length, opens)


def echo_times(found: Sequence[Packet], port: int, seconds: float) -> list[float]:
    """Nanoseconds from a message's packet to its echo's, of the last so many seconds, each message once. A stream comes
    back as it went, so a byte is known by its place in it. Pure."""
    first: dict[tuple[int, int], int] = {}
    waiting: dict[int, deque[tuple[int, int, int]]] = {}
    begin = found[-1].ns - seconds * 1e9 if found else 0.0
    times: list[float] = []
    for one in found:
        way = (one.source, one.target)
        if one.opens:
            first[way] = (one.sequence + 1) % 2**32
            continue
        if way not in first:
            continue
        end = (one.sequence - first[way]) % 2**32 + one.length
        if one.target == port:
            waiting.setdefault(one.source, deque()).append((end, one.ns, one.length))
            continue
        asked = waiting.get(one.target, deque())
        while asked and asked[0][0] <= end:
            _, sent_ns, length = asked.popleft()
            if sent_ns >= begin:
                times += [one.ns - sent_ns] * max(1, round(length / SIZE))
    return times


# --- the comparison ----------------------------------------------------------------------------------------------


def measured(bench: Bench, served: Served, load: Callable[[Bench, str], Said]) -> Read:
    port = urlsplit(served.url).port or 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "packets"
        before = _children_s()
        with captured(port, bench.connections, file):
            rate, p50_us = load(bench, served.url)
            cpu_s = _children_s() - before
        times = echo_times(list(packets(file.read_bytes())), port, bench.seconds)
    if not times:
        raise SystemExit("no message was captured")
    messages = rate * bench.seconds
    return Read(rate, p50_us, statistics.median(times) / 1e3, 1e6 * cpu_s / messages)


def _children_s() -> float:
    """CPU of the programs that have ended: the load's, while server and capture run on."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compare(bench: Bench, blocks: int, rng: random.Random) -> None:
    """Print every block, then the medians."""
    print(
        f"{' '.join(bench.server)}, {bench.connections} connections x {RATE} messages a second of {SIZE} bytes, "
        f"{bench.seconds} s a run; medians in us"
    )
    found: dict[str, list[Read]] = {name: [] for name in LOADS}
    name, *more = bench.server
    for number in range(1, blocks + 1):
        order = list(LOADS)
        rng.shuffle(order)
        for one in order:
            server = [*on_core(SERVER_CORE), str(bench.build / "servers" / name), "--listen", "tcp://127.0.0.1:0"]
            with serving([*server, "--workload", "echo", *more]) as served:
                found[one].append(measured(bench, served, LOADS[one]))
        print(f"{number:>5}  " + "; ".join(f"{one} {words(reads[-1])}" for one, reads in found.items()), flush=True)
    for one, reads in found.items():
        print(judged(one, reads))


def words(read: Read) -> str:
    return f"{read.rate:,.0f}/s, says {read.p50_us:,.0f}, packets {read.packets_us:,.0f}, CPU {read.cpu_us:.1f}"


def judged(name: str, reads: Sequence[Read]) -> str:
    """What one load says over what the packets say. Pure."""
    ratios = [read.p50_us / read.packets_us for read in reads]
    middle = Read(*(statistics.median(values) for values in zip(*(vars(read).values() for read in reads), strict=True)))
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
