"""Which levels of a factor to measure, and how often, to find where the better of two changes: numbers in, numbers out.

Both ends come first. Where they say different things, the middle of the bracket is next, as ratios, until the bracket
is narrow; else three levels between them. A level is measured until it is told which side is better there. Where
PATIENCE blocks have not told it, and it seems that `most` will not, other levels come first. It is looked at after
FLIP_LOOKS blocks, and not measured any more once it is told.

All levels and all looks share the chance to err, so the bracket, whose two ends are told, holds a crossing with the
chance 1 - level, however the contrast goes in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from netdyno.statistics import looks, stats
from netdyno.statistics.block_counts import FEWEST_BLOCKS, FLIP_LOOKS
from netdyno.statistics.flips import Contrasts, Crossing, Flips, Point, Side, zero
from netdyno.statistics.stats import Interval, Pairs

INNER = 3
"""Levels that are measured between two ends that tell of no flip."""
PATIENCE = FLIP_LOOKS[1]
"""Blocks of a level, before it may wait for others."""
DETOURS = 5
"""Levels beyond those of an even bisection, for levels so near the crossing that nothing is told there."""


@dataclass(frozen=True)
class Bounds:
    """Of a bisection: its ends, the ratio of a bracket that is narrow enough, and the most blocks of a level."""

    low: float
    high: float
    within: float
    most: int

    @property
    def levels(self) -> int:
        """It never measures more."""
        halvings = math.ceil(math.log2(max(2.0, math.log(self.high / self.low) / math.log(self.within))))
        return 2 + max(halvings, INNER) + DETOURS


@dataclass(frozen=True)
class Bisection:
    """What there is, and the levels that the next block has; none where it has come to its end. `narrow`: every bracket
    is as narrow as asked, or no level lies between its ends. `needed`: how many blocks would tell the side at the
    levels that have not told it, if their contrasts and spreads stay what they are; None of those that no number would
    tell."""

    flips: Flips
    wanted: tuple[float, ...]
    narrow: bool
    needed: Mapping[float, int | None]


Between = Callable[[float, float], float | None]
"""The level in the middle of two; None where there is none between them."""


def bisect(
    contrasts: Contrasts, tried: Mapping[float, int], bounds: Bounds, between: Between, level: float = stats.LEVEL
) -> Bisection:
    """`tried`: how many blocks had the level, whether they gave a contrast or not."""
    share = level / bounds.levels
    places = sorted({bounds.low, bounds.high, *tried})
    points = [_point(at, contrasts.get(at, {}), share) for at in places]
    told = [point for point in points if point.side]
    brackets = [
        [point for point in points if one.at <= point.at <= other.at]
        for one, other in pairwise(told)
        if one.side != other.side
    ]
    crossings = tuple(_crossing(bracket) for bracket in brackets)
    alike = len(told) == len(points) and not crossings
    waiting = [point for point in points if not _is_over(point, tried.get(point.at, 0), bounds)]
    needed = {point.at: _needed(contrasts.get(point.at, {}), share) for point in points if not point.side}
    wanted = [
        point.at
        for point in waiting
        if tried.get(point.at, 0) < PATIENCE or (needed[point.at] or math.inf) <= bounds.most
    ]
    if not wanted and len(points) < bounds.levels:
        further = _split(brackets, bounds, between) if crossings else _inner(places, bounds, between)
        wanted = further[: bounds.levels - len(points)]
    if not wanted:
        wide = [bracket for bracket in brackets if not _is_narrow(bracket, bounds, between)]
        wanted = [point.at for point in waiting if not crossings or any(point in bracket for bracket in wide)]
    return Bisection(
        Flips("flip" if crossings else "none" if alike and not wanted else "open", tuple(points), crossings),
        tuple(wanted),
        all(_is_narrow(bracket, bounds, between) for bracket in brackets),
        needed,
    )


def _point(at: float, by_block: Mapping[int, float], level: float) -> Point:
    pairs = _pairs(by_block)
    mean = sum(by_block.values()) / len(by_block) if by_block else math.nan
    interval = looks.held(pairs, level, FLIP_LOOKS)
    side: Side = 0 if interval is None else 1 if interval.low > 0 else -1 if interval.high < 0 else 0
    return Point(at, len(by_block), mean, interval, side)


def _pairs(by_block: Mapping[int, float]) -> Pairs:
    return stats.pairs_of({(block, ""): contrast for block, contrast in by_block.items()})


def _is_over(point: Point, tried: int, bounds: Bounds) -> bool:
    """A level is, where so many blocks had no word of both that none is to be expected."""
    return point.side != 0 or tried >= bounds.most or (point.blocks == 0 and tried >= FEWEST_BLOCKS)


def _crossing(bracket: Sequence[Point]) -> Crossing:
    first, last = bracket[0], bracket[-1]
    measured = [point for point in bracket if point.blocks]
    rising = last.side > 0
    at = zero(measured, rising=rising, log=True)
    return Crossing(first.at, last.at, at, Interval(first.at, last.at), rising)


def _inner(places: Sequence[float], bounds: Bounds, between: Between) -> list[float]:
    """The middle, and those of both halves; of these what is not measured yet."""
    middle = between(bounds.low, bounds.high)
    if middle is None:
        return []
    found = (middle, between(bounds.low, middle), between(middle, bounds.high))
    return sorted(one for one in found if one is not None and one not in places)


def _split(brackets: Sequence[Sequence[Point]], bounds: Bounds, between: Between) -> list[float]:
    gaps = (_gap(bracket, bounds, between) for bracket in brackets)
    return [middle for gap in gaps if gap and (middle := between(*gap)) is not None]


def _gap(bracket: Sequence[Point], bounds: Bounds, between: Between) -> tuple[float, float] | None:
    """Where to go on in a bracket: the middle. Where it says nothing, the crossing is near, and the ends come nearer:
    the wider of the two gaps beside what has said nothing."""
    if _is_narrow(bracket, bounds, between):
        return None
    ends = [(bracket[0].at, bracket[1].at), (bracket[-2].at, bracket[-1].at)]
    low, high = max(ends, key=lambda gap: gap[1] / gap[0])
    least = bounds.within if len(bracket) == len(("one", "other")) else math.sqrt(bounds.within)
    return (low, high) if high / low > least else None


def _is_narrow(bracket: Sequence[Point], bounds: Bounds, between: Between) -> bool:
    low, high = bracket[0].at, bracket[-1].at
    return high / low <= bounds.within or between(low, high) is None


def _needed(by_block: Mapping[int, float], level: float) -> int | None:
    if len(by_block) < FEWEST_BLOCKS:
        return None
    return stats.blocks_to_leave_out(_pairs(by_block), 0.0, level / len(FLIP_LOOKS))
