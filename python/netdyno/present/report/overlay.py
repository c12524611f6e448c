"""Several runs laid over each other: each contestant in each run in one figure, and what changed since the first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from netdyno.analysis.findings import Analysis, CellFigures, Estimate, ScenarioFindings
from netdyno.analysis.run_comparison import SideBySide
from netdyno.base import quantities
from netdyno.model.metrics import METRICS
from netdyno.present.prose import ranking, side_by_side
from netdyno.present.report.curves import DASHES, dash_array
from netdyno.present.report.drawing import Panel, duration_axis, finish, level_axis, panel, rate_axis
from netdyno.present.report.panels import FACTOR_AXES, MOST_SWEEPS, Looks, Sweep, estimates, measured_sweeps
from netdyno.present.report.tables import Table

FILLS = ("full", "none", "bottom", "top")
"""Of markers, by run; lines have another dash."""
MOST_RUNS = len(FILLS)
HEADINGS = ("question", "contestant", "load", "metric", "first run", "run", "its figure", "change", "95% interval")


@dataclass(frozen=True)
class Line:
    """An entry of the legend of runs."""

    run: str
    started_at: str
    dash: str


@dataclass(frozen=True)
class Question:
    name: str
    workload: str
    contestants: tuple[str, ...]
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class OverlayView:
    runs: tuple[Line, ...]
    questions: tuple[Question, ...]
    apart: tuple[str, ...]
    """What differs in where the runs were made and in what they asked."""
    unshared: tuple[str, ...]
    """Why there is nothing of a run."""
    note: str
    table: Table


@dataclass(frozen=True)
class _Wanted:
    title: str
    figure: Callable[[CellFigures], Estimate | None]
    ready: Callable[[Axes], None]
    speak: Callable[[float], str]


def _cpu_axis(axes: Axes) -> None:
    axes.set_ylim(bottom=0)
    axes.set_ylabel("µs of CPU per message")
    axes.grid(axis="y")


WANTED = (
    _Wanted("Throughput", lambda cell: cell.throughput, rate_axis, quantities.rate),
    _Wanted(
        "99th-percentile response time",
        lambda cell: cell.response_ns.p99,
        lambda axes: duration_axis(axes, "response time"),
        quantities.duration,
    ),
    _Wanted(
        "Server CPU per message",
        lambda cell: cell.cost.cpu_us if cell.cost else None,
        _cpu_axis,
        lambda value: f"{quantities.three_digits(value)} µs",
    ),
)


def view(found: Sequence[Analysis], compared: Sequence[SideBySide], looks: Sequence[Looks]) -> OverlayView:
    """`compared` are the later runs with the first, `looks` those of each run."""
    names = [one.scenario.name for one in found[0].scenarios]
    questions = [_question(name, found, looks, f"o{number}") for number, name in enumerate(names, 1)]
    said = [(one.second, [*side_by_side.environment(one), *side_by_side.asked(one)]) for one in compared]
    return OverlayView(
        runs=tuple(Line(one.run_id, one.started_at, dash_array(number)) for number, one in enumerate(found)),
        questions=tuple(one for one in questions if one.panels),
        apart=tuple(f"{run}: {text}" for run, texts in said for text in texts),
        unshared=unshared(found, compared),
        note=side_by_side.NOT_PAIRED,
        table=Table(HEADINGS, tuple(row for one in compared for row in _rows(one))),
    )


def unshared(found: Sequence[Analysis], compared: Sequence[SideBySide]) -> tuple[str, ...]:
    """What is to be said of later runs of which nothing can be laid over the first."""
    first, *later = found
    said = [side_by_side.nothing_shared(both, first, one) for both, one in zip(compared, later, strict=True)]
    return tuple(text for text in said if text)


def _rows(found: SideBySide) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for one in found.cells:
        speak = METRICS[one.metric].speak
        change = f"{quantities.percent_change(one.ratio)}{'*' if one.apart else ''}"
        figures = (speak(one.first), found.second, speak(one.second))
        about = (one.scenario, one.contestant, one.level, one.metric)
        rows.append((*about, *figures, change, ranking.change_interval(one.interval)))
    return rows


def _question(name: str, found: Sequence[Analysis], looks: Sequence[Looks], anchor: str) -> Question:
    """Of the runs that ask it, at the levels of the first."""
    runs = [
        _Asking(one.run_id, scenario, looks[number], number, len(found))
        for number, one in enumerate(found)
        for scenario in one.scenarios
        if scenario.scenario.name == name
    ]
    cells = [cell for one in runs for cell in one.findings.cells]
    first = runs[0].findings
    panels = [
        _panel(wanted, sweep, runs, f"{anchor}-{number}{kind}")
        for number, sweep in enumerate(measured_sweeps(first)[:MOST_SWEEPS])
        for kind, wanted in enumerate(WANTED)
        if len(runs) > 1 and any(wanted.figure(cell) for cell in cells)
    ]
    contestants = dict.fromkeys(cell.contestant for cell in cells)
    return Question(name, first.scenario.workload, tuple(contestants), tuple(panels))


@dataclass(frozen=True)
class _Asking:
    """A run with the same question; the `number`th of so many runs."""

    run_id: str
    findings: ScenarioFindings
    looks: Looks
    number: int
    of: int


def _panel(wanted: _Wanted, sweep: Sweep, runs: Sequence[_Asking], name: str) -> Panel:
    title = f"{wanted.title}, {sweep.fixed}" if sweep.fixed else wanted.title
    told: list[str] = []
    with panel() as axes:
        if sweep.factor:
            level_axis(axes, _values(sweep), FACTOR_AXES.get(sweep.factor, sweep.factor))
        else:
            axes.set_xticks([])
            axes.set_xlabel(f"contestants, at {sweep.levels[0].label}")
        for run in runs:
            told += _lines(axes, wanted, sweep, run)
        wanted.ready(axes)
        alt = f"{title}, runs laid over each other. At {sweep.levels[-1].label}: {'; '.join(told)}."
        return finish(axes, title, f"{alt} The table of this section has the changes.", name)


def _values(sweep: Sweep) -> list[float]:
    return [float(level.values[sweep.factor]) if sweep.factor else 0.0 for level in sweep.levels]


def _lines(axes: Axes, wanted: _Wanted, sweep: Sweep, run: _Asking) -> list[str]:
    """Each contestant of a run; what it says at the last level, in words."""
    told = []
    line = (0, DASHES[run.number] or None) if sweep.factor else ""
    for place, (contestant, look) in enumerate(run.looks.items()):
        cells = [run.findings.cell(contestant, level.key) for level in sweep.levels]
        found = [wanted.figure(cell) if cell else None for cell in cells]
        spots = [(x, one) for x, one in zip(_places(axes, sweep, run, place), found, strict=True) if one is not None]
        if spots:
            xs, drawn = [x for x, _ in spots], [one for _, one in spots]
            estimates(axes, xs, [one.value for one in drawn], drawn, look, line=line, fill=FILLS[run.number])
            told.append(f"{contestant} in {run.run_id} {wanted.speak(drawn[-1].value)}")
    return told


def _places(axes: Axes, sweep: Sweep, run: _Asking, place: int) -> list[float]:
    """Beside one another, not over one another: intervals of neighbours stay readable."""
    count = len(run.looks) * run.of
    shift = place * run.of + run.number - (count - 1) / 2
    if not sweep.factor:
        return [shift]
    values = _values(sweep)
    if axes.get_xscale() == "log":
        return [x * math.exp(shift * min(0.03, 0.3 / count)) for x in values]
    return [x + shift * min(0.012, 0.12 / count) * (max(values) - min(values)) for x in values]
