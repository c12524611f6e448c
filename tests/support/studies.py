"""The experiments of the tree, as they would be run."""

from __future__ import annotations

from functools import cache

from netdyno.kit.paths import ROOT
from netdyno.model.experiment import Budget, Experiment
from netdyno.question import experiment
from netdyno.question.contestants.contestants import discover, select

FOLDER = ROOT / "experiments"


@cache
def load_study(name: str, budget: Budget = "normal") -> Experiment:
    """Load an experiment at a size, with its patterns made names of contestants."""
    loaded, servers = experiment.load(FOLDER / f"{name}.toml", budget), discover()
    return experiment.choose_contestants(
        loaded, lambda patterns: [contestant.name for contestant in select(servers, patterns)]
    )
