"""The machine over the run: what it disturbed, and how its canary saw it in three panels over time, the same per block
as a table, and in sentences.

A run of thousands of trials is drawn as a band around its median, so that the section stays small."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from netdyno.analysis.canary import Beside, MachineOverTime, Range, by_block
from netdyno.analysis.findings import MadeAgain
from netdyno.audits.canary import FACTOR
from netdyno.base import quantities
from netdyno.present.prose import made_again
from netdyno.present.prose.canary import sentences
from netdyno.present.report import theme
from netdyno.present.report.drawing import Panel, dots, finish, panel, short_number
from netdyno.present.report.tables import Table

HEIGHT_INCHES = 2.4
MOST_POINTS = 80
"""Of one panel; of a longer run, neighbours are one point."""
MOST_STRUCK = 25
"""Marks of trials that were struck out, in one panel."""
CROSSES_AT = 0.05
"""Of the height of a panel."""
MOST_BLOCKS = 20
"""Whose beginnings are marked, and rows of the table; of more, every second, third, …"""
UNITS = ("round trips per second", "steps per second", "steps per second")
"""In the order of canary_audit.FIGURES."""
Item = TypeVar("Item")


@dataclass(frozen=True)
class Point:
    """Neighbouring trials: when the first began, in seconds, and one figure of all of them."""

    at_s: float
    least: float
    median: float
    most: float
    struck: bool


@dataclass(frozen=True)
class MachineView:
    sentences: tuple[str, ...]
    note: str
    panels: tuple[Panel, ...]
    table: Table
    trials: int


@dataclass(frozen=True)
class AgainView:
    """Trials, and slices of trials, that were made again because the machine was disturbed, or were disturbed and
    stayed so."""

    sentence: str
    by_contestant: Table
    by_cause: Table | None
    slices_by_program: Table | None


def again(found: MadeAgain) -> AgainView | None:
    """None where the machine disturbed no trial, and no slice of one."""
    if found.is_empty:
        return None
    whose = (
        (name, str(tries), str(cells), *map(str, found.slices_by_contestant[name]))
        for name, (tries, cells) in found.by_contestant.items()
    )
    causes = ((name.replace("_", " "), str(count)) for name, count in found.causes.items())
    programs = ((name, str(count)) for name, count in found.slices_again.items())
    return AgainView(
        sentence=made_again.sentence(found),
        by_contestant=Table(("contestant", "retried", "cells", "slices again", "slices"), tuple(whose)),
        by_cause=Table(("cause", "tries"), tuple(causes)) if found.causes else None,
        slices_by_program=Table(("program", "slices"), tuple(programs)) if found.slices_again else None,
    )


def view(found: MachineOverTime | None) -> MachineView | None:
    if found is None:
        return None
    return MachineView(
        sentences=sentences(found),
        note=_note(found),
        panels=tuple(_panel(found, number) for number in range(len(found.ranges))),
        table=_table(found),
        trials=len(found.trials),
    )


def _note(found: MachineOverTime) -> str:
    merged, step = _step(len(found.trials), MOST_POINTS), _step(len(_beginnings(found)), MOST_BLOCKS)
    drawn = "A point is the mean of the two readings beside one trial; the band goes from one to the other."
    if merged > 1:
        drawn = f"A point is the median of {merged} trials one after the other; the band goes from least to most."
    lines = "where each block begins" if step == 1 else f"where one block in {step} begins"
    said = [drawn, f"Upright lines: {lines}."]
    if found.struck:
        said.append(f"Crosses: invalid trials, further than a factor of {FACTOR:g} from their block.")
    if sum(point.struck for point in points(found, 0)) > MOST_STRUCK:
        said.append(f"The first {MOST_STRUCK} are marked.")
    return " ".join(said)


def points(found: MachineOverTime, number: int) -> list[Point]:
    """One figure over the run, with at most MOST_POINTS points."""
    return [_point(group, number) for group in _groups(found.trials, _step(len(found.trials), MOST_POINTS))]


def _point(trials: Sequence[Beside], number: int) -> Point:
    return Point(
        at_s=trials[0].at_s,
        least=min(one.least[number] for one in trials),
        median=statistics.median(one.speeds[number] for one in trials),
        most=max(one.most[number] for one in trials),
        struck=any(one.struck for one in trials),
    )


def _groups(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _step(count: int, most: int) -> int:
    """How many become one, so that no more than `most` are left."""
    return max(1, math.ceil(count / most))


def _beginnings(found: MachineOverTime) -> list[float]:
    """When each block began, in seconds."""
    return [block[0].at_s for block in by_block(found.trials)]


def _panel(found: MachineOverTime, number: int) -> Panel:
    drawn = points(found, number)
    one = found.ranges[number]
    minutes = drawn[-1].at_s >= 300
    unit_s = 60.0 if minutes else 1.0
    xs = [point.at_s / unit_s for point in drawn]
    with panel(height=HEIGHT_INCHES) as axes:
        _line(axes, xs, drawn, merged=len(drawn) < len(found.trials))
        top = 1.08 * max(point.most for point in drawn)
        begun = _beginnings(found)
        _blocks(axes, [at_s / unit_s for at_s in begun[:: _step(len(begun), MOST_BLOCKS)]], top)
        _crosses(axes, xs, drawn, top)
        axes.set_ylim(0, top)
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))
        axes.set_ylabel(UNITS[number])
        axes.set_xlabel(f"{'minutes' if minutes else 'seconds'} since the first trial")
        axes.grid(axis="y")
        return finish(axes, one.name.capitalize(), _alt(found, one), f"canary{number}")


def _line(axes: Axes, xs: Sequence[float], drawn: Sequence[Point], *, merged: bool) -> None:
    medians = [point.median for point in drawn]
    least, most = [point.least for point in drawn], [point.most for point in drawn]
    axes.fill_between(xs, least, most, color=theme.MUTED, alpha=0.35, linewidth=0)
    axes.plot(xs, medians, color=theme.INK, linewidth=1.1, zorder=3)
    if not merged:
        dots(axes, xs, medians, theme.INK, 0.8, 3.0)


def _blocks(axes: Axes, begun: Sequence[float], top: float) -> None:
    """One line that is broken, for a page with many of them stays small."""
    xs = [value for at in begun for value in (at, at, math.nan)]
    ys = [value for _ in begun for value in (0.0, top, math.nan)]
    axes.plot(xs, ys, color=theme.RULE, linewidth=0.9, zorder=1)


def _crosses(axes: Axes, xs: Sequence[float], drawn: Sequence[Point], top: float) -> None:
    """At the bottom, when a trial was struck out: whichever figure it was, each panel has them."""
    struck = [x for x, point in zip(xs, drawn, strict=True) if point.struck][:MOST_STRUCK]
    ys = [CROSSES_AT * top] * len(struck)
    axes.plot(struck, ys, linestyle="", marker="x", color=theme.LOSS, markeredgewidth=1.6, zorder=4)


def _alt(found: MachineOverTime, one: Range) -> str:
    blocks = quantities.plural(len(_beginnings(found)), "block")
    struck = f" {quantities.plural(found.struck, 'trial')} invalid for that." if found.struck else ""
    return (
        f"The canary's {one.name} over the run, {quantities.plural(len(found.trials), 'trial')} in {blocks}: "
        f"{quantities.rate(one.least)} to {quantities.rate(one.most)}, median {quantities.rate(one.median)}.{struck} "
        f"The table of this section has each block."
    )


def _table(found: MachineOverTime) -> Table:
    """Each block, or neighbouring blocks together where there are many: least, median and most of each figure."""
    each = [f"{one.name}, {how}" for one in found.ranges for how in ("least", "median", "most")]
    blocks = by_block(found.trials)
    rows = (
        _row([one for block in together for one in block], len(found.ranges))
        for together in _groups(blocks, _step(len(blocks), MOST_BLOCKS))
    )
    return Table(("block", "trials", *each, "invalid"), tuple(rows))


def _row(trials: Sequence[Beside], figures: int) -> tuple[str, ...]:
    first, last = trials[0].block, trials[-1].block
    name = str(first) if first == last else f"{first}{quantities.DASH}{last}"
    together = [_point(trials, number) for number in range(figures)]
    speeds = (quantities.rate(speed) for one in together for speed in (one.least, one.median, one.most))
    return name, str(len(trials)), *speeds, str(sum(one.struck for one in trials))
