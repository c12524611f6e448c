"""The application that a client is part of: a timer of 10 ms, whose lateness shows whether its loop is ever blocked,
and the time of the run. The client's own loop drives it: `wake` whenever `due` has come. Application's thread only.

A thread of its own announces the window: the harness reads the server at that moment, and a loop with a hundred
thousand messages before it would announce it a third of a second late."""

from __future__ import annotations

import os
import resource
import sys
import threading
from time import monotonic_ns

from netdyno.kit.statistics.histogram import Histogram
from netdyno_client.journal import Journal
from netdyno_client.output import write_event, write_result
from netdyno_client.plan import ClientPlan
from netdyno_client.recorder import NEVER, Window, distribution
from netdyno_client.result import Cpu, format_failures, format_summary, load_result

TICK_NS = 10_000_000
PROGRESS_NS = 500_000_000


class Application:
    """Ticks, reports events, and at the end writes the result."""

    def __init__(self, plan: ClientPlan, journal: Journal) -> None:
        self._plan = plan
        self._journal = journal
        self._tick_due = monotonic_ns() + TICK_NS
        self._tick_lag = Histogram()
        self._window = Window()
        self._progress = NEVER
        self._cpu = Cpu()
        self._ended = threading.Event()
        self._announcer = threading.Thread(target=self._announce, daemon=True)

    def due(self) -> int:
        """The monotonic time in nanoseconds at which `wake` is due next."""
        return min(self._tick_due, self._progress)

    def wake(self) -> None:
        """Do what is due. Every tick that was due counts, also those within one long block."""
        now = monotonic_ns()
        while self._tick_due <= now:
            self._tick_lag.record(now - self._tick_due)
            self._tick_due += TICK_NS
        if now >= self._progress:
            seconds = (self._progress - self._window.start) / 1e9
            write_event(
                self._plan.events_fd,
                event="progress",
                completed=self._journal.recorder.completed_in_window,
                seconds=seconds,
            )
            self._progress += PROGRESS_NS
            if self._progress >= self._window.end:
                self._progress = NEVER

    def connected(self) -> None:
        """Report that the first attempts have ended."""
        write_event(self._plan.events_fd, event="connected", established=self._journal.first_attempts[None])

    def begin(self, window: Window) -> None:
        """Start the load."""
        self._window = window
        if window.start + PROGRESS_NS < window.end:
            self._progress = window.start + PROGRESS_NS
        self._announcer.start()
        give_way()

    def finish(self) -> int:
        """Write the result and return the program's exit code; call it when the journal is complete."""
        self.wake()
        if self._announcer.is_alive():
            if monotonic_ns() < self._window.end:  # a signal came before
                self._ended.set()
            self._announcer.join()
        result = load_result(self._plan, self._journal, self._cpu, self._tick_lag)
        failures = format_failures(self._journal)
        text = format_summary(self._plan, result, failures, distribution(self._tick_lag))
        error = write_result(result, self._plan.json_file, text)
        if not error and result.messages.received == 0:
            error = f"no valid answer from {self._plan.url}; failures: {failures}"
        if error:
            print(f"{self._plan.program}: {error}", file=sys.stderr, flush=True)
        return 1 if error else 0

    def _announce(self) -> None:
        """Report start and end of the window, and measure the CPU time within it. Thread `_announcer`."""
        if self._ended.wait((self._window.start - monotonic_ns()) / 1e9):
            return
        write_event(self._plan.events_fd, event="window_start")
        cpu_at_start = read_cpu_used()
        if not self._ended.wait((self._window.end - monotonic_ns()) / 1e9):
            write_event(self._plan.events_fd, event="window_end")
        self._cpu = read_cpu_used() - cpu_at_start


def give_way() -> None:
    """Let the announcing thread go before this one. Under SCHED_FIFO, with which the harness starts a client where it
    may, equals do not: a thread that never waits would keep the core (sched(7))."""
    priority = os.sched_getparam(0).sched_priority
    if os.sched_getscheduler(0) == os.SCHED_FIFO and priority > os.sched_get_priority_min(os.SCHED_FIFO):
        os.sched_setparam(0, os.sched_param(priority - 1))


def read_cpu_used() -> Cpu:
    """CPU time of this process so far, all its threads together."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Cpu(usage.ru_utime, usage.ru_stime)
