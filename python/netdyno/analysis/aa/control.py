"""From the twins of a stored run to how often the same contestant under two names differs. Pure functions.

An A/A comparison is one contestant at one load: its trials against those of its twin in the same blocks, by the very
functions that compare contestants. A ranking's verdict on the two is found as for any other two: corrected for the
comparisons of their scenario's own metric, with this one among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from netdyno.analysis.found.control import AA, Control, WhyNone
from netdyno.analysis.ranking.samples import collect_samples
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.kit import quantities
from netdyno.kit.statistics import stats
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS
from netdyno.kit.statistics.stats import Comparison, Samples
from netdyno.model.base import Name
from netdyno.model.experiment import Experiment
from netdyno.model.levels import level_key, level_label
from netdyno.question.capacity import select_coordinates

Families = Mapping[Name, Sequence[Comparison]]
"""The comparisons of each scenario by its own metric."""


def summarise_control(
    experiment: Experiment,
    parts: Sequence[ScenarioTrials],
    families: Families,
    significance: float = stats.SIGNIFICANCE,
    *,
    finished: bool,
) -> Control:
    """Return the A/A control of a run. A scenario that is not in `families` has no other comparisons."""
    comparisons = [comparison for part in parts for comparison in _compare_twins(part)]
    return Control(
        share=experiment.aa_share,
        significance=significance,
        comparisons=tuple(
            _judge(comparison, families.get(comparison.scenario, ()), significance) for comparison in comparisons
        ),
        none=None if any(part.twins for part in parts) else _explain_none(experiment, finished=finished),
        blocks=experiment.blocks,
    )


def _compare_twins(part: ScenarioTrials) -> list[AA]:
    """Compare each contestant with its twin, in the order of contestants and loads, not yet judged; without a pair
    where all trials of one side are excluded."""
    scenario = part.scenario
    planned = {
        (twin.contestant, level_key(twin_levels)): level_label(scenario, twin_levels)
        for twin, twin_levels in ((twin, select_coordinates(scenario, twin.levels)) for twin in part.twins)
    }
    if not planned:
        return []
    original, repeated = collect_samples(part), collect_samples(part.select_twins())
    comparisons = []
    for (name, key), label in sorted(planned.items()):
        twin = f"{name}{quantities.TWIN}"
        both_samples = {name: original.get(name, {}), twin: _select_level(repeated.get(name, {}), key)}
        comparison = stats.compare(name, twin, both_samples, axis=scenario.metric)
        comparisons.append(AA(scenario=scenario.name, level=label, contestant=name, comparison=comparison))
    return comparisons


def _select_level(samples: Samples, level: str) -> Samples:
    return {cell: figure for cell, figure in samples.items() if cell[1] == level}


def _judge(pair: AA, family: Sequence[Comparison], significance: float) -> AA:
    """Judge a pair as one more comparison of its scenario. A/A comparisons of other loads or contestants are not in the
    family: each gives a ranking's verdict on two such contestants. `p` and `single` rest on its own blocks only: the
    scatter of a ranking's blocks must not hide a fault of the harness."""
    alone = pair.comparison
    ranked = stats.corrected((*family, alone), significance)[-1]
    return replace(pair, comparison=replace(ranked, p=alone.p, single=alone.single))


def _explain_none(experiment: Experiment, *, finished: bool) -> WhyNone:
    if experiment.aa_share == 0:
        return "share"
    if experiment.blocks < FEWEST_BLOCKS:
        return "blocks"
    return "time" if finished else "unfinished"
