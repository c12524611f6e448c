"""Panels: their labels have room, whatever they are."""

from __future__ import annotations

import io

import pytest
from matplotlib.backends.backend_svg import RendererSVG

from netdyno.model.metrics import METRICS
from netdyno.present.report.curves import wrap_title
from netdyno.present.report.drawing import PAD, PANEL_INCHES, finish, stack


@pytest.mark.parametrize("name", ["a", "a contestant with a long name"])
def test_labels_of_a_column_have_room_at_its_sides_and_between_its_rows(name: str) -> None:
    with stack([2.0, 1.0]) as rows:
        for axes in rows:
            axes.barh([name, "b"], [1, 2])
            axes.text(2, 1, "a label beyond the bar")
            axes.set_title("a title", loc="left")
        rows[-1].set_xlabel("what it is")
        finish(rows[0], "title", "alt", "name")
        renderer = RendererSVG(*PANEL_INCHES, io.StringIO())  # type: ignore[no-untyped-call]
        upper, lower = (axes.get_tightbbox(renderer, for_layout_only=True) for axes in rows)
        assert upper is not None
        assert lower is not None
        figure_box = rows[0].figure.bbox
    assert upper.height + lower.height == pytest.approx(figure_box.height - 4 * PAD, abs=1)
    assert upper.ymin - lower.ymax == pytest.approx(2 * PAD, abs=1)
    assert min(upper.xmin, lower.xmin) == pytest.approx(PAD, abs=1)
    assert figure_box.width - 12 <= max(upper.xmax, lower.xmax) <= figure_box.width
    assert rows[0].bbox.width == rows[1].bbox.width > figure_box.width / 5
    assert rows[0].bbox.height == pytest.approx(2 * rows[1].bbox.height, rel=0.2)


def test_a_long_title_over_curves_ends_within_the_panel_and_a_short_one_is_one_line() -> None:
    with stack([2.75]) as (axes,):
        axes.plot([206, 400], [0, 36_300])
        title = axes.set_title(wrap_title(METRICS["written"], log=False), loc="left", fontsize=9)
        finish(axes, "title", "alt", "name")
        box = title.get_window_extent(RendererSVG(*PANEL_INCHES, io.StringIO()))  # type: ignore[no-untyped-call]
        width, height = axes.figure.bbox.size
    assert box.xmax <= width
    assert box.ymax <= height
    assert wrap_title(METRICS["throughput"], log=True) == "throughput, messages per second (log scale)"
