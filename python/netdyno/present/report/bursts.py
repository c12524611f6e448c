"""What happens through a burst: answers and their p99 over the window, one line for each contestant."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from netdyno.analysis.found.cells import CellFigures, LevelInfo
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.model import burst
from netdyno.model.options import Settings, settings
from netdyno.present.prose import bursts as burst_words
from netdyno.present.report import theme
from netdyno.present.report.drawing import Panel, finish, set_duration_axis, set_rate_axis, stack
from netdyno.present.report.panels import Styles, choose_levels
from netdyno.present.report.theme import ContestantStyle

HEIGHTS = (1.9, 2.4)
"""Inches of the answers and of their p99."""
MARKERS = 8
"""Markers on each line: enough to distinguish contestants without colour."""


def draw_bursts(findings: ScenarioFindings, styles: Styles, name: str) -> list[Panel]:
    """Draw the window of each level, of three at most; nothing where the rate keeps."""
    if not findings.scenario.has_burst:
        return []
    return [
        _draw_level(findings, level, styles, f"{name}-burst{number}")
        for number, level in enumerate(choose_levels(findings))
    ]


def _draw_level(findings: ScenarioFindings, level: LevelInfo, styles: Styles, name: str) -> Panel:
    title = f"Through the burst, at {level.label}"
    load_settings = settings(findings.scenario, level.values)
    with stack(HEIGHTS) as (answers, times):
        for number, (contestant, style) in enumerate(styles.items()):
            if cell := findings.cell(contestant, level.key):
                _draw_cell(answers, times, cell, style, number)
        _draw_offered(answers, load_settings)
        set_rate_axis(answers)
        answers.set_ylabel("answered per second")
        set_duration_axis(times, "p99")
        for axes in (answers, times):
            _shade_burst(axes, load_settings)
        times.set_xlabel("seconds")
        alt = f"{title}: {' '.join(burst_words.describe_level(findings, level))}"
        return finish(answers, title, alt, name)


def _shade_burst(axes: Axes, load_settings: Settings) -> None:
    begins_s, ends_s = _place_burst(load_settings)
    axes.axvspan(begins_s, ends_s, color=theme.RULE, zorder=0)
    axes.set_xlim(0, load_settings.duration_s)
    axes.annotate(
        "burst", (begins_s, 1), xycoords=("data", "axes fraction"), xytext=(2, -2), textcoords="offset points", va="top"
    )


def _place_burst(load_settings: Settings) -> tuple[float, float]:
    before_s, during_s, _ = burst.divide(load_settings.duration_s)
    return before_s, before_s + during_s


def _draw_offered(axes: Axes, load_settings: Settings) -> None:
    """Draw the offered rate as the steps that it has."""
    begins_s, ends_s = _place_burst(load_settings)
    rate, burst_rate = load_settings.rate or 0.0, load_settings.burst_rate or 0.0
    xs = (0.0, begins_s, begins_s, ends_s, ends_s, load_settings.duration_s)
    axes.plot(xs, (rate, rate, burst_rate, burst_rate, rate, rate), color=theme.MUTED, linestyle=(0, (1, 2)))
    axes.annotate("offered", (ends_s, burst_rate), xytext=(4, -2), textcoords="offset points", va="top")


def _draw_cell(answers: Axes, times: Axes, cell: CellFigures, style: ContestantStyle, number: int) -> None:
    """Draw the median of the blocks in each interval."""
    interval_s = cell.series[0].interval_ns / 1e9
    for axes, rows in (
        (answers, [series.per_second for series in cell.series]),
        (times, [series.p99_ns for series in cell.series]),
    ):
        values = _take_medians(rows)
        xs = [(place + 0.5) * interval_s for place in range(len(values))]
        every = max(1, len(values) // MARKERS)
        axes.plot(
            xs,
            values,
            color=style.stand_in,
            marker=theme.SHAPES[style.shape].matplotlib,
            markevery=(number * every // 3 % every, every),
            markersize=4,
        )


def _take_medians(rows: Sequence[Sequence[float | None]]) -> list[float]:
    """Return the median of the known values of each interval; NaN where there is none."""
    columns = zip(*rows, strict=True)
    known = [[value for value in column if value is not None] for column in columns]
    return [float(np.median(values)) if values else math.nan for values in known]
