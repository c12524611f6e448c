"""The text about servers that answered less than the offered rate. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.cells import CellFigures
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit import quantities
from netdyno.kit.paths import ENTRY
from netdyno.model.outcomes import RATE_TOLERANCE


def describe_contestants(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return a sentence for every cell in overload. A search for the capacity overloads servers on purpose."""
    if findings.capacity:
        return ()
    labels = {level.key: level.label for level in findings.levels}
    return tuple(
        _describe_overload(cell, labels[cell.level] if len(labels) > 1 else "")
        for cell in findings.cells
        if cell.value("kept") < 1 - RATE_TOLERANCE
    )


def _describe_overload(cell: CellFigures, level: str) -> str:
    place = f" at {level}" if level else ""
    return (
        f"Overload: {cell.contestant} answered {quantities.share(cell.value('kept'))} of the offered rate{place}. "
        "Its queue grew as long as the load lasted, so its response times depend on the length of the trial. Offer a "
        f"lower rate (--rate); {ENTRY} capacity searches the highest rate that it keeps."
    )
