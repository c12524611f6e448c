"""From the twins of a stored run to how often the same contestant under two names was told apart. Pure.

An A/A comparison is one contestant at one load: its trials against those of its twin in the same blocks, by the very
functions that compare contestants. What a ranking would have said of the two is decided as for any other two:
corrected for the comparisons of their scenario, with this one among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import msgspec

from netdyno.analysis.aa.found import AA, Control
from netdyno.base import quantities
from netdyno.experiment.capacity import coordinates
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_key, level_label
from netdyno.model.run import Run
from netdyno.statistics import stats
from netdyno.statistics.block_counts import FEWEST_BLOCKS
from netdyno.statistics.stats import Comparison, Samples

Read = Callable[[Run, Scenario], Mapping[str, Samples]]
"""The metric of a scenario in a run, by contestant: what rankings are made of."""
Families = Mapping[str, Sequence[Comparison]]
"""The comparisons of each scenario's ranking."""


def control(run: Run, families: Families, read: Read, level: float = stats.LEVEL) -> Control:
    """The A/A control of a run. A scenario that is not in `families` compared nobody else."""
    comparisons = [one for scenario in run.experiment.scenarios for one in _of_scenario(run, scenario, read)]
    judged = tuple(_judged(one, families.get(one.scenario, ()), level) for one in comparisons)
    return Control(run.experiment.aa_share, level, judged, "" if run.twins else _why_none(run))


def _of_scenario(run: Run, scenario: Scenario, read: Read) -> list[AA]:
    """In the order of contestants and loads, not yet judged; without a pair where all trials of one side were set
    aside."""
    planned = {
        (twin.contestant, level_key(at)): level_label(scenario, at)
        for twin, at in ((twin, coordinates(scenario, twin.levels)) for twin in run.twins)
        if twin.scenario == scenario.name
    }
    if not planned:
        return []
    once, again = read(run, scenario), read(_second(run), scenario)
    found = []
    for (name, key), label in sorted(planned.items()):
        twin = f"{name}{quantities.TWIN}"
        samples = {name: once.get(name, {}), twin: _at(again.get(name, {}), key)}
        comparison = stats.compare(name, twin, samples, axis=scenario.metric)
        found.append(AA(scenario=scenario.name, level=label, contestant=name, comparison=comparison))
    return found


def _second(run: Run) -> Run:
    """The twins as a run of their own, to be read as any other."""
    twins = tuple(msgspec.structs.replace(trial, twin=False) for trial in run.twins)
    return msgspec.structs.replace(run, trials=twins, twins=())


def _at(samples: Samples, level: str) -> Samples:
    return {cell: figure for cell, figure in samples.items() if cell[1] == level}


def _judged(one: AA, family: Sequence[Comparison], level: float) -> AA:
    """As one more comparison of its scenario. One of another load or contestant is not of the family: each is asked
    what a ranking would have said of two such contestants. By itself it stands on its own blocks only: how far those of
    a ranking scatter must not hide a fault of the harness."""
    alone = one.comparison
    ranked = stats.corrected((*family, alone), level)[-1]
    return replace(one, comparison=replace(ranked, p=alone.p, single=alone.single))


def _why_none(run: Run) -> str:
    share = run.experiment.aa_share
    if share == 0:
        return "this run gave it no share of its time"
    if run.experiment.blocks < FEWEST_BLOCKS:
        return f"a comparison needs {FEWEST_BLOCKS} blocks, and this run had {run.experiment.blocks} at most"
    if run.finished_at is None:
        return "the run was interrupted before its first"
    return f"too small: {quantities.share(share)} of its time are less than one comparison takes"
