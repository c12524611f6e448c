"""The application that a client is part of: a timer of 10 ms, whose lateness shows whether its loop is ever blocked,
and the time of the run. The client's own loop drives it: `wake` whenever `due` has come. Application's thread only."""

from __future__ import annotations

import json
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic_ns

import msgspec

from netdyno.model.load_result import LoadResult
from netdyno.statistics.histogram import Histogram
from netdyno_client.journal import Journal
from netdyno_client.plan import ClientPlan
from netdyno_client.recorder import NEVER, Window, distribution
from netdyno_client.result import Cpu, failures_text, load_result, summary

TICK_NS = 10_000_000
PROGRESS_NS = 500_000_000


class Application:
    """Ticks, tells what happens, and at the end writes the result."""

    def __init__(self, plan: ClientPlan, journal: Journal) -> None:
        self._plan = plan
        self._journal = journal
        self._tick_due = monotonic_ns() + TICK_NS
        self._tick_lag = Histogram()
        self._window = Window()
        self._boundary = NEVER  # the next of window start and window end
        self._progress = NEVER
        self._cpu_at_start = self._cpu = Cpu()

    def due(self) -> int:
        """When `wake` is due next, on the monotonic clock in nanoseconds."""
        return min(self._tick_due, self._boundary, self._progress)

    def wake(self) -> None:
        """Do what is due. Every tick that was due counts, also those that one long block has swallowed."""
        now = monotonic_ns()
        while self._tick_due <= now:
            self._tick_lag.record(now - self._tick_due)
            self._tick_due += TICK_NS
        while now >= self._boundary:
            self._cross_boundary()
        if now >= self._progress:
            seconds = (self._progress - self._window.start) / 1e9
            self._event(event="progress", completed=self._journal.recorder.completed_in_window, seconds=seconds)
            self._progress += PROGRESS_NS
            if self._progress >= self._window.end:
                self._progress = NEVER

    def begin(self, window: Window) -> None:
        """The load has started."""
        self._event(event="connected", established=self._journal.first_attempts[None])
        self._window = window
        self._boundary = window.start

    def finish(self) -> int:
        """When the journal is complete: write the result and return the program's exit code."""
        self.wake()
        if self._boundary == self._window.end != NEVER:  # a signal came within the window
            self._cpu = cpu_used() - self._cpu_at_start
        result = load_result(self._plan, self._journal, self._cpu, self._tick_lag)
        failures = failures_text(self._journal)
        error = self._write(result, failures)
        if not error and result.messages.received == 0:
            error = f"no valid answer from {self._plan.url}; failures: {failures}"
        if error:
            print(f"{self._plan.program}: {error}", file=sys.stderr, flush=True)
        return 1 if error else 0

    def _cross_boundary(self) -> None:
        if self._boundary == self._window.start:
            self._event(event="window_start")
            self._cpu_at_start = cpu_used()
            self._boundary = self._window.end
            if self._window.start + PROGRESS_NS < self._window.end:
                self._progress = self._window.start + PROGRESS_NS
        else:
            self._event(event="window_end")
            self._cpu = cpu_used() - self._cpu_at_start
            self._boundary = self._progress = NEVER

    def _event(self, **said: object) -> None:
        if self._plan.events_fd < 0:
            return
        with suppress(OSError):  # a reader that left concerns the events, not the measurement
            os.write(self._plan.events_fd, json.dumps(said, separators=(",", ":")).encode() + b"\n")

    def _write(self, result: LoadResult, failures: str) -> str:
        """Where it was asked for; why that cannot be done, else empty."""
        encoded = msgspec.json.encode(result)
        to_stdout = self._plan.json_file == "-"
        if self._plan.json_file and not to_stdout:
            error = write_file(Path(self._plan.json_file), encoded + b"\n")
            if error:
                return error
        said = summary(self._plan, result, failures, distribution(self._tick_lag))
        print(encoded.decode() if to_stdout else said, flush=True)
        return ""


def cpu_used() -> Cpu:
    """CPU time of this process so far, all its threads together."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Cpu(usage.ru_utime, usage.ru_stime)


def write_file(path: Path, content: bytes) -> str:
    """Write a file that appears whole or not at all; why it cannot be written, else empty."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        try:
            unfinished.write_bytes(content)
            unfinished.replace(path)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise
    except OSError as error:
        return f"cannot write {path}: {error.strerror}"
    return ""
