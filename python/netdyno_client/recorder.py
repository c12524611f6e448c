"""Turns moments into figures, as the generator's recorder does (lib/measure/recorder.hpp, lib/measure/timeline.hpp)."""

from __future__ import annotations

import msgspec

from netdyno.kit.statistics.histogram import Histogram
from netdyno.model.load_result import Distribution, TimeSeries, summarise

LONGEST_SLOT_NS = 100_000_000
SLOT_STEP_NS = 5_000_000
LEAST_SLOTS = 20
NEVER = 2**63 - 1


def choose_slot_ns(window_ns: int) -> int:
    """Return the length of a slot: 100 ms; in a window of less than 2 s, the longest multiple of 5 ms that fits 20
    times, but at least 5 ms."""
    return min(max(window_ns // LEAST_SLOTS // SLOT_STEP_NS * SLOT_STEP_NS, SLOT_STEP_NS), LONGEST_SLOT_NS)


def distribution(histogram: Histogram) -> Distribution:
    """Return the histogram as it stands in a result."""
    return summarise(histogram, histogram.mean())


class Window(msgspec.Struct, frozen=True):
    """The part of a run that counts: from `start` to one before `end`, on the monotonic clock in nanoseconds."""

    start: int = NEVER
    end: int = NEVER

    def holds(self, moment: int) -> bool:
        return self.start <= moment < self.end


class Slots:
    """The completions in each interval of the window."""

    def __init__(self, *, keep_histograms: bool = False) -> None:
        self._keep_histograms = keep_histograms
        self.histograms: list[str] = []
        self.interval_ns = LONGEST_SLOT_NS
        self.completed: list[int] = []
        self.p50_ns: list[int | None] = []
        self.p99_ns: list[int | None] = []
        self.errors: list[int] = []

    def add(self, responses: Histogram, errors: int) -> None:
        """Add a slot that is over."""
        p50, p99 = responses.percentiles(50, 99) if responses.count else (None, None)
        self.completed.append(responses.count)
        self.p50_ns.append(p50)
        self.p99_ns.append(p99)
        self.errors.append(errors)
        if self._keep_histograms:
            self.histograms.append(responses.encode())

    def timeseries(self) -> TimeSeries:
        """The slots as they stand in a result."""
        return TimeSeries(
            interval_ns=self.interval_ns,
            completed=tuple(self.completed),
            p50_ns=tuple(self.p50_ns),
            p99_ns=tuple(self.p99_ns),
            errors=tuple(self.errors),
            histograms=tuple(self.histograms),
        )


class Recorder:
    """The figures of all requests of one thread."""

    def __init__(self, *, is_part: bool = False) -> None:
        self.window = Window()
        self.response = Histogram()
        self.service = Histogram()
        self.send_lag = Histogram()
        self.slots = Slots(keep_histograms=is_part)
        self.sent_in_window = 0
        self.completed_in_window = 0
        self.completed_service_ns = 0
        self.in_flight_ns = 0  # sent and unanswered requests, integrated over the window
        self._slot_responses = Histogram()
        self._slot_errors = 0
        self._slot_end = NEVER
        self._last_change = 0
        self._in_flight = 0

    def set_window(self, window: Window) -> None:
        """Set the window, once."""
        self.window = window
        self.slots.interval_ns = choose_slot_ns(window.end - window.start)
        self._slot_end = min(window.start + self.slots.interval_ns, window.end)

    def sent(self, intended: int, now: int) -> None:
        """Record that a request goes out."""
        self._count_in_flight(now, 1)
        if self.window.holds(intended):
            self.sent_in_window += 1
            self.send_lag.record(now - intended)

    def answered(self, intended: int, sent: int, now: int) -> None:
        """Record that a response has come."""
        self._count_in_flight(now, -1)
        if self.window.holds(intended):
            self.response.record(now - intended)
            self.service.record(now - sent)
        if self.window.holds(now):
            self._roll(now)
            self.completed_in_window += 1
            self.completed_service_ns += now - sent
            self._slot_responses.record(now - intended)

    def abandoned(self, now: int) -> None:
        """Record a request that will get no answer."""
        self._count_in_flight(now, -1)

    def error(self, now: int) -> None:
        """Record one error of any kind, for the time series."""
        if self.window.holds(now):
            self._roll(now)
            self._slot_errors += 1

    def finish(self) -> None:
        """Complete the time series and the integral. Once, at the end."""
        self._roll(self.window.end)
        self._count_in_flight(self.window.end, 0)

    def _roll(self, now: int) -> None:
        while now >= self._slot_end:
            self.slots.add(self._slot_responses, self._slot_errors)
            self._slot_responses, self._slot_errors = Histogram(), 0
            is_last = self._slot_end == self.window.end
            self._slot_end = NEVER if is_last else min(self._slot_end + self.slots.interval_ns, self.window.end)

    def _count_in_flight(self, now: int, change: int) -> None:
        start, end = self.window.start, self.window.end
        begin, until = min(max(self._last_change, start), end), min(max(now, start), end)
        if until > begin:
            self.in_flight_ns += (until - begin) * self._in_flight
        self._last_change = max(now, self._last_change)
        self._in_flight += change
