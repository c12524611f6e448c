"""The findings of a run. The terminal table and the report say the same: both read this.

Frozen data without words; units are in the names."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from netdyno.analysis.found.canary import MachineOverTime
from netdyno.analysis.found.capacity import CapacityFindings
from netdyno.analysis.found.cells import CellFigures, LevelInfo, select_heaviest
from netdyno.analysis.found.charts import Chart
from netdyno.analysis.found.control import Control
from netdyno.analysis.found.exclusions import Faulty, TrialNote
from netdyno.analysis.found.flips import FlipFound
from netdyno.analysis.found.gate import GateFindings
from netdyno.analysis.found.ground import Ground
from netdyno.analysis.found.notices import (
    AddedOption,
    CodeGain,
    Company,
    Constant,
    Knob,
    MeasuredAlone,
    Noted,
    Reconnected,
    Retries,
    SampledThreads,
    Scaling,
    ThreadEach,
    UnevenThreads,
    Unranked,
    Unread,
    Unsafe,
    Unsteady,
    WarmedUp,
    Why,
    Work,
)
from netdyno.analysis.found.ranking import (
    Axis,
    Censored,
    Decision,
    EndOfBlocks,
    ErrorBar,
    Pair,
    RankingVerdict,
    Standing,
    Within,
)
from netdyno.kit.statistics.stats import Better, Comparison
from netdyno.model.base import Frozen, Name, Quoted
from netdyno.model.contestant import About
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.observation import Pinning
from netdyno.model.trial import Trial
from netdyno.model.verdicts import JudgedClaim


class PublishedFindings(Frozen, kw_only=True):
    """What stands behind the answer to a question, and is in an export (present/export/entries.py) as it is here."""

    decision: Decision
    """The verdict on the ground that is shown first."""
    elsewhere: tuple[Decision, ...] = ()
    """The verdicts on contestants that could use another number of cores, each group by itself."""
    levels: tuple[LevelInfo, ...]
    pairs: tuple[Pair, ...]
    """Every server with every client, server by server; empty where the client is no factor."""
    loss_bound: float
    faulty: tuple[Faulty, ...] = ()
    """Contestants with proven faults, also those without a valid trial."""
    unproven: tuple[Faulty, ...] = ()
    """Faults that a busy machine can cause, and that are not proven to be the server's."""
    absent: tuple[Name, ...]
    """Contestants without any valid trial, of which no fault is known."""
    unsafe: tuple[Unsafe, ...]
    """Unsafe contestants are in no other field."""
    unranked: tuple[Unranked, ...]
    """These programs are in no other field either."""
    unread: tuple[Unread, ...] = ()
    """What clients that never read have written; empty where clients read."""
    instruments: tuple[Name, ...] = ()
    """Foreign load programs that reported figures of it themselves (docs/adr/instruments.md)."""
    censored: tuple[Censored, ...] = ()
    capacity: CapacityFindings | None = None
    """None for a metric other than `capacity`."""
    ending: EndOfBlocks | None = None
    """Why its blocks ended; None where it asked for no precision."""
    ground: Ground
    """The cores and threads: they decide what a comparison can show."""
    within: tuple[Within, ...] = ()
    """The best of each language, where several are ranked."""
    work: tuple[Work, ...] = ()
    """The work behind a message, contestant by contestant in the order of the ranking."""
    whys: tuple[Why, ...] = ()
    """The counters that correlate with the ranking: against the first, then against the one above."""
    scaling: tuple[Scaling, ...] = ()
    knobs: tuple[Knob, ...] = ()
    """Empty where the cores of the server are no factor, or a schedule decides the throughput."""
    constant: tuple[Constant, ...]
    """Response times that no load changed."""
    unsteady: tuple[Unsteady, ...] = ()
    """Contestants that moved within the window."""
    noted: tuple[Noted, ...] = ()
    added_options: tuple[AddedOption, ...]
    threads_each: tuple[ThreadEach, ...]
    sampled_threads: tuple[SampledThreads, ...]
    uneven_threads: tuple[UnevenThreads, ...] = ()
    reconnected: tuple[Reconnected, ...] = ()
    warmups: tuple[WarmedUp, ...] = ()
    """Contestants that were warmed up for longer than the scenario says."""
    alone: tuple[MeasuredAlone, ...] = ()
    """Empty where all contestants took turns, and in a run stored before they did."""


class ScenarioFindings(PublishedFindings, kw_only=True):
    """The answer to one workload under one load, and all that stands behind it."""

    scenario: Scenario
    better: Better
    standings: tuple[Standing, ...]
    comparisons: tuple[Comparison, ...]
    cells: tuple[CellFigures, ...]
    drift: float
    """Fastest block's metric over the slowest's, all contestants together; 1 where it cannot be said."""
    axes: tuple[Axis, ...] = ()
    """The scenario's own metric first, with comparisons that are one family; those of the others are a second. Empty
    for a capacity."""
    error_bars: tuple[ErrorBar, ...] = ()
    """For the levels and percentiles at which the generator's own part is not small."""
    flips: tuple[FlipFound, ...] = ()
    """The flips that the experiment asks for: its levels follow from them."""
    company: Company | None = None
    """None where the machine was every trial's own."""

    @property
    def without_figure(self) -> list[Name]:
        """Contestants with valid trials and no figure of the metric, such as CPU where the process is not known."""
        measured = {cell.contestant for cell in self.cells}
        return [name for name in self.absent if name in measured]

    @property
    def verdict(self) -> RankingVerdict:
        return self.decision.verdict

    @property
    def may_lose(self) -> bool:
        """Whether a contestant was measured over a transport that may lose messages: then loss stands beside
        latency."""
        return any(cell.loss is not None for cell in self.cells)

    @property
    def ranked_levels(self) -> int:
        """The number of levels that the metric is a mean over. A capacity is found along the levels of the rate."""
        if self.capacity:
            return len({curve.level for curve in self.capacity.curves})
        return len({cell.level for cell in self.cells})

    @property
    def heaviest(self) -> LevelInfo:
        """The level at which costs are compared."""
        return select_heaviest(self.levels, self.cells)

    def cell(self, contestant: str, level: str) -> CellFigures | None:
        """Return the figures of a contestant at a level, None where no trial was valid."""
        return next((cell for cell in self.cells if cell.contestant == contestant and cell.level == level), None)


class Counts(msgspec.Struct, frozen=True):
    """The number of trials by the outcome of their audits: `struck_out` are invalid, in `faulty` ones the server did
    something wrong, `made_again` counts retries."""

    valid: int
    invalid: int = msgspec.field(name="struck_out")
    faulty: int
    failed: int
    skipped: int
    retried: int = msgspec.field(name="made_again")


class AuditTally(msgspec.Struct, frozen=True):
    """The number of trials that passed and failed one audit."""

    name: Name
    passed: int
    failed: int


class MachineUse(msgspec.Struct, frozen=True):
    """The machine's use by others over the windows of the valid trials that tell: shares of the time of all cores that
    the harness may use."""

    trials: int
    steal_median: float
    steal_most: float
    foreign_median: float
    foreign_most: float


class PublishedRun(Frozen, kw_only=True):
    """The findings of a run that are in an export as they are here."""

    run_id: Name
    experiment: Name
    question: Quoted
    started_at: Quoted
    finished_at: Quoted | None
    retried: Retries = msgspec.field(name="made_again")
    audits: tuple[AuditTally, ...]
    machine: MachineUse | None
    """None where no valid trial tells."""
    charts: tuple[Chart, ...]
    """The figures that the experiment asks for."""
    gate: GateFindings | None = None
    """None for a run that is no gate."""
    code_gains: tuple[CodeGain, ...] = ()
    """Scenario by scenario, the server with the fewest lines first."""


class Analysis(PublishedRun, kw_only=True):
    """All that a reader learns about a run."""

    counts: Counts
    links: tuple[Name, ...]
    blocks_planned: int
    blocks_measured: int
    windows_s: tuple[float, ...]
    """The lengths that measured windows have, in seconds, each once, shortest first."""
    contestants: tuple[Name, ...]
    scenarios: tuple[ScenarioFindings, ...]
    claims: tuple[JudgedClaim, ...]
    """The verdicts on the experiment's claims; empty where it makes none."""
    significance: float
    """The chance, per scenario, that its ranking claims any difference that is not there (at most); once for its own
    metric, once for all other axes."""
    excluded: tuple[TrialNote, ...]
    canary: MachineOverTime | None
    """None in a run that was stored before there was one."""
    pinning: tuple[Pinning, ...]
    """Each way of pinning once."""
    control: Control
    """The same contestants under two names."""
    about: tuple[About, ...]
    """The programs that took part, with code and caveats; empty for a run stored before these were recorded."""
    environment: Mapping[Name, Quoted | int | float | bool | list[Quoted]]
    requested: Experiment
    typed: tuple[Quoted, ...]
    """The words of the command line that made the run, behind the program's name."""
    example: Trial | None
    """A trial to repeat by hand: the first with figures."""
    trials: tuple[Trial, ...]
    """Every try of every trial, the twins included, in their order."""
    flips: tuple[FlipFound, ...] = ()
    """The flips that the experiment asks for."""
