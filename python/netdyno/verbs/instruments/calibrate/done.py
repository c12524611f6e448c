"""The report of the calibration server on what it did (servers/calibration/README.md)."""

from __future__ import annotations

from netdyno.model.base import Frozen
from netdyno.model.load_result import Distribution


class StallDone(Frozen):
    """A stall; `began_ns` after the first request."""

    programmed_ns: int
    actual_ns: int
    began_ns: int
    connection: int | None


class Pause(Frozen):
    """The machine let nothing run on a core, which has the name given to the server. `began_ns` after the first
    request."""

    core: str
    began_ns: int
    ns: int


class ServerTotals(Frozen):
    """Counts over the server's life. `arrivals_ns`: the first arrivals, as many as requested. `look_ns`: the interval
    at which the witnesses of pauses woke. `read_lag_ns`: from the kernel's arrival of a request to when it counts as
    read, where the server was to measure it."""

    arrived: int
    arrivals_span_ns: int
    arrivals_ns: tuple[int, ...]
    lost: int
    duplicated: int
    corrupted: int
    held_for_order: int
    delay_programmed_ns: Distribution
    delay_actual_ns: Distribution
    stalls: tuple[StallDone, ...]
    pauses: tuple[Pause, ...] = ()
    look_ns: int = 0
    read_lag_ns: Distribution | None = None

    def list_pauses(self, core: str) -> tuple[tuple[float, float], ...]:
        """The intervals in which nothing ran on a core, in ns. A pause may have begun right after the wake-up
        before it."""
        return tuple(
            (float(pause.began_ns - self.look_ns), float(pause.began_ns + pause.ns))
            for pause in self.pauses
            if pause.core == core
        )
