"""Where along the levels of one factor the better of two changes: numbers in, numbers out.

At each level each block says one contrast (a log ratio); between neighbouring levels it is taken to go in a straight
line. A flip stands where one side is told to be better at one level and the other at a later one. Its place has an
interval: all the places at which Student's t over the blocks does not tell the contrast from 0 (Fieller 1954, J. R.
Stat. Soc. B 16:175), so that interval and verdict are one method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from netdyno.statistics import stats
from netdyno.statistics.block_counts import FEWEST_BLOCKS
from netdyno.statistics.stats import Floats, Interval

Side = Literal[-1, 0, 1]
"""Which is told to be greater there: the second, neither, the first."""
Verdict = Literal["flip", "none", "open"]


@dataclass(frozen=True)
class Point:
    """One level: the mean contrast over `blocks`, its interval (corrected for all levels), and who is told to be
    greater."""

    at: float
    blocks: int
    mean: float
    interval: Interval | None
    side: Side


@dataclass(frozen=True)
class Crossing:
    """Between two levels at which the sides are told apart, `before` and `after`. `at` is where the mean crosses 0."""

    before: float
    after: float
    at: float
    interval: Interval
    rising: bool
    """From the second being greater to the first."""


@dataclass(frozen=True)
class Flips:
    """`none`: the same one is told to be greater at every level, and everywhere between. `open`: neither that nor a
    flip can be told; of one level there is nothing else to say."""

    verdict: Verdict
    points: tuple[Point, ...]
    crossings: tuple[Crossing, ...]


Contrasts = Mapping[float, Mapping[int, float]]
"""By level, and there by block."""


def flips(contrasts: Contrasts, *, log: bool, level: float = stats.LEVEL) -> Flips:
    """`log`: places lie on a logarithmic axis, and all levels are above 0."""
    places = sorted(contrasts)
    points = tuple(_point(at, contrasts[at], level / len(places)) for at in places)
    told = [point for point in points if point.side]
    crossings = tuple(
        _crossing([point for point in points if one.at <= point.at <= other.at], contrasts, level, log=log)
        for one, other in pairwise(told)
        if one.side != other.side
    )
    if crossings:
        return Flips("flip", points, crossings)
    alike = len(told) == len(points) > 1
    doubts = any(_doubtful(one.at, other.at, contrasts, level, log=log) for one, other in pairwise(points))
    return Flips("none" if alike and not doubts else "open", points, ())


def next_level(found: Flips, *, log: bool, whole: bool = True) -> float | None:
    """Where to measure next to find a flip more closely: the middle of its bracket. None where there is none, or no
    level is between."""
    if not found.crossings:
        return None
    first = found.crossings[0]
    middle = _place_back((_place(first.before, log=log) + _place(first.after, log=log)) / 2, log=log)
    middle = float(round(middle)) if whole else middle
    return middle if first.before < middle < first.after else None


def _point(at: float, by_block: Mapping[int, float], level: float) -> Point:
    values = np.array([by_block[block] for block in sorted(by_block)], dtype=np.float64)
    mean = float(values.mean()) if len(values) else math.nan
    if len(values) < FEWEST_BLOCKS:
        return Point(at, len(values), mean, None, 0)
    half = stats.student(len(values) - 1, level) * stats.spread(values) / math.sqrt(len(values))
    side: Side = 1 if mean - half > 0 else -1 if mean + half < 0 else 0
    return Point(at, len(values), mean, Interval(mean - half, mean + half), side)


def _crossing(points: Sequence[Point], contrasts: Contrasts, level: float, *, log: bool) -> Crossing:
    """Of a bracket: its first and last point are told apart on different sides, those between are not."""
    doubtful = [
        place for one, other in pairwise(points) for place in _doubtful(one.at, other.at, contrasts, level, log=log)
    ]
    first, last = points[0], points[-1]
    at = zero(points, rising=last.side > 0, log=log)
    ends = (min([*doubtful, at]), max([*doubtful, at]))
    return Crossing(first.at, last.at, at, Interval(*ends), last.side > 0)


def zero(points: Sequence[Point], *, rising: bool, log: bool) -> float:
    """Where the means go through 0. Means that go to and fro between the ends are first made to go one way (pool
    adjacent violators: Ayer et al. 1955, Ann. Math. Stat. 26:641)."""
    sign = 1.0 if rising else -1.0
    pools: list[tuple[float, int]] = []
    for point in points:
        pools.append((sign * point.mean, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (one, count), (other, more) = pools[-2:]
            pools[-2:] = [((one * count + other * more) / (count + more), count + more)]
    means = [mean for mean, count in pools for _ in range(count)]
    places = [_place(point.at, log=log) for point in points]
    for (x, y), (far, up) in pairwise(zip(places, means, strict=True)):
        if y <= 0 < up:
            return _place_back(x + (far - x) * -y / (up - y), log=log)
    raise AssertionError("a bracket's ends lie on different sides")


def _doubtful(one: float, other: float, contrasts: Contrasts, level: float, *, log: bool) -> list[float]:
    """Between two neighbouring levels the ends of all places at which the contrast cannot be told from 0; empty where
    it can be told everywhere. Of the blocks that have both levels."""
    shared = sorted(contrasts[one].keys() & contrasts[other].keys())
    if len(shared) < FEWEST_BLOCKS:
        return [one, other]
    ends = [np.array([contrasts[at][block] for block in shared], dtype=np.float64) for at in (one, other)]
    shares = [share for share in (0.0, 1.0, *_shares(ends, level)) if _untold(ends, share, level)]
    low, high = _place(one, log=log), _place(other, log=log)
    return [_place_back(low + (high - low) * share, log=log) for share in (min(shares), max(shares))] if shares else []


def _shares(ends: Sequence[Floats], level: float) -> list[float]:
    """Where mean² = t²·variance/n, of the contrast (1 - w)·one + w·other: the roots of a parabola in w, from 0 to 1."""
    one, step = ends[0], ends[1] - ends[0]
    count = len(one)
    scale = stats.student(count - 1, level) ** 2 / count
    (own, both), (_, steps) = np.cov(one, step)
    found = np.roots(
        [
            step.mean() ** 2 - scale * steps,
            2 * (one.mean() * step.mean() - scale * both),
            one.mean() ** 2 - scale * own,
        ]
    )
    return [float(root.real) for root in found if abs(root.imag) < stats.ROUNDING and 0 <= root.real <= 1]


def _untold(ends: Sequence[Floats], share: float, level: float) -> bool:
    """Whether 0 is in the interval at this share of the way, its ends included but for rounding."""
    values = (1 - share) * ends[0] + share * ends[1]
    half = stats.student(len(values) - 1, level) * stats.spread(values) / math.sqrt(len(values))
    return abs(float(values.mean())) <= half * (1 + 1e-9) + stats.ROUNDING


def _place(at: float, *, log: bool) -> float:
    return math.log(at) if log else at


def _place_back(place: float, *, log: bool) -> float:
    return math.exp(place) if log else place
