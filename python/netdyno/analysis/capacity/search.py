"""Find the highest rate that meets an objective, where each measurement may be wrong. Pure: from the outcomes of trials
it returns the rate of the next one.

Rates stand on a ladder of equal ratios (the resolution), from below the start up to the most. From the start the search
goes up in large strides while the objective holds, or down while it does not, and then halves the distance on the
ladder. Noise goes both ways, so that no single trial decides (docs/adr/capacity.md): a rate at which a trial failed is
measured again at once, and counts as too high only when failures are in the majority; and when two neighbours remain,
the one that holds and the one that does not are measured, in turn, until each has its outcome `needed` times, the most
frequent of `2 * needed - 1`. Where that overturns an earlier outcome, the search goes on from there.

A trial that says nothing of the server has the outcome `generator` or `disturbed`, and is retried. Where the generator
is at its limit `MOST_RETRIES` times, the rate is closed, and the answer "at least", never a capacity."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from netdyno.analysis.found.capacity import Answer, At
from netdyno.kit.statistics import looks
from netdyno.model.experiment import CapacityPlan

SearchOutcome = Literal["held", "failed", "generator", "disturbed", "broken"]
"""The outcome of a trial: the objective held, or did not; or the trial says nothing of the server, for the generator
was at its limit, the machine did something else, or the trial could not be completed at all."""

QUICK = 2
"""Failures that close a rate before the boundary is known."""
MOST_RETRIES = 3
"""Trials in a row that say nothing of the server, after which the search gives up their rate, or ends."""
STRIDE = 2.0
"""The step between rates while no bound is known, as a ratio."""


def follow(plan: CapacityPlan, trials: Iterable[tuple[float, SearchOutcome]], disturbed: int) -> Search | None:
    """Return the search after these trials, each a rate with its outcome; None where today's rules would have measured
    other rates. Disturbed trials are retried and count only at the end, where the search gives up: so many of them."""
    search = Search(plan)
    for rate_hz, outcome in trials:
        if search.choose_rate() != rate_hz:
            return None
        if outcome != "disturbed":
            search.tell(outcome)
    for _ in range(disturbed):
        if search.choose_rate() is not None:
            search.tell("disturbed")
    return search


@dataclass
class Tally:
    """The trials at one rate: the outcomes of those that said something of the server, and the number of those in a row
    that did not (`silent`)."""

    outcomes: list[SearchOutcome] = field(default_factory=list)
    silent: int = 0
    closed: bool = False
    """The generator cannot offer this rate."""

    @property
    def held(self) -> int:
        return self.outcomes.count("held")

    @property
    def failed(self) -> int:
        return self.outcomes.count("failed")

    @property
    def measured(self) -> int:
        return len(self.outcomes)

    def is_sure(self, needed: int) -> bool:
        """Whether enough trials have the same outcome."""
        at_rate = looks.count_trials(needed)
        return any(at_rate.has_ended(outcome == same for outcome in self.outcomes) for same in ("held", "failed"))

    @property
    def holds(self) -> bool:
        return self.held > self.failed

    @property
    def fails(self) -> bool:
        return self.closed or (self.failed >= QUICK and self.failed > self.held)

    @property
    def undecided(self) -> bool:
        return self.measured > 0 and not self.holds and not self.fails


@dataclass
class Search:
    """A search: ask `choose_rate` for the next rate, `tell` its outcome, until `answer` is set."""

    plan: CapacityPlan
    answer: Answer | None = None
    tallies: dict[int, Tally] = field(default_factory=dict)
    _pending_step: int | None = None

    # --- the ladder ----------------------------------------------------------------------------------------------

    def rate_hz(self, step: int) -> float:
        """Return the rate of a step, with as many digits as a person would write; the ends are as requested."""
        if step >= self._top:
            return self.plan.most_hz
        if step <= self._bottom:
            return self.plan.least_hz
        rate = self.plan.start_hz * (1 + self.plan.resolution) ** step
        return float(f"{rate:.{2 + math.floor(-math.log10(self.plan.resolution))}g}")

    def _count_steps(self, rate_hz: float) -> float:
        return math.log(rate_hz / self.plan.start_hz) / math.log1p(self.plan.resolution)

    @property
    def _top(self) -> int:
        return math.ceil(self._count_steps(self.plan.most_hz) - 1e-9)

    @property
    def _bottom(self) -> int:
        return math.floor(self._count_steps(self.plan.least_hz) + 1e-9)

    @property
    def _stride(self) -> int:
        return max(1, round(math.log(STRIDE) / math.log1p(self.plan.resolution)))

    # --- the dialogue --------------------------------------------------------------------------------------------

    def choose_rate(self) -> float | None:
        """Return the rate to measure next, in messages per second; None when there is an answer."""
        if self.answer is not None:
            return None
        self._pending_step = self._next()
        return None if self._pending_step is None else self.rate_hz(self._pending_step)

    def tell(self, outcome: SearchOutcome) -> None:
        """Count the outcome of the trial at the last rate of `choose_rate`."""
        if self._pending_step is None:
            raise ValueError("no rate was requested")
        step, self._pending_step = self._pending_step, None
        tally = self.tallies.setdefault(step, Tally())
        match outcome:
            case "held" | "failed":
                tally.outcomes.append(outcome)
                tally.silent = 0
            case _:
                tally.silent += 1
                if tally.silent >= MOST_RETRIES:
                    self._give_up(step, tally, outcome)

    def _give_up(self, step: int, tally: Tally, outcome: Literal["generator", "disturbed", "broken"]) -> None:
        """Close a rate beyond the generator's limit, which is a bound like the server's; else end the search: a machine
        that is never free says nothing at any rate."""
        if outcome == "generator" and step > self._bottom and not tally.measured:
            tally.closed = True
            return
        holds = max((tried for tried, tally in self.tallies.items() if tally.holds and tried < step), default=None)
        self.answer = Answer(outcome, self._summarise_step(holds), None, self.rate_hz(step))

    # --- where to go ---------------------------------------------------------------------------------------------

    def _next(self) -> int | None:
        again = [step for step, tally in self.tallies.items() if tally.undecided or (tally.silent and not tally.closed)]
        if again:
            return again[-1]
        fails = min((step for step, tally in self.tallies.items() if tally.fails), default=None)
        below = (step for step, tally in self.tallies.items() if tally.holds and (fails is None or step < fails))
        holds = max(below, default=None)
        if holds is None:
            return 0 if fails is None else self._search_downwards(fails)
        if fails is None:
            return self._search_upwards(holds)
        return (holds + fails) // 2 if fails - holds > 1 else self._confirm(holds, fails)

    def _search_upwards(self, holds: int) -> int | None:
        if holds < self._top:
            return min(holds + self._stride, self._top)
        return self._repeat_until_sure([holds], Answer("at_most", self._summarise_step(holds), None))

    def _search_downwards(self, fails: int) -> int | None:
        if fails > self._bottom:
            return max(fails - self._stride, self._bottom)
        return self._repeat_until_sure([fails], Answer("none", None, self._summarise_step(fails)))

    def _confirm(self, holds: int, fails: int) -> int | None:
        if self.tallies[fails].closed:
            return self._repeat_until_sure(
                [holds], Answer("generator", self._summarise_step(holds), None, self.rate_hz(fails))
            )
        return self._repeat_until_sure(
            [holds, fails], Answer("capacity", self._summarise_step(holds), self._summarise_step(fails))
        )

    def _repeat_until_sure(self, steps: Iterable[int], answer: Answer) -> int | None:
        """Return the step with the fewest trials that is not sure yet; set the answer when all are."""
        unsure = [step for step in steps if not self.tallies[step].is_sure(self.plan.needed)]
        if unsure:
            return min(unsure, key=lambda step: self.tallies[step].measured)
        self.answer = answer
        return None

    def _summarise_step(self, step: int | None) -> At | None:
        if step is None:
            return None
        tally = self.tallies[step]
        return At(self.rate_hz(step), tally.held, tally.failed)
