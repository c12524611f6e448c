"""How often 95% intervals over a few blocks hold the truth: the figures of docs/adr/statistics.md, from simulation.

    python bench/interval_coverage.py [RUNS]

Each run draws one log ratio per block from a known distribution and asks each method for its interval.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from netdyno.statistics import stats
from netdyno.statistics.stats import Floats

BLOCKS = (4, 5, 6, 8, 10, 15)
LEVEL = 0.05
Method = Callable[[Floats], tuple[float, float]]
SHAPES: dict[str, tuple[Callable[[np.random.Generator, int], Floats], float]] = {
    "normal": (lambda random, n: random.normal(size=n), 0.0),
    "heavy (t, 3 df)": (lambda random, n: random.standard_t(3, size=n), 0.0),
    "skewed (exponential)": (lambda random, n: random.exponential(size=n), 1.0),
}


def quantiles(values: Floats, weights: Floats, low: float, high: float) -> tuple[float, float]:
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    found = [values[order][min(int(np.searchsorted(reached, q - 1e-12)), len(values) - 1)] for q in (low, high)]
    return float(found[0]), float(found[1])


def means(data: Floats) -> tuple[Floats, Floats]:
    multiplicities, chances = stats.resamples(len(data), 1)
    return np.asarray(multiplicities @ data / len(data)), chances


def percentile(data: Floats) -> tuple[float, float]:
    return quantiles(*means(data), LEVEL / 2, 1 - LEVEL / 2)


def expanded(data: Floats) -> tuple[float, float]:
    """What netdyno uses, here without its floor of five blocks."""
    tail = stats.expanded_tail(len(data))
    return quantiles(*means(data), tail, 1 - tail)


def bca(data: Floats) -> tuple[float, float]:
    """Bias-corrected and accelerated (Efron 1987)."""
    values, chances = means(data)
    below = float(chances[values < data.mean()].sum() + chances[np.isclose(values, data.mean())].sum() / 2)
    normal = NormalDist()
    bias = normal.inv_cdf(min(max(below, 1e-6), 1 - 1e-6))
    centred = data - data.mean()
    acceleration = float((centred**3).sum() / (6 * (centred**2).sum() ** 1.5))

    def moved(tail: float) -> float:
        z = bias + normal.inv_cdf(tail)
        return normal.cdf(bias + z / (1 - acceleration * z))

    return quantiles(values, chances, moved(LEVEL / 2), moved(1 - LEVEL / 2))


def student(data: Floats) -> tuple[float, float]:
    half = float(importlib.import_module("scipy.special").stdtrit(len(data) - 1, 1 - LEVEL / 2))
    half *= float(data.std(ddof=1)) / math.sqrt(len(data))
    return float(data.mean()) - half, float(data.mean()) + half


METHODS: dict[str, Method] = {"percentile": percentile, "BCa": bca, "expanded": expanded, "Student t": student}


def coverage(shape: str, blocks: int, runs: int) -> dict[str, float]:
    draw, truth = SHAPES[shape]
    random = np.random.default_rng(blocks)
    samples = [draw(random, blocks) for _ in range(runs)]
    held = {name: [low <= truth <= high for low, high in map(method, samples)] for name, method in METHODS.items()}
    return {name: float(np.mean(each)) for name, each in held.items()}


def main(runs: int) -> None:
    print(f"{'differences':22}{'blocks':>8}" + "".join(f"{name:>12}" for name in METHODS))
    for shape in SHAPES:
        for blocks in BLOCKS:
            found = coverage(shape, blocks, runs)
            print(f"{shape:22}{blocks:8}" + "".join(f"{share:12.1%}" for share in found.values()))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
