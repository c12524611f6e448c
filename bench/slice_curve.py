"""Shows how a server's figures change from the beginning of a load on (docs/measurements/slices.md).

    python bench/slice_curve.py [--slices 12] [--scenarios compute-100 ...] [--contestants threads-snapshot ...]
                                [--length 1] [--gap 0.3] [--scheduler short-slices]
                                [--rows rows.json] [--picture slices.png]

A server and its load, a core each, and nothing beside them. The load runs for a second, rests for the gap as in turns,
and begins again. Each twentieth of its time is related to the median of the second half: a ratio of 1.00 is what the
server does once it runs. After these stand the time from the end of the load to its last answer, and the server's CPU
meanwhile.

The server's CPU and the context switches of its core are read at the ends of the intervals, in 20 us. --scheduler runs
the server's threads first come, first served, or in slices of 0.1 ms (sched(7), sched_setattr(2)). --rows adds the
ratios to a file, so that several runs make one picture.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import math
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from serving import LOAD_CORE, SERVER_CORE, on_core, serving

from netdyno.kit.paths import build_dir, generator_path
from netdyno.measure.machine.pinning import keep_punctual
from netdyno.measure.machine.server_proc import cpu_clock

CONTESTANTS = ("threads-snapshot", "epoll-coroutines", "asio-callbacks")
COMPUTE = ["--workload", "rpc", "--service-kind", "cpu", "--service-time", "20us"]
CHAT = ["--workload", "chat", "--audience", "all"]
LOADS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "compute-10": (COMPUTE, ["--workload", "rpc", "-c", "10", "--size", "64"]),
    "compute-100": (COMPUTE, ["--workload", "rpc", "-c", "100", "--size", "64"]),
    "wait": (
        ["--workload", "rpc", "--service-kind", "wait", "--service-time", "500us"],
        ["--workload", "rpc", "-c", "50", "--rate", "10000", "--arrivals", "poisson", "--size", "64"],
    ),
    "chat": (
        [*CHAT, "--deliveries", "joined"],
        [*CHAT, "-c", "50", "--rate", "1500", "--arrivals", "poisson", "--size", "64"],
    ),
    "echo": (["--workload", "echo"], ["--workload", "echo", "-c", "1", "--size", "31"]),
}
"""Options of the server and of the load, as in experiments/quick.toml."""
INTERVALS = 20
"""The intervals of a load. The time series of one of less than 2 s has as many (protocol/load-result.md)."""
SETTLED = slice(INTERVALS // 2, None)
METRICS = ("throughput", "p50", "p99", "cpu", "switches")
AHEAD_NS = 10_000_000
SHORT_SLICE_NS = 100_000
SYS_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES = 1, 3
SYS_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}


class Curve(NamedTuple):
    """The ratios of one load to its own second half, by metric and interval; and its wait for the last answers."""

    ratios: dict[str, list[float]]
    drain_s: float
    drain_cpu_s: float


@contextmanager
def count_switches(core: int) -> Iterator[int]:
    """Return the descriptor of a counter of the context switches of a core (perf_event_open(2))."""
    attributes = bytearray(128)
    struct.pack_into("IIQ", attributes, 0, PERF_TYPE_SOFTWARE, len(attributes), PERF_COUNT_SW_CONTEXT_SWITCHES)
    libc = ctypes.CDLL(None, use_errno=True)
    number = SYS_PERF_EVENT_OPEN[os.uname().machine]
    descriptor = libc.syscall(number, (ctypes.c_char * len(attributes)).from_buffer(attributes), -1, core, -1, 0)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "perf_event_open: this needs root, or CAP_PERFMON")
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class Load:
    """A running netdyno-load that makes a slice on each request."""

    def __init__(self, url: str, options: Sequence[str], plan: SlicePlan, result: Path) -> None:
        command = [*on_core(LOAD_CORE, realtime=True), str(generator_path(build_dir())), url, *options, "--turns"]
        command += ["--warmup", "0ms", "--duration", f"{plan.length_s}s", "--timeout", "5s", "--json", str(result)]
        self.plan = plan
        self._result = result
        self.process = subprocess.Popen(
            [*command, "--events-fd", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.expect_event("connected")

    def begin_slice(self) -> int:
        """Announce a slice; return its beginning."""
        begin_ns = time.monotonic_ns() + AHEAD_NS
        self._tell(f"go {begin_ns}")
        return begin_ns

    def expect_event(self, *names: str) -> str:
        """Wait for one of these events; return which."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if (event := json.loads(line)["event"]) in names:
                return str(event)
        raise SystemExit("netdyno-load ended before its last slice")

    def finish(self) -> dict[str, list[Any]]:
        """End the load; return the time series of all of its slices."""
        self._tell("end")
        self.process.wait(30)
        series: dict[str, list[Any]] = json.loads(self._result.read_text(encoding="utf-8"))["timeseries"]
        assert series["interval_ns"] == round(self.plan.interval_s * 1e9), series["interval_ns"]
        return series

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()


class CurveReading(NamedTuple):
    """The CPU of the server and the switches of its core so far."""

    cpu_s: float
    switches: int


def sleep_until(moment_ns: int) -> None:
    """Sleep until a moment of CLOCK_MONOTONIC."""
    time.sleep(max(0.0, (moment_ns - time.monotonic_ns()) / 1e9))


def take_readings(load: Load, pid: int, counter: int) -> tuple[list[CurveReading], float]:
    """Let a load make a slice; return the readings at the ends of its intervals, with one after the last answer, and
    the time from the end of the slice to that."""
    begin_ns = load.begin_slice()
    readings = []
    for interval in range(INTERVALS + 1):
        sleep_until(begin_ns + round(interval * load.plan.interval_s * 1e9))
        readings.append(_read(pid, counter))
    if load.expect_event("slice", "missed") == "missed":  # this process ran too late to announce it
        return take_readings(load, pid, counter)
    drain_s = (time.monotonic_ns() - begin_ns) / 1e9 - load.plan.length_s
    return [*readings, _read(pid, counter)], drain_s


def _read(pid: int, counter: int) -> CurveReading:
    return CurveReading(time.clock_gettime(cpu_clock(pid)), int.from_bytes(os.read(counter, 8), sys.byteorder))


def run_first_come_first_served() -> None:
    """Run this process before others, and its threads in the order in which they wake."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def run_in_short_slices() -> None:
    """Let the threads of this process take turns after SHORT_SLICE_NS of CPU each (since Linux 6.12)."""
    attributes = struct.pack("IIQiIQQQ", 48, os.SCHED_OTHER, 0, 0, 0, SHORT_SLICE_NS, 0, 0)
    if ctypes.CDLL(None, use_errno=True).syscall(SYS_SCHED_SETATTR[os.uname().machine], 0, attributes, 0) != 0:
        raise OSError(ctypes.get_errno(), "sched_setattr")


SCHEDULERS: Mapping[str, Callable[[], None] | None] = {
    "default": None,
    "fifo": run_first_come_first_served,
    "short-slices": run_in_short_slices,
}


class SlicePlan(NamedTuple):
    """The loads of a server: their number and length, the gaps between them, and the server's scheduler."""

    slices: int
    length_s: float
    gap_s: float
    scheduler: str

    @property
    def interval_s(self) -> float:
        return self.length_s / INTERVALS


def measure(name: str, load_name: str, plan: SlicePlan) -> list[Curve]:
    """Return the curves of a fresh server."""
    server_options, load_options = LOADS[load_name]
    program = build_dir() / "servers" / name
    command = [*on_core(SERVER_CORE), str(program), "--listen", "tcp://127.0.0.1:0", *server_options]
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        served = stack.enter_context(serving(command, SCHEDULERS[plan.scheduler]))
        counter = stack.enter_context(count_switches(SERVER_CORE))
        load = Load(served.url, load_options, plan, Path(folder) / "load.json")
        stack.callback(load.close)
        taken = []
        with keep_punctual(realtime=True):
            for _ in range(plan.slices + 1):
                taken.append(take_readings(load, served.pid, counter))
                time.sleep(plan.gap_s)
        series = load.finish()
    curves = []
    for number, (readings, drain_s) in enumerate(taken):
        part = slice(number * INTERVALS, (number + 1) * INTERVALS)
        of_slice = {key: values[part] for key, values in series.items() if isinstance(values, list)}
        curves.append(relate_to_second_half(of_slice, readings, drain_s))
    return curves[1:]  # the first one is the server's warm-up


def relate_to_second_half(
    series: Mapping[str, Sequence[Any]], readings: Sequence[CurveReading], drain_s: float
) -> Curve:
    """Return the curve of a slice by its time series, and by the readings at the ends of its intervals and after the
    last answer. Pure."""
    *within, ended = readings
    completed = [max(1, count) for count in series["completed"]]
    steps = list(zip(itertools.pairwise(within), completed, strict=True))
    values = {
        "throughput": [float(count) for count in completed],
        "p50": [float(value or math.nan) for value in series["p50_ns"]],
        "p99": [float(value or math.nan) for value in series["p99_ns"]],
        "cpu": [(after.cpu_s - before.cpu_s) / count for (before, after), count in steps],
        "switches": [(after.switches - before.switches) / count for (before, after), count in steps],
    }
    ratios = {}
    for metric, of_intervals in values.items():
        usual = statistics.median(of_intervals[SETTLED])
        ratios[metric] = [value / usual if usual else math.nan for value in of_intervals]
    return Curve(ratios, drain_s, ended.cpu_s - within[-1].cpu_s)


SHOWN = (0, 1, 2, 3, 4, 5, 7, 9, 14, 19)
"""The intervals that are printed."""


def print_head(plan: SlicePlan) -> None:
    places = "".join(f"{round(place * plan.interval_s * 1000)}ms".rjust(7) for place in SHOWN)
    print(f"{'load':12}{'contestant':18}{'metric':11}{places}")


def summarise(curves: Sequence[Curve]) -> dict[str, list[float]]:
    """Return the median ratio of each metric in each interval. Pure."""
    return {
        metric: [statistics.median(values) for values in zip(*(curve.ratios[metric] for curve in curves), strict=True)]
        for metric in METRICS
    }


def print_curves(load_name: str, name: str, curves: Sequence[Curve]) -> None:
    """Print the medians of a server's curves."""
    for metric, medians in summarise(curves).items():
        print(f"{load_name:12}{name:18}{metric:11}" + "".join(f"{medians[place]:7.2f}" for place in SHOWN))
    drain_ms = 1e3 * statistics.median(curve.drain_s for curve in curves)
    drain_cpu_ms = 1e3 * statistics.median(curve.drain_cpu_s for curve in curves)
    print(f"{load_name:12}{name:18}last answer {drain_ms:.2f} ms after the end, {drain_cpu_ms:.2f} ms of CPU")


def draw(rows: Mapping[str, Mapping[str, Sequence[float]]], interval_s: float, picture: Path) -> None:
    """Draw a panel for each load and metric with a line for each contestant."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    loads = sorted({key.split("/")[0] for key in rows})
    figure, grid = pyplot.subplots(len(METRICS), len(loads), figsize=(2.6 * len(loads), 10), sharex=True, squeeze=False)
    middles = [1000 * interval_s * (place + 0.5) for place in range(INTERVALS)]
    for (row, metric), (column, load_name) in itertools.product(enumerate(METRICS), enumerate(loads)):
        panel = grid[row][column]
        panel.axhspan(0.97, 1.03, color="0.9")
        for key, ratios in sorted(rows.items()):
            if key.startswith(f"{load_name}/"):
                panel.plot(middles, ratios[metric], label=key.split("/")[1], linewidth=1.2)
        panel.set_ylim(0.5, 1.5)
        if row == 0:
            panel.set_title(load_name)
        if column == 0:
            panel.set_ylabel(f"{metric}, ratio")
        if row == len(METRICS) - 1:
            panel.set_xlabel("ms since the load began")
    grid[0][0].legend(fontsize=6)
    figure.tight_layout()
    figure.savefig(picture, dpi=75)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slices", type=int, default=12, help="of each server")
    parser.add_argument("--starts", type=int, default=2, help="of each server")
    parser.add_argument("--scenarios", nargs="+", choices=LOADS, default=list(LOADS))
    parser.add_argument("--contestants", nargs="+", default=CONTESTANTS)
    parser.add_argument("--gap", type=float, default=0.3, help="seconds between two loads")
    parser.add_argument("--length", type=float, default=1.0, help="seconds of each load: 20 times a multiple of 5 ms")
    parser.add_argument("--scheduler", choices=SCHEDULERS, default="default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    plan = SlicePlan(options.slices, options.length, options.gap, options.scheduler)
    pairs = list(itertools.product(options.scenarios, options.contestants))
    curves: dict[tuple[str, str], list[Curve]] = {pair: [] for pair in pairs}
    for _ in range(options.starts):
        for load_name, name in random.Random(options.seed).sample(pairs, len(pairs)):
            curves[load_name, name] += measure(name, load_name, plan)
    print_head(plan)
    for (load_name, name), of_pair in curves.items():
        print_curves(load_name, name, of_pair)
    rows = json.loads(options.rows.read_text()) if options.rows and options.rows.exists() else {}
    rows |= {f"{load_name}/{name}": summarise(of_pair) for (load_name, name), of_pair in curves.items()}
    if options.rows:
        options.rows.write_text(json.dumps(rows))
    if options.picture:
        draw(rows, plan.interval_s, options.picture)


if __name__ == "__main__":
    main()
