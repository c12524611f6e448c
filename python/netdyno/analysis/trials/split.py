"""The parts of a run, one for each scenario: the run is split once, and the analysis of a scenario gets its part, no
more. Pure functions of a run that was judged by outcomes.judge_run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from netdyno.analysis.trials import measured, unranked
from netdyno.model import outcomes
from netdyno.model.base import Name, Quoted
from netdyno.model.contestant import About
from netdyno.model.experiment import CapacityPlan, Scenario
from netdyno.model.metrics import TrialWithLoad
from netdyno.model.outcomes import Saturated
from netdyno.model.run import Run
from netdyno.model.trial import Traced, Trial


class ScenarioTrials(msgspec.Struct, frozen=True):
    """A scenario with its trials. Unsafe programs, and those that are no contestants, are in `unsafe` and `unranked`
    alone, except where clients never read and nothing is ranked; twins are in `twins` alone."""

    scenario: Scenario
    seed: int
    search: CapacityPlan | None
    """None where the run is no search for a capacity."""
    contestants: tuple[Name, ...]
    """Sorted by name, for an experiment may say `*`, and trials ran in random order."""
    trials: tuple[Trial, ...]
    """All trials, whatever their outcome."""
    ranked: tuple[TrialWithLoad, ...]
    """The trials of a ranking, with their figures; of a cell measured twice the first."""
    twins: tuple[Trial, ...]
    traced: tuple[Traced, ...]
    saturated: tuple[Saturated, ...]
    blocks: int
    """The number of blocks in which any program was run."""
    about: tuple[About, ...]
    cores_allowed: int | None
    quota_cores: float | None
    """The cores that an unpinned server could use, and those that a CPU quota left; None where the run does not say."""
    unsafe: Mapping[Name, tuple[Trial, ...]]
    """The trials of servers that give wrong answers on purpose."""
    why_unsafe: Mapping[Name, Quoted]
    unranked: Mapping[Name, Quoted]
    """Programs that were run beside the contestants and are none, with what they are instead."""

    def drawn(self) -> tuple[Trial, ...]:
        """Return the trials of a figure, where the unsafe stand beside the others, marked."""
        return (*self.trials, *(trial for unsafe_trials in self.unsafe.values() for trial in unsafe_trials))

    def select_twins(self) -> ScenarioTrials:
        """Return the twins as a part of their own, to be read as any other."""
        trials = tuple(msgspec.structs.replace(trial, twin=False) for trial in self.twins)
        return replace(self, contestants=_list_names(trials), trials=trials, ranked=_list_ranked(trials), twins=())


def split(run: Run) -> tuple[ScenarioTrials, ...]:
    """Split a run, in the order of the experiment's scenarios."""
    safe = unranked.remove_from_run(run)
    saturated = outcomes.saturated(safe)
    return tuple(_make_part(run, safe, scenario, saturated) for scenario in run.experiment.scenarios)


def select_part(run: Run, scenario: Scenario) -> ScenarioTrials:
    """Return the part of a single scenario, where no bound is needed."""
    return _make_part(run, unranked.remove_from_run(run), scenario, ())


def _make_part(run: Run, safe: Run, scenario: Scenario, saturated: Sequence[Saturated]) -> ScenarioTrials:
    name = scenario.name
    all_trials = [trial for trial in run.trials if trial.scenario == name]
    unread = scenario.is_unread  # what frames are mixed is read by none, and nothing is ranked: all stand together
    trials = tuple(trial for trial in (all_trials if unread else safe.trials) if trial.scenario == name)
    cores, quota = run.environment.get("cores_allowed"), run.environment.get("limit.cpu_quota_cores")
    wrong, no_contestants = unranked.list_unsafe(run), unranked.list_unranked(run)
    return ScenarioTrials(
        scenario=scenario,
        seed=run.experiment.seed,
        search=run.experiment.capacity,
        contestants=_list_names(trials),
        trials=trials,
        ranked=() if unread else _list_ranked(trials),
        twins=tuple(twin for twin in safe.twins if twin.scenario == name),
        traced=tuple(traced for traced in safe.traced if traced.scenario == name),
        saturated=tuple(limit for limit in saturated if limit.scenario == name),
        blocks=len({trial.block for trial in all_trials}),
        about=safe.about,
        cores_allowed=cores if isinstance(cores, int) else None,
        quota_cores=quota if isinstance(quota, float | int) else None,
        unsafe={
            server: tuple(trial for trial in all_trials if trial.contestant == server)
            for server in sorted(wrong)
            if not unread
        },
        why_unsafe=wrong,
        unranked={server: what for server, what in sorted(no_contestants.items()) if server in _list_names(all_trials)},
    )


def _list_names(trials: Iterable[Trial]) -> tuple[str, ...]:
    return tuple(sorted({trial.contestant for trial in trials}))


def _list_ranked(trials: Iterable[Trial]) -> tuple[TrialWithLoad, ...]:
    return tuple(measured.select_distinct(trials, outcomes.RANKED))
