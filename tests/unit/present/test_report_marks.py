"""The axes of a figure: ticks and titles in the unit of its metric."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from matplotlib.axes import Axes

from netdyno.model.metrics import METRICS
from netdyno.present.report import capacity, panels
from netdyno.present.report.drawing import (
    draw_limit,
    open_panel,
    set_duration_axis,
    set_level_ticks,
    spread_places,
)
from netdyno.present.report.marks import SHADES, name_metric, set_metric_ticks, shade


@pytest.mark.parametrize(
    ("metric", "most", "ticks"),
    [
        ("throughput", 25_000, {"10k", "20k"}),
        ("moved", 25_000, {"10k", "20k"}),
        ("p99", 2.5e6, {"1 ms", "2 ms"}),
        ("cpu", 2.5e3, {"1 µs", "2 µs"}),
        ("lost", 0.25, {"10%", "20%"}),
        ("switches", 2.5, {"1.00", "2.00"}),
    ],
)
def test_ticks_are_in_the_metrics_unit(metric: str, most: float, ticks: set[str]) -> None:
    with open_panel() as axes:
        axes.set_xlim(0, most)
        set_metric_ticks(axes.xaxis, METRICS[metric], (0, most), log=False)
        axes.figure.canvas.draw()
        assert ticks <= {label.get_text() for label in axes.get_xticklabels()}


def label_ends(axes: Axes) -> list[tuple[float, float]]:
    """Return where the labels of x begin and end, from left to right."""
    axes.figure.canvas.draw()
    low, high = axes.get_xlim()
    labels = [label for label in axes.get_xticklabels() if low <= label.get_position()[0] <= high]
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    return sorted((box.x0, box.x1) for box in boxes)


@pytest.mark.parametrize("rates", [(1000, 1250, 23_750, 24_062.5, 24_218.75), (900, 23_437.5, 23_750, 24_062.5)])
def test_the_ticks_of_a_search_do_not_touch(rates: Sequence[float]) -> None:
    with open_panel() as axes:
        capacity.set_offered_rate_axis(axes, rates)
        axes.plot(rates, rates)
        ends = label_ends(axes)
    assert len(ends) > 1
    assert all(end < begin for (_, end), (begin, _) in itertools.pairwise(ends))


def test_long_labels_of_levels_do_not_touch() -> None:
    with open_panel() as axes:
        levels = [10_001, *range(11_111, 19_000, 1_111), 19_999]
        axes.plot(levels, levels)
        set_level_ticks(axes, levels, "connections")
        ends = label_ends(axes)
    assert len(ends) > 1
    assert all(end < begin for (_, end), (begin, _) in itertools.pairwise(ends))


@pytest.mark.parametrize("levels", [(1, 10, 100, 1000), (1, 2, 3, 4)])
@pytest.mark.parametrize("count", [2, 5, 21])
def test_intervals_at_one_level_stand_beside_each_other(levels: Sequence[float], count: int) -> None:
    with open_panel() as axes:
        set_level_ticks(axes, levels, "connections")
        lines = [spread_places(axes, levels, levels, number, count) for number in range(count)]
    for low, high in itertools.pairwise(range(len(levels))):
        assert max(line[low] for line in lines) < min(line[high] for line in lines)
    assert all(
        before < after
        for line, neighbour in itertools.pairwise(lines)
        for before, after in zip(line, neighbour, strict=True)
    )


@pytest.mark.parametrize(("lag_ns", "text"), [(9e6, "↑ send lag p99"), (10.0, "↓ send lag p99"), (6e4, "send lag p99")])
def test_the_axis_of_response_times_is_theirs_however_large_the_send_lag(lag_ns: float, text: str) -> None:
    with open_panel() as axes:
        axes.plot([1, 2, 3], [50e3, 60e3, 70e3])
        set_duration_axis(axes, "response time")
        before = axes.get_ylim()
        panels.mark_send_lag(axes, lag_ns)
        assert axes.get_ylim() == before
        assert [label.get_text() for label in axes.texts] == [text]


@pytest.mark.parametrize("curve", [(1, 2, 6), (6, 20, 20), (4, 4, 20), (6, 6, 4)])
def test_no_curve_passes_through_the_name_of_a_limit(curve: Sequence[float]) -> None:
    with open_panel() as axes:
        (line,) = axes.plot([1, 2, 3], curve)
        axes.set_ylim(0, 21)
        draw_limit(axes, "p99 < 5 ms", 5, "black", (5, 3))
        (label,) = axes.texts
        box = label.get_window_extent()
        assert not line.get_path().transformed(line.get_transform()).intersects_bbox(box, filled=False)


@pytest.mark.parametrize("height", [5, 0, 30])
def test_no_point_lies_under_the_name_of_a_limit(height: float) -> None:
    with open_panel() as axes:
        axes.set(xlim=(0, 10), ylim=(1, 21))
        axes.plot([1, 9], [20, 20], "o")
        axes.plot([9, 9], [2, 6], "o")
        draw_limit(axes, "p99", height, "black", (5, 3))
        (label,) = axes.texts
        box = label.get_window_extent()
        assert not any(box.contains(*axes.transData.transform((x, y))) for x, y in ((1, 20), (9, 2), (9, 6)))


def test_an_axis_of_a_rate_names_its_unit() -> None:
    assert name_metric(METRICS["throughput"]) == "throughput, messages per second"
    assert name_metric(METRICS["p99"], log=True) == "99th-percentile response time (log scale)"


def test_shades_fall_evenly_from_the_first_to_the_last() -> None:
    assert [shade(number, 2) for number in range(2)] == list(SHADES[:2])
    assert [shade(number, 5) for number in range(5)] == pytest.approx([0.92, 0.725, 0.53, 0.335, 0.14])
