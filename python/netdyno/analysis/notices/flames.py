"""Stacks as a tree of frames, and as functions wherever they are called from. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from netdyno.model.base import Name
from netdyno.model.profile import Profile, Stack


@dataclass
class Flame:
    """A frame with all that it called. `share` is its part of all sampled time, `own` the part in which it called
    nothing."""

    name: Name
    share: float = 0.0
    own: float = 0.0
    called: dict[Name, Flame] = field(default_factory=dict)


def build_tree(stacks: Mapping[Stack, float]) -> Flame:
    """Return all stacks from a common root; callees are in the order of their names, so that trees look alike."""
    total = sum(stacks.values()) or 1.0
    root = Flame("all")
    for stack, amount in sorted(stacks.items()):
        share = amount / total
        root.share += share
        frame = root
        for name in stack:
            if name not in frame.called:
                frame.called[name] = Flame(name)
            frame = frame.called[name]
            frame.share += share
        frame.own += share
    return root


def sum_by_function(profile: Profile) -> dict[Name, float]:
    """Return each function's share of all time on the stack, counted once for each stack however often it is there."""
    shares: dict[Name, float] = {}
    total = profile.total_us or 1.0
    for stack, amount in profile.stacks.items():
        for name in dict.fromkeys(stack):
            shares[name] = shares.get(name, 0.0) + amount / total
    return shares
