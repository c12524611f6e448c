"""Whether other programs shared the cores with some contestants of a scenario and spared another. Pure functions.

A neighbour that meets all alike leaves comparisons as they are. A program that runs while one contestant is measured,
and rests while another is, makes a difference that looks like the contestants' own, whatever started it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from netdyno.kit.statistics import exact
from netdyno.model.load_result import Audit
from netdyno.model.trial import Trial

NAME = "uneven_load"
LEAST_CORES = 0.25
"""The least difference of two contestants' medians that counts: above what a trial may have where foreign load is no
reason to repeat it (measure/audits/host_audits.py)."""
MOST_CHANCE = 0.01
"""The largest chance of such a difference where a neighbour comes and goes at random, over all pairs."""


def find_uneven(trials: Iterable[Trial]) -> Mapping[str, Audit]:
    """Return the failed audit of each scenario, by its name, in which other programs ran beside one contestant and
    spared another. Trials that are repeated for what ran beside them are not to be given."""
    cores: dict[str, dict[str, list[float]]] = {}
    for trial in trials:
        if trial.machine is not None:
            used = (trial.machine.foreign_s + trial.machine.steal_s) / trial.machine.window_s
            cores.setdefault(trial.scenario, {}).setdefault(trial.contestant, []).append(used)
    audits = {scenario: judge_scenario(of_contestants) for scenario, of_contestants in cores.items()}
    return {scenario: audit for scenario, audit in audits.items() if not audit.passed}


def judge_scenario(cores: Mapping[str, Sequence[float]]) -> Audit:
    """Judge one scenario by the cores' worth that others used in each trial of its contestants."""
    medians = {name: statistics.median(values) for name, values in sorted(cores.items())}
    most, least = max(medians, key=lambda name: medians[name]), min(medians, key=lambda name: medians[name])
    between = (medians[most] + medians[least]) / 2
    above = {name: sum(value > between for value in cores[name]) for name in (most, least)}
    pairs = math.comb(len(cores), 2)
    chance = pairs * exact.compute_chance(above[most], len(cores[most]), above[least], len(cores[least]))
    is_uneven = medians[most] - medians[least] >= LEAST_CORES and chance < MOST_CHANCE
    detail = (
        f"other programs used {medians[most]:.2g} cores beside {most}, and {medians[least]:.2g} beside {least} "
        f"(medians; p = {min(chance, 1.0):.2g})"
    )
    return Audit(name="uneven_load", passed=not is_uneven, detail=detail)
