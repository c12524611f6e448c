"""The figures of an export for services that draw them over commits: Bencher (its "Bencher Metric Format") and
github-action-benchmark, whose files have metrics of one direction each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from netdyno.kit.statistics.stats import Better
from netdyno.present.export.collect import make_figure
from netdyno.present.export.entries import AxisEntry, CellEntry, Export, FigureEntry, QuestionEntry


class DrawnFigure(NamedTuple):
    """A figure of a contestant on an axis of its question, by a name that is the same in each run."""

    name: str
    axis: AxisEntry
    figure: FigureEntry


def format_bencher(export: Export) -> str:
    """Write Bencher's format: figures with the ends of their intervals, by benchmark and measure."""
    benchmarks: dict[str, dict[str, Any]] = {}
    for drawn in _list_figures(export):
        ends = {"lower_value": drawn.figure.low, "upper_value": drawn.figure.high}
        stated = {key: end for key, end in ends.items() if end is not None}
        benchmarks.setdefault(drawn.name, {})[drawn.axis.metric] = {"value": drawn.figure.value, **stated}
    return json.dumps(benchmarks, indent=1, allow_nan=False) + "\n"


def format_github(export: Export, better: Better) -> str:
    """Write what `customBiggerIsBetter` reads, or `customSmallerIsBetter`: the figures of one direction."""
    entries = [
        {
            "name": f"{drawn.name} {drawn.axis.metric}",
            "unit": drawn.axis.unit,
            "value": drawn.figure.value,
            **_describe_range(drawn.figure),
        }
        for drawn in _list_figures(export)
        if drawn.axis.better == better
    ]
    return json.dumps(entries, indent=1, allow_nan=False) + "\n"


def _describe_range(figure: FigureEntry) -> dict[str, str]:
    return {} if figure.low is None or figure.high is None else {"range": f"{figure.low:.6g} to {figure.high:.6g}"}


def _list_figures(export: Export) -> Iterator[DrawnFigure]:
    for question in export.findings.scenarios:
        cells = [cell for cell in export.cells if cell.question == question.name]
        for axis in question.axes:
            of_cells = [
                DrawnFigure(_name(cell), axis, cell.figures[axis.metric])
                for cell in cells
                if axis.metric in cell.figures
            ]
            yield from of_cells or _list_scores(question, axis)


def _list_scores(question: QuestionEntry, axis: AxisEntry) -> Iterator[DrawnFigure]:
    """List the figures of an axis that no cell has, such as capacity."""
    for score in axis.scores:
        if score.value is not None:
            figure = make_figure(score.value, score.interval)
            yield DrawnFigure(f"{question.name}/{score.contestant}", axis, figure)


def _name(cell: CellEntry) -> str:
    return f"{cell.question}/{cell.contestant}{f' ({cell.level})' if cell.level else ''}"


FORMATS: Mapping[str, Callable[[Export], str]] = {
    "bencher": format_bencher,
    "github-bigger": partial(format_github, better="higher"),
    "github-smaller": partial(format_github, better="lower"),
}
"""By the word of `--export`."""
