"""What is said of trials that were made again. Pure functions."""

from __future__ import annotations

from netdyno.analysis.findings import MadeAgain
from netdyno.base import quantities

UNEVEN = 0.01
"""Below this chance the neighbour did not meet all contestants alike."""


def sentence(found: MadeAgain) -> str:
    """How often, for what, and whether it fell on all contestants alike."""
    causes = quantities.listed([f"{name} {count}" for name, count in found.causes.items()])
    given_up = f" {quantities.plural(found.given_up, 'cell')} stayed empty." if found.given_up else ""
    return (
        f"The machine disturbed trials of {found.cells} cells, which were retried {found.tries} times in their blocks "
        f"({causes}); no figure decides what is retried.{given_up} {_spread(found)}"
    )


def _spread(found: MadeAgain) -> str:
    if found.p is None:
        return ""
    if found.p >= UNEVEN:
        return f"All contestants were disturbed alike ({quantities.p_value(found.p)})."
    most = max(found.by_contestant, key=lambda name: found.by_contestant[name][0] / found.by_contestant[name][1])
    return (
        f"Contestants were NOT disturbed alike ({quantities.p_value(found.p)}), {most} most: its own work may "
        f"look like "
        "that of another program."
    )
