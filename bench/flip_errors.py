"""How often the interval of a crossing holds the true one, and how often a flip is told that is none: the figures of
docs/flips.md, by the rule that a run chooses its levels by (statistics/bisection.py).

    python bench/flip_errors.py [RUNS]

Along a factor from 1 to 1000 the contrast goes through 0 at a place that is drawn anew for each run: steadily (so much
for each factor of e), or in a step, flat on both sides. What a block says beside it is drawn as for gates
(bench/gate_errors.py): from a normal distribution, from one with heavy tails, or from the blocks of a disturbed
machine; a part of it is common to the levels of a block. Contestants that are equal everywhere have no crossing, and
those of which one is better everywhere neither.
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
from gate_errors import SHAPES, Draw

from netdyno.analysis.flips.judge import bisected
from netdyno.model.experiment import Flip
from netdyno.statistics.bisection import Bisection
from netdyno.statistics.block_counts import FLIP_LOOKS

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
Truth = Callable[[float, float], float]
"""The contrast at a place, where it goes through 0 at another."""


def steady(at: float, root: float, slope: float = 0.1) -> float:
    return slope * math.log(at / root)


def step(at: float, root: float, height: float = 0.15) -> float:
    return height * math.tanh(8 * math.log(at / root))


def equal(_at: float, _root: float) -> float:
    return 0.0


def better(_at: float, _root: float) -> float:
    return 0.15


TRUTHS: dict[str, Truth] = {
    "steady": steady,
    "step": step,
    "equal": equal,
    "one better": better,
}
CROSSING = ("steady", "step")


class Result(NamedTuple):
    """Of many runs: what they told, how many of the flips held the truth, and the blocks of a level times levels."""

    verdicts: Counter[str]
    held: int
    ratio: float
    level_blocks: float


def run(random: np.random.Generator, draw: Draw, spread: float, truth: Truth, root: float) -> tuple[Bisection, int]:
    """One run, to its end, as the harness makes it: a block has the levels that are wanted."""
    contrasts: dict[float, dict[int, float]] = {}
    tried: Counter[float] = Counter()
    wanted: tuple[float, ...] = (1.0, 1000.0)
    block = 0
    pool = iter(draw(random, 2000))
    while wanted:
        # Both ends have their first look's blocks at once, as a run plans them.
        for _ in range(FLIP_LOOKS[0] if not block else 1):
            block += 1
            common = math.sqrt(COMMON) * next(pool)
            for at in wanted:
                tried[at] += 1
                noise = common + math.sqrt(1 - COMMON) * next(pool)
                contrasts.setdefault(at, {})[block] = truth(at, root) + spread * noise
        found = bisected(FLIP, contrasts, tried, FLIP_LOOKS[-1], 0.05)
        wanted = found.wanted
    return found, tried.total()


def rates(runs: int, draw: Draw, spread: float, truth: Truth, seed: int = 1) -> Result:
    random = np.random.default_rng(seed)
    verdicts, held, ratios, spent = Counter[str](), 0, [], []
    for _ in range(runs):
        root = math.exp(random.uniform(math.log(3), math.log(333)))
        found, blocks = run(random, draw, spread, truth, root)
        verdicts[found.flips.verdict] += 1
        spent.append(blocks)
        if found.flips.verdict == "flip":
            (first, *more) = found.flips.crossings
            held += not more and first.interval.low <= root <= first.interval.high
            ratios.append(first.interval.high / first.interval.low)
    return Result(verdicts, held, statistics.median(ratios) if ratios else math.nan, statistics.median(spent))


def main(runs: int) -> None:
    head = ("blocks are", "spread", "contrast", "flip", "none", "open", "holds it", "ratio", "blocks")
    print("{:<22}{:>9}  {:<13}{:>7}{:>7}{:>7}{:>10}{:>7}{:>8}".format(*head))
    for shape, draw in SHAPES.items():
        for spread in SPREADS:
            for name, truth in TRUTHS.items():
                found = rates(runs, draw, spread, truth)
                shares = [f"{found.verdicts[verdict] / runs:.1%}" for verdict in ("flip", "none", "open")]
                flips = found.verdicts["flip"]
                holds = f"{found.held / flips:.1%}" if name in CROSSING and flips else "-"
                ratio = f"{found.ratio:.2f}" if name in CROSSING and flips else "-"
                print(
                    "{:<22}{:>9}  {:<13}{:>7}{:>7}{:>7}{:>10}{:>7}{:>8.0f}".format(
                        shape, f"{spread:.0%}", name, *shares, holds, ratio, found.level_blocks
                    ),
                    flush=True,
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
