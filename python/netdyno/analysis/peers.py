"""Who is ranked with whom: decided here, for the ranking and for the precision that its blocks are to reach. Pure
functions."""

from __future__ import annotations

from typing import NamedTuple

from netdyno.analysis.split import Part
from netdyno.experiment.capacity import CAPACITY
from netdyno.model import transports
from netdyno.model.base import Name


class Peers(NamedTuple):
    """Each by name: those without a fault that lost no more than the bound in any trial, those that lost more
    (docs/adr/loss.md), and those whose trials show a fault (docs/adr/audit-kinds.md)."""

    sound: tuple[Name, ...]
    lossy: tuple[Name, ...] = ()
    faulty: tuple[Name, ...] = ()


def peers(part: Part) -> Peers:
    """All contestants of a scenario, whether they have a figure or not. A capacity is what is served without loss and
    without a fault, and all are ranked by it."""
    if part.scenario.metric == CAPACITY:
        return Peers(part.contestants)
    faulty = {trial.contestant for trial in part.trials if trial.status == "faulty"}
    bound = part.scenario.loss_bound
    lossy = {trial.contestant for trial, load in part.ranked if (transports.share_lost(load) or 0.0) > bound} - faulty
    return Peers(
        sound=tuple(name for name in part.contestants if name not in lossy and name not in faulty),
        lossy=tuple(name for name in part.contestants if name in lossy),
        faulty=tuple(name for name in part.contestants if name in faulty),
    )
