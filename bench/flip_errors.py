"""Counts how often the interval of a crossing holds the true one, and how often a flip is reported that is none: the
figures of docs/flips.md, by the rule that chooses the levels of a run (kit/statistics/bisection.py).

    python bench/flip_errors.py [RUNS]

Along a factor from 1 to 1000 the contrast goes through 0 at a place that is drawn for each run: steadily (a fixed
amount for each factor of e), or in a step, flat on both sides. The noise of a block is drawn as for gates
(bench/gate_errors.py): from a normal distribution, from one with heavy tails, or from the blocks of a disturbed
machine; a part of it is common to the levels of a block. Contestants that are equal everywhere have no crossing, nor
those of which one is better everywhere.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from gate_errors import SHAPES, DrawBlocks

from netdyno.analysis.flips.judge_flips import bisect_flip
from netdyno.kit.statistics.bisection import Bisection
from netdyno.kit.statistics.block_counts import FLIP_LOOKS
from netdyno.model.experiment import Flip

FLIP = Flip(
    scenario="s",
    first="a",
    second="b",
    members={},
    along="connections",
    low=1,
    high=1000,
    metric="throughput",
    within=1.5,
)
COMMON = 0.3
"""The share of a block's variance that all its levels have in common."""
SPREADS = (0.03, 0.1)
ContrastTruth = Callable[[float, float], float]
"""The contrast at a place, where it goes through 0 at another."""


def steady(place: float, root: float, slope: float = 0.1) -> float:
    return slope * math.log(place / root)


def step(place: float, root: float, height: float = 0.15) -> float:
    return height * math.tanh(8 * math.log(place / root))


def equal(_place: float, _root: float) -> float:
    return 0.0


def better(_place: float, _root: float) -> float:
    return 0.15


TRUTHS: dict[str, ContrastTruth] = {
    "steady": steady,
    "step": step,
    "equal": equal,
    "one better": better,
}
CROSSING = ("steady", "step")


class FlipResult(NamedTuple):
    """The results of many runs: their verdicts, how many of the flips held the truth, the ratio of the interval's ends,
    and the blocks of a level times levels."""

    verdicts: Counter[str]
    held: int
    ratio: float
    level_blocks: float


def run(
    random: np.random.Generator, draw: DrawBlocks, spread: float, truth: ContrastTruth, root: float
) -> tuple[Bisection, int]:
    """Make one run, to its end, as the harness does: a block has the levels that are requested."""
    contrasts: dict[float, dict[int, float]] = {}
    tried: Counter[float] = Counter()
    levels: tuple[float, ...] = (1.0, 1000.0)
    block = 0
    pool = iter(draw(random, 2000))
    while levels:
        # Both ends have their first look's blocks at once, as a run plans them.
        for _ in range(FLIP_LOOKS[0] if not block else 1):
            block += 1
            common = math.sqrt(COMMON) * next(pool)
            for level in levels:
                tried[level] += 1
                noise = common + math.sqrt(1 - COMMON) * next(pool)
                contrasts.setdefault(level, {})[block] = truth(level, root) + spread * noise
        result = bisect_flip(FLIP, contrasts, tried, FLIP_LOOKS[-1], 0.05)
        levels = result.next_levels
    return result, tried.total()


def rates(runs: int, draw: DrawBlocks, spread: float, truth: ContrastTruth, seed: int = 1) -> FlipResult:
    random = np.random.default_rng(seed)
    verdicts, held, ratios, spent = Counter[str](), 0, [], []
    for _ in range(runs):
        root = math.exp(random.uniform(math.log(3), math.log(333)))
        result, blocks = run(random, draw, spread, truth, root)
        verdicts[result.flips.verdict] += 1
        spent.append(blocks)
        if result.flips.verdict == "flip":
            (crossing, *others) = result.flips.crossings
            held += not others and crossing.interval.low <= root <= crossing.interval.high
            ratios.append(crossing.interval.high / crossing.interval.low)
    return FlipResult(verdicts, held, statistics.median(ratios) if ratios else math.nan, statistics.median(spent))


def main(runs: int) -> None:
    head = ("blocks are", "spread", "contrast", "flip", "none", "open", "holds it", "ratio", "blocks")
    print("{:<22}{:>9}  {:<13}{:>7}{:>7}{:>7}{:>10}{:>7}{:>8}".format(*head))
    for shape, draw in SHAPES.items():
        for spread in SPREADS:
            for name, truth in TRUTHS.items():
                result = rates(runs, draw, spread, truth)
                shares = [f"{result.verdicts[verdict] / runs:.1%}" for verdict in ("flip", "none", "open")]
                flips = result.verdicts["flip"]
                holds = f"{result.held / flips:.1%}" if name in CROSSING and flips else "-"
                ratio = f"{result.ratio:.2f}" if name in CROSSING and flips else "-"
                print(
                    "{:<22}{:>9}  {:<13}{:>7}{:>7}{:>7}{:>10}{:>7}{:>8.0f}".format(
                        shape, f"{spread:.0%}", name, *shares, holds, ratio, result.level_blocks
                    ),
                    flush=True,
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
