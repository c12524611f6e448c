"""A generator that makes its load in slices (netdyno-load --turns), as the harness speaks with it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from netdyno.kit.paths import build_dir, generator_path
from netdyno.measure.audits.plausible import populations
from netdyno.model.load_result import LoadResult
from tests.support.foreign import MEASURED, PATIENCE_S
from tests.support.server import Server, serving

AHEAD_NS = 20_000_000
"""From the announcement of a slice to its beginning."""
WINDOW_S = 0.043
"""No multiple of the interval of the time series, 5 ms."""
SHORT = {"--warmup": "5ms", "--duration": "43ms", "--timeout": "2s"}
INTERVALS = 9
CHAT = ("--workload", "chat", "--audience")
RPC = ("--workload", "rpc")
WAITS = (*RPC, "--service-kind", "wait")


@dataclass
class TurnsGenerator:
    """A generator whose connections stand."""

    process: subprocess.Popen[str]
    events: IO[str]
    file: Path

    def event(self) -> dict[str, int | str]:
        event: dict[str, int | str] = json.loads(self.events.readline())
        return event

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def go(self) -> int:
        """Tell the next slice, and return its beginning, in nanoseconds of CLOCK_MONOTONIC."""
        begins = time.monotonic_ns() + AHEAD_NS
        self.say(f"go {begins}")
        return begins

    def slices(self, count: int) -> list[int]:
        """Make so many; the messages of each. On a busy machine a line may come too late: once more."""
        return [int(self.make_slice()["sent"]) for _ in range(count)]

    def make_slice(self, announce: Callable[[int], object] = lambda _: None) -> dict[str, int | str]:
        """Return the event of one, whose beginning is announced as well."""
        while True:
            announce(self.go())
            event = self.event()
            if event["event"] == "slice":
                return event

    def paused_s(self, announce: Callable[[int], object] = lambda _: None) -> float:
        """Make a slice, and return how long its witnesses saw nothing run, in seconds."""
        return int(self.make_slice(announce)["paused_ns"]) / 1e9

    def ended(self, how: set[int] = MEASURED) -> LoadResult:
        """The result, when it has ended by itself, whose parts come to their wholes."""
        assert self.process.wait(PATIENCE_S) in how
        result: LoadResult = msgspec.json.decode(self.file.read_bytes(), type=LoadResult)
        assert [bound for bound in populations(result) if bound.broken] == []
        assert sum(result.timeseries.completed) == result.requests.completed
        return result

    def end(self) -> LoadResult:
        self.say("end")
        return self.ended()

    def cpu_ns(self) -> int:
        """Return the CPU time of all its threads, so far: the first field of each thread's schedstat (proc(5))."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


@contextmanager
def turns(url: str, file: Path, *arguments: str) -> Iterator[TurnsGenerator]:
    reads, writes = os.pipe()
    command = [str(generator_path(build_dir())), url, "--turns", *arguments]
    command += [word for option in SHORT.items() if option[0] not in arguments for word in option]
    command += ["--events-fd", str(writes), "--json", str(file)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(writes,), text=True) as run,
        os.fdopen(reads) as events,
    ):
        os.close(writes)
        try:
            started = TurnsGenerator(run, events, file)
            assert started.event()["event"] == "connected"
            yield started
        finally:
            run.kill()


@contextmanager
def server_of(name: str, *arguments: str) -> Iterator[Server]:
    with serving([str(build_dir() / "servers" / name)], *arguments) as server:
        yield server
