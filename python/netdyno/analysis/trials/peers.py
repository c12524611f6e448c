"""The contestants that are ranked together, for the ranking and for the precision of its blocks. Pure functions."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from netdyno.analysis.found.ground import Ground
from netdyno.analysis.trials.ground import describe_ground
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.model import transports
from netdyno.model.base import Name
from netdyno.question.capacity import CAPACITY


class Peers(NamedTuple):
    """Contestants on level ground, each by name: those without a fault that lost no more than the bound in any trial,
    those that lost more (docs/adr/loss.md), and those whose trials show a fault (docs/adr/audit-kinds.md)."""

    sound: tuple[Name, ...]
    lossy: tuple[Name, ...] = ()
    faulty: tuple[Name, ...] = ()


def describe_part_ground(part: ScenarioTrials) -> Ground:
    """Return the ground of a scenario's ranked trials."""
    trials = [trial for trial, _ in part.ranked]
    return describe_ground(part.scenario, trials, part.about, part.cores_allowed, part.quota_cores)


def group_peers(part: ScenarioTrials) -> tuple[Peers, ...]:
    """Return all contestants of a scenario, with a figure or without, in the groups that could use equally many cores
    (docs/adr/same-cores.md), in the order of the ground; there is always one. A capacity already excludes loss and
    faults, so all of a group are ranked by it."""
    ground = describe_part_ground(part)
    groups: list[list[Name]] = [[] for _ in ground.together or ((),)]
    for name in part.contestants:
        groups[ground.group_of(name)].append(name)
    if part.scenario.metric == CAPACITY:
        return tuple(Peers(tuple(names)) for names in groups)
    faulty = {trial.contestant for trial in part.trials if trial.status == "faulty"}
    bound = part.scenario.loss_bound
    lossy = {trial.contestant for trial, load in part.ranked if (transports.share_lost(load) or 0.0) > bound} - faulty
    return tuple(_split_by_kind(names, lossy, faulty) for names in groups)


def _split_by_kind(names: Collection[Name], lossy: Collection[Name], faulty: Collection[Name]) -> Peers:
    return Peers(
        sound=tuple(name for name in names if name not in lossy and name not in faulty),
        lossy=tuple(name for name in names if name in lossy),
        faulty=tuple(name for name in names if name in faulty),
    )
