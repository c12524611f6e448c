"""The machine over the run: the trials that it disturbed, and the readings of its canary in three panels over time, the
same per block as a table, and in sentences.

A run of thousands of trials is drawn as a band around its median, so that the section stays small."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from netdyno.analysis.found.canary import MachineOverTime, Range, TrialSpeeds
from netdyno.analysis.found.notices import Retries
from netdyno.analysis.notices.canary import group_by_block
from netdyno.kit import quantities
from netdyno.measure.audits.canary_audit import FACTOR
from netdyno.present.prose import retries
from netdyno.present.prose.canary import describe_drift
from netdyno.present.report import theme
from netdyno.present.report.drawing import Panel, draw_dots, finish, format_short_number, open_panel
from netdyno.present.report.report_table import ReportTable, make_cell

HEIGHT_INCHES = 2.4
MOST_POINTS = 80
"""Points of one panel; in a longer run, neighbours are one point."""
MOST_INVALID = 25
"""Marks of invalid trials in one panel."""
CROSSES_AT = 0.05
"""Share of the height of a panel."""
MOST_BLOCKS = 20
"""Blocks whose beginnings are marked, and rows of the table; of more, every second, third, …"""
UNITS = ("round trips per second", "steps per second", "steps per second")
"""In the order of canary_audit.FIGURES."""
Item = TypeVar("Item")


class TimelinePoint(msgspec.Struct, frozen=True):
    """Neighbouring trials: when the first began, in seconds, and one figure of all of them."""

    at_s: float
    least: float
    median: float
    most: float
    invalid: bool


class MachineView(msgspec.Struct, frozen=True):
    sentences: tuple[str, ...]
    note: str
    panels: tuple[Panel, ...]
    table: ReportTable
    trials: int


class AgainView(msgspec.Struct, frozen=True):
    """Trials, and slices of trials, that were retried because the machine was disturbed, or that stayed disturbed."""

    sentence: str
    by_contestant: ReportTable
    by_cause: ReportTable | None
    slices_by_program: ReportTable | None


def make_retries_view(totals: Retries) -> AgainView | None:
    """Return the tables of retries; None where the machine disturbed no trial, and no slice of one."""
    if totals.is_empty:
        return None
    contestants = (
        (name, str(tries), str(cells), *map(str, totals.slices_by_contestant[name]))
        for name, (tries, cells) in totals.by_contestant.items()
    )
    causes = ((name.replace("_", " "), str(count)) for name, count in totals.causes.items())
    programs = ((name, str(count)) for name, count in totals.slices_again.items())
    return AgainView(
        sentence=retries.describe_retries(totals),
        by_contestant=ReportTable(("contestant", "retried", "cells", "slices again", "slices"), tuple(contestants)),
        by_cause=ReportTable(("cause", "tries"), tuple(causes)) if totals.causes else None,
        slices_by_program=ReportTable(("program", "slices"), tuple(programs)) if totals.slices_again else None,
    )


def make_view(machine: MachineOverTime | None) -> MachineView | None:
    if machine is None:
        return None
    return MachineView(
        sentences=describe_drift(machine),
        note=_describe_drawing(machine),
        panels=tuple(_draw_panel(machine, number) for number in range(len(machine.ranges))),
        table=_tabulate_blocks(machine),
        trials=len(machine.trials),
    )


def _describe_drawing(machine: MachineOverTime) -> str:
    merged, step = (
        _count_merged(len(machine.trials), MOST_POINTS),
        _count_merged(len(_find_beginnings(machine)), MOST_BLOCKS),
    )
    drawn = "A point is the mean of the two readings beside one trial; the band goes from one to the other."
    if merged > 1:
        drawn = f"A point is the median of {merged} trials one after the other; the band goes from least to most."
    lines = "where each block begins" if step == 1 else f"where one block in {step} begins"
    texts = [drawn, f"Upright lines: {lines}."]
    if machine.invalid:
        texts.append(f"Crosses: invalid trials, further than a factor of {FACTOR:g} from their block.")
    if sum(point.invalid for point in list_points(machine, 0)) > MOST_INVALID:
        texts.append(f"The first {MOST_INVALID} are marked.")
    return " ".join(texts)


def list_points(machine: MachineOverTime, number: int) -> list[TimelinePoint]:
    """Return one figure over the run, with at most MOST_POINTS points."""
    return [
        _merge_trials(group, number)
        for group in _split_into_groups(machine.trials, _count_merged(len(machine.trials), MOST_POINTS))
    ]


def _merge_trials(trials: Sequence[TrialSpeeds], number: int) -> TimelinePoint:
    return TimelinePoint(
        at_s=trials[0].at_s,
        least=min(trial.least[number] for trial in trials),
        median=statistics.median(trial.speeds[number] for trial in trials),
        most=max(trial.most[number] for trial in trials),
        invalid=any(trial.invalid for trial in trials),
    )


def _split_into_groups(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _count_merged(count: int, most: int) -> int:
    """Return how many are merged into one, so that no more than `most` are left."""
    return max(1, math.ceil(count / most))


def _find_beginnings(machine: MachineOverTime) -> list[float]:
    """Return when each block began, in seconds."""
    return [block[0].at_s for block in group_by_block(machine.trials)]


def _draw_panel(machine: MachineOverTime, number: int) -> Panel:
    drawn = list_points(machine, number)
    rate = machine.ranges[number]
    minutes = drawn[-1].at_s >= 300
    unit_s = 60.0 if minutes else 1.0
    xs = [point.at_s / unit_s for point in drawn]
    with open_panel(height=HEIGHT_INCHES) as axes:
        _draw_line(axes, xs, drawn, merged=len(drawn) < len(machine.trials))
        top = 1.08 * max(point.most for point in drawn)
        begun = _find_beginnings(machine)
        _draw_blocks(axes, [at_s / unit_s for at_s in begun[:: _count_merged(len(begun), MOST_BLOCKS)]], top)
        _draw_crosses(axes, xs, drawn, top)
        axes.set_ylim(0, top)
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_short_number(value)))
        axes.set_ylabel(UNITS[number])
        axes.set_xlabel(f"{'minutes' if minutes else 'seconds'} since the first trial")
        axes.grid(axis="y")
        return finish(axes, rate.name.capitalize(), _describe_panel(machine, rate), f"canary{number}")


def _draw_line(axes: Axes, xs: Sequence[float], drawn: Sequence[TimelinePoint], *, merged: bool) -> None:
    medians = [point.median for point in drawn]
    least, most = [point.least for point in drawn], [point.most for point in drawn]
    axes.fill_between(xs, least, most, color=theme.MUTED, alpha=0.35, linewidth=0)
    axes.plot(xs, medians, color=theme.INK, linewidth=1.1, zorder=3)
    if not merged:
        draw_dots(axes, xs, medians, theme.INK, 0.8, 3.0)


def _draw_blocks(axes: Axes, begun: Sequence[float], top: float) -> None:
    """Draw the beginnings of blocks as one broken line: a page with many of them stays small."""
    xs = [value for at_s in begun for value in (at_s, at_s, math.nan)]
    ys = [value for _ in begun for value in (0.0, top, math.nan)]
    axes.plot(xs, ys, color=theme.RULE, linewidth=0.9, zorder=1)


def _draw_crosses(axes: Axes, xs: Sequence[float], drawn: Sequence[TimelinePoint], top: float) -> None:
    """Mark invalid trials at the bottom: each panel has all of them, whichever figure was the cause."""
    invalid = [x for x, point in zip(xs, drawn, strict=True) if point.invalid][:MOST_INVALID]
    ys = [CROSSES_AT * top] * len(invalid)
    axes.plot(invalid, ys, linestyle="", marker="x", color=theme.LOSS, markeredgewidth=1.6, zorder=4)


def _describe_panel(machine: MachineOverTime, rate: Range) -> str:
    blocks = quantities.plural(len(_find_beginnings(machine)), "block")
    note = f" {quantities.plural(machine.invalid, 'trial')} invalid, too far off." if machine.invalid else ""
    return (
        f"The canary's {rate.name} over the run, {quantities.plural(len(machine.trials), 'trial')} in {blocks}: "
        f"{quantities.rate(rate.least)} to {quantities.rate(rate.most)}, median {quantities.rate(rate.median)}.{note} "
        f"The table of this section has each block."
    )


def _tabulate_blocks(machine: MachineOverTime) -> ReportTable:
    """List each block, or neighbouring blocks together where there are many: least, median and most of each figure."""
    headings = [f"{rate.name}, {statistic}" for rate in machine.ranges for statistic in ("least", "median", "most")]
    blocks = group_by_block(machine.trials)
    rows = (
        _make_row([trial for block in together for trial in block], len(machine.ranges))
        for together in _split_into_groups(blocks, _count_merged(len(blocks), MOST_BLOCKS))
    )
    return ReportTable(("block", "trials", *headings, "invalid"), tuple(rows))


def _make_row(trials: Sequence[TrialSpeeds], figures: int) -> tuple[str, ...]:
    first, last = trials[0].block, trials[-1].block
    name = str(first) if first == last else f"{first}{quantities.DASH}{last}"
    together = [_merge_trials(trials, number) for number in range(figures)]
    speeds = (
        make_cell(speed, quantities.rate) for point in together for speed in (point.least, point.median, point.most)
    )
    return name, str(len(trials)), *speeds, str(sum(trial.invalid for trial in trials))
