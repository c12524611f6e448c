"""Compare the answers of searches, each of one server. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from netdyno.analysis.found.capacity import Answer
from netdyno.model.base import Name


class Carried(msgspec.Struct, frozen=True):
    """The rates between which a capacity lies, in messages per second: the objective held at `low`, 0 where it held at
    none, and failed at `high`, infinite where no search went so far."""

    low: float
    high: float


class KnobCapacities(msgspec.Struct, frozen=True):
    """What the levels of a knob carry. `enough`: the first level that no other is shown to carry more than. `equal`,
    `less`: the later levels that are not shown to carry another amount, and those that carry less."""

    enough: Name
    equal: tuple[Name, ...]
    less: tuple[Name, ...]


def find_carried(answer: Answer) -> Carried:
    low = answer.holds.rate_hz if answer.holds else 0.0
    return Carried(low, answer.fails.rate_hz if answer.fails else math.inf)


def carries_more(first: Carried, second: Carried) -> bool:
    """Return whether the first holds at a rate at which the second fails."""
    return first.low >= second.high


def compute_ratio(first: Carried, second: Carried) -> tuple[float, float, float] | None:
    """Return the ratio of the first capacity to the second with its bounds; None where one of them has no bounds."""
    if not second.low or not first.low or math.inf in (first.high, second.high):
        return None
    return first.low / second.low, first.low / second.high, first.high / second.low


def judge_levels(names: Sequence[str], carried: Mapping[str, Carried]) -> KnobCapacities:
    """Judge the levels of a knob, in their order."""
    enough = next(name for name in names if not any(carries_more(carried[other], carried[name]) for other in names))
    later = names[names.index(enough) + 1 :]
    less = tuple(name for name in later if carries_more(carried[enough], carried[name]))
    return KnobCapacities(enough, tuple(name for name in later if name not in less), less)
