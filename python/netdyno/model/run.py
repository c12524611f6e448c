"""One execution of an experiment."""

from __future__ import annotations

from netdyno.model import levels
from netdyno.model.base import Frozen
from netdyno.model.contestant import About
from netdyno.model.experiment import Experiment
from netdyno.model.trial import Traced, Trial

OF_CLUSTER = "cluster.server"
"""The key of the environment that a run on hosts of a cluster has, and no other."""
OF_LOAD = "cluster.client"
"""Beside it, the host that makes the load; of a second one `cluster.client-2`, and so on."""
BETWEEN_HOSTS = "the network between its hosts"
"""What lies between load and server there."""

Environment = dict[str, str | int | float | bool | list[str]]
"""What is recorded of a machine, by flat keys."""


class Run(Frozen):
    """One execution of an experiment: what was asked, where, and everything that came of it. The twins of the A/A
    control stand apart from the trials, so that nothing that reads these can take a twin for one of them."""

    run_id: str
    experiment: Experiment
    started_at: str
    finished_at: str | None
    environment: Environment
    trials: tuple[Trial, ...]
    about: tuple[About, ...] = ()
    """Who took part, in the order of codesize.describe; empty in a run stored before it was recorded."""
    twins: tuple[Trial, ...] = ()
    traced: tuple[Traced, ...] = ()
    """Empty where nothing was to be traced, and in a run stored before it could be."""

    @property
    def links(self) -> tuple[str, ...]:
        """What lay between load and server, each once."""
        return (BETWEEN_HOSTS,) if OF_CLUSTER in self.environment else levels.links(self.experiment)

    @property
    def all_trials(self) -> tuple[Trial, ...]:
        """What was run, the twins included, in its order."""
        return tuple(
            sorted((*self.trials, *self.twins), key=lambda trial: (trial.block, trial.position, trial.attempt))
        )
