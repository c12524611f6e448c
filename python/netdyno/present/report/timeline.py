"""Throughput over time, as the data that the page's script draws with uPlot."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from netdyno.analysis.found.cells import CellFigures
from netdyno.analysis.found.run import Analysis, ScenarioFindings

MOST_POINTS = 40_000
"""Points of a whole page, about a third of a megabyte; beyond it neighbours are averaged, and the step says so."""


class TimelineTrace(msgspec.Struct, frozen=True):
    """One trial: which contestant (by number), which block, completions per second per step. `lost` is its share of
    lost messages and `above` whether that is more than the bound; None where none can be lost."""

    contestant: int
    block: int
    per_second: tuple[int, ...]
    lost: float | None
    above: bool


class LevelTraces(msgspec.Struct, frozen=True):
    label: str
    step_s: float
    traces: tuple[TimelineTrace, ...]


def collect_traces(analysis: Analysis) -> dict[str, list[LevelTraces]]:
    """Return traces by scenario and level, thinned so that the page stays small."""
    points = sum(
        len(trial.per_second) for findings in analysis.scenarios for cell in findings.cells for trial in cell.series
    )
    factor = -(-points // MOST_POINTS) or 1
    return {
        findings.scenario.name: _collect_scenario_traces(findings, analysis.contestants, factor)
        for findings in analysis.scenarios
    }


def _collect_scenario_traces(findings: ScenarioFindings, contestants: Sequence[str], factor: int) -> list[LevelTraces]:
    result = []
    for level in findings.levels:
        cells = [cell for cell in findings.cells if cell.level == level.key]
        if not cells:
            continue
        step_s = cells[0].series[0].interval_ns / 1e9 * factor
        level_traces = tuple(
            TimelineTrace(
                contestants.index(cell.contestant),
                series.block,
                merge_neighbours(series.per_second, factor),
                *_read_loss(cell, number),
            )
            for cell in cells
            for number, series in enumerate(cell.series)
        )
        result.append(LevelTraces(level.label, step_s, level_traces))
    return result


def _read_loss(cell: CellFigures, number: int) -> tuple[float | None, bool]:
    """Return the loss of one trial of a cell, and whether it is above the bound."""
    if cell.loss is None:
        return None, False
    trial = cell.loss.trials[number]
    return trial.lost, trial.above


def merge_neighbours(values: Sequence[float], factor: int) -> tuple[int, ...]:
    """Return means over `factor` neighbours; a last group that is not full is left out, for its mean would jump."""
    whole = len(values) - len(values) % factor
    return tuple(round(sum(values[start : start + factor]) / factor) for start in range(0, whole, factor))
