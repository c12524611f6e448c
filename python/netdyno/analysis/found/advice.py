"""The advice from a run, as frozen data."""

from __future__ import annotations

from typing import Literal

import msgspec

from netdyno.analysis.found.flips import FlipFound
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit.statistics.block_counts import ADVICE_LOOKS
from netdyno.kit.statistics.stats import Interval
from netdyno.model.base import Name, type_level
from netdyno.model.objective import Term

ObjectiveOutcome = Literal["meets", "breaks", "open"]
"""The outcome of an objective: the interval lies below its limit, or above, or holds it."""


class TermKept(msgspec.Struct, frozen=True):
    """One term of an objective: the geometric mean over blocks (for a share the mean), with its interval."""

    term: Term
    value: float
    interval: Interval | None
    outcome: ObjectiveOutcome


class Kept(msgspec.Struct, frozen=True):
    """A contestant's outcome for the objective: all of its terms have to hold."""

    contestant: Name
    blocks: int
    terms: tuple[TermKept, ...]

    @property
    def outcome(self) -> ObjectiveOutcome:
        outcomes = {term.outcome for term in self.terms}
        return "breaks" if "breaks" in outcomes else "meets" if outcomes == {"meets"} else "open"


class LeftOut(msgspec.Struct, frozen=True):
    """A contestant that was left out after so many blocks."""

    contestant: Name
    blocks: int


class Advice(msgspec.Struct, frozen=True):
    """The advice of a run. `findings` are those of its scenario, with the ranking narrowed to contestants with the
    same `outcome`: with an objective, those shown to meet it; else those that may meet it; else all. `by_metric`: none
    is shown to be close to the best, so the first is taken, whatever the other axes say. `behind`: no other that may
    meet the objective (none at all, where none may) is better than the first of `take` by more than this factor; None
    where a contestant has no interval, or is `hidden`: it may be better by any factor, however many blocks there are,
    for the generator was at its limit with it. `settled`: more blocks would change nothing that matters."""

    findings: ScenarioFindings
    objective: Name
    kept: tuple[Kept, ...]
    outcome: ObjectiveOutcome
    take: tuple[Name, ...]
    by_metric: bool
    behind: float | None
    hidden: tuple[Name, ...]
    blocks: int
    left_out: tuple[LeftOut, ...]
    settled: bool
    foreign: float = 0.0
    """The share of the machine's cores that foreign programs used during a trial, in the median."""

    @property
    def may_tell_more(self) -> bool:
        """Whether a run with more time could tell more."""
        return not self.settled and self.blocks < ADVICE_LOOKS[-1]


class AcrossFactor(msgspec.Struct, frozen=True):
    """The results across one factor: the recommended contestant against each of the others, and its outcome for the
    objective at each level (None without an objective)."""

    factor: Name
    levels: tuple[type_level, ...]
    first: Name
    flips: tuple[FlipFound, ...]
    outcomes: tuple[ObjectiveOutcome | None, ...]
