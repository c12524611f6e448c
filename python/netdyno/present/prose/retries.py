"""The text about trials, and slices of trials, that were retried. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping

from netdyno.analysis.found.notices import Retries
from netdyno.kit import quantities

UNEVEN = 0.01
"""The p-value below which contestants were not disturbed equally."""


MOST_NAMED = 3


def describe_retries(retries: Retries) -> str:
    """Say how often, why, and whether all contestants were disturbed equally; empty where nothing was retried."""
    parts = [_describe_trials(retries)] if retries.causes else []
    parts += [_describe_slices(retries)] if retries.slices_again else []
    return " ".join(parts)


def _describe_trials(retries: Retries) -> str:
    causes = quantities.listed([f"{name}: {count}" for name, count in retries.causes.items()])
    given_up = f" {quantities.plural(retries.given_up, 'cell')} stayed empty." if retries.given_up else ""
    return (
        f"The machine disturbed trials of {quantities.plural(retries.cells, 'cell')}, which were retried "
        f"{quantities.plural(retries.tries, 'time')} in their blocks ({causes}). No retry depends on a figure."
        f"{given_up} {_describe_spread(retries.p, retries.by_contestant)}"
    ).strip()


def _describe_slices(retries: Retries) -> str:
    again, slices = map(sum, zip(*retries.slices_by_contestant.values(), strict=True))
    named = [f"{program}: {count}" for program, count in list(retries.slices_again.items())[:MOST_NAMED]]
    spread = _describe_spread(retries.slices_p, retries.slices_by_contestant)
    turns = quantities.plural(retries.turns_dropped, "turn")
    dropped = f"; {turns} had to be dropped for all contestants" if retries.turns_dropped else ""
    named += ["others"] if len(retries.slices_again) > MOST_NAMED else []
    return (
        f"Other programs or pauses of the machine disturbed {again} of {quantities.plural(slices, 'slice')}, which "
        f"were retried ({quantities.listed(named)}){dropped}. {spread}"
    ).strip()


def _describe_spread(p_even: float | None, by_contestant: Mapping[str, tuple[int, int]]) -> str:
    if p_even is None:
        return ""
    if p_even >= UNEVEN:
        return f"No contestant is proven to be disturbed more than others ({quantities.p_value(p_even)})."
    most = max(by_contestant, key=lambda name: by_contestant[name][0] / max(1, by_contestant[name][1]))
    return (
        f"Contestants were NOT disturbed equally ({quantities.p_value(p_even)}), {most} most: netdyno may have counted "
        f"work of {most} as another program's."
    )
