"""The figures of a comparison and whether they are bounds. With the generator at its limit, a closed loop's throughput
is at least, and its response time at most, the measured figure (Metric.at_limit). Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from netdyno.analysis.claims.evidence import Evidence, read_coordinates
from netdyno.analysis.claims.needs import find_code_coordinate
from netdyno.kit.statistics import stats
from netdyno.model.claim import Cells
from netdyno.model.levels import level_key
from netdyno.model.metrics import Metric
from netdyno.model.verdicts import Limit
from netdyno.question.contestants import codesize


class BoundedFigure(msgspec.Struct, frozen=True):
    """A figure of a cell, and the side on which the server's own lies (Evidence.sign)."""

    value: float
    sign: int | None


BoundedFigures = Mapping[stats.BlockLevel, BoundedFigure]


def collect_figures(evidence: Evidence, metric: Metric, cells: Cells, dropped: set[str]) -> BoundedFigures:
    """Return the metric by block and the coordinates by which cells are paired."""
    if metric.of_code is not None:
        return _collect_code_figures(evidence, metric, cells, dropped)
    figures: dict[stats.BlockLevel, BoundedFigure] = {}
    for trial, load in evidence.counted(cells, {*metric.statuses, "censored"}):
        figure = metric.value(trial, load)
        if figure is not None:
            kept = {name: value for name, value in read_coordinates(trial).items() if name not in dropped}
            figures[trial.block, level_key(kept)] = BoundedFigure(figure, evidence.sign(metric, trial))
    return figures


def combine_signs(first: int | None, second: int | None) -> int | None:
    """Return the sign of a contrast of two figures with these signs: where both are bounds in the same direction,
    nothing is known of it."""
    if first is None or second is None or first * second > 0:
        return None
    return first - second if not (first and second) else first


def select_one_sign(signs: Mapping[stats.BlockLevel, int | None]) -> list[stats.BlockLevel]:
    """Return the cells that can be pooled: where some are bounds from below and others from above, only those that are
    no bounds."""
    contradict = {1, -1} <= set(signs.values())
    return [cell for cell, sign in signs.items() if sign is not None and not (contradict and sign)]


def limit_of(signs: Iterable[int | None]) -> Limit | None:
    """Return the kind of bound that the mean over cells with these signs is; None for no bound."""
    kinds = set(signs)
    return "at_least" if 1 in kinds else "at_most" if -1 in kinds else None


def relate_figures(samples: BoundedFigures, base: BoundedFigures, *, subtracts: bool) -> BoundedFigures:
    """Return the differences, or ratios, of the cells that both have. Over a base of 0 the cell is 0, which has no
    ratio either."""

    def relate(figure: float, under: float) -> float:
        if subtracts:
            return figure - under
        return figure / under if under else 0.0

    return {
        cell: BoundedFigure(
            relate(samples[cell].value, base[cell].value), combine_signs(samples[cell].sign, base[cell].sign)
        )
        for cell in samples.keys() & base.keys()
    }


def _collect_code_figures(evidence: Evidence, metric: Metric, cells: Cells, dropped: set[str]) -> BoundedFigures:
    """Measure a program's own code with what its family shares: a loop in servers/_shared/ is its code too."""
    assert metric.of_code is not None
    kind, coordinate = find_code_coordinate(cells)
    return {
        (0, "" if coordinate in dropped else about.name): BoundedFigure(float(metric.of_code(code)), 0)
        for about in evidence.about
        if about.kind == kind and about.name in cells.at.get(coordinate, (about.name,))
        if (code := codesize.sum_with_family(about, evidence.about)) is not None
    }
