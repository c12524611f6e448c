"""The choice of the levels of a factor to measure, and how often, to find where the better of two sides changes:
numbers in, numbers out.

Both ends come first. If different sides are better there, the middle of the bracket (as ratios) is next, until the
bracket is narrow; else three levels between the ends. A level is measured until one side is proven better there. If
PATIENCE blocks have not proven it, and `most` probably will not, other levels come first. A level is looked at after
FLIP_LOOKS blocks, and not measured any more once its side is proven.

All levels and all looks share the chance to err, so the bracket, both ends of which are proven, holds a crossing with
the chance 1 - significance, whatever the contrast does in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import msgspec

from netdyno.kit.statistics import looks, stats
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS, FLIP_LOOKS
from netdyno.kit.statistics.flips import Crossing, Flips, LevelContrast, LevelContrasts, Side, zero
from netdyno.kit.statistics.stats import Interval, Pairs

INNER = 3
"""Levels that are measured between two ends that show no flip."""
PATIENCE = FLIP_LOOKS[1]
"""The blocks of a level before it may wait for other levels."""
DETOURS = 5
"""Levels beyond those of an even bisection, for levels so near the crossing that nothing is proven there."""


class Bounds(msgspec.Struct, frozen=True):
    """The bounds of a bisection: its ends, the ratio of a bracket that is narrow enough, and the most blocks of a
    level."""

    low: float
    high: float
    within: float
    most: int

    @property
    def levels(self) -> int:
        """The most levels that are ever measured."""
        halvings = math.ceil(math.log2(max(2.0, math.log(self.high / self.low) / math.log(self.within))))
        return 2 + max(halvings, INNER) + DETOURS


class Bisection(msgspec.Struct, frozen=True):
    """The state of a bisection, and the levels of the next block; empty at the end. `narrow`: every bracket is as
    narrow as requested, or no level lies between its ends. `needed`: by level without a proven side, the number of
    blocks that would prove it, if contrast and spread stay as they are; None where no number would."""

    flips: Flips
    next_levels: tuple[float, ...]
    narrow: bool
    needed: Mapping[float, int | None]


Between = Callable[[float, float], float | None]
"""The level in the middle of two; None where there is none between them."""


def bisect(
    contrasts: LevelContrasts,
    tried: Mapping[float, int],
    bounds: Bounds,
    between: Between,
    significance: float = stats.SIGNIFICANCE,
) -> Bisection:
    """Choose the levels of the next block. `tried`: how many blocks had the level, with or without a contrast."""
    share = significance / bounds.levels
    places = sorted({bounds.low, bounds.high, *tried})
    points = [_compute_point(place, contrasts.get(place, {}), share) for place in places]
    decided = [point for point in points if point.side]
    brackets = [
        [point for point in points if left.place <= point.place <= right.place]
        for left, right in pairwise(decided)
        if left.side != right.side
    ]
    crossings = tuple(_find_crossing(bracket) for bracket in brackets)
    alike = len(decided) == len(points) and not crossings
    waiting = [point for point in points if not _is_over(point, tried.get(point.place, 0), bounds)]
    needed = {
        point.place: _estimate_needed_blocks(contrasts.get(point.place, {}), share)
        for point in points
        if not point.side
    }
    next_levels = [
        point.place
        for point in waiting
        if tried.get(point.place, 0) < PATIENCE or (needed[point.place] or math.inf) <= bounds.most
    ]
    if not next_levels and len(points) < bounds.levels:
        further = _find_middles(brackets, bounds, between) if crossings else _find_inner_levels(places, bounds, between)
        next_levels = further[: bounds.levels - len(points)]
    if not next_levels:
        wide = [bracket for bracket in brackets if not _is_narrow(bracket, bounds, between)]
        next_levels = [point.place for point in waiting if not crossings or any(point in bracket for bracket in wide)]
    return Bisection(
        Flips("flip" if crossings else "none" if alike and not next_levels else "open", tuple(points), crossings),
        tuple(next_levels),
        all(_is_narrow(bracket, bounds, between) for bracket in brackets),
        needed,
    )


def _compute_point(place: float, by_block: Mapping[int, float], significance: float) -> LevelContrast:
    pairs = _to_pairs(by_block)
    mean = sum(by_block.values()) / len(by_block) if by_block else math.nan
    interval = looks.FLIP.hold(pairs, significance)
    side: Side = 0 if interval is None else 1 if interval.low > 0 else -1 if interval.high < 0 else 0
    return LevelContrast(place, len(by_block), mean, interval, side)


def _to_pairs(by_block: Mapping[int, float]) -> Pairs:
    return stats.pairs_of({(block, ""): contrast for block, contrast in by_block.items()})


def _is_over(point: LevelContrast, tried: int, bounds: Bounds) -> bool:
    """Whether a level is measured no more: its side is proven, it has all its blocks, or so many blocks gave no
    contrast that none is to be expected."""
    return point.side != 0 or tried >= bounds.most or (point.blocks == 0 and tried >= FEWEST_BLOCKS)


def _find_crossing(bracket: Sequence[LevelContrast]) -> Crossing:
    first, last = bracket[0], bracket[-1]
    measured = [point for point in bracket if point.blocks]
    rising = last.side > 0
    place = zero(measured, rising=rising, log=True)
    return Crossing(first.place, last.place, place, Interval(first.place, last.place), rising)


def _find_inner_levels(places: Sequence[float], bounds: Bounds, between: Between) -> list[float]:
    """Return the middle and the middles of both halves, without the levels that are already measured."""
    middle = between(bounds.low, bounds.high)
    if middle is None:
        return []
    levels = (middle, between(bounds.low, middle), between(middle, bounds.high))
    return sorted(level for level in levels if level is not None and level not in places)


def _find_middles(brackets: Sequence[Sequence[LevelContrast]], bounds: Bounds, between: Between) -> list[float]:
    gaps = (_find_gap(bracket, bounds, between) for bracket in brackets)
    return [middle for gap in gaps if gap and (middle := between(*gap)) is not None]


def _find_gap(bracket: Sequence[LevelContrast], bounds: Bounds, between: Between) -> tuple[float, float] | None:
    """Return the gap of a bracket to halve next; None where it is narrow. A level in the middle without a proven side
    lies near the crossing: then the wider of the two gaps beside such levels is next."""
    if _is_narrow(bracket, bounds, between):
        return None
    ends = [(bracket[0].place, bracket[1].place), (bracket[-2].place, bracket[-1].place)]
    low, high = max(ends, key=lambda gap: gap[1] / gap[0])
    least = bounds.within if len(bracket) == len(("one", "other")) else math.sqrt(bounds.within)
    return (low, high) if high / low > least else None


def _is_narrow(bracket: Sequence[LevelContrast], bounds: Bounds, between: Between) -> bool:
    low, high = bracket[0].place, bracket[-1].place
    return high / low <= bounds.within or between(low, high) is None


def _estimate_needed_blocks(by_block: Mapping[int, float], significance: float) -> int | None:
    if len(by_block) < FEWEST_BLOCKS:
        return None
    return stats.blocks_to_leave_out(_to_pairs(by_block), 0.0, looks.FLIP.divide_significance(significance))
