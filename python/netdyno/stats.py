"""Paired comparison of contestants: pure functions of numbers, nothing else.

The unit is a server restart. A pair is one (block, level) cell that both contestants were measured in; the figure of a
pair is the log of the ratio of their metrics. docs/adr/statistics.md says why each method was chosen, with simulations.
"""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Cell = tuple[int, str]
"""Block number and level: where in the experiment a figure was measured."""
Samples = Mapping[Cell, float]
"""The metric of one contestant by cell, one value per server restart, every value above 0."""
Better = Literal["higher", "lower"]

LEVEL = 0.05
ENUMERATED_PAIRS = 20
"""Up to here every sign pattern is counted (half a million by symmetry); beyond it, patterns are drawn."""
DRAWN_PATTERNS = 99_999
DRAWN_AT_ONCE = 10_000
ENUMERATED_BLOCKS = 7
DRAWN_RESAMPLES = 4_000
FEWEST_BLOCKS_FOR_INTERVAL = 5


# --- pairs -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pairs:
    """The cells two contestants share: block, level and log ratio of each, in one order. (Of shares, which may be 0,
    claims take the difference for the log ratio.)"""

    blocks: NDArray[np.int64]
    levels: NDArray[np.int64]
    log_ratios: Floats

    def __len__(self) -> int:
        return len(self.log_ratios)

    def weights(self) -> Floats:
        """Equal weight for each level, and within a level for each pair: a lost trial does not shift the question."""
        counts = np.bincount(self.levels)
        return np.asarray(1.0 / (np.count_nonzero(counts) * counts[self.levels]), dtype=np.float64)


def pair(a: Samples, b: Samples) -> Pairs:
    """Every cell measured for both. Raises ValueError on a value that has no logarithm."""
    shared = sorted(a.keys() & b.keys())
    for cell in shared:
        if not (a[cell] > 0 and b[cell] > 0):
            raise ValueError(f"cell {cell}: a ratio needs values above 0, got {a[cell]} and {b[cell]}")
    return pairs_of({cell: math.log(a[cell] / b[cell]) for cell in shared})


def pairs_of(contrasts: Mapping[Cell, float]) -> Pairs:
    """What two sides differ by, cell by cell, as pairs."""
    cells = sorted(contrasts)
    level_number = {level: number for number, level in enumerate(sorted({level for _, level in cells}))}
    return Pairs(
        np.array([block for block, _ in cells], dtype=np.int64),
        np.array([level_number[level] for _, level in cells], dtype=np.int64),
        np.array([contrasts[cell] for cell in cells], dtype=np.float64),
    )


def log_ratio(pairs: Pairs) -> float:
    """Mean log ratio, each level weighing the same; its exponential is a geometric mean of ratios."""
    return float(pairs.weights() @ pairs.log_ratios)


# --- the test ----------------------------------------------------------------------------------------------------


def sign_flip_p(pairs: Pairs, seed: int = 1) -> float:
    """Two-sided p-value of "both are the same server", by flipping the signs of pairs; never 0.

    Order within a block is random, so if the two do not differ, each sign is a fair coin and the count is exact
    (Fisher 1935; Phipson & Smyth 2010 for the +1 that keeps a drawn p-value valid). No pair at all gives 1.
    """
    return _flip(pairs.weights() * pairs.log_ratios, seed) if len(pairs) else 1.0


def block_flip_p(pairs: Pairs, seed: int = 1) -> float:
    """The same by flipping whole blocks: for contrasts with something else than "no difference", or with a constant,
    which the pairs of a block miss together where the machine is slow for a while."""
    return _flip(block_terms(pairs), seed) if len(pairs) else 1.0


def block_terms(pairs: Pairs) -> Floats:
    """What each block adds to the mean log ratio, in the order of the blocks."""
    names, block = np.unique(pairs.blocks, return_inverse=True)
    terms = np.zeros(len(names))
    np.add.at(terms, block, pairs.weights() * pairs.log_ratios)
    return terms


def _flip(terms: Floats, seed: int) -> float:
    """How often signs by chance give a sum as far from 0 as that of the terms."""
    observed = abs(float(terms.sum()))
    threshold = observed - 1e-12 * float(np.abs(terms).sum())
    if len(terms) <= ENUMERATED_PAIRS:
        sums = _all_sign_sums(terms)
        return int(np.count_nonzero(np.abs(sums) >= threshold)) / len(sums)
    signs = _drawn_signs(len(terms), seed)
    beyond = sum(
        int(np.count_nonzero(np.abs(signs[start : start + DRAWN_AT_ONCE] @ terms) >= threshold))
        for start in range(0, DRAWN_PATTERNS, DRAWN_AT_ONCE)
    )
    return (1 + beyond) / (1 + DRAWN_PATTERNS)


@lru_cache(maxsize=2)
def _drawn_signs(terms: int, seed: int) -> NDArray[np.int8]:
    """Patterns of so many signs, one per row. They are kept, for a report asks for the same ones hundreds of times; as
    bytes, of which 180 pairs need 18 MB."""
    generator = np.random.default_rng(seed)
    signs = np.empty((DRAWN_PATTERNS, terms), dtype=np.int8)
    for start in range(0, DRAWN_PATTERNS, DRAWN_AT_ONCE):
        rows = signs[start : start + DRAWN_AT_ONCE]
        rows[:] = generator.integers(0, 2, size=rows.shape) * 2 - 1
    return signs


def _all_sign_sums(terms: Floats) -> Floats:
    """The sums over all sign patterns with the first sign fixed; the other half are their mirror images."""
    sums = terms[:1]
    for term in terms[1:]:
        sums = np.concatenate([sums + term, sums - term])
    return sums


def smallest_p(pairs: int) -> float:
    """The least p-value that the test can give for this many pairs, whatever is measured."""
    if pairs == 0:
        return 1.0
    return 2.0 ** (1 - pairs) if pairs <= ENUMERATED_PAIRS else 1 / (1 + DRAWN_PATTERNS)


def pairs_needed(comparisons: int, level: float = LEVEL) -> int:
    """How many pairs each of this many comparisons needs before any can pass the corrected test."""
    return math.ceil(1 + math.log2(max(comparisons, 1) / level) - 1e-12)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment: rejecting where the result is at most L keeps the family-wise error at most L."""
    adjusted = [1.0] * len(p_values)
    running = 0.0
    for position, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        running = max(running, (len(p_values) - position) * p_values[index])
        adjusted[index] = min(1.0, running)
    return adjusted


# --- the interval ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interval:
    """A 95% interval in the unit of its estimate."""

    low: float
    high: float


def interval(statistic: Callable[[Floats], Floats], blocks: int, seed: int = 1) -> Interval | None:
    """Bootstrap over whole blocks: `statistic` maps rows of block multiplicities to one value per row.

    The expanded percentile interval (Hesterberg 2015, The American Statistician 69:371): the percentile interval of few
    blocks is too short (84% instead of 95% at 5 blocks, and BCa is no better), so its tails are moved out to where
    Student's t would put them. Below 5 blocks no resampling can reach 95%, and there is no interval: None.
    NaN rows (a resample in which nothing can be computed) are left out.
    """
    if blocks < FEWEST_BLOCKS_FOR_INTERVAL:
        return None
    multiplicities, chances = resamples(blocks, seed)
    values = statistic(multiplicities)
    usable = ~np.isnan(values)
    if not usable.any():
        return None
    tail = expanded_tail(blocks)
    low, high = _weighted_quantiles(values[usable], chances[usable], (tail, 1 - tail))
    return Interval(low, high)


@lru_cache(maxsize=32)
def expanded_tail(blocks: int, level: float = LEVEL) -> float:
    """The tail area that stands in for level/2 at this number of blocks; it tends to level/2 as blocks grow."""
    student = float(importlib.import_module("scipy.special").stdtrit(blocks - 1, 1 - level / 2))
    return NormalDist().cdf(-math.sqrt(blocks / (blocks - 1)) * student)


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


def ratio_interval(pairs: Pairs, seed: int = 1) -> Interval | None:
    """Interval of the geometric-mean ratio."""
    logs = mean_interval(pairs, seed)
    return logs and Interval(math.exp(logs.low), math.exp(logs.high))


def mean_interval(pairs: Pairs, seed: int = 1) -> Interval | None:
    """Interval of the mean over pairs, each level weighing the same; a block is drawn with all of its levels or not at
    all."""
    names, block = np.unique(pairs.blocks, return_inverse=True)
    shape = (len(names), int(pairs.levels.max(initial=-1)) + 1)
    sums, counts = np.zeros(shape), np.zeros(shape)
    np.add.at(sums, (block, pairs.levels), pairs.log_ratios)
    np.add.at(counts, (block, pairs.levels), 1.0)

    def means_of(multiplicities: Floats) -> Floats:
        drawn = multiplicities @ counts
        means = np.divide(multiplicities @ sums, drawn, out=np.zeros_like(drawn), where=drawn > 0)
        present = np.count_nonzero(drawn, axis=1)
        return np.asarray(means.sum(axis=1) / np.where(present, present, np.nan))

    return interval(means_of, len(names), seed)


# --- verdicts ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """`a` against `b`: ratio of their metrics (a divided by b), and whether the test tells them apart.

    `decidable`: beside the other comparisons as they came out, this many pairs could have told the two apart. `p_holm`
    is 1 before `corrected` has seen the whole family.
    """

    a: str
    b: str
    pairs: int
    blocks: int
    ratio: float
    interval: Interval | None
    p: float
    p_holm: float = 1.0
    decidable: bool = False
    different: bool = False


def compare(a: str, b: str, samples: Mapping[str, Samples], seed: int = 1) -> Comparison:
    """One comparison, not yet corrected. Without a shared cell the ratio is NaN."""
    return comparison(a, b, pair(samples[a], samples[b]), seed)


def comparison(a: str, b: str, pairs: Pairs, seed: int = 1, *, ratios: bool = True) -> Comparison:
    """The same of pairs that are there already. Where they are differences and not `ratios` on the log scale, so are
    the `ratio` and its interval."""
    effect = log_ratio(pairs) if len(pairs) else math.nan
    return Comparison(
        a=a,
        b=b,
        pairs=len(pairs),
        blocks=len(np.unique(pairs.blocks)),
        ratio=math.exp(effect) if ratios else effect,
        interval=ratio_interval(pairs, seed) if ratios else mean_interval(pairs, seed),
        p=sign_flip_p(pairs, seed),
    )


def corrected(family: Sequence[Comparison], level: float = LEVEL) -> tuple[Comparison, ...]:
    """The same comparisons with Holm's correction over all of them and the verdict of each."""
    p_values = [comparison.p for comparison in family]
    adjusted = holm(p_values)

    def reachable(index: int) -> float:
        """What Holm would make of the least p-value that this comparison could have had."""
        return holm([*p_values[:index], smallest_p(family[index].pairs), *p_values[index + 1 :]])[index]

    return tuple(
        replace(one, p_holm=p, decidable=reachable(index) <= level, different=p <= level)
        for index, (one, p) in enumerate(zip(family, adjusted, strict=True))
    )


def effects(samples: Mapping[str, Samples]) -> dict[str, float]:
    """Mean log metric of each contestant with the cell's own level taken out (additive model, least squares).

    With nothing missing this is the plain mean of logs. A contestant that lost its slow cells does not look fast.
    A contestant without a figure is absent from the result.
    """
    names = [name for name in samples if samples[name]]
    cells = sorted({cell for name in names for cell in samples[name]})
    rows = [
        (contestant, cells.index(cell), math.log(value))
        for contestant, name in enumerate(names)
        for cell, value in samples[name].items()
    ]
    if not rows:
        return {}
    design = np.zeros((len(rows), len(names) + len(cells)))
    for row, (contestant, cell, _) in enumerate(rows):
        design[row, contestant] = design[row, len(names) + cell] = 1.0
    solution = np.linalg.lstsq(design, np.array([value for _, _, value in rows]), rcond=None)[0]
    everywhere = float(solution[len(names) :].mean())
    return {name: float(solution[i]) + everywhere for i, name in enumerate(names)}


def ranks(best_first: Sequence[str], family: Sequence[Comparison], better: Better) -> dict[str, int]:
    """Ranks with tie groups: 1, 1, 3 ... A line is drawn between two neighbours only where everyone above it is
    proven better than everyone below it.

    "Cannot be told apart" is not transitive: A~B and B~C can stand beside A better than C. Then all three share a rank,
    for B belongs to both; that A leads C is still true, and stands in the table of comparisons.
    """
    ahead = {winner_loser for one in family if (winner_loser := _winner_loser(one, better))}
    result: dict[str, int] = {}
    rank = 1
    for position, name in enumerate(best_first):
        above, below = best_first[:position], best_first[position:]
        if position and all((upper, lower) in ahead for upper in above for lower in below):
            rank = position + 1
        result[name] = rank
    return result


def unbeaten(names: Sequence[str], family: Sequence[Comparison], better: Better) -> list[str]:
    """Those that nobody is proven better than, in the order given."""
    beaten = {pair_[1] for one in family if (pair_ := _winner_loser(one, better))}
    return [name for name in names if name not in beaten]


def _winner_loser(one: Comparison, better: Better) -> tuple[str, str] | None:
    if not one.different:
        return None
    return (one.a, one.b) if (one.ratio > 1) == (better == "higher") else (one.b, one.a)
