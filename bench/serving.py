"""The parts that the scripts beside this one share: a server for the time of a measurement, and the cores of both
sides."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SERVER_CORE, LOAD_CORE = 0, 1


@dataclass(frozen=True)
class RunningServer:
    """A server that listens."""

    url: str
    pid: int


@contextmanager
def start_server(command: Sequence[str]) -> Iterator[RunningServer]:
    """Run a fresh server. Raises RuntimeError where no ready line comes."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            line = server.stdout.readline()
            if not line:
                raise RuntimeError(f"{command[0]} ended before it was ready")
            yield RunningServer(json.loads(line)["endpoint"], server.pid)
            server.terminate()
            server.wait()
        finally:
            if server.returncode is None:
                server.kill()


def pin_to_core(core: int, *, realtime: bool = False) -> list[str]:
    """Return the words that start a program on a core (where there are several), at real-time priority if requested."""
    pinning = ["taskset", "-c", str(core)] if len(os.sched_getaffinity(0)) > 1 else []
    return [*(["chrt", "--fifo", "1"] if realtime else []), *pinning]


def drop_audit_failures(result: Any) -> Any:
    """Return a result of netdyno-load whose replies were all right. SystemExit where one of its own audits failed."""
    names = ("verification", "bytes", "connections")
    failed = [audit for audit in result["audits"] if audit["name"] in names and not audit["passed"]]
    if failed:
        raise SystemExit(f"the generator's own audits failed: {failed}")
    return result
