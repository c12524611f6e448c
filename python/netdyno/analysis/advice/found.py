"""What a run advises, as frozen data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from netdyno.analysis.findings import ScenarioFindings
from netdyno.model.base import Name
from netdyno.model.objective import Term
from netdyno.statistics.block_counts import ADVICE_LOOKS
from netdyno.statistics.stats import Interval

Outcome = Literal["meets", "breaks", "open"]
"""Of an objective: the interval lies below its limit, or above, or holds it."""


@dataclass(frozen=True)
class TermKept:
    """One term of an objective: the geometric mean over blocks (of a share the mean), with its interval."""

    term: Term
    value: float
    interval: Interval | None
    outcome: Outcome


@dataclass(frozen=True)
class Kept:
    """What a contestant makes of the objective: all of its terms have to hold."""

    contestant: Name
    blocks: int
    terms: tuple[TermKept, ...]

    @property
    def outcome(self) -> Outcome:
        outcomes = {one.outcome for one in self.terms}
        return "breaks" if "breaks" in outcomes else "meets" if outcomes == {"meets"} else "open"


@dataclass(frozen=True)
class LeftOut:
    """Who was measured no longer, after so many blocks."""

    contestant: Name
    blocks: int


@dataclass(frozen=True)
class Advice:
    """`findings` are those of the run's scenario, with the ranking narrowed to those whom the answer is `among`: where
    there is an objective, who is shown to meet it; else who may meet it; else everybody. `by_metric`: nobody
    is shown to be close to the best, so that the first is taken, whatever the other axes say. `behind`: no other that
    may meet the objective (nobody at all, where nobody may) is better than the first of those to take by more than this
    factor; None where somebody has no interval, or is `hidden`: may be better by any factor however many blocks there
    are, for the generator was at its limit with it. `settled`: more blocks would change nothing that matters."""

    findings: ScenarioFindings
    slo: Name
    kept: tuple[Kept, ...]
    among: Outcome
    take: tuple[Name, ...]
    by_metric: bool
    behind: float | None
    hidden: tuple[Name, ...]
    blocks: int
    left_out: tuple[LeftOut, ...]
    settled: bool
    foreign: float = 0.0
    """The share of the machine's cores that others used beside a trial, in the median."""

    @property
    def may_tell_more(self) -> bool:
        """Whether a run that had more time would."""
        return not self.settled and self.blocks < ADVICE_LOOKS[-1]

    def outcome(self, contestant: str) -> Outcome | None:
        return next((one.outcome for one in self.kept if one.contestant == contestant), None)
