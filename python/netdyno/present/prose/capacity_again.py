"""The command that a stored run was started by. Pure."""

from __future__ import annotations

import shlex

from netdyno.base.units import format_duration
from netdyno.model.experiment import CapacityPlan, Experiment


def again(experiment: Experiment) -> str:
    """It repeats the run, from its own description and not from the words that were typed."""
    if experiment.capacity is None:
        return f"./netdyno run {experiment.name}"
    return shlex.join(["./netdyno", "capacity", *_search(experiment, experiment.capacity)])


def _search(experiment: Experiment, asked: CapacityPlan) -> list[str]:
    (scenario,) = experiment.scenarios
    options: dict[str, object] = {
        "slo": scenario.slo,
        "workload": scenario.workload,
        "connections": scenario.connections,
        "size": scenario.size,
        "arrivals": scenario.arrivals,
        "start": f"{asked.start_hz:.10g}",
        "most": f"{asked.most_hz:.10g}",
        "resolution": f"{asked.resolution:g}",
        "needed": asked.needed,
        "warmup": format_duration(scenario.warmup_s),
        "duration": format_duration(scenario.duration_s),
        "generator-threads": scenario.generator_threads,
        "seed": experiment.seed,
        **scenario.server,
    }
    return [*scenario.contestants, *(word for name, value in options.items() for word in (f"--{name}", str(value)))]
