"""Fisher's exact test of whether an event meets one group more often than the rest. Pure functions of counts, without
numpy."""

from __future__ import annotations

import math


def compute_chance(events: int, trials: int, other_events: int, other_trials: int) -> float:
    """Return the chance (one-sided p) of at least `events` among `trials` where those of both groups are dealt out at
    random: 5 of 5 beside 0 of 5 have 1/252. 1 where there was no event, or no other trial."""
    all_trials, all_events = trials + other_trials, events + other_events
    dealt = sum(
        math.comb(trials, count) * math.comb(other_trials, all_events - count)
        for count in range(events, min(trials, all_events) + 1)
    )
    return dealt / math.comb(all_trials, all_events)
