"""The axes of a figure: ticks and titles in the unit of its metric."""

from __future__ import annotations

import pytest

from netdyno.model.metrics import METRICS
from netdyno.present.report.drawing import open_panel
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


def test_an_axis_of_a_rate_names_its_unit() -> None:
    assert name_metric(METRICS["throughput"]) == "throughput, messages per second"
    assert name_metric(METRICS["p99"], log=True) == "99th-percentile response time (log scale)"


def test_shades_fall_evenly_from_the_first_to_the_last() -> None:
    assert [shade(number, 2) for number in range(2)] == list(SHADES[:2])
    assert [shade(number, 5) for number in range(5)] == pytest.approx([0.92, 0.725, 0.53, 0.335, 0.14])
