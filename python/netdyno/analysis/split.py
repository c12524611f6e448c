"""What each scenario of a run may use: the run is split once, and who analyses a scenario gets its part, no more.
Pure functions of a run whose consequences are drawn (outcomes.judged)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from netdyno.analysis import excluded, measured
from netdyno.model import outcomes
from netdyno.model.base import Name, Quoted
from netdyno.model.contestant import About
from netdyno.model.experiment import CapacityPlan, Scenario
from netdyno.model.metrics import Counted
from netdyno.model.outcomes import Saturated
from netdyno.model.run import Run
from netdyno.model.trial import Traced, Trial


@dataclass(frozen=True)
class Part:
    """A scenario with its trials. Nobody who is unsafe or no contestant is in anything but `unsafe` and `unranked`, and
    no twin in anything but `twins`."""

    scenario: Scenario
    seed: int
    search: CapacityPlan | None
    """Where the run is a search for a capacity."""
    contestants: tuple[Name, ...]
    """By name, for an experiment may say `*`, and the order in which trials ran is random."""
    trials: tuple[Trial, ...]
    """Whatever came of them."""
    ranked: tuple[Counted, ...]
    """What a ranking is made of, with its figures; of a cell that was measured twice the first."""
    twins: tuple[Trial, ...]
    traced: tuple[Traced, ...]
    saturated: tuple[Saturated, ...]
    blocks: int
    """In which anybody was run."""
    about: tuple[About, ...]
    cores_allowed: int | None
    quota_cores: float | None
    """What a server could use that was not pinned; None where the run does not say."""
    unsafe: Mapping[Name, tuple[Trial, ...]]
    """The trials of those that give wrong answers on purpose."""
    why_unsafe: Mapping[Name, Quoted]
    unranked: Mapping[Name, Quoted]
    """Who was run beside the contestants and is none, with what it is instead."""

    def drawn(self) -> tuple[Trial, ...]:
        """The trials of a figure, where the unsafe stand beside the others, marked."""
        return (*self.trials, *(trial for each in self.unsafe.values() for trial in each))

    def of_twins(self) -> Part:
        """The twins as a part of their own, to be read as any other."""
        trials = tuple(msgspec.structs.replace(trial, twin=False) for trial in self.twins)
        return replace(self, contestants=_names(trials), trials=trials, ranked=_ranked(trials), twins=())


def split(run: Run) -> tuple[Part, ...]:
    """In the order of the experiment's scenarios."""
    safe = excluded.without(run)
    saturated = outcomes.saturated(safe)
    return tuple(_part(run, safe, scenario, saturated) for scenario in run.experiment.scenarios)


def part_of(run: Run, scenario: Scenario) -> Part:
    """That of a single scenario, where no bound is asked for."""
    return _part(run, excluded.without(run), scenario, ())


def _part(run: Run, safe: Run, scenario: Scenario, saturated: Sequence[Saturated]) -> Part:
    name = scenario.name
    everybody = [trial for trial in run.trials if trial.scenario == name]
    trials = tuple(trial for trial in safe.trials if trial.scenario == name)
    cores, quota = run.environment.get("cores_allowed"), run.environment.get("limit.cpu_quota_cores")
    wrong, no_contestants = excluded.names(run), excluded.unranked(run)
    return Part(
        scenario=scenario,
        seed=run.experiment.seed,
        search=run.experiment.capacity,
        contestants=_names(trials),
        trials=trials,
        ranked=_ranked(trials),
        twins=tuple(twin for twin in safe.twins if twin.scenario == name),
        traced=tuple(one for one in safe.traced if one.scenario == name),
        saturated=tuple(one for one in saturated if one.scenario == name),
        blocks=len({trial.block for trial in everybody}),
        about=safe.about,
        cores_allowed=cores if isinstance(cores, int) else None,
        quota_cores=quota if isinstance(quota, float | int) else None,
        unsafe={one: tuple(trial for trial in everybody if trial.contestant == one) for one in sorted(wrong)},
        why_unsafe=wrong,
        unranked={one: what for one, what in sorted(no_contestants.items()) if one in _names(everybody)},
    )


def _names(trials: Iterable[Trial]) -> tuple[str, ...]:
    return tuple(sorted({trial.contestant for trial in trials}))


def _ranked(trials: Iterable[Trial]) -> tuple[Counted, ...]:
    return tuple(measured.each_once(trials, outcomes.RANKED))
