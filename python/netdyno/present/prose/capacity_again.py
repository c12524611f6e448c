"""The command that a stored run was started by. Pure."""

from __future__ import annotations

import shlex

from netdyno.experiment.capacity import asked_again
from netdyno.model.experiment import Experiment


def again(experiment: Experiment) -> str:
    """It repeats the run, from its own description and not from the words that were typed."""
    if experiment.capacity is None:
        return f"./netdyno run {experiment.name}"
    options = asked_again(experiment, experiment.capacity)
    flags = [word for name, value in options.items() for word in (f"--{name}", value)]
    return shlex.join(["./netdyno", "capacity", *experiment.scenarios[0].contestants, *flags])
