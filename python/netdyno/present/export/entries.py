"""The types of an export and of the findings in it, which findings.json has alone. `report --export schema` prints
their JSON Schema. What the analysis found is here by its own types: plain.py says which of their fields are written,
and by which key.

Times are nanoseconds, sizes bytes, unless a metric's unit says otherwise. What was not measured is left out of
`figures`, and null elsewhere; an end of an interval that is null is open."""

from __future__ import annotations

from typing import Any

import msgspec

from netdyno.analysis.found.canary import Range
from netdyno.analysis.found.cells import BoundDirection
from netdyno.analysis.found.control import AA
from netdyno.analysis.found.exclusions import TrialNote
from netdyno.analysis.found.ranking import RankingVerdict
from netdyno.analysis.found.run import Counts, PublishedFindings, PublishedRun
from netdyno.kit.statistics.flips import FlipVerdict
from netdyno.kit.statistics.stats import Better, Comparison, Interval
from netdyno.model.base import Frozen, Name, Quoted, type_level
from netdyno.model.claim import ThresholdSide
from netdyno.model.observation import Neighbour
from netdyno.model.verdicts import ClaimVerdict, ComparisonOutcome, Limit

VERSION = 1


class FigureEntry(Frozen):
    """A figure over several trials with its 95% interval, where there were blocks enough for one."""

    value: float
    low: float | None = None
    high: float | None = None


class MetricEntry(Frozen):
    """The meaning of a name in `figures`. `better`: "higher" or "lower"."""

    title: Quoted
    unit: Name
    better: Name


class ContestantEntry(Frozen):
    """A contestant of the run: a `server`, a `client`, or code that they share (`shared`). `lines` are those of its
    own code."""

    kind: Name
    name: Name
    model: Quoted
    language: Name
    lines: int | None


class CellEntry(Frozen):
    """A contestant of a scenario at one level (`levels`: of each factor), over its `trials` valid trials of all
    blocks."""

    question: Name
    contestant: Name
    level: Name
    levels: dict[Name, type_level]
    trials: int
    figures: dict[Name, FigureEntry]


class TrialEntry(Frozen):
    """One trial; each retry is a trial too. `status` is its result, `reason` why it enters no figure where it enters
    none, and `failed` names the audits that failed. `twin`: it belongs to the A/A control. `attempt` counts the
    harness's tries."""

    question: Name
    contestant: Name
    level: Name
    levels: dict[Name, type_level]
    block: int
    position: int
    attempt: int
    twin: bool
    status: Name
    reason: Quoted
    started_at: Quoted
    seconds: float
    failed: tuple[Name, ...]
    figures: dict[Name, float]


class Note(Frozen):
    """A sentence of table and report. `kind`: of a scenario "caveat", "why" (what correlates with its ranking) and
    "blocks" (why they ended); of the run "control" (the A/A control), "machine", "made_again"."""

    kind: Name
    question: Name | None
    text: Quoted


class ErrorBarEntry(Frozen):
    """A bar of the generator's own part; `share`: of the shortest response time."""

    level: Name
    percentile: Name
    send_ns: float
    receive_ns: float | None
    share: float


class CompanyEntry(Frozen):
    """The programs that ran beside a scenario's trials, with a label for its figures."""

    label: Quoted
    trials: int
    total: int = msgspec.field(name="of")
    neighbours: tuple[Neighbour, ...]


class StandingEntry(Frozen):
    """A contestant in the ranking by the metric. `rank`: 1 plus how many are proven better; null: it shares no block
    with others, or is alone on its `ground` (its index in `ground.together`). `lossy`: above the loss bound, with
    `lost` the largest share; null over a stream. `bytes_per_connection`: peak memory beyond that before
    connections."""

    contestant: Name = msgspec.field(name="name")
    rank: int | None
    shared: bool
    group: int = msgspec.field(name="ground")
    lossy: bool
    loss: float | None = msgspec.field(name="lost")
    bytes_per_connection: float | None


class ScoreEntry(Frozen):
    """A contestant's figure on an axis, at `figures_at`, over its `trials`; `rank` is over all levels, within its
    `ground`, and `over_loads` the geometric mean over the axis's `loads`, null without these. `bound`: that of the
    axis, or of a capacity: `at least` if the objective held at every rate, `at most` if at none."""

    contestant: Name
    value: float | None
    bound: BoundDirection | None
    interval: Interval | None
    trials: int | None
    rank: int | None
    shared: bool
    group: int = msgspec.field(name="ground")
    over_loads: float | None


class AxisEntry(Frozen):
    """An axis; `figure`: how its values are computed. `loads`: the keys of the levels of `over_loads`, which table and
    report show; empty where they show `value`."""

    metric: Name
    unit: Name
    better: Better
    bound: BoundDirection | None
    figure: Quoted
    loads: tuple[Name, ...]
    scores: tuple[ScoreEntry, ...]
    comparisons: tuple[Comparison, ...]


class QuestionEntry(PublishedFindings, kw_only=True):
    """The answer of a scenario (`sentence`, `headline`) and the figures behind it. `figures_at`: the heaviest level,
    whose figures are shown. `faulty` are the contestants whose faults are proven, `unproven` those whose faults a
    busy machine may have caused. `unsteady`: contestants that moved within the window. `absent`: those without a
    valid trial. `elsewhere`: the decisions on contestants with other numbers of cores. `ending`: why blocks ended.
    `whys`, `work`: what correlates with the result, and the work behind a message. `not_ranked`: clients never read,
    and `unread` has what they wrote."""

    name: Name
    workload: Name
    arrivals: Name
    metric: Name
    verdict: RankingVerdict
    headline: Quoted
    sentence: Quoted
    company: CompanyEntry | None
    figures_at: Name | None
    standings: tuple[StandingEntry, ...] = msgspec.field(name="contestants")
    axes: tuple[AxisEntry, ...]
    error_bars: tuple[ErrorBarEntry, ...]
    caveats: tuple[Quoted, ...]
    drift: float | None


class CheckEntry(Frozen):
    """A comparison of a claim's test: whether the `effect` lies on the `side` of the `threshold`. `needed`: the
    claim can be confirmed only if it holds. `limit`: the true effect is at least, or at most, this. `figures`: those
    of both sides."""

    metric: Name
    side: ThresholdSide
    threshold: float
    needed: bool
    effect: float | None
    interval: Interval | None
    figures: tuple[float | None, ...]
    blocks: int
    outcome: ComparisonOutcome
    blocks_to_decide: int | None
    limit: Limit | None
    is_short_of_published: bool


class ScriptVerdict(Frozen):
    """The verdict on a claim as its source ran its own program, the reason where there is none, and the comparisons
    behind it."""

    verdict: ClaimVerdict
    reason: Quoted
    checks: tuple[CheckEntry, ...]


class ClaimEntry(Frozen):
    """A claim with its verdict, the reason where there is none, and the comparisons behind it. `by_script`: the same
    as the source ran its own program, by its load or its build; null where the claim has no tests of it."""

    id: Name
    text: Quoted
    verdict: ClaimVerdict
    reason: Quoted
    checks: tuple[CheckEntry, ...]
    by_script: ScriptVerdict | None


class ControlEntry(Frozen):
    """The A/A control: how many of its comparisons, and each of them."""

    comparisons: int
    different: int
    different_uncorrected: int
    pairs: tuple[AA, ...] = msgspec.field(name="each")


class CrossingEntry(Frozen):
    """A change of the better side, with the levels at which each is proven better."""

    below: Name
    above: Name
    place: float = msgspec.field(name="at")
    interval: Interval
    proven_at: tuple[float, float] = msgspec.field(name="told_at")


class FlipLevelEntry(Frozen):
    """A level of a flip: the `ratio` by which the first is better, and the `better` one where that is proven.
    `needed`: the blocks that would show it; null: it is proven, or none suffice."""

    place: float = msgspec.field(name="at")
    ratio: float | None
    interval: Interval | None
    better: Name | None
    blocks: int
    needed: int | None


class FlipEntry(Frozen):
    """The search for levels of a `factor` at which the better of two changes. `unit`: of its levels, where it has one.
    `fixed`: levels of the other factors. `asked_within`: the requested ratio of an interval, `narrow` if all are so.
    `bounded`: levels with the generator at its limit; `uneven`: with unequal cores."""

    question: Name
    metric: Name
    factor: Name
    unit: Name | None
    first: Name
    second: Name
    fixed: tuple[Name, ...]
    verdict: FlipVerdict
    sentence: Quoted
    crossings: tuple[CrossingEntry, ...]
    levels: tuple[FlipLevelEntry, ...]
    requested_within: float | None = msgspec.field(name="asked_within")
    narrow: bool | None
    bounded: tuple[float, ...]
    uneven: tuple[float, ...]


class Findings(PublishedRun, kw_only=True):
    """The findings of a run (protocol/findings.md); `finished_at` is null where it is unfinished. `set_aside`: the
    excluded trials, with cause and reason. `charts`: the figures that the experiment requests."""

    version: int
    blocks: int
    counts: Counts = msgspec.field(name="trials")
    scenarios: tuple[QuestionEntry, ...] = msgspec.field(name="questions")
    claims: tuple[ClaimEntry, ...]
    control: ControlEntry = msgspec.field(name="aa")
    canary: tuple[Range, ...] | None
    flips: tuple[FlipEntry, ...]
    excluded: tuple[TrialNote, ...] = msgspec.field(name="set_aside")


class Export(Frozen):
    """`findings` are those of protocol/findings.md: all but the trials and the figures of cells. `metrics` are those
    in the figures of cells or trials."""

    version: int
    findings: Findings
    environment: dict[str, Any]
    metrics: dict[Name, MetricEntry]
    contestants: tuple[ContestantEntry, ...]
    cells: tuple[CellEntry, ...]
    trials: tuple[TrialEntry, ...]
    notes: tuple[Note, ...]
