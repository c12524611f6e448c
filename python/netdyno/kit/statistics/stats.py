"""Comparison of contestants within blocks: pure functions of numbers, nothing else.

The unit is a block: every level once, each trial a fresh server. The difference of two contestants in a block is the
mean log ratio of their metrics over the levels. One method judges all blocks: Student's t, whose interval is the
verdict. docs/adr/statistics.md says why, with simulations (f228f508:bench/comparison_methods.py)."""

from __future__ import annotations

import importlib
import itertools
import math
import statistics
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist
from types import ModuleType
from typing import Literal

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS, MANY_BLOCKS

Floats = NDArray[np.float64]
BlockLevel = tuple[int, str]
"""Block number and level: where in the experiment a figure was measured."""
Samples = Mapping[BlockLevel, float]
"""The metric of one contestant by cell, one value per server restart, every value above 0."""
Better = Literal["higher", "lower"]

SIGNIFICANCE = 0.05
"""The chance to err, of one family of comparisons: its intervals hold together with 95% confidence."""
BORROWED = 0.5
"""The weight of the spread of a family's other comparisons, where a comparison's own spread weighs 1."""
FEWEST_LENDERS = 2
"""A single other comparison does not show whether its spread is the usual one."""
ROUNDING = 1e-12
"""A spread below this share of the values is rounding error and counts as 0."""
MOST_LOG = 700.0
ENUMERATED_BLOCKS = 7
DRAWN_RESAMPLES = 4_000


# --- pairs -------------------------------------------------------------------------------------------------------


class Pairs(msgspec.Struct, frozen=True):
    """The cells in which two contestants are compared: block, level and log ratio of each, in one order. Each block has
    every level. (Claims compare shares, which may be 0, by their difference instead of the log ratio.)"""

    blocks: NDArray[np.int64]
    levels: NDArray[np.int64]
    log_ratios: Floats

    def __len__(self) -> int:
        return len(self.log_ratios)


def pair(a: Samples, b: Samples) -> Pairs:
    """Pair the cells that were measured for both. Raises ValueError on a value that has no logarithm."""
    shared = a.keys() & b.keys()
    for cell in sorted(shared):
        if not (a[cell] > 0 and b[cell] > 0):
            raise ValueError(f"cell {cell}: a ratio needs values above 0, got {a[cell]} and {b[cell]}")
    return pairs_of({cell: math.log(a[cell] / b[cell]) for cell in shared})


def pairs_of(contrasts: Mapping[BlockLevel, float]) -> Pairs:
    """Return the differences of two sides, one for each cell, as pairs."""
    cells = counted(contrasts)
    level_number = {level: number for number, level in enumerate(sorted({level for _, level in cells}))}
    return Pairs(
        np.array([block for block, _ in cells], dtype=np.int64),
        np.array([level_number[level] for _, level in cells], dtype=np.int64),
        np.array([contrasts[cell] for cell in cells], dtype=np.float64),
    )


def counted(shared: Iterable[BlockLevel]) -> list[BlockLevel]:
    """Return the cells that a comparison uses, so that every block compares the same levels. A level counts if both
    sides have it in at least half as many blocks as the most shared level; a block counts if it has all these levels.
    So one lost trial costs its block, and a level that one of the two cannot carry does not cost all blocks."""
    blocks: dict[str, set[int]] = {}
    for block, level in shared:
        blocks.setdefault(level, set()).add(block)
    most = max(map(len, blocks.values()), default=0)
    levels = [level for level, shared_in in blocks.items() if 2 * len(shared_in) >= most]
    whole = set[int].intersection(*(blocks[level] for level in levels)) if levels else set[int]()
    return sorted((block, level) for level in levels for block in whole)


def block_means(pairs: Pairs) -> Floats:
    """Return the difference of the two in each block, in the order of the blocks: the mean over its levels."""
    names, block = np.unique(pairs.blocks, return_inverse=True)
    sums = np.zeros(len(names))
    np.add.at(sums, block, pairs.log_ratios)
    return np.asarray(sums / np.bincount(block, minlength=len(names)), dtype=np.float64)


def log_ratio(pairs: Pairs) -> float:
    """Return the mean log ratio over blocks; its exponential is a geometric mean of ratios."""
    return float(block_means(pairs).mean())


# --- one interval, one test --------------------------------------------------------------------------------------


class Interval(msgspec.Struct, frozen=True):
    """An interval in the unit of its estimate."""

    low: float
    high: float


def spread(values: Floats) -> float:
    """Return the standard deviation; 0 where all values are the same but for rounding."""
    deviation = float(values.std(ddof=1))
    return deviation if deviation > ROUNDING * float(np.abs(values).max()) else 0.0


@lru_cache(maxsize=4096)
def student(freedom: float, significance: float = SIGNIFICANCE) -> float:
    """Return the number of standard errors to each side of an interval that misses the truth with the chance
    `significance`."""
    return float(import_special().stdtrit(freedom, 1 - significance / 2))


def p_of(mean: float, error: float, freedom: float) -> float:
    """Return the chance that the mean lies at least this far from 0 where the true one is 0. Without any error: 0, or 1
    for a mean that is 0 but for rounding."""
    if error == 0:
        return 0.0 if abs(mean) > ROUNDING else 1.0
    return 2 * float(import_special().stdtr(freedom, -abs(mean) / error))


def mean_interval(pairs: Pairs, significance: float = SIGNIFICANCE) -> Interval | None:
    """Return the interval of the mean over blocks (Student's t), on the log scale where the pairs are log ratios. None
    below FEWEST_BLOCKS."""
    means = block_means(pairs)
    if len(means) < FEWEST_BLOCKS:
        return None
    half = student(len(means) - 1, significance) * spread(means) / math.sqrt(len(means))
    return Interval(float(means.mean()) - half, float(means.mean()) + half)


def mean_p(pairs: Pairs, expected: float = 0.0) -> float:
    """Return the p-value of "the mean is as expected": at most `significance` exactly where the interval of that one
    excludes the expected mean."""
    means = block_means(pairs)
    if len(means) < FEWEST_BLOCKS:
        return 1.0
    return p_of(float(means.mean()) - expected, spread(means) / math.sqrt(len(means)), len(means) - 1)


def blocks_to_leave_out(pairs: Pairs, expected: float, significance: float = SIGNIFICANCE) -> int | None:
    """Return the number of blocks after which the interval excludes the expected mean, if mean and spread stay as
    they are. None where the blocks cannot show that, or MANY_BLOCKS are too few."""
    means = block_means(pairs)
    if len(means) < 2 or (away := abs(float(means.mean()) - expected)) <= ROUNDING:
        return None
    errors, counts = spread(means) / away, range(FEWEST_BLOCKS, MANY_BLOCKS + 1)
    position = bisect_left(counts, True, key=lambda count: student(count - 1, significance) * errors < math.sqrt(count))
    return counts[position] if position < len(counts) else None


def import_special() -> ModuleType:
    """Import scipy.special on first use, because its import is slow and most callers do not need it."""
    return importlib.import_module("scipy.special")


# --- the interval of a single figure -----------------------------------------------------------------------------


def interval(statistic: Callable[[Floats], Floats], blocks: int, seed: int = 1) -> Interval | None:
    """Return the 95% interval of a figure that is no mean over blocks, such as a percentile of merged histograms:
    bootstrap over whole blocks. `statistic` maps rows of block multiplicities to one value per row.

    The expanded percentile interval (Hesterberg 2015, The American Statistician 69:371): the percentile interval of few
    blocks is too short (84% instead of 95% at 5 blocks, and BCa is no better), so its tails are moved out to where
    Student's t would put them. Below 5 blocks no resampling can reach 95%, and there is no interval: None.
    NaN rows (a resample in which nothing can be computed) are left out.
    """
    computed = intervals(lambda drawn: statistic(drawn)[np.newaxis], blocks, seed)
    return computed[0] if computed else None


def intervals(statistics: Callable[[Floats], Floats], blocks: int, seed: int = 1) -> list[Interval | None]:
    """Return the intervals of several figures that are computed together, one row of values for each; empty where there
    are too few blocks."""
    if blocks < FEWEST_BLOCKS:
        return []
    multiplicities, chances = resamples(blocks, seed)
    tail = expanded_tail(blocks)
    return [_compute_bootstrap_interval(values, chances, tail) for values in statistics(multiplicities)]


def _compute_bootstrap_interval(values: Floats, chances: Floats, tail: float) -> Interval | None:
    usable = ~np.isnan(values)
    if not usable.any():
        return None
    low, high = _weighted_quantiles(values[usable], chances[usable], (tail, 1 - tail))
    return Interval(low, high)


@lru_cache(maxsize=32)
def expanded_tail(blocks: int) -> float:
    """Return the tail area that replaces SIGNIFICANCE/2 at this number of blocks; it tends to SIGNIFICANCE/2 as blocks
    grow."""
    return NormalDist().cdf(-math.sqrt(blocks / (blocks - 1)) * student(blocks - 1, SIGNIFICANCE))


@lru_cache(maxsize=32)
def resamples(blocks: int, seed: int) -> tuple[Floats, Floats]:
    """Return how often each block is drawn, one row per resample, and the chance of each row.

    With few blocks: every distinct resample with its multinomial chance, so that nothing depends on the seed.
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


def _weighted_quantiles(values: Floats, weights: Floats, probabilities: tuple[float, float]) -> tuple[float, float]:
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    low, high = (
        values[order][min(int(np.searchsorted(reached, probability - 1e-12)), len(values) - 1)]
        for probability in probabilities
    )
    return float(low), float(high)


# --- verdicts ----------------------------------------------------------------------------------------------------


class Comparison(msgspec.Struct, frozen=True):
    """`a` against `b`: the ratio of their metrics (a divided by b) where it is `relative`, else their difference.

    `different` means that `interval` excludes "no difference". Before `corrected` has seen the family, the interval is
    the `single` one, nothing is different, and `p_corrected` is 1. `spread` is the standard deviation between blocks,
    on the log scale of ratios. Comparisons of one `axis` (a metric, or a counter) are expected to have similar spreads.
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
    """Whether there are enough blocks for any verdict; without one, the two may differ by any amount."""
    different: bool = False
    single: Interval | None = None
    """The 95% interval of this comparison alone."""
    spread: float = math.nan
    relative: bool = True
    axis: str = ""
    error: float = math.nan
    """The standard error of the mean, with `freedom` degrees of freedom, from which the interval is computed."""
    freedom: float = math.nan

    @property
    def same(self) -> float:
        """The ratio, or the difference, of two equals."""
        return 1.0 if self.relative else 0.0

    @property
    def mean(self) -> float:
        """The mean on the scale on which the interval is symmetric."""
        return math.log(self.ratio) if self.relative else self.ratio


def compare(a: str, b: str, samples: Mapping[str, Samples], axis: str = "") -> Comparison:
    """Compare two contestants, without correction. Without a shared cell the ratio is NaN."""
    return comparison(a, b, pair(samples[a], samples[b]), axis=axis)


def comparison(a: str, b: str, pairs: Pairs, *, ratios: bool = True, axis: str = "") -> Comparison:
    """Compare two sides by their pairs, without correction. Where the pairs are differences and not `ratios` on the log
    scale, so are the `ratio` and its interval."""
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
    single = _compute_interval(blank, error, freedom, SIGNIFICANCE)
    return replace(
        blank, interval=single, single=single, p=_compute_p(blank, error, freedom), error=error, freedom=freedom
    )


def corrected(family: Sequence[Comparison], significance: float = SIGNIFICANCE) -> tuple[Comparison, ...]:
    """Return the same comparisons with the verdict of each. All intervals together hold the truth with the chance 1 -
    significance, so that is also the least chance that no difference is found where none is (Bonferroni: each has its
    share of it). A comparison with too few blocks cannot err and takes no share."""
    family_size = sum(comparison.decidable for comparison in family)
    return tuple(
        _judge(comparison, _find_lenders(number, family), family_size, significance)
        for number, comparison in enumerate(family)
    )


def _find_lenders(number: int, family: Sequence[Comparison]) -> list[float]:
    """Return the variances of the other comparisons of the same axis."""
    judged = family[number]
    return [
        comparison.spread**2
        for position, comparison in enumerate(family)
        if position != number
        and comparison.decidable
        and (comparison.axis, comparison.relative) == (judged.axis, judged.relative)
    ]


def _judge(comparison: Comparison, lenders: Sequence[float], family_size: int, significance: float) -> Comparison:
    if not comparison.decidable:
        return replace(comparison, p_corrected=1.0, interval=None, different=False)
    moderated_spread, freedom = moderated(comparison.spread, comparison.blocks - 1, lenders)
    error = moderated_spread / math.sqrt(comparison.blocks)
    judged = replace(
        comparison,
        error=error,
        freedom=freedom,
        p=_compute_p(comparison, error, freedom),
        single=_compute_interval(comparison, error, freedom, SIGNIFICANCE),
    )
    return _correct(judged, family_size, significance)


def _correct(comparison: Comparison, family_size: int, significance: float) -> Comparison:
    """Return the comparison with its verdict as one of `family_size` comparisons that share the significance."""
    interval = _compute_interval(comparison, comparison.error, comparison.freedom, significance / family_size)
    return replace(
        comparison,
        p_corrected=min(1.0, family_size * comparison.p),
        interval=interval,
        different=interval is not None and not interval.low <= comparison.same <= interval.high,
    )


def compared_with_the_best(
    names: Sequence[str], family: Sequence[Comparison], better: Better, significance: float = SIGNIFICANCE
) -> tuple[Comparison, ...]:
    """Return the comparisons of one axis where the question is which contestant is best. If one is better than each
    other when only its comparisons with the others are corrected together, these verdicts hold. All other comparisons
    stay as they are, corrected with all pairs. Among equals, one is hardly ever better than all (docs/adr/statistics.md
    has the rates), so this errs no more often."""
    for name in names:
        with_name = [
            comparison
            for comparison in family
            if name in (comparison.a, comparison.b) and {comparison.a, comparison.b} <= {*names}
        ]
        judged = {
            id(comparison): _correct(comparison, len(with_name), significance)
            for comparison in with_name
            if comparison.decidable
        }
        if len(judged) == len(names) - 1 > 0 and all(
            winner(comparison, better) == name for comparison in judged.values()
        ):
            return tuple(judged.get(id(comparison), comparison) for comparison in family)
    return tuple(family)


def moderated(own: float, freedom: int, lenders: Sequence[float]) -> tuple[float, float]:
    """Return the moderated spread and its degrees of freedom: two parts a comparison's own variance, one part the
    median of the others (Smyth 2004, Stat. Appl. Genet. Mol. Biol. 3:3, with a weight that is fixed). The median, so
    that one contestant that scatters widely does not widen the intervals of all."""
    if len(lenders) < FEWEST_LENDERS:
        return own, float(freedom)
    variance = (own**2 + BORROWED * statistics.median(lenders)) / (1 + BORROWED)
    return math.sqrt(variance), freedom * (1 + BORROWED)


def _compute_p(comparison: Comparison, error: float, freedom: float) -> float:
    return p_of(comparison.mean, error, freedom) if comparison.decidable else 1.0


def _compute_interval(comparison: Comparison, error: float, freedom: float, significance: float) -> Interval | None:
    if not comparison.decidable:
        return None
    half = student(freedom, significance) * error
    low, high = comparison.mean - half, comparison.mean + half
    if half == 0:
        return Interval(comparison.ratio, comparison.ratio)
    return Interval(_exp(low), _exp(high)) if comparison.relative else Interval(low, high)


def _exp(value: float) -> float:
    """Return the exponential; infinite where no float is large enough."""
    return math.exp(value) if value < MOST_LOG else math.inf


# --- ranks ----------------------------------------------------------------------------------------------------------


def ranks(names: Sequence[str], family: Sequence[Comparison], better: Better) -> dict[str, int]:
    """Return the rank of each: 1 plus the number that are proven better. Equal ranks do not prove equality: of three
    neighbours the first may be proven better than the last alone, with ranks 1, 1 and 2."""
    proven = ahead(family, better)
    return {name: 1 + sum((rival, name) in proven for rival in names) for name in names}


def unbeaten(names: Sequence[str], family: Sequence[Comparison], better: Better) -> list[str]:
    """Return the names that no other one is proven to beat, in the order given."""
    return [name for name, rank in ranks(names, family, better).items() if rank == 1]


def ahead(family: Iterable[Comparison], better: Better) -> frozenset[tuple[str, str]]:
    """Return the pairs (better, worse) that are proven: directly, or through others, because all intervals hold
    together."""
    beats: dict[str, set[str]] = {}
    for comparison in family:
        if (above := winner(comparison, better)) is not None:
            beats.setdefault(above, set()).add(comparison.b if above == comparison.a else comparison.a)
    for between in list(beats):
        for losers in beats.values():
            if between in losers:
                losers |= beats[between]
    return frozenset((above, below) for above, losers in beats.items() for below in losers)


def winner(comparison: Comparison, better: Better) -> str | None:
    """Return the one of the two that is proven better; None where neither is."""
    if not comparison.different:
        return None
    return comparison.a if (comparison.ratio > comparison.same) == (better == "higher") else comparison.b


def without_circles(family: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Return the comparisons of one axis without the verdicts and intervals that contradict each other. Where each pair
    of three shares different blocks, each of the three may seem better than the next."""
    proven = ahead(family, "higher")
    return tuple(
        replace(comparison, different=False, interval=None, decidable=False, p_corrected=1.0)
        if {(comparison.a, comparison.b), (comparison.b, comparison.a)} <= proven
        else comparison
        for comparison in family
    )


def most_above(comparison: Comparison, significance: float, rivals: int) -> float:
    """Return the upper bound of the mean of `a` against `b`, on the scale of `Comparison.mean`: a one-sided interval.
    The bounds of `rivals` comparisons hold together with the chance 1 - significance. Infinite where there are too few
    blocks.

    Where `a` is the best of all, the bounds of all others against it are "multiple comparisons with the best" (Hsu
    1981, Ann. Stat. 9:1026). They need no correction for the pairs without the best."""
    if not comparison.decidable or not math.isfinite(comparison.error):
        return math.inf
    return comparison.mean + student(comparison.freedom, min(1.0, 2 * significance / max(1, rivals))) * comparison.error


def blocks_to_settle(comparison: Comparison, margin: float, significance: float, rivals: int) -> int | None:
    """Return the number of blocks that would prove the difference of the best from one of `rivals`, or bound it by the
    `margin` (on the scale of the mean) on both sides, if mean and spread stay as they are. None where MANY_BLOCKS are
    too few, or the blocks cannot show it."""
    if not comparison.decidable or not math.isfinite(comparison.error):
        return None
    away, spread_of_mean = abs(comparison.mean), comparison.error * math.sqrt(comparison.blocks)

    def is_settled(count: int) -> bool:
        freedom = comparison.freedom * (count - 1) / (comparison.blocks - 1)
        error = spread_of_mean / math.sqrt(count)
        proven = away > student(freedom, significance / max(1, rivals)) * error
        return proven or away + student(freedom, min(1.0, 2 * significance / max(1, rivals))) * error <= margin

    counts = range(FEWEST_BLOCKS, MANY_BLOCKS + 1)
    position = bisect_left(counts, True, key=is_settled)
    return counts[position] if position < len(counts) else None
