"""The findings of a run, as frozen data. The terminal table and the report say the same: both read this.

Units are in the names; an `Estimate` carries the unit of the field that holds it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from netdyno.analysis.aa.found import Control
from netdyno.analysis.canary import MachineOverTime
from netdyno.analysis.capacity.judge import Reason
from netdyno.analysis.capacity.search import Answer
from netdyno.analysis.company import Company
from netdyno.analysis.flips.found import FlipFound
from netdyno.analysis.gate.found import Found as GateFound
from netdyno.analysis.ground import Ground
from netdyno.analysis.measured import SetAside
from netdyno.analysis.server_faults import Fault, Faulty
from netdyno.model.base import Name, Quoted, type_level
from netdyno.model.contestant import About
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.figure import Figure, Published
from netdyno.model.objective import Objective
from netdyno.model.observation import Pinning
from netdyno.model.trial import Status, Traced, Trial, Warmup
from netdyno.model.verdicts import Judged
from netdyno.statistics.stats import Better, Comparison, Interval

Bound = Literal["", "at least", "at most"]
"""The direction of a figure that is not exact."""
Verdict = Literal["winner", "equal", "undecided", "not_enough_blocks", "unopposed", "no_data", "flip"]
"""`equal`: none is proven best, and some are shown to be as good as the best, within the margin. `undecided`: none is
shown to be. `flip`: the question is where the winner changes; there is no ranking over all levels."""


@dataclass(frozen=True)
class Estimate:
    """A figure over all blocks, its 95% interval (None below 5 blocks), and the block values behind it."""

    value: float
    interval: Interval | None
    points: tuple[float, ...]


@dataclass(frozen=True)
class Series:
    """Completions per second over the measured window of one trial, one value per interval."""

    block: int
    interval_ns: int
    per_second: tuple[float, ...]


@dataclass(frozen=True)
class Drops:
    """The places where messages were dropped; None: not counted. `elsewhere`: datagrams that found no room in a socket
    that neither side reported. `unserved`: requests that the server received, and dropped beyond its bound.
    `recipients`: how many messages are lost with a request that is not served."""

    server: int | None
    generator: int | None
    elsewhere: int | None
    unsent: int | None
    unserved: int | None
    recipients: float


@dataclass(frozen=True)
class LossOfTrial:
    """One trial over a transport that may lose messages: its latencies and what they leave out, as shares. `above`: it
    lost more than the experiment's bound, and is marked wherever it is drawn."""

    block: int
    above: bool
    lost: float
    late: float
    duplicated: float
    reordered: float
    mean_ns: float
    p50_ns: float
    p99_ns: float
    drops: Drops


@dataclass(frozen=True)
class Loss:
    """The messages that a cell's latencies leave out, over the whole life of its trials; their shares are figures of
    the cell."""

    messages: int
    """The number of lost messages."""
    drops: Drops
    trials: tuple[LossOfTrial, ...]

    @property
    def above(self) -> bool:
        """Whether some trial lost more than the bound."""
        return any(trial.above for trial in self.trials)


@dataclass(frozen=True)
class CellFigures:
    """One contestant at one level, over the valid trials of all blocks."""

    contestant: Name
    level: Name
    trials: int
    values: Mapping[Name, Estimate]
    """The figures by metric (model/metrics.py), in its unit; without those that were not measured."""
    curve: tuple[tuple[float, float], ...]
    """Response time by percentile: (percent, ns), as far out as at least ten messages lie beyond."""
    series: tuple[Series, ...]
    loss: Loss | None
    """None over a stream, where a lost message makes its trial invalid."""

    def value(self, metric: str) -> float:
        """Return a figure without its interval; NaN where it was not measured."""
        estimate = self.values.get(metric)
        return math.nan if estimate is None else estimate.value

    @property
    def marked(self) -> bool:
        """Whether some trial in it lost more than the bound."""
        return self.loss is not None and self.loss.above


@dataclass(frozen=True)
class LevelInfo:
    """One combination of factor levels: its key in cells and its label for people."""

    key: Name
    label: Name
    values: dict[Name, type_level]


def select_heaviest(levels: Sequence[LevelInfo], cells: Sequence[CellFigures]) -> LevelInfo:
    """Return the last level at which as many contestants were measured as at any other. `levels` is not empty."""
    measured = Counter(cell.level for cell in cells)
    most = max(measured.values(), default=0)
    return next(level for level in reversed(levels) if measured[level.key] == most)


@dataclass(frozen=True)
class Censored:
    """A level at which a contestant kept the generator at its limit, with the share of a core that its busiest thread
    used in the median: every figure there is a bound, for every contestant."""

    level: Name
    """The level's key."""
    contestant: Name
    share: float


@dataclass(frozen=True)
class ErrorBar:
    """The generator's own part in the response times of a level, in nanoseconds, the median over its trials: how late
    it sends, and how late it reads (None where the kernel gave no stamp, 0 where the kernel's stamp ends the times).
    `of` is the shortest response time of any contestant there at the same percentile."""

    level: Name
    percentile: Literal["p50", "p99"]
    send_ns: float
    receive_ns: float | None
    of: float

    @property
    def share(self) -> float:
        return (self.send_ns + (self.receive_ns or 0.0)) / self.of if self.of else 0.0


@dataclass(frozen=True)
class Score:
    """A contestant on one axis: its own figure at the heaviest level (None where it has none there), and its rank among
    its kind over all levels (None where it shares no block with the others)."""

    contestant: Name
    value: Estimate | None
    trials: int
    """The number of trials behind the value."""
    rank: int | None
    shared: bool


@dataclass(frozen=True)
class Axis:
    """One axis of an answer: a metric (model/metrics.py) with the scores of all contestants, in the order of the
    ranking by the scenario's own metric, and the comparisons behind the ranks. `bound`: the figures are bounds in this
    direction."""

    metric: Name
    better: Better
    scores: tuple[Score, ...]
    comparisons: tuple[Comparison, ...]
    bound: Bound = ""

    def score(self, contestant: str) -> Score | None:
        return next((score for score in self.scores if score.contestant == contestant), None)


@dataclass(frozen=True)
class AxisRatio:
    """A proven difference on an axis, as a ratio of its metric."""

    metric: Name
    ratio: float


@dataclass(frozen=True)
class Beside:
    """A contestant compared with the recommended one: the axes on which it is proven worse, and those on which it is
    proven better, each with the largest difference first."""

    contestant: Name
    worse: tuple[AxisRatio, ...]
    better: tuple[AxisRatio, ...]


@dataclass(frozen=True)
class Decision:
    """The verdict on a scenario. It holds for the contestants in `among`, the best first. None is proven better than
    any of the `front`, its leader first; the `undecided` there have too few blocks for a verdict. `taken` are those to
    take; `beside` compares the rest with the first of these, or of the front where none is taken.

    For a front of several: those `near` are shown to be within the margin of the best. `within`: the factor by which
    none of those near, or where there is none, none of the front, is further behind the best. `by`: the axes that chose
    among those near. `blocks_to_settle`: how many more blocks would settle what is open, if means and spreads stay as
    they are, and `seconds_to_settle` how long these take; None where nothing is open, or it cannot be said."""

    verdict: Verdict
    among: tuple[Name, ...] = ()
    front: tuple[Name, ...] = ()
    undecided: tuple[Name, ...] = ()
    taken: tuple[Name, ...] = ()
    beside: tuple[Beside, ...] = ()
    near: tuple[Name, ...] = ()
    within: float | None = None
    by: tuple[Name, ...] = ()
    blocks_to_settle: int | None = None
    seconds_to_settle: float | None = None

    @property
    def tied(self) -> tuple[Name, ...]:
        """The front without those that have too few blocks to be compared with its leader."""
        return tuple(name for name in self.front if name not in self.undecided)


@dataclass(frozen=True)
class AddedOption:
    """An option that the harness set for the servers that have it."""

    option: Name
    value: type_level
    contestants: tuple[Name, ...]


@dataclass(frozen=True)
class ThreadEach:
    """A contestant that got a thread for each connection from the harness, and the numbers of threads that it ran."""

    contestant: Name
    seen: tuple[int, ...]


@dataclass(frozen=True)
class SampledThreads:
    """A contestant with estimated context switches and waits: `read` threads out of up to `threads`, at random."""

    contestant: Name
    threads: int
    read: int


@dataclass(frozen=True)
class Unsteady:
    """A contestant with a level that moved within its window in `moved` of its `trials`, more than chance explains."""

    contestant: Name
    moved: int
    trials: int


@dataclass(frozen=True)
class UnevenThreads:
    """A contestant with a thread that had much more than its share of connections, in `trials` trials out of `of`. Its
    worst: `most` of the `connections` on one of the `threads`, at the level of that label."""

    contestant: Name
    trials: int
    of: int
    level: Name
    most: int
    connections: int
    threads: int


@dataclass(frozen=True)
class Constant:
    """A contestant that answers in the same time at several loads, all else being equal: least p50 and largest p99."""

    contestant: Name
    levels: tuple[Name, ...]
    """The keys of these loads."""
    p50_ns: float
    p99_ns: float


@dataclass(frozen=True)
class Unranked:
    """A program that was run beside the contestants without being one, with what it is instead."""

    contestant: Name
    what: Quoted


@dataclass(frozen=True)
class MadeAgain:
    """Trials that the machine disturbed, retried in their block. `by_contestant`: how often, and of how many cells;
    `causes` by audit. `p`: how often chance alone spreads retries so unevenly over the contestants of a block, None
    without retries. `given_up`: cells that no try filled. `slices_by_contestant`: how many slices of its trials in
    turns were retried, and of how many; `slices_again`: the same by the program that took a core (`foreign_program` of
    model/trial.py), the most frequent first; `slices_p` is their `p`."""

    tries: int
    cells: int
    by_contestant: Mapping[Name, tuple[int, int]]
    causes: Mapping[Name, int]
    p: float | None
    given_up: int
    slices_by_contestant: Mapping[Name, tuple[int, int]]
    slices_again: Mapping[Name, int]
    slices_p: float | None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was retried."""
        return not (self.causes or self.slices_again)


@dataclass(frozen=True)
class Standing:
    """One line of a ranking. `rank`: 1 plus the number proven better; None: it shares no block with the others, or no
    other could use as many cores. `shared`: others have the same rank. `relative` is the metric divided by the
    leader's. `lossy`: it lost more than the bound in some trial, `faults`: it did something wrong; a contestant with
    either is ranked after those without, with a leader of its own kind (docs/adr/loss.md, docs/adr/audit-kinds.md).
    `ground` is the place of its group in `Ground.together`: each group has a ranking of its own
    (docs/adr/same-cores.md). `loss` is its largest share of lost messages at any level, None over a stream. `value` is
    its own figure at the heaviest level, NaN where it has none there."""

    rank: int | None
    shared: bool
    contestant: Name
    value: float
    relative: Estimate | None
    against_leader: Comparison | None
    missing: int
    """Excluded trials of this contestant in this scenario."""
    loss: float | None = None
    lossy: bool = False
    faults: tuple[Fault, ...] = ()
    bound: Bound = ""
    """The direction where the value is only a bound."""
    ground: int = 0

    @property
    def peers(self) -> tuple[int, int]:
        """The key of a ranking: contestants with the same one are ranked together."""
        return self.ground, self.kind

    @property
    def kind(self) -> int:
        """Its kind on its ground: 0 without fault, 1 with loss, 2 with faults."""
        return 2 if self.faults else 1 if self.lossy else 0

    @property
    def apart(self) -> bool:
        """Whether it is ranked apart."""
        return self.kind > 0


@dataclass(frozen=True)
class Pair:
    """One server with one client, over all other levels and blocks. `figure` is the geometric mean of the metric over
    the valid trials; `statuses` are those of the trials that do not count, each once."""

    contestant: Name
    client: Name
    valid: int
    trials: int
    figure: float | None
    statuses: tuple[Status, ...]
    lost: float | None
    """The largest share of its messages that a valid trial lost; None over a stream."""


@dataclass(frozen=True)
class Unsafe:
    """Verification's findings on an unsafe contestant at one level, over all its trials with figures, of any status:
    none of them enters anything else (docs/adr/unranked.md)."""

    contestant: Name
    why: Quoted
    level: Name
    """The level's label."""
    trials: int
    wrong: int
    """Trials in which verification failed."""
    expected: int
    lost: int
    duplicated: int
    reordered: int
    corrupt: int
    streams: int
    """Connections that ended because nothing on them could be read any more."""


EndReason = Literal["precise", "alone", "unfinished", "blocks", "time"]
"""Why blocks ended: narrow enough, nothing to compare with, interrupted, the most allowed, no time for another."""


@dataclass(frozen=True)
class Ending:
    """The end of the blocks of a scenario that asks for a precision (stopping.py). `asked` and `widest` are half widths
    of the 95% interval of a ratio, relative to its middle. `widest` is that of the comparison `of`; None where
    nothing is compared."""

    why: EndReason
    blocks: int
    asked: float
    widest: float | None
    of: tuple[Name, Name]
    time_budget_s: float | None


@dataclass(frozen=True)
class RatePoint:
    """One contestant at one rate: how many trials held the objective, failed it, and were no witness
    (`silent`); the response times are geometric means over the witnesses, None where there is none. `latency_ns` is the
    figure that the objective is about; `whys` the reasons of the trials that did not hold."""

    rate_hz: float
    held: int
    failed: int
    silent: int
    p50_ns: float | None
    p99_ns: float | None
    p999_ns: float | None
    latency_ns: float | None
    whys: tuple[Reason, ...]


@dataclass(frozen=True)
class CapacityCurve:
    """One contestant at one combination of the levels other than the rate. `capacity_hz` is the geometric mean over
    blocks; in `at_least` of them every rate held, in `below` none did: these are bounds."""

    contestant: Name
    level: Name
    points: tuple[RatePoint, ...]
    capacity_hz: float | None
    blocks: int
    at_least: int
    below: int
    knee_hz: float | None
    """The rate at which the curve bends (statistics/knee.py)."""


@dataclass(frozen=True)
class Searched:
    """The answer of a search for a contestant's capacity; None where it did not come to its end, or followed other
    rules than those of today. `why` is the reason from the last trial, which matters where trials kept being no
    witness."""

    contestant: Name
    answer: Answer | None
    why: Reason | None


@dataclass(frozen=True)
class CapacityFindings:
    """The data behind the metric `capacity`. `figure` is the latency that the objective is about, by its name, and
    `limit_ns` its limit; `search` is None where the run is no search."""

    objective: Objective
    figure: Name
    limit_ns: float | None
    curves: tuple[CapacityCurve, ...]
    search: Searched | None


@dataclass(frozen=True)
class Work:
    """The work behind one message of a contestant at the one level of a scenario at which its system calls are
    traced. `traced` is that trial, and None where the run has none; the rest is from the measured trials at this level,
    per message: bytes, packets (segments and datagrams, both directions), nanoseconds of its cores in softirqs; None
    where it was not counted."""

    contestant: Name
    level: Name
    """The level's key."""
    label: Name
    traced: Traced | None
    bytes_in: Estimate | None
    bytes_out: Estimate | None
    packets: Estimate | None
    softirq_ns: Estimate | None

    @property
    def calls(self) -> Mapping[str, float]:
        """System calls per message by name, the most frequent first; empty where nothing was traced."""
        traced = self.traced
        if traced is None or not traced.messages:
            return {}
        return {call.name: call.calls / traced.messages for call in traced.calls}


@dataclass(frozen=True)
class Difference:
    """A counter that differs between two contestants: its figures per message (means over the cells of both), and the
    comparison; its ratio is a ratio where `relative`, else the difference, for some value was 0."""

    counter: Name
    worse: float
    better: float
    relative: bool
    comparison: Comparison


@dataclass(frozen=True)
class TracedCalls:
    """System calls per message of two traced contestants; `most` is the call by which they differ most."""

    label: Name
    """The level's."""
    worse: Mapping[Name, float]
    better: Mapping[Name, float]
    most: Name


@dataclass(frozen=True)
class Why:
    """The counters that correlate with a proven difference of one contestant from a higher one: those that differ
    between the two, of those `considered`. `result` is the comparison of the metric, the lower divided by the higher.
    `decidable`: some counter had blocks enough, and `blocks` is the most that any had. `kernel_worse` and
    `kernel_better` are the kernel's shares of the CPU time, None where none was seen. `traced` is None where not both
    were."""

    worse: Name
    better: Name
    result: Comparison
    differences: tuple[Difference, ...]
    considered: tuple[Name, ...]
    decidable: bool
    blocks: int
    kernel_worse: float | None
    kernel_better: float | None
    traced: TracedCalls | None


@dataclass(frozen=True)
class Within:
    """The contestants of a language on a ground that no other of it is proven better than, out of `of`."""

    language: Name
    unbeaten: tuple[Name, ...]
    of: int
    ground: int = 0


@dataclass(frozen=True)
class WarmedUp:
    """The warm-up of a contestant with a JIT before the first block, at each level at which it was ranked."""

    contestant: Name
    warmups: tuple[Warmup, ...]


@dataclass(frozen=True)
class MeasuredAlone:
    """Contestants that took no turns with others, and why."""

    contestants: tuple[Name, ...]
    why: Quoted


@dataclass(frozen=True)
class ScenarioFindings:
    """The answer to one workload under one load, and all that stands behind it."""

    scenario: Scenario
    decision: Decision
    """The verdict on the ground that is shown first."""
    better: Better
    levels: tuple[LevelInfo, ...]
    standings: tuple[Standing, ...]
    comparisons: tuple[Comparison, ...]
    cells: tuple[CellFigures, ...]
    drift: float
    """Fastest block's metric over the slowest's, all contestants together; 1 where it cannot be said."""
    pairs: tuple[Pair, ...]
    """Every server with every client, server by server; empty where the client is no factor."""
    loss_bound: float
    unsafe: tuple[Unsafe, ...]
    """Unsafe contestants are in no other field."""
    unranked: tuple[Unranked, ...]
    """These programs are in no other field either."""
    constant: tuple[Constant, ...]
    """Response times that no load changed."""
    absent: tuple[Name, ...]
    """Contestants without any valid trial, of which no fault is known."""
    ground: Ground
    """The cores and threads: they decide what a comparison can show."""
    added_options: tuple[AddedOption, ...]
    threads_each: tuple[ThreadEach, ...]
    sampled_threads: tuple[SampledThreads, ...]
    ending: Ending | None = None
    """Why its blocks ended; None where it asked for no precision."""
    capacity: CapacityFindings | None = None
    """None for a metric other than `capacity`."""
    work: tuple[Work, ...] = ()
    """The work behind a message, contestant by contestant in the order of the ranking."""
    whys: tuple[Why, ...] = ()
    """The counters that correlate with the ranking: against the first, then against the one above."""
    axes: tuple[Axis, ...] = ()
    """The scenario's own metric first, with comparisons that are one family; those of the others are a second. Empty
    for a capacity."""
    faulty: tuple[Faulty, ...] = ()
    """Contestants with faults, also those without a valid trial."""
    censored: tuple[Censored, ...] = ()
    error_bars: tuple[ErrorBar, ...] = ()
    """For the levels and percentiles at which the generator's own part is not small."""
    unsteady: tuple[Unsteady, ...] = ()
    within: tuple[Within, ...] = ()
    """The best of each language, where several are ranked."""
    uneven_threads: tuple[UnevenThreads, ...] = ()
    warmups: tuple[WarmedUp, ...] = ()
    """Contestants that were warmed up for longer than the scenario says."""
    alone: tuple[MeasuredAlone, ...] = ()
    """Empty where all contestants took turns, and in a run stored before they did."""
    flips: tuple[FlipFound, ...] = ()
    """The flips that the experiment asks for: its levels follow from them."""
    elsewhere: tuple[Decision, ...] = ()
    """The verdicts on contestants that could use another number of cores, each group by itself."""
    company: Company | None = None
    """None where the machine was every trial's own."""
    instruments: tuple[Name, ...] = ()
    """Foreign load programs that reported figures of it themselves (docs/adr/instruments.md)."""

    @property
    def verdict(self) -> Verdict:
        return self.decision.verdict

    @property
    def may_lose(self) -> bool:
        """Whether a contestant was measured over a transport that may lose messages: then loss stands beside
        latency."""
        return any(cell.loss is not None for cell in self.cells)

    @property
    def ranked_levels(self) -> int:
        """The number of levels that the metric is a mean over. A capacity is found along the levels of the rate."""
        return len({curve.level for curve in self.capacity.curves}) if self.capacity else len(self.levels)

    @property
    def heaviest(self) -> LevelInfo:
        """The level at which costs are compared."""
        return select_heaviest(self.levels, self.cells)

    def cell(self, contestant: str, level: str) -> CellFigures | None:
        """Return the figures of a contestant at a level, None where no trial was valid."""
        return next((cell for cell in self.cells if cell.contestant == contestant and cell.level == level), None)


@dataclass(frozen=True)
class Missing:
    """The outcome of most trials of a cell without a figure; both None where all were valid and none has it."""

    status: Status | None
    cause: SetAside | None


@dataclass(frozen=True)
class Spot:
    """One cell of a figure: where it stands, and the estimates of the figure's metric and of those below it, None where
    there is none; `missing` says why the first has none. `lost` is None over a stream."""

    at: Mapping[Name, type_level]
    contestant: Name
    estimates: tuple[Estimate | None, ...]
    missing: Missing | None
    trials: int
    """The number of trials behind the estimate, of `planned`."""
    planned: int
    set_aside: int
    """How many of these trials are excluded, for a metric that counts excluded ones."""
    lost: float | None
    above: bool
    """Whether some trial lost more than the bound."""

    @property
    def value(self) -> Estimate | None:
        return self.estimates[0]


@dataclass(frozen=True)
class ChartPanel:
    """The part of a figure at one combination of its panels' coordinates, empty where it has a single one."""

    at: Mapping[Name, type_level]
    spots: tuple[Spot, ...]
    published: tuple[Published, ...]
    unsafe: tuple[Name, ...] = ()
    """The unsafe contestants of the whole figure."""


@dataclass(frozen=True)
class Chart:
    """A figure that the experiment asks for, filled from the run. `along` and `across` are the values that were run,
    in their order; `across` is (None,) where the figure has no such coordinate."""

    figure: Figure
    along: tuple[type_level, ...]
    across: tuple[type_level | None, ...]
    panels: tuple[ChartPanel, ...]
    blocks: int
    """The fewest blocks behind any estimate."""
    loss_bounds: tuple[float, ...]
    """The bounds of its scenarios, each once."""
    elsewhere: int
    """The number of published figures in panels that were not run."""
    unsafe: tuple[Name, ...] = ()
    """Contestants that are drawn, and in no ranking or claim."""

    @property
    def spots(self) -> tuple[Spot, ...]:
        return tuple(spot for panel in self.panels for spot in panel.spots)


@dataclass(frozen=True)
class TrialNote:
    """A trial that enters no figure, and why."""

    block: int
    scenario: Name
    contestant: Name
    client: Name
    """The client of a pair; empty where the client is no factor."""
    level: Name
    status: Status
    cause: SetAside
    reason: Quoted
    """Empty where none was stored."""
    log: Quoted


@dataclass(frozen=True)
class Counts:
    """The number of trials by the outcome of their audits; `faulty` are those in which the server did something
    wrong."""

    valid: int
    struck_out: int
    faulty: int
    failed: int
    skipped: int
    made_again: int


@dataclass(frozen=True)
class AuditTally:
    """The number of trials that passed and failed one audit."""

    name: Name
    passed: int
    failed: int


@dataclass(frozen=True)
class MachineUse:
    """The machine's use by others over the windows of the valid trials that tell: shares of the time of all cores that
    the harness may use."""

    trials: int
    steal_median: float
    steal_most: float
    foreign_median: float
    foreign_most: float


@dataclass(frozen=True)
class Analysis:
    """All that a reader learns about a run."""

    run_id: Name
    experiment: Name
    question: Quoted
    links: tuple[Name, ...]
    started_at: Quoted
    finished_at: Quoted | None
    blocks_planned: int
    blocks_measured: int
    windows_s: tuple[float, ...]
    """The lengths that measured windows have, in seconds, each once, shortest first."""
    contestants: tuple[Name, ...]
    scenarios: tuple[ScenarioFindings, ...]
    claims: tuple[Judged, ...]
    """The verdicts on the experiment's claims; empty where it makes none."""
    charts: tuple[Chart, ...]
    """The figures that the experiment asks for."""
    level: float
    """The chance, per scenario, that its ranking claims any difference that is not there (at most); once for its own
    metric, once for all other axes."""
    counts: Counts
    set_aside: tuple[TrialNote, ...]
    audits: tuple[AuditTally, ...]
    made_again: MadeAgain
    machine: MachineUse | None
    """None where no valid trial tells."""
    canary: MachineOverTime | None
    """None in a run that was stored before there was one."""
    pinning: tuple[Pinning, ...]
    """Each way of pinning once."""
    control: Control
    """The same contestants under two names."""
    about: tuple[About, ...]
    """The programs that took part, with code and caveats; empty for a run stored before these were recorded."""
    environment: Mapping[Name, Quoted | int | float | bool | list[Quoted]]
    asked: Experiment
    example: Trial | None
    """A trial to repeat by hand: the first with figures."""
    trials: tuple[Trial, ...]
    """Every try of every trial, the twins included, in their order."""
    gate: GateFound | None = None
    """None for a run that is no gate."""
    flips: tuple[FlipFound, ...] = ()
    """The flips that the experiment asks for."""
