"""The canary's readings of the machine over a run.

Frozen data without words; units are in the names."""

from __future__ import annotations

import msgspec

from netdyno.model.base import Name


class TrialSpeeds(msgspec.Struct, frozen=True):
    """The canary beside one trial: the trial's start in seconds after that of the first, its block, and the figures in
    the order of FIGURES: the geometric mean of before and after, the lesser and the greater of these two. `invalid`:
    its machine was not that of its block."""

    at_s: float
    block: int
    speeds: tuple[float, ...]
    least: tuple[float, ...]
    most: tuple[float, ...]
    invalid: bool


class Range(msgspec.Struct, frozen=True):
    """One figure of the canary over the run, per second: over all readings, and the difference of blocks by their
    medians (the fastest divided by the slowest)."""

    name: Name
    least: float
    median: float
    most: float
    drift: float


class MachineOverTime(msgspec.Struct, frozen=True):
    trials: tuple[TrialSpeeds, ...]
    """The trials in the order in which they ran."""
    ranges: tuple[Range, ...]
    """One range for each figure, in the order of FIGURES."""
    invalid: int
    """Trials with a machine that was not that of their block, by this audit, with or without others."""
    unread: int
    """Trials beside which the canary could not be read."""
    unjudged: int
    """Trials without such an audit, for their block did not come to its end."""
    counted: bool
    """Whether the run was to count such trials, and not to exclude them."""

    @property
    def drift(self) -> Range:
        """The figure that drifted most; of those that drifted alike, the first."""
        return max(self.ranges, key=lambda figure: round(figure.drift, 3))
