"""Every figure of a report as tables for its script: over all blocks, and of each trial. Numbers, not yet in words."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from netdyno.present import templates
from netdyno.present.export.schema import Cell, Export, Figure, Trial

DIGITS = 5
"""Of a figure: finer than any interval, and a third of the text. An export has all."""
RUN, QUESTION, WORKLOAD, CONTESTANT, LEVEL = "run", "question", "workload", "contestant", "level"
Value = str | int | float | None


@dataclass(frozen=True)
class Sheet:
    """Rows as long as `columns`; None where there is no such figure."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class Source:
    """A run's export, with what its page calls questions' workloads and levels."""

    run: str
    export: Export
    workloads: Mapping[str, str]
    labels: Mapping[tuple[str, str], str]
    """By question and key of the level."""


def sheets(sources: Sequence[Source]) -> dict[str, Sheet]:
    """By the name that a link to the page has for it."""
    trials = [(source, one) for source in sources for one in source.export.trials]
    several = len(sources) > 1
    return {"blocks": _over_blocks(sources), "trials": _of_trials(trials, "each trial", several=several)}


def fitting(sheet: Sheet, room: int) -> Sheet:
    """As many of its first rows as have room as JSON, in bytes, and a title that says how many are left out."""
    ends = itertools.accumulate(len(templates.json_of(row)) + 1 for row in sheet.rows)
    shown = sum(1 for _ in itertools.takewhile(lambda end: end <= room, ends))
    if shown == len(sheet.rows):
        return sheet
    title = f"{sheet.title} (the first {shown} of {len(sheet.rows)}; report --export csv has all)"
    return replace(sheet, title=title, rows=sheet.rows[:shown])


def _over_blocks(sources: Sequence[Source]) -> Sheet:
    cells = [(source, one) for source in sources for one in source.export.cells]
    metrics = list(dict.fromkeys(name for _, cell in cells for name in cell.figures))
    parts = [(name, part) for name in metrics for part in ("", " low", " high")]
    several = len(sources) > 1
    rows = tuple((*_place(source, cell, several=several), cell.trials, *_parts(cell, parts)) for source, cell in cells)
    units = _units(sources)
    named = (f"{name}{part} [{units[name]}]" for name, part in parts)
    return Sheet("over all blocks, with 95% intervals", (*_columns(several=several), "trials", *named), rows)


def _parts(cell: Cell, parts: Sequence[tuple[str, str]]) -> Iterator[Value]:
    for name, part in parts:
        figure = cell.figures.get(name, Figure(value=float("nan")))
        value = {"": figure.value, " low": figure.low, " high": figure.high}[part]
        yield _short(value if name in cell.figures else None)


def _of_trials(trials: Sequence[tuple[Source, Trial]], title: str, *, several: bool) -> Sheet:
    metrics = list(dict.fromkeys(name for _, trial in trials for name in trial.figures))
    units = _units([source for source, _ in trials])
    about = (*_columns(several=several), "block", "attempt", "status", "failed audits")
    rows = tuple(
        (
            *_place(source, trial, several=several),
            *(trial.block, trial.attempt, f"{trial.status}{', twin' if trial.twin else ''}", " ".join(trial.failed)),
            *(_short(trial.figures.get(name)) for name in metrics),
        )
        for source, trial in trials
    )
    return Sheet(title, (*about, *(f"{name} [{units[name]}]" for name in metrics)), rows)


def _columns(*, several: bool) -> tuple[str, ...]:
    return (*((RUN,) if several else ()), QUESTION, WORKLOAD, CONTESTANT, LEVEL)


def _place(source: Source, one: Cell | Trial, *, several: bool) -> tuple[Value, ...]:
    label = source.labels.get((one.question, one.level), one.level)
    place = (one.question, source.workloads.get(one.question, ""), one.contestant, label)
    return (source.run, *place) if several else place


def _units(sources: Sequence[Source]) -> dict[str, str]:
    return {name: metric.unit for source in sources for name, metric in source.export.metrics.items()}


def _short(value: float | None) -> Value:
    if value is None:
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() else short
