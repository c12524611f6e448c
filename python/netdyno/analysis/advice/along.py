"""The values of a workload near which the answer changes, from a run at half and double of them. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from netdyno.analysis.advice.judge_advice import check_objective
from netdyno.analysis.flips import judge_flips as flips
from netdyno.analysis.found.advice import Along, ObjectiveOutcome
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.model.base import type_level
from netdyno.model.experiment import Advise
from netdyno.model.levels import level_key


def compare_across_factor(part: ScenarioTrials, advise: Advise, first: str, rivals: Sequence[str]) -> Along:
    """Compare `first` with each other contestant along the factor of a scenario that has one."""
    ((factor, levels),) = part.scenario.factors.items()
    flips_found = [flip for rival in rivals for flip in flips.find_flips(part, factor, first, rival)]
    return Along(
        factor,
        levels,
        first,
        tuple(flips_found),
        tuple(_find_outcome(part, advise, first, factor, level) for level in levels),
    )


def _find_outcome(
    part: ScenarioTrials, advise: Advise, first: str, factor: str, level: type_level
) -> ObjectiveOutcome | None:
    key = level_key({factor: level})
    part_at_level = replace(
        part, ranked=tuple(counted for counted in part.ranked if level_key(counted[0].levels) == key)
    )
    return next((kept.outcome for kept in check_objective(advise, part_at_level) if kept.contestant == first), None)
