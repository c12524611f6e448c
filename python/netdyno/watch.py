"""When the server is read: as the generator announces its window, so that both speak of the same second."""

from __future__ import annotations

import time

from netdyno import observe
from netdyno.model import ServerObservation
from netdyno.process import TrialError

LATE_READING_S = 0.02
"""How long before the end of the window the threads are read once more (see observe.observation)."""


class Watch:
    """Takes the readings as the generator announces its window."""

    def __init__(self, pid: int, kernel_at_start: dict[str, int], duration_s: float) -> None:
        self._pid = pid
        self._duration_s = duration_s
        self._kernel = [kernel_at_start]
        self._before: observe.Reading | None = None
        self._late: observe.Reading | None = None
        self._after: observe.Reading | None = None
        self._late_at = float("inf")

    def window_start(self) -> None:
        self._before = self._read()
        self._kernel.append(observe.read_kernel())
        if self._before.threads > 1:
            self._late_at = self._before.at_s + self._duration_s - LATE_READING_S

    def maybe_read_late(self) -> None:
        if time.monotonic() >= self._late_at and self._after is None:
            self._late = self._read()
            self._late_at = float("inf")

    def window_end(self) -> None:
        self._after = self._read()
        self._kernel.append(observe.read_kernel())
        self._late_at = float("inf")

    def generator_ended(self) -> None:
        """The window is over at the latest now. A closed loop is answered within microseconds of its end, and the
        generator may then be gone before it has announced it."""
        if self._before is not None and self._after is None:
            self.window_end()

    def next_wait(self, deadline: float) -> float:
        """Seconds until something is due."""
        return max(0.0, min(deadline, self._late_at) - time.monotonic())

    def observation(self, totals: dict[str, int]) -> ServerObservation:
        """Raises TrialError when the load announced no window."""
        if self._before is None or self._after is None:
            raise TrialError("the load did not announce its window on --events-fd")
        return observe.observation(self._before, self._late, self._after, totals)

    def kernel(self) -> dict[str, int]:
        """The counters over the window, and as `setup.<name>` over what came before it: the server's start, the
        connects and the warm-up, where a full accept queue shows."""
        at_start, before, after = self._kernel
        setup = {f"setup.{name}": value for name, value in observe.increase(at_start, before).items()}
        return observe.increase(before, after) | setup

    def _read(self) -> observe.Reading:
        try:
            return observe.read(self._pid)
        except OSError as error:
            raise TrialError("the server was gone when it was to be observed") from error
