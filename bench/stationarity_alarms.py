"""How often the audit `stationary` strikes out, by simulation: the tables of docs/measurements/stationarity.md.

    python bench/stationarity_alarms.py [RUNS]

Throughput is made up as an autoregressive series of first order around a level, or around one that moves. Printed are
how often each test finds a still series moving, where 1% of its statistics lie, and how often the whole audit strikes
out windows that are still and windows that move.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from netdyno.audits.stationary import THROUGHPUT_SHARE
from netdyno.statistics import stationarity
from netdyno.statistics.stats import Floats

POINTS = (8, 10, 20, 50, 100, 200)
SOME_POINTS = (10, 30, 100)
CORRELATIONS = (0.0, 0.5, 0.7)
USUAL = 0.5
NOISES = (0.03, 0.1, 0.3)
"""Standard deviation of a point over the level. Of 600 stored trials that the audit judged, half have less than the
first and nine in ten less than the second."""
SETTLING = 60
Shape = Callable[[int], Floats]
MOVING: dict[str, Shape] = {
    "drift of 40%": lambda points: np.linspace(0.8, 1.2, points),
    "step of 40%": lambda points: np.where(np.arange(points) < points // 2, 0.8, 1.2),
    "hump of 60%": lambda points: 0.7 + 0.6 * np.sin(np.linspace(0, np.pi, points)),
}


def noise(random: np.random.Generator, points: int, correlation: float) -> Floats:
    """An autoregressive series of first order, of mean 0 and standard deviation 1."""
    shocks = random.normal(size=points + SETTLING)
    for at in range(1, len(shocks)):
        shocks[at] += correlation * shocks[at - 1]
    return np.asarray(shocks[SETTLING:] * np.sqrt(1 - correlation**2))


def struck_out(series: Floats) -> bool:
    return any(one.proven and abs(one.share) > THROUGHPUT_SHARE for one in stationarity.movements(series))


def tested(runs: int, points: int, correlation: float) -> tuple[list[float], list[float]]:
    """Of still series, for drift, step and wandering: the share in which each is proven, large or not, and what |t|
    exceeds in 1% of them."""
    random = np.random.default_rng(points)
    found = [stationarity.movements(1 + 0.01 * noise(random, points, correlation)) for _ in range(runs)]
    by_kind = list(zip(*found, strict=True))
    shares = [float(np.mean([one.proven for one in each])) for each in by_kind]
    return shares, [float(np.quantile([abs(one.t) for one in each], 0.99)) for each in by_kind]


def alarms(runs: int, points: int, correlation: float, deviation: float, level: Shape = np.ones) -> float:
    random = np.random.default_rng(points)
    made = (level(points) + deviation * noise(random, points, correlation) for _ in range(runs))
    return float(np.mean([struck_out(np.maximum(series, 0.0)) for series in made]))


def main(runs: int) -> None:
    print(f"still series: share proven to move, and what |t| exceeds in 1%\n{'r':>4}{'points':>8}", end="")
    print("".join(f"{name:>18}" for name in ("drift", "step", "wandering", "limits")))
    for correlation, points in product(CORRELATIONS, POINTS):
        told = [f"{share:.2%}  {most:5.2f}" for share, most in zip(*tested(runs, points, correlation), strict=True)]
        limits = f"{stationarity.drift_limit(points):.2f}, {stationarity.step_limit(points):.2f}"
        print(
            f"{correlation:4}{points:8}" + "".join(f"{one:>18}" for one in (*told, *("-",) * (3 - len(told)), limits))
        )
    heads = "".join(f"{f'noise {deviation:.0%}':>12}" for deviation in NOISES)
    print(f"\nstruck out\n{'level':14}{'r':>4}{'points':>8}{heads}")
    still = [("still", np.ones, *one) for one in product(CORRELATIONS[1:], POINTS)]
    moving = [(name, level, USUAL, points) for (name, level), points in product(MOVING.items(), SOME_POINTS)]
    for name, level, correlation, points in (*still, *moving):
        shares = [f"{alarms(runs, points, correlation, deviation, level):.2%}" for deviation in NOISES]
        print(f"{name:14}{correlation:4}{points:8}" + "".join(f"{share:>12}" for share in shares), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
