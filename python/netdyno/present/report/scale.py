"""A logarithmic scale of ratios across a picture, in percent of its width. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

MARGIN = 0.06
LEAST_SPAN = 1.025
"""Never closer than 5%: a difference of half a percent must not fill the picture."""
MOST_SPAN = 1e6
"""What is further from 1 ends at the edge of the picture, and is drawn so that this is seen."""
ROUND_RATIOS = (
    *(1e-5, 1e-4, 0.001, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98),
    *(1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 30, 100, 1000, 1e4, 1e5),
)
TICKS_APART = 18
"""The least distance of ticks in percent of the width, so that no label is on top of another."""


class Tick(msgspec.Struct, frozen=True):
    percent: float
    label: str


class RatioScale:
    """A scale from the least to the greatest of the ratios, 1 always among them."""

    def __init__(self, ratios: Sequence[float]) -> None:
        within = [ratio for ratio in ratios if 1 / MOST_SPAN <= ratio <= MOST_SPAN]
        self._low = math.log(min(*within, 1 / LEAST_SPAN, 1.0))
        self._high = math.log(max(*within, LEAST_SPAN, 1.0))

    def to_percent(self, ratio: float) -> float:
        """Return the place of a ratio in percent of the width; the edge where it lies beyond."""
        log = -math.inf if ratio <= 0 else math.log(ratio)
        inner = (log - self._low) / (self._high - self._low)
        return round(100 * min(1.0, max(0.0, MARGIN + inner * (1 - 2 * MARGIN))), 2)

    def ticks(self) -> tuple[Tick, ...]:
        """Return ticks at no change and at a few round ratios inside the range."""
        chosen = [Tick(self.to_percent(1.0), "1")]
        for ratio in sorted(ROUND_RATIOS, key=lambda ratio: -abs(math.log(ratio))):
            place = self.to_percent(ratio)
            if 4 <= place <= 96 and all(abs(place - tick.percent) >= TICKS_APART for tick in chosen):
                chosen.append(Tick(place, f"{ratio:,.5f}".rstrip("0").rstrip(".")))
        return tuple(sorted(chosen, key=lambda tick: tick.percent))
