"""What is said of trials, and of slices of trials, that were made again. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping

from netdyno.analysis.findings import MadeAgain
from netdyno.base import quantities

UNEVEN = 0.01
"""Below this chance the neighbour did not meet all contestants alike."""


MOST_NAMED = 3


def sentence(found: MadeAgain) -> str:
    """How often, for what, and whether it fell on all contestants alike; empty where nothing was made again."""
    parts = [_of_trials(found)] if found.causes else []
    parts += [_of_slices(found)] if found.slices_again else []
    return " ".join(parts)


def _of_trials(found: MadeAgain) -> str:
    causes = quantities.listed([f"{name} {count}" for name, count in found.causes.items()])
    given_up = f" {quantities.plural(found.given_up, 'cell')} stayed empty." if found.given_up else ""
    return (
        f"The machine disturbed trials of {found.cells} cells, which were retried {found.tries} times in their blocks "
        f"({causes}); no figure decides what is retried.{given_up} {_spread(found.p, found.by_contestant)}"
    ).strip()


def _of_slices(found: MadeAgain) -> str:
    again, slices = map(sum, zip(*found.slices_by_contestant.values(), strict=True))
    named = [f"{program} {count}" for program, count in list(found.slices_again.items())[:MOST_NAMED]]
    spread = _spread(found.slices_p, found.slices_by_contestant)
    named += ["others"] if len(found.slices_again) > MOST_NAMED else []
    return (
        f"Of {quantities.plural(slices, 'slice')} {again} were measured again at once, because other programs "
        f"or pauses of the machine took a core ({quantities.listed(named)}). {spread}"
    ).strip()


def _spread(p: float | None, by_contestant: Mapping[str, tuple[int, int]]) -> str:
    if p is None:
        return ""
    if p >= UNEVEN:
        return f"All contestants were disturbed alike ({quantities.p_value(p)})."
    most = max(by_contestant, key=lambda name: by_contestant[name][0] / max(1, by_contestant[name][1]))
    return (
        f"Contestants were NOT disturbed alike ({quantities.p_value(p)}), {most} most: its own work may look like that "
        "of another program."
    )
