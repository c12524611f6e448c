"""What is said of figures that were measured beside a neighbour that stays. Pure functions."""

from __future__ import annotations

from netdyno.analysis.company import Company
from netdyno.audits import neighbour
from netdyno.base import quantities

MARK = "†"
"""Behind each absolute figure that was measured so."""


def mark(found: Company | None) -> str:
    """Return what stands behind an absolute figure."""
    return MARK if found else ""


def label(found: Company) -> str:
    """Return "beside 1.8 cores of clang++"."""
    return f"beside {quantities.listed([neighbour.name(one) for one in found.neighbours])}"


def sentences(found: Company | None) -> tuple[str, ...]:
    """What a reader must know before quoting a figure; none where the machine was the run's own."""
    if found is None:
        return ()
    trials = f"{found.trials} of " if found.trials < found.of else ""
    text = (
        f"{MARK} Measured {label(found)} ({trials}{quantities.plural(found.of, 'trial')}): comparisons hold, "
        "because every contestant was disturbed alike; absolute figures are not those of an idle machine."
    )
    return (text,)
