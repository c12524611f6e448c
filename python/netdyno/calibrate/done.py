"""What the calibration server says it did (servers/calibration/README.md)."""

from __future__ import annotations

from netdyno.model import Distribution, Frozen


class StallDone(Frozen):
    """`began_ns` after the first request."""

    programmed_ns: int
    actual_ns: int
    began_ns: int
    connection: int | None


class Done(Frozen):
    """Counts over the server's life. `arrivals_ns`: the first of them, as many as were asked for."""

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
