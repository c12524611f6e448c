"""Counts how often a gate errs: the figures of docs/adr/gate.md, by the rule that decides gates.

    python bench/gate_errors.py [GATES]

Each gate has LINES lines, each a metric with a margin of 5%. The difference of both servers in a block is drawn: from a
normal distribution, from one with heavy tails, or from the blocks of a disturbed machine (bench/disturbed_blocks.csv),
centred. A slower server is so on the first line only. Spread is the standard deviation between blocks; a gate is looked
at as the harness does, and ends at the first look that decides it, after MOST blocks at the latest.
"""

from __future__ import annotations

import csv
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from netdyno.analysis.found.gate import Outcome
from netdyno.analysis.gate.judge_gate import decide_gate, decide_outcome
from netdyno.kit.statistics import looks, stats
from netdyno.kit.statistics.block_counts import GATE_LOOKS
from netdyno.kit.statistics.stats import Floats, Pairs

TABLE = Path(__file__).with_name("disturbed_blocks.csv")
MARGIN = 0.05
LINES = 4
MOST = 150
SLOWER = (1.0, 1.025, 1.05, 1.1)
SPREADS = (0.03, 0.1)
DrawBlocks = Callable[[np.random.Generator, int], Floats]
"""Draws blocks with a mean of 0 and a standard deviation of 1."""


def disturbed(column: str = "cpu") -> DrawBlocks:
    """Draw from the log ratios of every two contestants of every question, by turns, centred and scaled."""
    figures: dict[str, dict[str, dict[str, float]]] = {}
    with TABLE.open() as file:
        for row in csv.DictReader(file):
            figures.setdefault(row["question"], {}).setdefault(row["contestant"], {})[row["turn"]] = float(row[column])
    pool: list[Floats] = []
    for contestants in figures.values():
        for first, second in itertools.combinations(contestants.values(), 2):
            ratios = np.array([first[turn] - second[turn] for turn in first if turn in second])
            if len(ratios) > 1 and ratios.std() > 0:
                pool.append((ratios - ratios.mean()) / ratios.std())

    def draw(random: np.random.Generator, blocks: int) -> Floats:
        return np.asarray(random.choice(pool[int(random.integers(len(pool)))], size=blocks))

    return draw


SHAPES: Mapping[str, DrawBlocks] = {
    "normal": lambda random, blocks: random.normal(size=blocks),
    "heavy tails (t, 3 df)": lambda random, blocks: random.standard_t(3, size=blocks) / np.sqrt(3),
    "a disturbed machine's": disturbed(),
}


def gate(random: np.random.Generator, draw: DrawBlocks, spread: float, slower: float) -> tuple[str, int]:
    """Return the verdict of a gate, and its blocks. All metrics are better when lower."""
    truths = [np.log(slower), *([0.0] * (LINES - 1))]
    lines = [truth + spread * draw(random, MOST) for truth in truths]
    blocks = 0
    for blocks in (count for count in GATE_LOOKS if count <= MOST):
        verdict = decide_gate([_judge_line(line[:blocks]) for line in lines])
        if verdict != "open":
            return verdict, blocks
    return "open", blocks


def _judge_line(log_ratios: Floats) -> Outcome:
    numbers = np.arange(len(log_ratios))
    pairs = Pairs(numbers, np.zeros_like(numbers), log_ratios)
    return decide_outcome(looks.held(pairs, stats.LEVEL / LINES), MARGIN, "lower")


def rates(gates: int, draw: DrawBlocks, spread: float, slower: float) -> tuple[Counter[str], float]:
    random = np.random.default_rng(1)
    ends = [gate(random, draw, spread, slower) for _ in range(gates)]
    return Counter(end for end, _ in ends), float(np.median([blocks for _, blocks in ends]))


def main(arguments: Sequence[str]) -> None:
    gates = int(arguments[0]) if arguments else 1000
    print(f"{'blocks are':24}{'spread':>8}{'slower by':>11}{'exit 0':>9}{'exit 1':>9}{'exit 3':>9}{'blocks':>8}")
    for shape, draw in SHAPES.items():
        for spread, slower in itertools.product(SPREADS, SLOWER):
            ends, blocks = rates(gates, draw, spread, slower)
            shares = "".join(f"{ends[end] / gates:9.1%}" for end in ("passes", "fails", "open"))
            print(f"{shape:24}{spread:8.0%}{slower - 1:11.1%}{shares}{blocks:8.0f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
