"""The findings on a flip, as frozen data."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from netdyno.kit.statistics.flips import Flips
from netdyno.model.base import Name


class Pursuit(msgspec.Struct, frozen=True):
    """The state of a run's search for a flip, level by level (statistics/bisection.py): `within` is the ratio of a
    bracket that the flip asks for, and `narrow` whether all brackets are as narrow. `next_levels` are measured next;
    none at the end of the search. `needed`: blocks that would tell the side at a level, None where none would."""

    within: float
    narrow: bool
    next_levels: tuple[float, ...]
    needed: Mapping[float, int | None]


class FlipFound(msgspec.Struct, frozen=True):
    """The flips between `first` and `second`: contestants, or groups of them. Contrasts are logarithms of how much
    better `first` is. `fixed` are the levels of the other factors. At the levels `bounded` the generator was at its
    limit: the better side may be better by more, or be the other one."""

    question: Name
    factor: Name
    metric: Name
    durations: bool
    """Whether places are seconds."""
    first: Name
    second: Name
    fixed: tuple[Name, ...]
    log: bool
    flips: Flips
    bounded: tuple[float, ...] = ()
    uneven: tuple[float, ...] = ()
    pursuit: Pursuit | None = None
