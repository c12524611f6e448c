"""A claim of a source as something that can be tested."""

from __future__ import annotations

from typing import Literal

import msgspec

from netdyno.model.base import Frozen, type_level

CONTESTANT = "contestant"
"""The coordinate of a cell that is no factor."""


Side = Literal["above", "below"]


class Cells(Frozen):
    """The cells of a scenario whose coordinates (`contestant` and the scenario's factors) have one of the named values.
    A coordinate that is not named may have any."""

    scenario: str
    at: dict[str, tuple[type_level, ...]] = msgspec.field(default_factory=dict)


class Ratio(Frozen, tag_field="kind", tag="ratio"):
    """The metric of `a` divided by that of `b` lies above or below the threshold. Cells are paired within blocks, by
    the coordinates in which `a` and `b` do not differ. With `every`, it does so in each of them. With `over`, each side
    is first divided by the metric of these cells: `a` by the first, `b` by the second."""

    metric: str
    a: Cells
    b: Cells
    side: Side
    threshold: float
    every: bool = False
    over: tuple[Cells, Cells] | None = None


class Order(Frozen, tag_field="kind", tag="order"):
    """Along a coordinate, the metric of each group is below (rising) or above (falling) that of the next group. Within
    a group nothing is said. With `over`, it is first divided by that of these cells at the same value."""

    metric: str
    cells: Cells
    along: str
    direction: Literal["rising", "falling"]
    groups: tuple[tuple[type_level, ...], ...]
    over: Cells | None = None


class Trend(Frozen, tag_field="kind", tag="trend"):
    """Along a factor, in the order of its levels, the metric rises or falls from the first to the last, and no step
    goes the other way."""

    metric: str
    cells: Cells
    along: str
    direction: Literal["rises", "falls"]


class Flat(Frozen, tag_field="kind", tag="flat"):
    """Along a coordinate, the metric stays within a factor (a share: within a difference) of what it is at the first
    level."""

    metric: str
    cells: Cells
    along: str
    within: float


class Bound(Frozen, tag_field="kind", tag="bound"):
    """The metric itself lies above or below the threshold, in the metric's own unit; with `every`, in each cell."""

    metric: str
    cells: Cells
    side: Side
    threshold: float
    every: bool = False


Test = Ratio | Order | Trend | Flat | Bound


class Claim(Frozen):
    """One `[[claim]]` of an experiment. `published` are the figures of the source, by a label that has their unit;
    `needs` what a machine must have; `why` names what was counted that is told beside it (model/metrics.py)."""

    id: str
    text: str
    tests: tuple[Test, ...]
    published: dict[str, float] = msgspec.field(default_factory=dict)
    needs: tuple[str, ...] = ()
    why: str = ""
