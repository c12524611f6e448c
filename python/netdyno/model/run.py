"""One execution of an experiment."""

from __future__ import annotations

from netdyno.model import levels
from netdyno.model.base import Frozen
from netdyno.model.contestant import About
from netdyno.model.experiment import Experiment
from netdyno.model.trial import Traced, Trial

OF_CLUSTER = "cluster.server"
"""The key of the environment that only a run on hosts of a cluster has."""
OF_LOAD = "cluster.client"
"""The key of the host that makes the load; of a second host it is `cluster.client-2`, and so on."""
BETWEEN_HOSTS = "the network between its hosts"
"""The link between load and server on a cluster."""

Environment = dict[str, str | int | float | bool | list[str]]
"""The recorded facts of a machine, by flat keys."""


class Run(Frozen):
    """One execution of an experiment: the question, the machine, and all results. The twins of the A/A control are kept
    apart from the trials, so that no reader of the trials can mistake a twin for one."""

    run_id: str
    experiment: Experiment
    started_at: str
    finished_at: str | None
    environment: Environment
    trials: tuple[Trial, ...]
    about: tuple[About, ...] = ()
    """The contestants that took part, in the order of codesize.describe."""
    twins: tuple[Trial, ...] = ()
    traced: tuple[Traced, ...] = ()
    """The traced servers; empty where none was to be traced."""
    typed: tuple[str, ...] = ()
    """The words of the command line that made it, behind the program's name."""

    @property
    def links(self) -> tuple[str, ...]:
        """The links between load and server, each once."""
        return (BETWEEN_HOSTS,) if OF_CLUSTER in self.environment else levels.links(self.experiment)

    @property
    def all_trials(self) -> tuple[Trial, ...]:
        """All trials that were run, the twins included, in their order."""
        return tuple(
            sorted((*self.trials, *self.twins), key=lambda trial: (trial.block, trial.position, trial.attempt))
        )
