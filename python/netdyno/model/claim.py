"""A claim of a source, in a form that can be tested."""

from __future__ import annotations

from typing import Literal

import msgspec

from netdyno.model.base import Frozen, type_level

CONTESTANT = "contestant"
"""The coordinate of a cell that is no factor."""


ThresholdSide = Literal["above", "below"]


class Cells(Frozen):
    """The cells of a scenario whose coordinates (`contestant` and the scenario's factors) have one of the named values.
    A coordinate that is not named may have any."""

    scenario: str
    at: dict[str, tuple[type_level, ...]] = msgspec.field(default_factory=dict)


class Needs(Frozen, kw_only=True):
    """The needs of a claim or of one of its tests: requirements on a machine for any verdict, and requirements for only
    one of the two, without which the other verdict is still possible."""

    needs: tuple[str, ...] = ()
    needs_to_confirm: tuple[str, ...] = ()
    needs_to_refute: tuple[str, ...] = ()


class TestKeys(Needs, kw_only=True):
    """The keys of every kind of test. `only_refutes`: where the test fails, it refutes the claim; where it holds, it
    shows nothing, and the claim is confirmed or left open by its other tests."""

    only_refutes: bool = False


class Ratio(TestKeys, tag_field="kind", tag="ratio"):
    """The metric of `a` divided by that of `b` lies above or below the threshold. Cells are paired within blocks, by
    the coordinates in which `a` and `b` do not differ. With `every`, this must hold in each pair. With `over`, each
    side is first divided by the metric of these cells: `a` by the first, `b` by the second. `least_published` is the
    published effect nearest to the threshold: an interval that lies short of it fails, even where the threshold is in
    it."""

    metric: str
    a: Cells
    b: Cells
    side: ThresholdSide
    threshold: float
    every: bool = False
    over: tuple[Cells, Cells] | None = None
    least_published: float | None = None


class Order(TestKeys, tag_field="kind", tag="order"):
    """Along a coordinate, the metric of each group is below (rising) or above (falling) that of the next group. The
    order within a group is free. With `over`, the metric is first divided by that of these cells at the same value;
    with `minus`, that is subtracted, and the differences are compared."""

    metric: str
    cells: Cells
    along: str
    direction: Literal["rising", "falling"]
    groups: tuple[tuple[type_level, ...], ...]
    over: Cells | None = None
    minus: Cells | None = None


class Trend(TestKeys, tag_field="kind", tag="trend"):
    """Along a factor, in the order of its levels, the metric rises or falls from the first to the last, and no step
    goes the other way."""

    metric: str
    cells: Cells
    along: str
    direction: Literal["rises", "falls"]


class Flat(TestKeys, tag_field="kind", tag="flat"):
    """Along a coordinate, the metric stays within a factor (for a share: within a difference) of its value at the first
    level."""

    metric: str
    cells: Cells
    along: str
    within: float


class Bound(TestKeys, tag_field="kind", tag="bound"):
    """The metric itself lies above or below the threshold, in the metric's own unit; with `every`, in each cell."""

    metric: str
    cells: Cells
    side: ThresholdSide
    threshold: float
    every: bool = False


Test = Ratio | Order | Trend | Flat | Bound


ByWhat = Literal["script", "build"]
"""What of a source's own program a second verdict goes by: its load, or how it was compiled."""


class ScriptTests(Frozen):
    """The tests of a claim as its source ran it, by the load of its own program or (`by`) by its build, and a sentence
    on why they say otherwise than the claim's text, or the same."""

    because: str
    tests: tuple[Test, ...]
    by: ByWhat = "script"


class Account(Frozen):
    """What is to be said of a verdict: what its author would object, what would overturn it, where the source's own
    program does otherwise (or, where none was found, that), and what was done about it."""

    objection: str
    overturn: str
    program: str
    answer: str


class Claim(Needs):
    """One `[[claim]]` of an experiment. `published` are the figures of the source, by a label that has their unit;
    `published_on` are the operating systems on which the source measured, where the claim depends on them; `differs`
    says what is measured otherwise here than there; `why` names the counted metric that is reported beside it
    (model/metrics.py); `script` are the tests as the source ran its own program, and `account` what stands in
    docs/studies.md on its verdict."""

    id: str
    text: str
    tests: tuple[Test, ...]
    published: dict[str, float] = msgspec.field(default_factory=dict)
    published_on: str = ""
    differs: str = ""
    why: str = ""
    script: ScriptTests | None = None
    account: Account | None = None
