"""The text about figures that were measured beside a neighbour that stays. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.notices import Company
from netdyno.kit import quantities
from netdyno.measure.audits import neighbour

MARK = "†"
"""The sign behind each absolute figure that was measured so."""


def mark(company: Company | None) -> str:
    """Return the sign behind an absolute figure, or nothing."""
    return MARK if company else ""


def label(company: Company) -> str:
    """Return "beside 1.8 cores of clang++"."""
    return f"beside {quantities.listed([neighbour.name(program) for program in company.neighbours])}"


def list_caveats(company: Company | None) -> tuple[str, ...]:
    """All that a reader must know before quoting a figure; empty where the machine was the run's own."""
    if company is None:
        return ()
    trials = f"{company.trials} of " if company.trials < company.total else ""
    stopped = (
        " A contestant that used more CPU was stopped for longer."
        if any(program.quota_cores for program in company.neighbours)
        else ""
    )
    text = (
        f"{MARK} Measured {label(company)} "
        f"({trials}{quantities.plural(company.total, 'trial')}): figures and comparisons "
        f"are those of servers there, and may differ on an idle machine.{stopped}"
    )
    return (text,)
