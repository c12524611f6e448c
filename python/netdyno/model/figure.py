"""A figure of a source, in a form that can be drawn."""

from __future__ import annotations

from typing import Literal

from netdyno.model.base import Frozen, type_level
from netdyno.model.claim import Cells

SCENARIO = "scenario"
"""The coordinate of a figure that is about several scenarios."""


class Published(Frozen):
    """A published value of the source, from its own machine: its place in the figure, and the value in the metric's own
    unit."""

    at: dict[str, type_level]
    value: float


FigureKind = Literal["bars", "surface", "ladder", "curves"]


class Figure(Frozen):
    """One `[[figure]]` of an experiment: the metric of each of these cells. `along` is the axis, `across` separates the
    values at one place of it (of a surface: the other axis), and each combination of `panels` has a panel; these are
    coordinates of cells. `below` are metrics that are drawn under the main one over the same axis."""

    kind: FigureKind
    title: str
    metric: str
    cells: tuple[Cells, ...]
    """One selection for each scenario."""
    along: str
    across: str = ""
    panels: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    log: bool = False
    x_log: bool = False
    published: tuple[Published, ...] = ()

    @property
    def drawn(self) -> tuple[str, ...]:
        """All coordinates in which its cells may differ: panels first, then in the order of reading within a panel."""
        within = (self.along, self.across) if self.kind == "bars" else (self.across, self.along)
        return tuple(name for name in (*self.panels, *within) if name)
