"""The figures of a comparison and whether they are bounds. Beside a server for which the generator was at its limit, a
closed loop's throughput is at least, and its response time at most, what was measured (Metric.at_limit). Pure
functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from netdyno.analysis.claims.evidence import Evidence, coordinates
from netdyno.analysis.claims.needs import whose_code
from netdyno.contestants import codesize
from netdyno.model.claim import Cells
from netdyno.model.levels import level_key
from netdyno.model.metrics import Metric
from netdyno.model.verdicts import Limit
from netdyno.statistics import stats


@dataclass(frozen=True)
class BoundedFigure:
    """A figure of a cell, and how the server's own lies to it (Evidence.sign)."""

    value: float
    sign: int | None


BoundedFigures = Mapping[stats.Cell, BoundedFigure]


def samples_of(evidence: Evidence, metric: Metric, cells: Cells, dropped: set[str]) -> BoundedFigures:
    """The metric by block and the coordinates that cells are paired by."""
    if metric.of_code is not None:
        return _of_code(evidence, metric, cells, dropped)
    found: dict[stats.Cell, BoundedFigure] = {}
    for trial, load in evidence.counted(cells, {*metric.statuses, "censored"}):
        figure = metric.of(trial, load)
        if figure is not None:
            kept = {name: value for name, value in coordinates(trial).items() if name not in dropped}
            found[trial.block, level_key(kept)] = BoundedFigure(figure, evidence.sign(metric, trial))
    return found


def contrast_sign(first: int | None, second: int | None) -> int | None:
    """Return the sign of a contrast of two figures with these signs: where both are bounds in the same direction,
    nothing is known of it."""
    if first is None or second is None or first * second > 0:
        return None
    return first - second if not (first and second) else first


def of_one_sign(signs: Mapping[stats.Cell, int | None]) -> list[stats.Cell]:
    """Return the cells that say something together: where some are bounds from below and others from above, only those
    that are no bounds."""
    contradict = {1, -1} <= set(signs.values())
    return [cell for cell, sign in signs.items() if sign is not None and not (contradict and sign)]


def limit_of(signs: Iterable[int | None]) -> Limit | None:
    """Return what the mean over cells with these signs is."""
    found = set(signs)
    return "at_least" if 1 in found else "at_most" if -1 in found else None


def divided(samples: BoundedFigures, base: BoundedFigures) -> BoundedFigures:
    """Where both are known. Nothing can be divided by 0: such a cell is 0 itself, which has no ratio either."""
    return {
        cell: BoundedFigure(
            samples[cell].value / base[cell].value if base[cell].value else 0.0,
            contrast_sign(samples[cell].sign, base[cell].sign),
        )
        for cell in samples.keys() & base.keys()
    }


def less(samples: BoundedFigures, base: BoundedFigures) -> BoundedFigures:
    """Return each figure less that of the same cell."""
    return {
        cell: BoundedFigure(samples[cell].value - base[cell].value, contrast_sign(samples[cell].sign, base[cell].sign))
        for cell in samples.keys() & base.keys()
    }


def _of_code(evidence: Evidence, metric: Metric, cells: Cells, dropped: set[str]) -> BoundedFigures:
    """Of a server's or a client's own code and what its family shares: a loop in servers/_shared/ is its code too."""
    assert metric.of_code is not None
    kind, coordinate = whose_code(cells)
    return {
        (0, "" if coordinate in dropped else about.name): BoundedFigure(float(metric.of_code(code)), 0)
        for about in evidence.about
        if about.kind == kind and about.name in cells.at.get(coordinate, (about.name,))
        if (code := codesize.with_family(about, evidence.about)) is not None
    }
