"""Several runs laid over each other: each contestant in each run in one figure, and what changed since the first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
from matplotlib.axes import Axes

from netdyno.analysis.found.compare import SideBySide
from netdyno.analysis.found.run import Analysis, ScenarioFindings
from netdyno.kit import quantities
from netdyno.model.metrics import METRICS
from netdyno.present.prose import compare, ranking
from netdyno.present.report.curves import DASHES, format_dashes
from netdyno.present.report.drawing import (
    Panel,
    finish,
    open_panel,
    set_duration_axis,
    set_level_ticks,
    set_rate_axis,
    spread_places,
)
from netdyno.present.report.marks import name_metric, set_metric_ticks
from netdyno.present.report.panels import FACTOR_AXES, MOST_SWEEPS, Styles, Sweep, draw_estimates, list_measured_sweeps
from netdyno.present.report.report_table import ReportTable, make_cell, make_sortable, sort_by_low

FILLS = ("full", "none", "bottom", "top")
"""Fills of markers, by run; lines differ in their dashes."""
MOST_RUNS = len(FILLS)
HEADINGS = ("scenario", "contestant", "load", "metric", "first run", "run", "its figure", "change", "95% interval")


class LegendRun(msgspec.Struct, frozen=True):
    """An entry of the legend of runs."""

    run: str
    started_at: str
    dash: str


class OverlayQuestion(msgspec.Struct, frozen=True):
    name: str
    workload: str
    contestants: tuple[str, ...]
    panels: tuple[Panel, ...]


class OverlayView(msgspec.Struct, frozen=True):
    runs: tuple[LegendRun, ...]
    questions: tuple[OverlayQuestion, ...]
    apart: tuple[str, ...]
    """Differences between the environments of the runs, and between their questions."""
    unshared: tuple[str, ...]
    """The reasons why runs are not shown."""
    note: str
    table: ReportTable


def _set_cpu_axis(axes: Axes) -> None:
    axes.set_ylim(bottom=0)
    set_metric_ticks(axes.yaxis, METRICS["cpu"], axes.get_ylim(), log=False)
    axes.set_ylabel(name_metric(METRICS["cpu"]))
    axes.grid(axis="y")


METRICS_SHOWN: Mapping[str, Callable[[Axes], None]] = {
    "throughput": set_rate_axis,
    "p99": lambda axes: set_duration_axis(axes, "response time"),
    "cpu": _set_cpu_axis,
}
"""The metrics that are drawn, and what prepares the axes of each."""


def make_view(analyses: Sequence[Analysis], compared: Sequence[SideBySide], styles: Sequence[Styles]) -> OverlayView:
    """Lay runs over each other. `compared` has each later run with the first, `styles` the styles of each run."""
    names = [findings.scenario.name for findings in analyses[0].scenarios]
    questions = [_draw_question(name, analyses, styles, f"o{number}") for number, name in enumerate(names, 1)]
    changes = [
        (
            comparison.second,
            [*compare.list_environment_changes(comparison), *compare.list_question_changes(comparison)],
        )
        for comparison in compared
    ]
    return OverlayView(
        runs=tuple(
            LegendRun(analysis.run_id, analysis.started_at, format_dashes(number))
            for number, analysis in enumerate(analyses)
        ),
        questions=tuple(question for question in questions if question.panels),
        apart=tuple(f"{run}: {text}" for run, texts in changes for text in texts),
        unshared=explain_unshared(analyses, compared),
        note=compare.NOT_PAIRED,
        table=ReportTable(HEADINGS, tuple(row for comparison in compared for row in _make_rows(comparison))),
    )


def explain_unshared(analyses: Sequence[Analysis], compared: Sequence[SideBySide]) -> tuple[str, ...]:
    """Explain why later runs cannot be laid over the first."""
    first, *later = analyses
    reasons = [
        compare.explain_nothing_shared(comparison, first, analysis)
        for comparison, analysis in zip(compared, later, strict=True)
    ]
    return tuple(text for text in reasons if text)


def _make_rows(comparison: SideBySide) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for cell in comparison.cells:
        speak = METRICS[cell.metric].speak
        change = make_sortable(f"{quantities.percent_change(cell.ratio)}{'*' if cell.apart else ''}", cell.ratio)
        figures = (make_cell(cell.first, speak), comparison.second, make_cell(cell.second, speak))
        about = (cell.scenario, cell.contestant, cell.level, cell.metric)
        interval = sort_by_low(ranking.format_change_interval(cell.interval), cell.interval)
        rows.append((*about, *figures, change, interval))
    return rows


def _draw_question(name: str, analyses: Sequence[Analysis], styles: Sequence[Styles], anchor: str) -> OverlayQuestion:
    """Draw a question of the runs that have it, at the levels of the first."""
    runs = [
        _RunWithQuestion(analysis.run_id, findings, styles[number], number, len(analyses))
        for number, analysis in enumerate(analyses)
        for findings in analysis.scenarios
        if findings.scenario.name == name
    ]
    cells = [cell for run in runs for cell in run.findings.cells]
    first = runs[0].findings
    panels = [
        _draw_panel(metric, sweep, runs, f"{anchor}-{number}{kind}")
        for number, sweep in enumerate(list_measured_sweeps(first)[:MOST_SWEEPS])
        for kind, metric in enumerate(METRICS_SHOWN)
        if len(runs) > 1 and any(metric in cell.values for cell in cells)
    ]
    contestants = dict.fromkeys(cell.contestant for cell in cells)
    return OverlayQuestion(name, first.scenario.workload, tuple(contestants), tuple(panels))


class _RunWithQuestion(msgspec.Struct, frozen=True):
    """A run with the same question, the `number`th of `total` runs."""

    run_id: str
    findings: ScenarioFindings
    styles: Styles
    number: int
    total: int


def _draw_panel(metric: str, sweep: Sweep, runs: Sequence[_RunWithQuestion], name: str) -> Panel:
    heading = METRICS[metric].heading
    title = f"{heading}, {sweep.fixed}" if sweep.fixed else heading
    texts: list[str] = []
    with open_panel() as axes:
        if sweep.factor:
            set_level_ticks(axes, _read_values(sweep), FACTOR_AXES.get(sweep.factor, sweep.factor))
        else:
            axes.set_xticks([])
            axes.set_xlabel(f"contestants, at {sweep.levels[0].label}")
        for run in runs:
            texts += _draw_lines(axes, metric, sweep, run)
        METRICS_SHOWN[metric](axes)
        alt = f"{title}, runs laid over each other. At {sweep.levels[-1].label}: {'; '.join(texts)}."
        return finish(axes, title, f"{alt} The table of this section has the changes.", name)


def _read_values(sweep: Sweep) -> list[float]:
    return [float(level.values[sweep.factor]) if sweep.factor else 0.0 for level in sweep.levels]


def _draw_lines(axes: Axes, metric: str, sweep: Sweep, run: _RunWithQuestion) -> list[str]:
    """Draw each contestant of a run, and return its figures at the last level in words."""
    texts = []
    line = (0, DASHES[run.number] or None) if sweep.factor else ""
    for place, (contestant, style) in enumerate(run.styles.items()):
        cells = [run.findings.cell(contestant, level.key) for level in sweep.levels]
        figures = [cell.values.get(metric) if cell else None for cell in cells]
        spots = [
            (x, figure)
            for x, figure in zip(_spread_places(axes, sweep, run, place), figures, strict=True)
            if figure is not None
        ]
        if spots:
            xs, drawn = [x for x, _ in spots], [figure for _, figure in spots]
            draw_estimates(
                axes, xs, [figure.value for figure in drawn], drawn, style, line=line, fill=FILLS[run.number]
            )
            texts.append(f"{contestant} in {run.run_id} {METRICS[metric].speak(drawn[-1].value)}")
    return texts


def _spread_places(axes: Axes, sweep: Sweep, run: _RunWithQuestion, place: int) -> list[float]:
    count = len(run.styles) * run.total
    if not sweep.factor:
        return [place * run.total + run.number - (count - 1) / 2]
    values = _read_values(sweep)
    return spread_places(axes, values, values, place * run.total + run.number, count)
