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
        f"The machine disturbed trials, and {found.tries} more tries were made in the blocks of {found.cells} cells "
        f"({causes}); no figure decides that.{given_up} {_spread(found)}"
    )


def _spread(found: MadeAgain) -> str:
    if found.p is None:
        return ""
    if found.p >= UNEVEN:
        return f"It met all contestants alike ({quantities.p_value(found.p)})."
    most = max(found.by_contestant, key=lambda name: found.by_contestant[name][0] / found.by_contestant[name][1])
    return (
        f"It did NOT meet all contestants alike ({quantities.p_value(found.p)}), {most} most: its work on the machine "
        f"may "
        "look like a neighbour's."
    )
