"""The data of a run that claims may use: the parts of its scenarios and their environment. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from netdyno.analysis.trials import measured, unranked
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.analysis.trials.unranked import Refusal
from netdyno.model.base import Name, type_level
from netdyno.model.claim import CONTESTANT, Cells
from netdyno.model.contestant import About
from netdyno.model.levels import level_key
from netdyno.model.metrics import Metric, TrialWithLoad
from netdyno.model.run import Run
from netdyno.model.trial import Status, Trial


class Evidence(msgspec.Struct, frozen=True, dict=True):
    """The evidence for claims. Unsafe programs, and those that are no contestants, are in `refused` alone."""

    parts: Mapping[Name, ScenarioTrials]
    """The part of each scenario, in their order."""
    studies: Collection[Name]
    """The experiments of a run of several: a scenario's name begins with that of its experiment."""
    about: Sequence[About]
    environment: Mapping[Name, object]
    refused: Mapping[Name, Refusal]
    limited: Collection[tuple[Name, Name, Name]]
    """Scenario, key of the level and contestant of the cells in which the generator was at its limit."""

    @cached_property
    def _counted(self) -> dict[tuple[Name, frozenset[Status]], Mapping[int, TrialWithLoad]]:
        """The results of `_select_counted`, by its arguments."""
        return {}

    @cached_property
    def _positions(self) -> Mapping[Name, Mapping[str, Mapping[type_level, set[int]]]]:
        """The numbers of each scenario's trials by coordinate and value: a claim makes many comparisons of few trials
        each."""
        positions: dict[Name, dict[str, dict[type_level, set[int]]]] = {}
        for scenario, part in self.parts.items():
            by_name = positions.setdefault(scenario, {})
            for number, trial in enumerate(part.trials):
                for name, value in read_coordinates(trial).items():
                    by_name.setdefault(name, {}).setdefault(value, set()).add(number)
        return positions

    def _find_positions(self, cells: Cells) -> Collection[int]:
        """Return the numbers of the trials of these cells within their scenario."""
        by_name = self._positions[cells.scenario]
        named = [
            set[int]().union(*(by_name.get(name, {}).get(value, ()) for value in values))
            for name, values in cells.at.items()
        ]
        return set.intersection(*named) if named else range(len(self.parts[cells.scenario].trials))

    def _select_counted(self, scenario: Name, statuses: frozenset[Status]) -> Mapping[int, TrialWithLoad]:
        """Return the trials of a scenario with figures and one of these statuses by number, each cell once."""
        if (scenario, statuses) not in self._counted:
            trials = self.parts[scenario].trials
            numbers = {id(trial): number for number, trial in reversed([*enumerate(trials)])}
            counted = measured.select_distinct(trials, statuses)
            self._counted[scenario, statuses] = {numbers[id(trial)]: (trial, load) for trial, load in counted}
        return self._counted[scenario, statuses]

    def is_limited(self, trial: Trial) -> bool:
        """Return whether the generator was at its limit in the trial's cell, with its contestant."""
        return (trial.scenario, level_key(trial.levels), trial.contestant) in self.limited

    def sign(self, metric: Metric, trial: Trial) -> int | None:
        """Return 0 where the trial's figure is the server's own, 1 where the server's is at least that, -1 where it is
        at most that, and None where it says nothing. An open loop with a rate beyond its generator's limit was
        another load."""
        if metric.is_upper_bound:
            return -1 if trial.status != "censored" or not self.is_limited(trial) else None
        if trial.status != "censored" or metric.invalid_too:
            return 0
        if self.parts[trial.scenario].scenario.arrivals != "closed":
            return None
        return SIGNS[metric.at_limit] if self.is_limited(trial) else 0

    def trials(self, *selections: Cells) -> list[Trial]:
        """Return the trials of any of these cells, in the order of the run."""
        positions: dict[Name, set[int]] = {}
        for cells in selections:
            positions.setdefault(cells.scenario, set()).update(self._find_positions(cells))
        return [self.parts[name].trials[number] for name, numbers in positions.items() for number in sorted(numbers)]

    def counted(self, cells: Cells, statuses: Collection[Status]) -> Iterator[TrialWithLoad]:
        """Return the trials of cells with figures and one of these statuses, each cell once."""
        counted = self._select_counted(cells.scenario, frozenset(statuses))
        return (counted[number] for number in sorted(self._find_positions(cells)) if number in counted)


SIGNS: Mapping[str, int | None] = {"exact": 0, "at_least": 1, "at_most": -1, "unknown": None}


def collect_evidence(run: Run, parts: Sequence[ScenarioTrials]) -> Evidence:
    """Return the evidence of a run and its parts."""
    return Evidence(
        parts={part.scenario.name: part for part in parts},
        studies=run.experiment.parts,
        about=unranked.remove_from_run(run).about,
        environment=run.environment,
        refused=unranked.list_refused(run),
        limited=frozenset(
            (limit.scenario, limit.level, limit.contestant) for part in parts for limit in part.saturated
        ),
    )


def read_coordinates(trial: Trial) -> dict[str, type_level]:
    return {CONTESTANT: trial.contestant, **trial.levels}


def is_in(cells: Cells, trial: Trial) -> bool:
    """Return whether a trial is in one of these cells."""
    place = read_coordinates(trial)
    return trial.scenario == cells.scenario and all(place.get(name) in values for name, values in cells.at.items())
