"""The command that a stored run was started by. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from netdyno.experiment.capacity import asked_again
from netdyno.model.contestant import About, Own
from netdyno.model.experiment import Experiment


def again(experiment: Experiment, about: Sequence[About] = ()) -> str:
    """It repeats the run, from its own description and not from the words that were typed."""
    if experiment.capacity is None:
        own = [(one.name, one.own) for one in about if one.own is not None]
        flags = [word for name, one in own for word in (*_whose(one), "--as", name)]
        spoken = ["--workload", own[0][1].workload] if own else []
        return shlex.join(["./netdyno", "run", experiment.name, *flags, *spoken])
    options = asked_again(experiment, experiment.capacity)
    flags = [word for name, value in options.items() for word in (f"--{name}", value)]
    return shlex.join(["./netdyno", "capacity", *experiment.scenarios[0].contestants, *flags])


def _whose(own: Own) -> tuple[str, ...]:
    """Those beyond the loopback were asked for with a word, which whoever asks again has to give anew."""
    return ("--address", own.address) if own.address else ("--server", own.command)
