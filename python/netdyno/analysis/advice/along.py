"""Near which values of a workload the answer changes, from a run of half and double of them. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from netdyno.analysis.advice.found import Outcome
from netdyno.analysis.advice.judge import keeps
from netdyno.analysis.flips import judge as flips
from netdyno.analysis.flips.found import FlipFound
from netdyno.analysis.split import Part
from netdyno.model.base import Name, type_level
from netdyno.model.experiment import Advise
from netdyno.model.levels import level_key


@dataclass(frozen=True)
class Along:
    """Along one factor: the one to take beside each of the others, and what it makes of the objective at each level
    (None where there is none)."""

    factor: Name
    levels: tuple[type_level, ...]
    first: Name
    beside: tuple[FlipFound, ...]
    outcomes: tuple[Outcome | None, ...]


def along(part: Part, advise: Advise, first: str, others: Sequence[str]) -> Along:
    """Of a scenario with one factor."""
    ((factor, levels),) = part.scenario.factors.items()
    found = [one for other in others for one in flips.found(part, factor, first, other)]
    return Along(
        factor, levels, first, tuple(found), tuple(_outcome(part, advise, first, factor, one) for one in levels)
    )


def _outcome(part: Part, advise: Advise, first: str, factor: str, level: type_level) -> Outcome | None:
    key = level_key({factor: level})
    here = replace(part, ranked=tuple(one for one in part.ranked if level_key(one[0].levels) == key))
    return next((one.outcome for one in keeps(advise, here) if one.contestant == first), None)
