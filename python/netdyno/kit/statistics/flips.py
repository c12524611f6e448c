"""The places along the levels of one factor at which the better of two sides changes: numbers in, numbers out.

At each level each block gives one contrast (a log ratio); between neighbouring levels the contrast is taken as a
straight line. A flip lies where one side is proven better at one level and the other side at a later one. Its place has
an interval: all places at which Student's t over the blocks does not prove that the contrast differs from 0 (Fieller
1954, J. R. Stat. Soc. B 16:175), so that interval and verdict are one method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

import msgspec
import numpy as np

from netdyno.kit.statistics import stats
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS
from netdyno.kit.statistics.stats import Floats, Interval

Side = Literal[-1, 0, 1]
"""The side that is proven greater: the second, neither, the first."""
FlipVerdict = Literal["flip", "none", "open"]


class LevelContrast(msgspec.Struct, frozen=True):
    """One level: the mean contrast over `blocks`, its interval (corrected for all levels), and the side that is proven
    greater."""

    place: float
    blocks: int
    mean: float
    interval: Interval | None
    side: Side


class Crossing(msgspec.Struct, frozen=True):
    """A change between two levels, `before` and `after`, at which different sides are proven greater. The mean crosses
    0 at `place`."""

    before: float
    after: float
    place: float
    interval: Interval
    rising: bool
    """Whether the change goes from the second being greater to the first."""


class Flips(msgspec.Struct, frozen=True):
    """All flips along a factor. `none`: the same side is proven greater at every level and everywhere between. `open`:
    neither that nor a flip is proven; a single level is always `open`."""

    verdict: FlipVerdict
    points: tuple[LevelContrast, ...]
    crossings: tuple[Crossing, ...]


LevelContrasts = Mapping[float, Mapping[int, float]]
"""The contrasts by level and block."""


def flips(contrasts: LevelContrasts, *, log: bool, significance: float = stats.SIGNIFICANCE) -> Flips:
    """Find all flips along the levels. `log`: places lie on a logarithmic axis, and all levels are above 0."""
    places = sorted(contrasts)
    points = tuple(_compute_point(place, contrasts[place], significance / len(places)) for place in places)
    decided = [point for point in points if point.side]
    crossings = tuple(
        _find_crossing(
            [point for point in points if left.place <= point.place <= right.place], contrasts, significance, log=log
        )
        for left, right in pairwise(decided)
        if left.side != right.side
    )
    if crossings:
        return Flips("flip", points, crossings)
    alike = len(decided) == len(points) > 1
    doubts = any(
        _find_doubtful(left.place, right.place, contrasts, significance, log=log) for left, right in pairwise(points)
    )
    return Flips("none" if alike and not doubts else "open", points, ())


def _compute_point(place: float, by_block: Mapping[int, float], significance: float) -> LevelContrast:
    values = np.array([by_block[block] for block in sorted(by_block)], dtype=np.float64)
    mean = float(values.mean()) if len(values) else math.nan
    if len(values) < FEWEST_BLOCKS:
        return LevelContrast(place, len(values), mean, None, 0)
    half = stats.student(len(values) - 1, significance) * stats.spread(values) / math.sqrt(len(values))
    side: Side = 1 if mean - half > 0 else -1 if mean + half < 0 else 0
    return LevelContrast(place, len(values), mean, Interval(mean - half, mean + half), side)


def _find_crossing(
    points: Sequence[LevelContrast], contrasts: LevelContrasts, significance: float, *, log: bool
) -> Crossing:
    """Return the crossing of a bracket: its first and last point are proven on different sides, those between are
    not."""
    doubtful = [
        place
        for left, right in pairwise(points)
        for place in _find_doubtful(left.place, right.place, contrasts, significance, log=log)
    ]
    first, last = points[0], points[-1]
    place = zero(points, rising=last.side > 0, log=log)
    ends = (min([*doubtful, place]), max([*doubtful, place]))
    return Crossing(first.place, last.place, place, Interval(*ends), last.side > 0)


def zero(points: Sequence[LevelContrast], *, rising: bool, log: bool) -> float:
    """Return the place at which the means cross 0. Means that are not monotonic between the ends are first made so
    (pool adjacent violators: Ayer et al. 1955, Ann. Math. Stat. 26:641)."""
    sign = 1.0 if rising else -1.0
    pools: list[tuple[float, int]] = []
    for point in points:
        pools.append((sign * point.mean, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (left_mean, left_count), (right_mean, right_count) = pools[-2:]
            pools[-2:] = [
                (
                    (left_mean * left_count + right_mean * right_count) / (left_count + right_count),
                    left_count + right_count,
                )
            ]
    means = [mean for mean, count in pools for _ in range(count)]
    places = [_to_axis(point.place, log=log) for point in points]
    for (place, mean), (next_place, next_mean) in pairwise(zip(places, means, strict=True)):
        if mean <= 0 < next_mean:
            return _from_axis(place + (next_place - place) * -mean / (next_mean - mean), log=log)
    raise AssertionError("a bracket's ends lie on different sides")


def _find_doubtful(
    left: float, right: float, contrasts: LevelContrasts, significance: float, *, log: bool
) -> list[float]:
    """Return the ends of the range between two neighbouring levels in which the contrast is not proven to differ from
    0; empty where it is everywhere. Uses the blocks that have both levels."""
    shared = sorted(contrasts[left].keys() & contrasts[right].keys())
    if len(shared) < FEWEST_BLOCKS:
        return [left, right]
    ends = [np.array([contrasts[end][block] for block in shared], dtype=np.float64) for end in (left, right)]
    shares = [
        share for share in (0.0, 1.0, *_find_roots(ends, significance)) if _has_zero_inside(ends, share, significance)
    ]
    low, high = _to_axis(left, log=log), _to_axis(right, log=log)
    return [_from_axis(low + (high - low) * share, log=log) for share in (min(shares), max(shares))] if shares else []


def _find_roots(ends: Sequence[Floats], significance: float) -> list[float]:
    """Return the roots w, from 0 to 1, of mean² = t²·variance/n for the contrast (1 - w)·left + w·right, a parabola in
    w."""
    left, step = ends[0], ends[1] - ends[0]
    count = len(left)
    scale = stats.student(count - 1, significance) ** 2 / count
    (variance, covariance), (_, step_variance) = np.cov(left, step)
    roots = np.roots(
        [
            step.mean() ** 2 - scale * step_variance,
            2 * (left.mean() * step.mean() - scale * covariance),
            left.mean() ** 2 - scale * variance,
        ]
    )
    return [float(root.real) for root in roots if abs(root.imag) < stats.ROUNDING and 0 <= root.real <= 1]


def _has_zero_inside(ends: Sequence[Floats], share: float, significance: float) -> bool:
    """Whether 0 is in the interval at this share of the way. The ends count as inside, with a margin for rounding."""
    values = (1 - share) * ends[0] + share * ends[1]
    half = stats.student(len(values) - 1, significance) * stats.spread(values) / math.sqrt(len(values))
    return abs(float(values.mean())) <= half * (1 + 1e-9) + stats.ROUNDING


def _to_axis(level: float, *, log: bool) -> float:
    return math.log(level) if log else level


def _from_axis(place: float, *, log: bool) -> float:
    return math.exp(place) if log else place
