"""What claims may use of a run: the parts of its scenarios, and where they were measured. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from netdyno.analysis import excluded, measured
from netdyno.analysis.excluded import Refusal
from netdyno.analysis.split import Part
from netdyno.model.base import Name, type_level
from netdyno.model.claim import CONTESTANT, Cells
from netdyno.model.contestant import About
from netdyno.model.levels import level_key
from netdyno.model.metrics import Counted, Metric
from netdyno.model.run import Run
from netdyno.model.trial import Status, Trial


@dataclass(frozen=True)
class Evidence:
    """Nobody who is unsafe or no contestant is in it, but in `refused`."""

    parts: Mapping[Name, Part]
    """By scenario, in their order."""
    studies: Collection[Name]
    """Of a run of several experiments: a scenario's name begins with its own."""
    about: Sequence[About]
    environment: Mapping[Name, object]
    refused: Mapping[Name, Refusal]
    limited: Collection[tuple[Name, Name, Name]]
    """Scenario, key of the level and contestant of the cells in which the generator was at its limit."""
    _counted: dict[tuple[Name, frozenset[Status]], Mapping[int, Counted]] = field(default_factory=dict, compare=False)
    """What `_counted_trials` returned, by its arguments."""

    @cached_property
    def _positions(self) -> Mapping[Name, Mapping[str, Mapping[type_level, set[int]]]]:
        """The numbers of the trials of each scenario by coordinate and its value: a claim makes many comparisons, each
        of few of the trials."""
        found: dict[Name, dict[str, dict[type_level, set[int]]]] = {}
        for scenario, part in self.parts.items():
            of_scenario = found.setdefault(scenario, {})
            for number, trial in enumerate(part.trials):
                for name, value in coordinates(trial).items():
                    of_scenario.setdefault(name, {}).setdefault(value, set()).add(number)
        return found

    def _positions_in(self, cells: Cells) -> Collection[int]:
        """The numbers of the trials of these cells within their scenario."""
        by_name = self._positions[cells.scenario]
        named = [
            set[int]().union(*(by_name.get(name, {}).get(value, ()) for value in values))
            for name, values in cells.at.items()
        ]
        return set.intersection(*named) if named else range(len(self.parts[cells.scenario].trials))

    def _counted_trials(self, scenario: Name, statuses: frozenset[Status]) -> Mapping[int, Counted]:
        """The trials of a scenario with figures and one of these statuses by their numbers, each cell once."""
        if (scenario, statuses) not in self._counted:
            trials = self.parts[scenario].trials
            numbers = {id(trial): number for number, trial in reversed([*enumerate(trials)])}
            every = measured.each_once(trials, statuses)
            self._counted[scenario, statuses] = {numbers[id(trial)]: (trial, load) for trial, load in every}
        return self._counted[scenario, statuses]

    def is_limited(self, trial: Trial) -> bool:
        """Whether the generator was at its limit in the trial's cell, beside its contestant."""
        return (trial.scenario, level_key(trial.levels), trial.contestant) in self.limited

    def sign(self, metric: Metric, trial: Trial) -> int | None:
        """Return 0 where the trial's figure is the server's own, 1 where the server's is at least that, -1 where it is
        at most that, and None where it says nothing. An open loop that asked for more than its generator could send
        was another load."""
        if metric.is_upper_bound:
            return -1 if trial.status != "censored" or not self.is_limited(trial) else None
        if trial.status != "censored" or metric.struck_out_too:
            return 0
        if self.parts[trial.scenario].scenario.arrivals != "closed":
            return None
        return SIGNS[metric.at_limit] if self.is_limited(trial) else 0

    def trials(self, *selections: Cells) -> list[Trial]:
        """Of any of these cells, in the order of the run."""
        found: dict[Name, set[int]] = {}
        for cells in selections:
            found.setdefault(cells.scenario, set()).update(self._positions_in(cells))
        return [self.parts[name].trials[number] for name, numbers in found.items() for number in sorted(numbers)]

    def counted(self, cells: Cells, statuses: Collection[Status]) -> Iterator[Counted]:
        """The trials of cells with figures and one of these statuses, each cell once."""
        counted = self._counted_trials(cells.scenario, frozenset(statuses))
        return (counted[number] for number in sorted(self._positions_in(cells)) if number in counted)


SIGNS: Mapping[str, int | None] = {"exact": 0, "at_least": 1, "at_most": -1, "unknown": None}


def evidence(run: Run, parts: Sequence[Part]) -> Evidence:
    """Of a run and what it was split into."""
    return Evidence(
        parts={part.scenario.name: part for part in parts},
        studies=run.experiment.parts,
        about=excluded.without(run).about,
        environment=run.environment,
        refused=excluded.refused(run),
        limited=frozenset((one.scenario, one.level, one.contestant) for part in parts for one in part.saturated),
    )


def coordinates(trial: Trial) -> dict[str, type_level]:
    return {CONTESTANT: trial.contestant, **trial.levels}


def is_in(cells: Cells, trial: Trial) -> bool:
    """Whether a trial is one of these cells."""
    where = coordinates(trial)
    return trial.scenario == cells.scenario and all(where.get(name) in values for name, values in cells.at.items())
