"""The parts that the scripts beside this one share: a server for the time of a measurement, and the cores of both
sides."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[1]
SERVER_CORE, LOAD_CORE = 0, 1


@dataclass
class RunningServer:
    """A running server. `totals` and `cpu_s` are set once it has ended."""

    url: str
    pid: int
    totals: dict[str, Any] = field(default_factory=dict)
    cpu_s: float = 0.0


@contextmanager
def serving(command: Sequence[str], prepare: Callable[[], None] | None = None) -> Iterator[RunningServer]:
    """Run a fresh server. `prepare` runs in the child before its exec. Raises RuntimeError where no ready line
    comes."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=prepare) as server:
        assert server.stdout is not None
        try:
            served = RunningServer(_read_line(server.stdout, command)["endpoint"], server.pid)
            yield served
            server.terminate()
            last_line = server.stdout.readline()
            served.totals = json.loads(last_line) if last_line else {}
            _, status, usage = os.wait4(server.pid, 0)
            server.returncode = os.waitstatus_to_exitcode(status)
            served.cpu_s = usage.ru_utime + usage.ru_stime
        finally:
            if server.returncode is None:
                server.kill()


def _read_line(stdout: IO[str], command: Sequence[str]) -> Any:
    line = stdout.readline()
    if not line:
        raise RuntimeError(f"{command[0]} ended before it was ready")
    return json.loads(line)


def on_core(core: int, *, realtime: bool = False) -> list[str]:
    """Return the words that start a program on a core (where there are several), at real-time priority if requested."""
    pinning = ["taskset", "-c", str(core)] if len(os.sched_getaffinity(0)) > 1 else []
    return [*(["chrt", "--fifo", "1"] if realtime else []), *pinning]


def comparison_options(doc: str | None, *, server: str, blocks: int, seconds: int, connections: int) -> ArgumentParser:
    """Return the options of every script that holds netdyno-load against another load program, with its own
    defaults."""
    parser = ArgumentParser(description=doc, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--server", default=server, help="its name, and options of its own")
    parser.add_argument("--blocks", type=int, default=blocks)
    parser.add_argument("--seconds", type=int, default=seconds, help="of each run; the other takes whole ones only")
    parser.add_argument("--connections", type=int, nargs="+", default=[connections])
    parser.add_argument("--seed", type=int, default=1, help="of the order within the blocks")
    return parser


def without_audit_failures(result: Any) -> Any:
    """Return a result of netdyno-load whose replies were all right. SystemExit where one of its own audits failed."""
    names = ("verification", "bytes", "connections")
    failed = [audit for audit in result["audits"] if audit["name"] in names and not audit["passed"]]
    if failed:
        raise SystemExit(f"the generator's own audits failed: {failed}")
    return result


def quartiles(values: Sequence[float]) -> str:
    """Format the quartiles of at least two values. Pure."""
    if len(values) < 2:
        return "[one block]"
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"[{low:.3f} to {high:.3f}]"
