"""What is found of a flip, as frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from netdyno.model.base import Name
from netdyno.statistics.flips import Flips


@dataclass(frozen=True)
class Pursuit:
    """Of a flip that a run goes after, level by level (statistics/bisection.py): `within` is the ratio of a bracket
    that it asks for, and `narrow` whether all are. `wanted` is where it would measure next, nothing where it has come
    to its end. `needed`: blocks that would tell the side at a level, None where no number would."""

    within: float
    narrow: bool
    wanted: tuple[float, ...]
    needed: Mapping[float, int | None]


@dataclass(frozen=True)
class FlipFound:
    """Contrasts are logarithms of how much better `first` is than `second`: contestants, or groups of them. `fixed` are
    the levels of the other factors. At the levels `bounded` the generator was at its limit, and who is better there may
    be better by more, or be the other one."""

    question: Name
    factor: Name
    metric: Name
    durations: bool
    """Places are seconds."""
    first: Name
    second: Name
    fixed: tuple[Name, ...]
    log: bool
    flips: Flips
    bounded: tuple[float, ...] = ()
    uneven: tuple[float, ...] = ()
    pursuit: Pursuit | None = None
