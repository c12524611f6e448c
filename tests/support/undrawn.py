"""Pages whose figures say what they show and are not drawn: to draw them takes most of the time of a page."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from matplotlib.backends.backend_svg import FigureCanvasSVG

from netdyno.analysis.found.run import Analysis
from netdyno.present import report
from netdyno.present.report import NO_PROFILES, drawing, panels
from netdyno.store.profiles import StoredProfiles


@contextmanager
def undrawn() -> Iterator[None]:
    """Leave every figure empty but for its words."""

    def print_svg(_: FigureCanvasSVG, out: io.StringIO, **__: object) -> None:
        out.write('<svg viewBox="0 0 1 1"></svg>')

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "_make_room", lambda _: None)
        patch.setattr(FigureCanvasSVG, "print_svg", print_svg)
        yield


@contextmanager
def without_panels() -> Iterator[None]:
    """Leave out the figures of scenarios, their words too."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("draw_performance", "draw_curves", "draw_costs"):
            patch.setattr(panels, name, lambda *_: [])
        yield


def page_without_panels(analysis: Analysis, profiled: StoredProfiles = NO_PROFILES) -> str:
    """Return the page of a run without the figures of its scenarios."""
    with without_panels():
        return report.render_html(analysis, (), profiled)
