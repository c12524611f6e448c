"""Shows how real gates end, of equal servers and of one that was slowed, on this machine as it is.

    python bench/gate_runs.py [--gates 10] [--margin 5] [--beside 1] [--time-budget 60s]
                              [--server epoll-reactor] [--results DIR]

Both servers are the same program, which works for each request (rpc, 10 connections, closed loop): before for 200 us of
CPU, after for as much, for 5% and for 10% more. A gate has a margin of --margin percent on throughput and on CPU per
message. The gates of the three kinds take turns, so that a change of the machine meets all alike; --beside runs several
at a time, on the same cores, and so disturbs each by the others. $NETDYNO_BUILD names the build; --results keeps the
runs, so that a gate with a wrong end can be looked at.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from netdyno.kit.paths import ROOT, build_dir

SERVICE_US = 200.0
SLOWER = (1.0, 1.05, 1.1)
EXPERIMENT = """
question = "Is it slower?"
contestants = ["*"]
blocks = 1
warmup = "50ms"
duration = "200ms"
timeout = "5s"
[[scenario]]
name = "work"
workload = "rpc"
connections = 10
size = 64
"""
ENDS = (0, 1, 3)


def command(server: Path, service_us: float) -> str:
    """Return the command of a server that burns this much CPU for each request."""
    work = ["--service-kind", "cpu", "--service-time", f"{service_us:g}us"]
    return shlex.join([str(server), "--workload", "rpc", "--listen", "tcp://{address}:{port}", *work])


def gate(
    server: Path, slower: float, margin: float, time_budget: str, seed: int, results: Path | None
) -> tuple[int, int]:
    """Run a gate; returns its exit code and its blocks."""
    with tempfile.TemporaryDirectory() as folder:
        results_folder = results / f"{slower - 1:.0%}-{seed}" if results else Path(folder)
        toml = Path(folder) / "work.toml"
        toml.write_text(EXPERIMENT)
        before, after = (command(server, SERVICE_US * times) for times in (1.0, slower))
        servers = ["--before", before, "--after", after, "--workload", "rpc"]
        margins = ["--margin", f"throughput={margin:g}", "--margin", f"cpu={margin:g}"]
        limits = ["--time-budget", time_budget, "--seed", str(seed)]
        process = subprocess.run(
            [
                sys.executable,
                "-m",
                "netdyno",
                "gate",
                str(toml),
                *servers,
                *margins,
                *limits,
                "--results",
                results_folder,
                "--json",
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
            capture_output=True,
            text=True,
            check=False,
        )
        if process.returncode not in ENDS:
            sys.exit(f"a gate ended with {process.returncode}: {process.stderr[-2000:]}")
        lines = json.loads(process.stdout)["gate"]["lines"]
    return process.returncode, max(line["blocks"] for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gates", type=int, default=10)
    parser.add_argument("--margin", type=float, default=5.0)
    parser.add_argument("--beside", type=int, default=1)
    parser.add_argument("--time-budget", default="60s")
    parser.add_argument("--server", default="epoll-reactor")
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    server = build_dir() / "servers" / options.server
    if not server.is_file():
        sys.exit(f"{server} is not built")
    ends_of: dict[float, list[tuple[int, int]]] = {slower: [] for slower in SLOWER}

    def run_gate(number: int, slower: float) -> None:
        ends_of[slower].append(gate(server, slower, options.margin, options.time_budget, number, options.results))
        print(f"gate {number + 1}, {slower - 1:+.0%}: exit {ends_of[slower][-1][0]}", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(options.beside) as pool:
        futures = [pool.submit(run_gate, number, slower) for number in range(options.gates) for slower in SLOWER]
        try:
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    print(f"{'slower by':>9}{'gates':>7}{'exit 0':>8}{'exit 1':>8}{'exit 3':>8}{'blocks':>8}{'load':>6}")
    for slower, ends in ends_of.items():
        codes = Counter(code for code, _ in ends)
        counts = "".join(f"{codes[code]:8}" for code in ENDS)
        blocks = median(count for _, count in ends)
        print(f"{slower - 1:9.0%}{len(ends):7}{counts}{blocks:8.0f}{os.getloadavg()[2]:6.1f}")


if __name__ == "__main__":
    main()
