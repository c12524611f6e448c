"""Two laws of how throughput grows with cores, fitted to speedups. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


class Gunther(NamedTuple):
    """The two losses of Gunther's law, as shares of one core's time: `contention` waits for what is shared (a lock, a
    queue), `coherency` is paid to every other core (a cache line that travels)."""

    contention: float
    coherency: float


def fit_amdahl(speedups: Mapping[int, float]) -> float:
    """Return the serial share s of Amdahl's law, S(n) = n / (1 + s (n - 1)) (AFIPS 1967), by least squares of n / S(n)
    over the numbers of cores above 1. `speedups`: throughput on n cores over that on one. Below 0: it grew faster than
    in proportion. Raises ValueError without any number above 1."""
    if not speedups or min(speedups) < 2:
        raise ValueError(f"Amdahl's law needs speedups on more than one core, got those on {sorted(speedups)}")
    (share,) = _solve({cores: (cores - 1.0,) for cores in speedups}, speedups)
    return share


def fit_gunther(speedups: Mapping[int, float]) -> Gunther:
    """Return the losses of Gunther's universal scalability law, S(n) = n / (1 + a (n - 1) + b n (n - 1)) (Guerrilla
    Capacity Planning, 2007, chapter 4), as `fit_amdahl` does. Raises ValueError with fewer than two numbers above 1."""
    if len(speedups) < 2 or min(speedups) < 2:
        raise ValueError(f"Gunther's law needs speedups on two numbers of cores above 1, got {sorted(speedups)}")
    return Gunther(*_solve({cores: (cores - 1.0, cores * (cores - 1.0)) for cores in speedups}, speedups))


def _solve(terms: Mapping[int, tuple[float, ...]], speedups: Mapping[int, float]) -> list[float]:
    """Return the factors of `terms` whose sum is closest to n / S(n) - 1, the loss relative to an ideal speedup."""
    losses = [cores / speedup - 1 for cores, speedup in speedups.items()]
    solution, *_ = np.linalg.lstsq(np.array([terms[cores] for cores in speedups]), np.array(losses), rcond=None)
    return [float(factor) for factor in solution]
