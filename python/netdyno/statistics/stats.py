"""Comparison of contestants within blocks: pure functions of numbers, nothing else.

The unit is a block: every level once, each trial a fresh server. What two contestants differ by in a block is the mean
log ratio of their metrics over the levels, and one method says what follows from the blocks: Student's t, of which the
interval is the verdict. docs/adr/statistics.md says why, with simulations (bench/comparison_methods.py)."""

from __future__ import annotations

import importlib
import itertools
import math
import statistics
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from types import ModuleType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from netdyno.statistics.block_counts import FEWEST_BLOCKS, MANY_BLOCKS

Floats = NDArray[np.float64]
Cell = tuple[int, str]
"""Block number and level: where in the experiment a figure was measured."""
Samples = Mapping[Cell, float]
"""The metric of one contestant by cell, one value per server restart, every value above 0."""
Better = Literal["higher", "lower"]

LEVEL = 0.05
BORROWED = 0.5
"""How much the spread of a family's other comparisons weighs beside a comparison's own, which weighs 1."""
FEWEST_LENDERS = 2
"""Of one other comparison nobody can say whether its spread is the usual one."""
ROUNDING = 1e-12
"""A spread below this share of the values is rounding, and none."""
MOST_LOG = 700.0
ENUMERATED_BLOCKS = 7
DRAWN_RESAMPLES = 4_000


# --- pairs -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pairs:
    """The cells two contestants are compared in: block, level and log ratio of each, in one order; each block has every
    level. (Of shares, which may be 0, claims take the difference for the log ratio.)"""

    blocks: NDArray[np.int64]
    levels: NDArray[np.int64]
    log_ratios: Floats

    def __len__(self) -> int:
        return len(self.log_ratios)


def pair(a: Samples, b: Samples) -> Pairs:
    """What was measured for both. Raises ValueError on a value that has no logarithm."""
    shared = a.keys() & b.keys()
    for cell in sorted(shared):
        if not (a[cell] > 0 and b[cell] > 0):
            raise ValueError(f"cell {cell}: a ratio needs values above 0, got {a[cell]} and {b[cell]}")
    return pairs_of({cell: math.log(a[cell] / b[cell]) for cell in shared})


def pairs_of(contrasts: Mapping[Cell, float]) -> Pairs:
    """What two sides differ by, cell by cell, as pairs."""
    cells = counted(contrasts)
    level_number = {level: number for number, level in enumerate(sorted({level for _, level in cells}))}
    return Pairs(
        np.array([block for block, _ in cells], dtype=np.int64),
        np.array([level_number[level] for _, level in cells], dtype=np.int64),
        np.array([contrasts[cell] for cell in cells], dtype=np.float64),
    )


def counted(shared: Iterable[Cell]) -> list[Cell]:
    """The cells that a comparison is made of, so that every block asks the same question. A level counts where it is
    shared in at least half as many blocks as the level that is shared in most; a block counts where it has all of
    these. So one lost trial costs its block, and a level that one of the two cannot carry does not cost them all."""
    blocks: dict[str, set[int]] = {}
    for block, level in shared:
        blocks.setdefault(level, set()).add(block)
    most = max(map(len, blocks.values()), default=0)
    levels = [level for level, found in blocks.items() if 2 * len(found) >= most]
    whole = set[int].intersection(*(blocks[level] for level in levels)) if levels else set[int]()
    return sorted((block, level) for level in levels for block in whole)


def block_means(pairs: Pairs) -> Floats:
    """What the two differ by in each block, in the order of the blocks: the mean over its levels."""
    names, block = np.unique(pairs.blocks, return_inverse=True)
    sums = np.zeros(len(names))
    np.add.at(sums, block, pairs.log_ratios)
    return np.asarray(sums / np.bincount(block, minlength=len(names)), dtype=np.float64)


def log_ratio(pairs: Pairs) -> float:
    """Mean log ratio over blocks; its exponential is a geometric mean of ratios."""
    return float(block_means(pairs).mean())


# --- one interval, one test --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interval:
    """An interval in the unit of its estimate."""

    low: float
    high: float


def spread(values: Floats) -> float:
    """The standard deviation; 0 where all values are the same but for rounding."""
    found = float(values.std(ddof=1))
    return found if found > ROUNDING * float(np.abs(values).max()) else 0.0


@lru_cache(maxsize=4096)
def student(freedom: float, level: float = LEVEL) -> float:
    """How many standard errors an interval reaches to each side, that misses the truth with the chance `level`."""
    return float(_special().stdtrit(freedom, 1 - level / 2))


def p_of(mean: float, error: float, freedom: float) -> float:
    """How likely a mean is as far from 0 by chance. Without any error it is certain: 0, and 1 for a mean that is 0 but
    for rounding."""
    if error == 0:
        return 0.0 if abs(mean) > ROUNDING else 1.0
    return 2 * float(_special().stdtr(freedom, -abs(mean) / error))


def mean_interval(pairs: Pairs, level: float = LEVEL) -> Interval | None:
    """Interval of the mean over blocks (Student's t), on the log scale where that is what the pairs are. None below
    FEWEST_BLOCKS."""
    means = block_means(pairs)
    if len(means) < FEWEST_BLOCKS:
        return None
    half = student(len(means) - 1, level) * spread(means) / math.sqrt(len(means))
    return Interval(float(means.mean()) - half, float(means.mean()) + half)


def mean_p(pairs: Pairs, expected: float = 0.0) -> float:
    """The p-value of "the mean is as expected": at most `level` just where the interval of that level leaves it out."""
    means = block_means(pairs)
    if len(means) < FEWEST_BLOCKS:
        return 1.0
    return p_of(float(means.mean()) - expected, spread(means) / math.sqrt(len(means)), len(means) - 1)


def blocks_to_leave_out(pairs: Pairs, expected: float, level: float = LEVEL) -> int | None:
    """How many blocks an interval takes that leaves the expected mean out, if mean and spread stay what they are. None
    where they say nothing of that, or MANY_BLOCKS would not do."""
    means = block_means(pairs)
    if len(means) < 2 or (away := abs(float(means.mean()) - expected)) <= ROUNDING:
        return None
    errors, counts = spread(means) / away, range(FEWEST_BLOCKS, MANY_BLOCKS + 1)
    found = bisect_left(counts, True, key=lambda count: student(count - 1, level) * errors < math.sqrt(count))
    return counts[found] if found < len(counts) else None


def _special() -> ModuleType:
    """Imported where it is used: it takes longer than all that needs none of it."""
    return importlib.import_module("scipy.special")


# --- the interval of a single figure -----------------------------------------------------------------------------


def interval(statistic: Callable[[Floats], Floats], blocks: int, seed: int = 1) -> Interval | None:
    """The 95% interval of a figure that is no mean over blocks, such as a percentile of merged histograms: bootstrap
    over whole blocks. `statistic` maps rows of block multiplicities to one value per row.

    The expanded percentile interval (Hesterberg 2015, The American Statistician 69:371): the percentile interval of few
    blocks is too short (84% instead of 95% at 5 blocks, and BCa is no better), so its tails are moved out to where
    Student's t would put them. Below 5 blocks no resampling can reach 95%, and there is no interval: None.
    NaN rows (a resample in which nothing can be computed) are left out.
    """
    found = intervals(lambda drawn: statistic(drawn)[np.newaxis], blocks, seed)
    return found[0] if found else None


def intervals(statistics: Callable[[Floats], Floats], blocks: int, seed: int = 1) -> list[Interval | None]:
    """The same of several figures that are computed together, one row of values for each; empty where there are too few
    blocks."""
    if blocks < FEWEST_BLOCKS:
        return []
    multiplicities, chances = resamples(blocks, seed)
    tail = expanded_tail(blocks)
    return [_interval_of(values, chances, tail) for values in statistics(multiplicities)]


def _interval_of(values: Floats, chances: Floats, tail: float) -> Interval | None:
    usable = ~np.isnan(values)
    if not usable.any():
        return None
    low, high = _weighted_quantiles(values[usable], chances[usable], (tail, 1 - tail))
    return Interval(low, high)


@lru_cache(maxsize=32)
def expanded_tail(blocks: int, level: float = LEVEL) -> float:
    """The tail area that stands in for level/2 at this number of blocks; it tends to level/2 as blocks grow."""
    return NormalDist().cdf(-math.sqrt(blocks / (blocks - 1)) * student(blocks - 1, level))


@lru_cache(maxsize=32)
def resamples(blocks: int, seed: int) -> tuple[Floats, Floats]:
    """How often each block is drawn, one row per resample, and the chance of that row.

    Few blocks: every distinct resample with its multinomial chance, so that nothing is left to a seed.
    """
    if blocks > ENUMERATED_BLOCKS:
        drawn = np.random.default_rng(seed).multinomial(blocks, [1 / blocks] * blocks, size=DRAWN_RESAMPLES)
        return drawn.astype(np.float64), np.full(DRAWN_RESAMPLES, 1 / DRAWN_RESAMPLES)
    rows = [
        np.bincount(chosen, minlength=blocks)
        for chosen in itertools.combinations_with_replacement(range(blocks), blocks)
    ]
    ways = [math.factorial(blocks) / math.prod(math.factorial(int(times)) for times in row) for row in rows]
    return np.array(rows, dtype=np.float64), np.array(ways) / float(blocks**blocks)


def _weighted_quantiles(values: Floats, weights: Floats, at: tuple[float, float]) -> tuple[float, float]:
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    low, high = (values[order][min(int(np.searchsorted(reached, q - 1e-12)), len(values) - 1)] for q in at)
    return float(low), float(high)


# --- verdicts ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """`a` against `b`: the ratio of their metrics (a divided by b) where it is `relative`, else their difference.

    `interval` and `different` are one thing said twice: `different` is that the interval leaves out "no difference".
    Before `corrected` has seen the family, the interval is the `single` one, nothing is different, and `p_corrected` is
    1. `spread` is the standard deviation between blocks, on the log scale of ratios. Comparisons of one `axis` (a
    metric, or a counter) spread alike if anything does.
    """

    a: str
    b: str
    pairs: int
    blocks: int
    ratio: float
    interval: Interval | None
    p: float
    p_corrected: float = 1.0
    decidable: bool = False
    """Whether there are blocks enough for any verdict; without one the two may differ by whatever they like."""
    different: bool = False
    single: Interval | None = None
    """The 95% interval of this comparison alone."""
    spread: float = math.nan
    relative: bool = True
    axis: str = ""
    error: float = math.nan
    """The standard error of the mean, with `freedom` degrees of freedom, that the interval is made of."""
    freedom: float = math.nan

    @property
    def same(self) -> float:
        """What the ratio, or the difference, of equals is."""
        return 1.0 if self.relative else 0.0

    @property
    def mean(self) -> float:
        """On the scale that the interval is symmetric on."""
        return math.log(self.ratio) if self.relative else self.ratio


def compare(a: str, b: str, samples: Mapping[str, Samples], axis: str = "") -> Comparison:
    """One comparison, not yet corrected. Without a shared cell the ratio is NaN."""
    return comparison(a, b, pair(samples[a], samples[b]), axis=axis)


def comparison(a: str, b: str, pairs: Pairs, *, ratios: bool = True, axis: str = "") -> Comparison:
    """The same of pairs that are there already. Where they are differences and not `ratios` on the log scale, so are
    the `ratio` and its interval."""
    means = block_means(pairs)
    effect = float(means.mean()) if len(means) else math.nan
    if abs(effect) <= ROUNDING:  # the last bits of equal figures differ from processor to processor
        effect = 0.0
    blank = Comparison(
        a=a,
        b=b,
        pairs=len(pairs),
        blocks=len(means),
        ratio=_exp(effect) if ratios else effect,
        interval=None,
        p=1.0,
        decidable=len(means) >= FEWEST_BLOCKS,
        spread=spread(means) if len(means) > 1 else math.nan,
        relative=ratios,
        axis=axis,
    )
    error = blank.spread / math.sqrt(len(means)) if len(means) > 1 else math.nan
    freedom = len(means) - 1
    single = _interval(blank, error, freedom, LEVEL)
    return replace(blank, interval=single, single=single, p=_p(blank, error, freedom), error=error, freedom=freedom)


def corrected(family: Sequence[Comparison], level: float = LEVEL) -> tuple[Comparison, ...]:
    """The same comparisons with the verdict of each. All intervals together hold the truth with the chance 1 - level,
    so that is also the least chance that no difference is found where none is (Bonferroni: each has its share of the
    level). What has too few blocks cannot err, and takes no share."""
    among = sum(one.decidable for one in family)
    return tuple(_judged(one, _lenders(number, family), among, level) for number, one in enumerate(family))


def _lenders(number: int, family: Sequence[Comparison]) -> list[float]:
    """The variances of the other comparisons of the same axis."""
    mine = family[number]
    return [
        one.spread**2
        for other, one in enumerate(family)
        if other != number and one.decidable and (one.axis, one.relative) == (mine.axis, mine.relative)
    ]


def _judged(one: Comparison, lenders: Sequence[float], among: int, level: float) -> Comparison:
    if not one.decidable:
        return replace(one, p_corrected=1.0, interval=None, different=False)
    found, freedom = moderated(one.spread, one.blocks - 1, lenders)
    error = found / math.sqrt(one.blocks)
    own = replace(
        one,
        error=error,
        freedom=freedom,
        p=_p(one, error, freedom),
        single=_interval(one, error, freedom, LEVEL),
    )
    return _as_one_of(own, among, level)


def _as_one_of(one: Comparison, among: int, level: float) -> Comparison:
    """The verdict as one of so many comparisons that share the level."""
    interval = _interval(one, one.error, one.freedom, level / among)
    return replace(
        one,
        p_corrected=min(1.0, among * one.p),
        interval=interval,
        different=interval is not None and not interval.low <= one.same <= interval.high,
    )


def compared_with_the_best(
    names: Sequence[str], family: Sequence[Comparison], better: Better, level: float = LEVEL
) -> tuple[Comparison, ...]:
    """Return the comparisons of one axis where the question is who of these is best. If one is better than each other
    when its comparisons with these are corrected by themselves, as many as there are others, that is what they say; all
    others stay as they are, corrected with all pairs. Among equals hardly anybody is better than all (docs/adr/
    statistics.md has the rates), so this errs no more often."""
    for name in names:
        own = [one for one in family if name in (one.a, one.b) and {one.a, one.b} <= {*names}]
        judged = {id(one): _as_one_of(one, len(own), level) for one in own if one.decidable}
        if len(judged) == len(names) - 1 > 0 and all(winner(one, better) == name for one in judged.values()):
            return tuple(judged.get(id(one), one) for one in family)
    return tuple(family)


def moderated(own: float, freedom: int, lenders: Sequence[float]) -> tuple[float, float]:
    """The spread to reckon with and its degrees of freedom: two parts a comparison's own variance, one part the middle
    one of the others (Smyth 2004, Stat. Appl. Genet. Mol. Biol. 3:3, with a weight that is fixed). The middle, so that
    one contestant that scatters widely does not widen everybody's intervals."""
    if len(lenders) < FEWEST_LENDERS:
        return own, float(freedom)
    variance = (own**2 + BORROWED * statistics.median(lenders)) / (1 + BORROWED)
    return math.sqrt(variance), freedom * (1 + BORROWED)


def _p(one: Comparison, error: float, freedom: float) -> float:
    return p_of(one.mean, error, freedom) if one.decidable else 1.0


def _interval(one: Comparison, error: float, freedom: float, level: float) -> Interval | None:
    if not one.decidable:
        return None
    half = student(freedom, level) * error
    low, high = one.mean - half, one.mean + half
    if half == 0:
        return Interval(one.ratio, one.ratio)
    return Interval(_exp(low), _exp(high)) if one.relative else Interval(low, high)


def _exp(value: float) -> float:
    """Infinite where no float is large enough."""
    return math.exp(value) if value < MOST_LOG else math.inf


# --- ranks ----------------------------------------------------------------------------------------------------------


def ranks(names: Sequence[str], family: Sequence[Comparison], better: Better) -> dict[str, int]:
    """Return the rank of each: 1 and how many are proven better. Equal ranks are no proof of being equal, and of three
    neighbours the first may be proven better than the last alone: ranks 1, 1 and 2."""
    proven = ahead(family, better)
    return {name: 1 + sum((other, name) in proven for other in names) for name in names}


def unbeaten(names: Sequence[str], family: Sequence[Comparison], better: Better) -> list[str]:
    """Return those that no other of them is proven better than, in the order given."""
    return [name for name, rank in ranks(names, family, better).items() if rank == 1]


def ahead(family: Iterable[Comparison], better: Better) -> frozenset[tuple[str, str]]:
    """Return who is proven better than whom: directly, or by way of others, for all intervals hold together."""
    beats: dict[str, set[str]] = {}
    for one in family:
        if (above := winner(one, better)) is not None:
            beats.setdefault(above, set()).add(one.b if above == one.a else one.a)
    for between in list(beats):
        for losers in beats.values():
            if between in losers:
                losers |= beats[between]
    return frozenset((above, below) for above, losers in beats.items() for below in losers)


def winner(one: Comparison, better: Better) -> str | None:
    """Return who of the two is proven better; None where neither is."""
    if not one.different:
        return None
    return one.a if (one.ratio > one.same) == (better == "higher") else one.b


def without_circles(family: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Return the comparisons of one axis without the verdicts and intervals that contradict each other. Where two share
    other blocks than each of them with a third, each of the three may seem better than the next."""
    proven = ahead(family, "higher")
    return tuple(
        replace(one, different=False, interval=None, decidable=False, p_corrected=1.0)
        if {(one.a, one.b), (one.b, one.a)} <= proven
        else one
        for one in family
    )


def most_above(one: Comparison, level: float, others: int) -> float:
    """Return the upper bound of the mean of `a` against `b`, on the scale of `Comparison.mean`, of which `others` hold
    together with the chance 1 - level: a one-sided interval. Infinite where there are too few blocks.

    Where `a` is the best of all, the bounds of all others against it are "multiple comparisons with the best" (Hsu
    1981, Ann. Stat. 9:1026). They need no correction for the pairs that the best is not one of."""
    if not one.decidable or not math.isfinite(one.error):
        return math.inf
    return one.mean + student(one.freedom, min(1.0, 2 * level / max(1, others))) * one.error


def blocks_to_settle(one: Comparison, margin: float, level: float, others: int) -> int | None:
    """Return how many blocks would prove the difference of the best from one of so many `others`, or bound it by the
    `margin` (on the scale of the mean) on both sides, if mean and spread stay what they are. None where MANY_BLOCKS
    would not do, or the blocks say nothing of it."""
    if not one.decidable or not math.isfinite(one.error):
        return None
    away, spread_of_mean = abs(one.mean), one.error * math.sqrt(one.blocks)

    def is_settled(count: int) -> bool:
        freedom = one.freedom * (count - 1) / (one.blocks - 1)
        error = spread_of_mean / math.sqrt(count)
        proven = away > student(freedom, level / max(1, others)) * error
        return proven or away + student(freedom, min(1.0, 2 * level / max(1, others))) * error <= margin

    counts = range(FEWEST_BLOCKS, MANY_BLOCKS + 1)
    found = bisect_left(counts, True, key=is_settled)
    return counts[found] if found < len(counts) else None
