"""How each server came through a burst, in a sentence for each of them. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.cells import CellFigures, LevelInfo
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.model import burst
from netdyno.model.metrics import METRICS
from netdyno.model.options import settings


def describe_contestants(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return the sentences of all levels; none where the rate keeps."""
    return tuple(text for level in findings.levels for text in describe_level(findings, level))


def describe_level(findings: ScenarioFindings, level: LevelInfo) -> tuple[str, ...]:
    """Return a sentence for each contestant at a level."""
    place = f" ({level.label})" if len(findings.levels) > 1 else ""
    *_, after_s = burst.divide(settings(findings.scenario, level.values).duration_s)
    return tuple(
        f"{cell.contestant}{place}: {_describe_cell(cell, 1e9 * after_s)}"
        for cell in findings.cells
        if cell.level == level.key and "recovery" in cell.values
    )


def _describe_cell(cell: CellFigures, after_ns: float) -> str:
    recovery, goodput, unanswered = (
        METRICS[name].speak(cell.value(name)) for name in ("recovery", "burst-goodput", "unanswered")
    )
    again = (
        f"its p99 had recovered {recovery} after the burst"
        if cell.value("recovery") < after_ns
        else f"its p99 had not recovered when the window ended, {recovery} after the burst"
    )
    missing = f"{unanswered} of its messages had no answer in time"
    return f"it answered {goodput} in time in the burst, and {missing}; {again}."
