"""Shows what ending a run by the width of its intervals does to these intervals and to the verdicts: the figures of
docs/adr/adaptive-precision.md, from simulation.

    python bench/adaptive_precision.py [RUNS [NOISE]]

Each simulated run measures a few contestants block by block until every interval of a ratio is narrow enough, by three
rules: `first look` ends at the first look at which all are narrow, from five blocks on; `rule` is netdyno's
(precision.py); `fixed` has in each run the number of blocks that the rule takes in the middle. Printed for each:

    blocks    the mean number; `end` the share of runs that reached the budget
    covered   the share of the 95% intervals that hold the truth where the run ends
    false     the share of runs in which the test calls two equals different; a dash where no two are equal
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from netdyno.kit.statistics import block_counts, precision, stats
from netdyno.kit.statistics.stats import Floats

NOISE = 0.05
"""Standard deviation of the log figure of one trial, unless stated otherwise."""
BUDGET = 50
DrawRuns = Callable[[np.random.Generator, tuple[int, int, int]], Floats]
"""A function from (runs, blocks, contestants) to logs of figures of equal contestants."""


# --- machines ----------------------------------------------------------------------------------------------------


def log_normal(random: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    return random.normal(0, NOISE, shape)


def drifting(random: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    """Draw a machine that changes by a fifth between blocks, and steadily by as much within each; the order is
    random."""
    between = np.cumsum(random.normal(0, 0.2, (*shape[:2], 1)), axis=1)
    slope = random.normal(0, 0.2, (*shape[:2], 1))
    order = random.permuted(np.broadcast_to(np.arange(shape[2]) / (shape[2] - 1), shape), axis=2)
    return between + slope * order + random.normal(0, NOISE / 2, shape)


def slow_trials(random: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    """Draw figures of which one in ten is slower by a fifth to a half."""
    hit = random.random(shape) < 0.1
    return random.normal(0, NOISE, shape) - hit * random.uniform(0.2, 0.6, shape)


def heavy_tails(random: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    return NOISE * random.standard_t(3, shape) / math.sqrt(3)


def moody(random: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    """Draw quiet or rough noise, ten blocks at a time."""
    phases = np.where(random.random((shape[0], shape[1] // 10 + 1, 1)) < 0.5, 0.4, 1.6)
    return random.normal(0, NOISE, shape) * phases.repeat(10, axis=1)[:, : shape[1]]


def one_is_skewed(random: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    """Draw mishaps of the first contestant that the others do not have; on the average it is as fast."""
    logs = random.normal(0, NOISE, shape)
    logs[:, :, 0] += 0.07 - random.exponential(0.07, shape[:2])
    return logs


@dataclass(frozen=True)
class SimulatedMachine:
    """`asked` are the requested precisions: one that is reached early, and one that takes longer."""

    draw: DrawRuns
    asked: tuple[float, float]


MACHINES = {
    "log-normal": SimulatedMachine(log_normal, (0.06, 0.04)),
    "drifting": SimulatedMachine(drifting, (0.15, 0.10)),
    "slow trials": SimulatedMachine(slow_trials, (0.15, 0.10)),
    "moody": SimulatedMachine(moody, (0.06, 0.04)),
    "heavy tails": SimulatedMachine(heavy_tails, (0.06, 0.04)),
    "one skewed": SimulatedMachine(one_is_skewed, (0.09, 0.06)),
}
DIFFERENCES = {"none": 0.0, "as asked": 1.0, "five times": 5.0}
"""The difference between the last contestant and the first, in units of the requested precision. Of four, the third
lies half-way and the second is the same as the first."""
CONTESTANTS = (2, 4)


# --- looks -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Looks:
    """Every look at every comparison, over (blocks, runs, comparisons); those before the fifth block are wide open.
    `about_none` are half widths about a mean of 0, on the log scale as all here."""

    low: Floats
    high: Floats
    means: Floats
    about_none: Floats

    @property
    def halves(self) -> Floats:
        return (self.high - self.low) / 2


def look(series: Floats) -> Looks:
    """Look at the log ratios `series`, over (runs, blocks, comparisons), after each block."""
    runs, budget, comparisons = series.shape
    shape = (budget + 1, runs, comparisons)
    means, halves, about_none = np.zeros(shape), np.full(shape, np.inf), np.full(shape, np.inf)
    sums, squares = np.cumsum(series, axis=1), np.cumsum(series**2, axis=1)
    for count in range(block_counts.FEWEST_BLOCKS, budget + 1):
        measured = series[:, :count]
        means[count] = sums[:, count - 1] / count
        halves[count] = stats.student(count - 1) * measured.std(axis=1, ddof=1) / math.sqrt(count)
        about_none[count] = precision.half_about_none(count, squares[:, count - 1])
    return Looks(means - halves, means + halves, means, about_none)


def first_true(ends: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the first look of each run at which it ends; else the budget."""
    return np.where(ends.any(axis=0), ends.argmax(axis=0), len(ends) - 1)


def at_first_look(looks: Looks, requested: float) -> NDArray[np.int64]:
    return first_true((looks.halves <= math.log1p(requested)).all(axis=2))


def by_rule(looks: Looks, requested: float) -> NDArray[np.int64]:
    """Return the look at which precision.settled first holds for all comparisons; a test holds the two together."""
    narrow = np.asarray(precision.are_narrow(looks.means, looks.halves, looks.about_none, requested), dtype=bool)
    narrow[: block_counts.FIRST_LOOK] = False
    ends = narrow.copy()
    for earlier in range(1, block_counts.LOOKS):
        ends[earlier:] &= narrow[:-earlier]
    return first_true(ends.all(axis=2))


# --- what comes of it --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StoppingOutcome:
    blocks: float
    at_budget: float
    covered: float
    false_alarms: float | None


def outcome(series: Floats, looks: Looks, truth: Floats, ends: NDArray[np.int64]) -> StoppingOutcome:
    runs = np.arange(len(ends))
    covered = (looks.low[ends, runs] <= truth) & (truth <= looks.high[ends, runs])
    equal = np.isclose(truth, 0)
    return StoppingOutcome(
        blocks=float(ends.mean()),
        at_budget=float((ends == series.shape[1]).mean()),
        covered=float(covered.mean()),
        false_alarms=false_alarms(looks, equal, ends) if equal.any() else None,
    )


def false_alarms(looks: Looks, equal: NDArray[np.bool_], ends: NDArray[np.int64]) -> float:
    """Return the share of runs in which, corrected for all comparisons, some false difference is left. A comparison's
    spread is its own here: two contestants have no others to borrow from, and that is the worst case."""
    comparisons = len(equal)
    runs = np.arange(len(ends))
    wider = np.array(
        [stats.student(int(count) - 1, stats.LEVEL / comparisons) / stats.student(int(count) - 1) for count in ends]
    )
    is_different = np.abs(looks.means[ends, runs]) > wider[:, None] * looks.halves[ends, runs]
    return float((is_different & equal).any(axis=1).mean())


class Simulation:
    """Runs over one machine."""

    def __init__(self, machine: SimulatedMachine, contestants: int, runs: int) -> None:
        logs = machine.draw(np.random.default_rng(contestants), (runs, BUDGET, contestants))
        self._contestants = contestants
        self._pairs = list(itertools.combinations(range(contestants), 2))
        self._series = self._contrasts(logs)

    def _contrasts(self, figures: Floats) -> Floats:
        """Return the differences of each two contestants, along the last axis."""
        return np.stack([figures[..., first] - figures[..., second] for first, second in self._pairs], axis=-1)

    def outcomes(self, times: float, requested: float) -> Iterator[StoppingOutcome]:
        """Yield the outcome of each rule, in the order of RULES, over the same runs."""
        effects = np.zeros(self._contestants)
        effects[-1] = times * math.log1p(requested)
        if self._contestants > 3:
            effects[-2] = effects[-1] / 2
        truth = self._contrasts(effects)
        series = self._series + truth
        looks = look(series)
        ends = by_rule(looks, requested)
        for rule_ends in (at_first_look(looks, requested), ends, np.full(len(ends), int(np.median(ends)))):
            yield outcome(series, looks, truth, rule_ends)


RULES = ("first look", "rule", "fixed")


def main(runs: int, noise: str | None) -> None:
    columns = "".join(f"| {name:10}{'blocks':>7}{'end':>6}{'covered':>9}{'false':>7} " for name in RULES)
    print(f"{'noise':13}{'servers':>8}{'asked':>7}  {'difference':12}{columns}")
    for name in MACHINES if noise is None else [noise]:
        for contestants in CONTESTANTS:
            simulation = Simulation(MACHINES[name], contestants, runs)
            for (difference, times), requested in itertools.product(DIFFERENCES.items(), MACHINES[name].asked):
                rows = "".join(map(row, simulation.outcomes(times, requested)))
                print(f"{name:13}{contestants:8}{requested:7.0%}  {difference:12}{rows}", flush=True)


def row(outcome: StoppingOutcome) -> str:
    false = "-" if outcome.false_alarms is None else f"{outcome.false_alarms:.1%}"
    return f"| {'':10}{outcome.blocks:7.1f}{outcome.at_budget:6.0%}{outcome.covered:9.1%}{false:>7} "


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, sys.argv[2] if len(sys.argv) > 2 else None)
