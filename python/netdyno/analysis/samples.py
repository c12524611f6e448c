"""The figure that a scenario is judged by, of each contestant: where a metric comes from one trial and where from
several. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netdyno.analysis import measured
from netdyno.analysis.capacity import fill as capacity
from netdyno.experiment.capacity import CAPACITY
from netdyno.model.experiment import Scenario
from netdyno.model.run import Run
from netdyno.statistics.stats import Samples


def samples(run: Run, scenario: Scenario, names: Sequence[str]) -> Mapping[str, Samples]:
    """By contestant, block and level; who has none at all is left out."""
    if scenario.metric == CAPACITY:
        return capacity.samples(run, scenario, names)
    return measured.samples(run, scenario, names)
