"""From the twins of a stored run to how often the same contestant under two names was told apart. Pure.

An A/A comparison is one contestant at one load: its trials against those of its twin in the same blocks, by the very
functions that compare contestants. What a ranking would have said of the two is decided as for any other two:
corrected for the comparisons of their scenario's own metric, with this one among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from netdyno.analysis.aa.found import AA, Control, WhyNone
from netdyno.analysis.samples import samples
from netdyno.analysis.split import Part
from netdyno.base import quantities
from netdyno.experiment.capacity import coordinates
from netdyno.model.base import Name
from netdyno.model.experiment import Experiment
from netdyno.model.levels import level_key, level_label
from netdyno.statistics import stats
from netdyno.statistics.block_counts import FEWEST_BLOCKS
from netdyno.statistics.stats import Comparison, Samples

Families = Mapping[Name, Sequence[Comparison]]
"""The comparisons of each scenario by its own metric."""


def control(
    experiment: Experiment, parts: Sequence[Part], families: Families, level: float = stats.LEVEL, *, finished: bool
) -> Control:
    """The A/A control of a run. A scenario that is not in `families` compared nobody else."""
    comparisons = [one for part in parts for one in _of_part(part)]
    return Control(
        share=experiment.aa_share,
        level=level,
        comparisons=tuple(_judged(one, families.get(one.scenario, ()), level) for one in comparisons),
        none=None if any(part.twins for part in parts) else _why_none(experiment, finished=finished),
        blocks=experiment.blocks,
    )


def _of_part(part: Part) -> list[AA]:
    """In the order of contestants and loads, not yet judged; without a pair where all trials of one side were set
    aside."""
    scenario = part.scenario
    planned = {
        (twin.contestant, level_key(at)): level_label(scenario, at)
        for twin, at in ((twin, coordinates(scenario, twin.levels)) for twin in part.twins)
    }
    if not planned:
        return []
    once, again = samples(part), samples(part.of_twins())
    found = []
    for (name, key), label in sorted(planned.items()):
        twin = f"{name}{quantities.TWIN}"
        both = {name: once.get(name, {}), twin: _at(again.get(name, {}), key)}
        comparison = stats.compare(name, twin, both, axis=scenario.metric)
        found.append(AA(scenario=scenario.name, level=label, contestant=name, comparison=comparison))
    return found


def _at(of: Samples, level: str) -> Samples:
    return {cell: figure for cell, figure in of.items() if cell[1] == level}


def _judged(one: AA, family: Sequence[Comparison], level: float) -> AA:
    """As one more comparison of its scenario. One of another load or contestant is not of the family: each is asked
    what a ranking would have said of two such contestants. By itself it stands on its own blocks only: how far those of
    a ranking scatter must not hide a fault of the harness."""
    alone = one.comparison
    ranked = stats.corrected((*family, alone), level)[-1]
    return replace(one, comparison=replace(ranked, p=alone.p, single=alone.single))


def _why_none(experiment: Experiment, *, finished: bool) -> WhyNone:
    if experiment.aa_share == 0:
        return "share"
    if experiment.blocks < FEWEST_BLOCKS:
        return "blocks"
    return "time" if finished else "unfinished"
