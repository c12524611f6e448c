"""The statistical figures of one scenario. Every panel shows the blocks' own values faintly behind its estimate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

import msgspec
from matplotlib.axes import Axes

from netdyno.analysis.found.cells import CellFigures, Estimate, LevelInfo
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.analysis.notices.scaling import FACTOR
from netdyno.kit import quantities
from netdyno.model.levels import level_words
from netdyno.model.metrics import METRICS
from netdyno.present.prose import loss as loss_words
from netdyno.present.report import theme
from netdyno.present.report.drawing import (
    Panel,
    count_nines,
    draw_dots,
    draw_limit,
    draw_ring,
    finish,
    open_panel,
    set_duration_axis,
    set_level_ticks,
    set_nines_axis,
    set_rate_axis,
    set_share_axis,
    spread_places,
)
from netdyno.present.report.theme import ContestantStyle

MOST_CURVES = 3
"""Percentile panels are drawn for this many levels; the others stand in the table."""
MOST_SWEEPS = 6
"""Levels of the factors beside the axis that have panels of their own, from the first to the last; the others stand in
the table: a page of a hundred panels is too large, and too long to read."""
FACTOR_AXES = {
    "connections": "connections",
    "rate": "offered rate, messages per second",
    "rate-per-connection": "offered rate on each connection, messages per second",
    "burst-rate": "offered rate in the burst, messages per second",
    "size": "message size, bytes",
    "depth": "in flight per connection",
    "threads": "server threads",
    FACTOR: "cores of the server",
}
Styles = Mapping[str, ContestantStyle]
Ready = Callable[[Axes], None]
NONE_LOST = Estimate(0.0, None, ())


class Sweep(msgspec.Struct, frozen=True):
    """The levels that one panel draws: along `factor` (None: they cannot be put on an axis), all else being equal."""

    factor: str | None
    fixed: str
    levels: tuple[LevelInfo, ...]


def list_sweeps(findings: ScenarioFindings) -> list[Sweep]:
    """Return one sweep per combination of the other factors; connections are the axis wherever they vary."""
    numeric = [
        name
        for name, values in findings.scenario.factors.items()
        if len(values) > 1 and all(isinstance(value, int | float) for value in values)
    ]
    factor = "connections" if "connections" in numeric else next(iter(numeric), None)
    if factor is None:
        alone = len(findings.levels) == 1
        return [Sweep(None, "" if alone else level.label, (level,)) for level in findings.levels]
    groups: dict[str, list[LevelInfo]] = {}
    for level in findings.levels:
        rest = ", ".join(level_words(name, value) for name, value in level.values.items() if name != factor)
        groups.setdefault(rest, []).append(level)
    return [
        Sweep(factor, rest, tuple(sorted(levels, key=lambda level: float(level.values[factor]))))
        for rest, levels in groups.items()
    ]


def list_measured_sweeps(findings: ScenarioFindings) -> list[Sweep]:
    """Return the sweeps with anything to draw."""
    measured = {cell.level for cell in findings.cells}
    return [sweep for sweep in list_sweeps(findings) if any(level.key in measured for level in sweep.levels)]


def _pick_spread(measured: Sequence[Sweep], most: int) -> list[Sweep]:
    """Return at most `most` sweeps, from the first to the last."""
    if len(measured) <= most:
        return list(measured)
    return [measured[round(number * (len(measured) - 1) / (most - 1))] for number in range(most)]


def draw_performance(findings: ScenarioFindings, styles: Styles, name: str) -> list[Panel]:
    """Draw throughput, median and 99th percentile over the levels; the mean where it is ranked, and the loss where
    messages may be lost; of streams how late their chunks come, and of starts how long they take."""
    lag = find_send_lag(findings)

    def set_latency_axis(axes: Axes) -> None:
        set_duration_axis(axes, "response time")
        mark_send_lag(axes, lag)

    def set_loss_axis(axes: Axes) -> None:
        set_share_axis(axes, "share of messages lost")
        draw_limit(axes, "bound", findings.loss_bound, theme.MUTED, (1, 2))

    mean = ("mean",) if findings.scenario.metric == "mean" else ()
    prepared: dict[str, Ready] = {"throughput": set_rate_axis}
    prepared |= dict.fromkeys((*mean, "p50", "p99"), set_latency_axis)
    if findings.scenario.chunks is not None:
        prepared = dict.fromkeys(("chunk-lag-p50", "chunk-lag-p99"), partial(set_duration_axis, label="late by"))
    if findings.scenario.measures_start:
        prepared = dict.fromkeys(("ready", "first-answer"), partial(set_duration_axis, label="from the start"))
    if findings.may_lose:
        prepared["lost"] = set_loss_axis
    panels = []
    for number, sweep in enumerate(_pick_spread(list_measured_sweeps(findings), MOST_SWEEPS)):
        for kind, (metric, ready) in enumerate(prepared.items()):
            heading = METRICS[metric].heading
            title = f"{heading}, {sweep.fixed}" if sweep.fixed else heading
            alt = _describe_panel(title, findings, sweep.levels[-1], metric)
            draw = _draw_lines if sweep.factor else _draw_dots
            with open_panel() as axes:
                draw(axes, findings, sweep, metric, styles, ready)
                panels.append(finish(axes, title, alt, f"{name}-perf{number}{kind}"))
    return panels


def _find_estimate(cell: CellFigures, metric: str) -> Estimate:
    """Return a figure; over a stream no message is lost."""
    return cell.values.get(metric, NONE_LOST)


def find_send_lag(findings: ScenarioFindings) -> float | None:
    """Return the worst p99 of the send lag in ns; None where messages have no scheduled time, or no load reports it."""
    if not findings.scenario.scheduled:
        return None
    return max((lag.value for cell in findings.cells if (lag := cell.values.get("send-lag-p99"))), default=0.0) or None


def mark_send_lag(axes: Axes, lag: float | None) -> None:
    """Draw the lag on the axis of the response times, which it does not change."""
    if lag is not None:
        draw_limit(axes, "send lag p99", lag, theme.MUTED, (1, 2))


def _describe_panel(title: str, findings: ScenarioFindings, level: LevelInfo, metric: str) -> str:
    cells = [cell for cell in findings.cells if cell.level == level.key]
    values = "; ".join(
        f"{cell.contestant} {METRICS[metric].speak(_find_estimate(cell, metric).value)}{_describe_loss(findings, cell)}"
        for cell in cells
    )
    return f"{title}. At {level.label}: {values}. The table of this section has all values."


def _describe_loss(findings: ScenarioFindings, cell: CellFigures) -> str:
    if not findings.may_lose:
        return ""
    return (
        f" ({quantities.share(_find_estimate(cell, 'lost').value)} lost{f' {loss_words.MARK}' if cell.marked else ''})"
    )


def _draw_lines(
    axes: Axes, findings: ScenarioFindings, sweep: Sweep, metric: str, styles: Styles, ready: Ready
) -> None:
    assert sweep.factor is not None
    values = [float(level.values[sweep.factor]) for level in sweep.levels]
    set_level_ticks(axes, values, FACTOR_AXES.get(sweep.factor, sweep.factor))
    for number, (name, style) in enumerate(styles.items()):
        level_cells = [findings.cell(name, level.key) for level in sweep.levels]
        cells = [(x, cell) for x, cell in zip(values, level_cells, strict=True) if cell]
        if not cells:
            continue
        xs = spread_places(axes, values, [x for x, _ in cells], number, len(styles))
        drawn = [_find_estimate(cell, metric) for _, cell in cells]
        draw_estimates(axes, xs, [estimate.value for estimate in drawn], drawn, style, line="-")
        for x, (_, cell), estimate in zip(xs, cells, drawn, strict=True):
            _mark_loss(axes, x, estimate, cell, style)
    if metric == "throughput" and sweep.factor == FACTOR and findings.scaling:
        _draw_ideal(axes, findings, sweep)
    ready(axes)


def _draw_ideal(axes: Axes, findings: ScenarioFindings, sweep: Sweep) -> None:
    """Draw what the best contestant on one core would reach on more, in proportion, as far as any was measured."""
    measured = {cell.level for cell in findings.cells}
    cores = [int(level.values[FACTOR]) for level in sweep.levels if level.key in measured]
    single = [cell.value("throughput") for cell in findings.cells if cell.level == sweep.levels[0].key]
    if cores[0] == 1 and single:
        ideal = [max(single) * count for count in cores]
        axes.plot(cores, ideal, color=theme.MUTED, linestyle=(0, (1, 2)), linewidth=1)
        axes.annotate("ideal", (cores[-1], ideal[-1]), ha="right", va="bottom", color=theme.MUTED)


def _draw_dots(axes: Axes, findings: ScenarioFindings, sweep: Sweep, metric: str, styles: Styles, ready: Ready) -> None:
    """Draw one level: the contestants side by side, named below by their markers' legend."""
    for number, (name, style) in enumerate(styles.items()):
        if cell := findings.cell(name, sweep.levels[0].key):
            estimate = _find_estimate(cell, metric)
            draw_estimates(axes, [number], [estimate.value], [estimate], style)
            _mark_loss(axes, number, estimate, cell, style)
    axes.set_xlim(-0.6, len(styles) - 0.4)
    axes.set_xticks([])
    axes.set_xlabel(f"contestants, at {sweep.levels[0].label}")
    ready(axes)


def draw_estimates(
    axes: Axes,
    xs: Sequence[float],
    ys: Sequence[float],
    drawn: Sequence[Estimate],
    style: ContestantStyle,
    *,
    line: object = "",
    fill: str = "full",
    along: Literal["x", "y"] = "y",
) -> None:
    """Draw estimates with their intervals, and behind them the values of the blocks. `fill` is that of the markers,
    `along` the axis of their values."""
    colour, marker = style.stand_in, theme.SHAPES[style.shape].matplotlib
    places = list(zip(ys if along == "x" else xs, drawn, strict=True))
    points = [(place, point) for place, estimate in places for point in estimate.points]
    spans = [(place, estimate.interval) for place, estimate in places if estimate.interval]
    ends = [(place, end) for place, span in spans for end in (span.low, span.high, None)]
    draw_dots(axes, *_split_columns(points, turned=along == "x"), colour, 0.3, 2.4)
    axes.plot(*_split_columns(ends, turned=along == "x"), "-", color=colour, linewidth=2.2, alpha=0.75)
    axes.plot(xs, ys, linestyle=line, marker=marker, fillstyle=fill, markerfacecoloralt="none", color=colour, zorder=3)


def _split_columns(points: Sequence[tuple[float, float | None]], *, turned: bool) -> tuple[list[float], list[float]]:
    """Return x and y of points; None ends a line."""
    first, second = [place for place, _ in points], [math.nan if value is None else value for _, value in points]
    return (second, first) if turned else (first, second)


def _mark_loss(axes: Axes, x: float, estimate: Estimate, cell: CellFigures, style: ContestantStyle) -> None:
    """Draw a ring around each trial that lost more than the bound, and around the estimate that it is part of."""
    if cell.loss is None or not cell.marked:
        return
    draw_ring(axes, x, estimate.value, style)
    for trial, point in zip(cell.loss.trials, estimate.points, strict=True):
        if trial.above:
            draw_ring(axes, x, point, style, small=True)


def draw_curves(findings: ScenarioFindings, styles: Styles, name: str) -> list[Panel]:
    """Draw response time by percentile, a panel per level."""
    chosen = choose_levels(findings)
    return [_draw_curve(findings, level, styles, f"{name}-curve{number}") for number, level in enumerate(chosen)]


def choose_levels(findings: ScenarioFindings) -> list[LevelInfo]:
    """Return the measured levels: the first, the middle and the last where there are many."""
    measured = {cell.level for cell in findings.cells}
    levels = [level for level in findings.levels if level.key in measured]
    return [levels[0], levels[len(levels) // 2], levels[-1]] if len(levels) > MOST_CURVES else levels


def _draw_curve(findings: ScenarioFindings, level: LevelInfo, styles: Styles, name: str) -> Panel:
    title = f"At {level.label}"
    lag = find_send_lag(findings)
    with open_panel() as axes:
        for contestant, style in styles.items():
            cell = findings.cell(contestant, level.key)
            if cell is None or not cell.curve:
                continue
            xs, ys = [count_nines(percent) for percent, _ in cell.curve], [ns for _, ns in cell.curve]
            marker = theme.SHAPES[style.shape].matplotlib
            axes.plot(xs, ys, color=style.stand_in, marker=marker, markevery=(4 * style.shape, 30))
            if cell.marked:
                for x, y in list(zip(xs, ys, strict=True))[4 * style.shape :: 30]:
                    draw_ring(axes, x, y, style)
        set_nines_axis(axes)
        set_duration_axis(axes, "response time")
        mark_send_lag(axes, lag)
        alt = _describe_panel(f"Response time by percentile at {level.label}", findings, level, "p99.9")
        return finish(axes, title, alt.replace(f"At {level.label}:", "At percentile 99.9:"), name)


# --- cost --------------------------------------------------------------------------------------------------------


class Bars(msgspec.Struct, frozen=True):
    """A horizontal bar per contestant, stacked from parts: the first solid, the second lighter."""

    title: str
    axis: str
    parts: Callable[[CellFigures], tuple[float, ...]]
    label: Callable[[CellFigures], str]
    room: float = 1.28
    """The length of the axis as a multiple of the longest bar: the rest is for the labels."""


UNKNOWN = "unknown"


COSTS = (
    Bars(
        "Server CPU per message",
        "µs of CPU per message",
        lambda cell: (cell.value("cpu-user") / 1e3, cell.value("cpu-system") / 1e3),
        lambda cell: quantities.microseconds(cell.value("cpu")),
    ),
    Bars(
        "Context switches per message",
        "switches per message",
        lambda cell: (cell.value("voluntary"), cell.value("involuntary") / 1e3) if "switches" in cell.values else (),
        lambda cell: quantities.three_digits(cell.value("switches")) if "switches" in cell.values else UNKNOWN,
    ),
    Bars(
        "Peak memory of the server",
        "MiB resident at the peak",
        lambda cell: (cell.value("memory") / 2**20,),
        lambda cell: (
            f"{quantities.memory(cell.value('memory'))}, {quantities.plural(round(cell.value('threads')), 'thread')}"
        ),
        room=1.95,
    ),
)


def draw_costs(findings: ScenarioFindings, styles: Styles, name: str) -> list[Panel]:
    """Draw CPU, context switches and memory at the heaviest level."""
    if not any("cpu" in cell.values for cell in findings.cells if cell.level == findings.heaviest.key):
        return []
    return [_draw_bars(findings, bars, styles, f"{name}-cost{number}") for number, bars in enumerate(COSTS)]


def _draw_bars(findings: ScenarioFindings, bars: Bars, styles: Styles, name: str) -> Panel:
    level = findings.heaviest
    order = [standing.contestant for standing in findings.standings]
    cells = [cell for contestant in order if (cell := findings.cell(contestant, level.key)) and "cpu" in cell.values]
    values = "; ".join(f"{cell.contestant} {bars.label(cell)}" for cell in cells)
    with open_panel(height=0.85 + 0.36 * len(cells)) as axes:
        for row, cell in enumerate(cells):
            _draw_bar(axes, row, bars, cell, styles[cell.contestant])
        axes.set_yticks(range(len(cells)), [cell.contestant for cell in cells])
        axes.tick_params(axis="y", length=0)
        for cell, label in zip(cells, axes.get_yticklabels(), strict=True):
            label.set_color(styles[cell.contestant].ink)
        axes.set_ylim(len(cells) - 0.4, -0.6)
        axes.set_xlim(0, axes.get_xlim()[1] * bars.room)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(bars.axis)
        axes.grid(axis="x")
        return finish(axes, bars.title, f"{bars.title}, at {level.label}: {values}.", name)


def _draw_bar(axes: Axes, row: int, bars: Bars, cell: CellFigures, style: ContestantStyle) -> None:
    left = 0.0
    for number, part in enumerate(bars.parts(cell)):
        axes.barh(row, part, left=left, height=0.62, color=style.stand_in, alpha=(0.95, 0.4)[number])
        left += part
    if cell.marked:
        draw_ring(axes, left, row, style)
    gap = 9 if cell.marked else 4
    axes.annotate(
        bars.label(cell), (left, row), xytext=(gap, 0), textcoords="offset points", va="center", color=style.ink
    )
