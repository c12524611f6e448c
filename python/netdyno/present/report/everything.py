"""Every figure of a report as tables for its script: over all blocks, and of each trial. Numbers, not yet in words."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from netdyno.present import templates
from netdyno.present.export.entries import CellEntry, Export, FigureEntry, TrialEntry

DIGITS = 5
"""Digits of a figure: finer than any interval, and a third of the text. An export has all."""
RUN, QUESTION, WORKLOAD, CONTESTANT, LEVEL = "run", "question", "workload", "contestant", "level"
Value = str | int | float | None


class Sheet(msgspec.Struct, frozen=True):
    """Rows as long as `columns`; None where there is no such figure."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


class Source(msgspec.Struct, frozen=True):
    """A run's export, with its page's names for the workloads and levels of questions."""

    run: str
    export: Export
    workloads: Mapping[str, str]
    labels: Mapping[tuple[str, str], str]
    """Labels of levels, by question and key of the level."""


def make_sheets(sources: Sequence[Source]) -> dict[str, Sheet]:
    """Return the sheets by the names that links to the page have for them."""
    trials = [(source, trial) for source in sources for trial in source.export.trials]
    several = len(sources) > 1
    return {"blocks": _make_blocks_sheet(sources), "trials": _make_trials_sheet(trials, "each trial", several=several)}


def fit_sheet(sheet: Sheet, room: int) -> Sheet:
    """Keep as many of the first rows as fit `room`, in bytes of JSON, and say in the title how many are left out."""
    ends = itertools.accumulate(len(templates.encode_json(row)) + 1 for row in sheet.rows)
    shown = sum(1 for _ in itertools.takewhile(lambda end: end <= room, ends))
    if shown == len(sheet.rows):
        return sheet
    title = f"{sheet.title} (the first {shown} of {len(sheet.rows)}; report --export csv has all)"
    return replace(sheet, title=title, rows=sheet.rows[:shown])


def _make_blocks_sheet(sources: Sequence[Source]) -> Sheet:
    cells = [(source, cell) for source in sources for cell in source.export.cells]
    metrics = list(dict.fromkeys(name for _, cell in cells for name in cell.figures))
    parts = [(name, part) for name in metrics for part in ("", " low", " high")]
    several = len(sources) > 1
    rows = tuple(
        (*_describe_place(source, cell, several=several), cell.trials, *_read_parts(cell, parts))
        for source, cell in cells
    )
    units = _read_units(sources)
    named = (f"{name}{part} [{units[name]}]" for name, part in parts)
    return Sheet("over all blocks, with 95% intervals", (*_list_columns(several=several), "trials", *named), rows)


def _read_parts(cell: CellEntry, parts: Sequence[tuple[str, str]]) -> Iterator[Value]:
    for name, part in parts:
        figure = cell.figures.get(name, FigureEntry(value=float("nan")))
        value = {"": figure.value, " low": figure.low, " high": figure.high}[part]
        yield _round_figure(value if name in cell.figures else None)


def _make_trials_sheet(trials: Sequence[tuple[Source, TrialEntry]], title: str, *, several: bool) -> Sheet:
    metrics = list(dict.fromkeys(name for _, trial in trials for name in trial.figures))
    units = _read_units([source for source, _ in trials])
    about = (*_list_columns(several=several), "block", "attempt", "status", "failed audits")
    rows = tuple(
        (
            *_describe_place(source, trial, several=several),
            *(trial.block, trial.attempt, f"{trial.status}{', twin' if trial.twin else ''}", " ".join(trial.failed)),
            *(_round_figure(trial.figures.get(name)) for name in metrics),
        )
        for source, trial in trials
    )
    return Sheet(title, (*about, *(f"{name} [{units[name]}]" for name in metrics)), rows)


def _list_columns(*, several: bool) -> tuple[str, ...]:
    return (*((RUN,) if several else ()), QUESTION, WORKLOAD, CONTESTANT, LEVEL)


def _describe_place(source: Source, item: CellEntry | TrialEntry, *, several: bool) -> tuple[Value, ...]:
    label = source.labels.get((item.question, item.level), item.level)
    place = (item.question, source.workloads.get(item.question, ""), item.contestant, label)
    return (source.run, *place) if several else place


def _read_units(sources: Sequence[Source]) -> dict[str, str]:
    return {name: metric.unit for source in sources for name, metric in source.export.metrics.items()}


def _round_figure(value: float | None) -> Value:
    if value is None:
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() else short
