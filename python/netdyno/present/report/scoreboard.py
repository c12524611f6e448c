"""The answer as a table: contestants down, axes across, each cell with the contestant's own figure and its rank there.
No HTML here."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from netdyno.analysis.findings import Axis, Bound, ScenarioFindings, Standing
from netdyno.analysis.server_faults import Fault
from netdyno.base import quantities
from netdyno.model.metrics import METRICS
from netdyno.present.prose import company, loss, verdict
from netdyno.present.prose import faults as fault_words
from netdyno.present.prose import ground as ground_words

TITLES = {"cpu": "CPU per message", "memory": "peak memory"}
"""Where there is room for more than for a metric's short title."""


@dataclass(frozen=True)
class Column:
    """`short` heads it where there is little room; `explained` says what it is in full. `lost`: it is the share of lost
    messages, which has no rank."""

    title: str
    short: str
    explained: str
    lost: bool = False


@dataclass(frozen=True)
class Cell:
    """`bound` is "", "at least" or "at most". `rank` is empty where there is none; `best`: nobody is ranked above it,
    and somebody below. `warns`: a loss above the bound."""

    figure: str
    bound: Bound = ""
    rank: str = ""
    best: bool = False
    warns: bool = False

    @property
    def sign(self) -> str:
        return verdict.BOUND_SIGNS[self.bound]

    @property
    def spoken_rank(self) -> str:
        """ "rank 2, shared"."""
        return f"rank {self.rank.replace('=', ', shared')}" if self.rank else ""


@dataclass(frozen=True)
class Row:
    """`cells` are empty of whom there is no figure."""

    contestant: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Group:
    """Who is ranked among themselves; `reason` says why apart from those above, and is empty of the first."""

    reason: str
    rows: tuple[Row, ...]
    lossy: bool = False


@dataclass(frozen=True)
class Scoreboard:
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    note: str


def view(findings: ScenarioFindings) -> Scoreboard | None:
    """None where nobody was measured, rightly or wrongly."""
    groups = tuple(_groups(findings))
    if not groups:
        return None
    return Scoreboard(tuple(_columns(findings)), groups, _note(findings))


# --- columns -----------------------------------------------------------------------------------------------------


def _columns(findings: ScenarioFindings) -> Iterator[Column]:
    metric = findings.scenario.metric
    if not findings.axes:
        yield Column(metric, metric, METRICS[metric].title)
    for axis in findings.axes:
        short = METRICS[axis.metric].short
        yield Column(TITLES.get(axis.metric, short), short, METRICS[axis.metric].title)
        if findings.may_lose and axis is findings.axes[0]:
            yield Column("lost", "lost", "share of messages lost, at the load where it was largest", lost=True)


def _note(findings: ScenarioFindings) -> str:
    """What the figures are, and what the ranks are over."""
    beside = company.sentences(findings.company)
    if not findings.axes or not findings.cells:
        return " ".join(beside)
    several = len(findings.levels) > 1
    told = [f"Figures at {findings.heaviest.label}."] if several else []
    if any(one.decidable for axis in findings.axes for one in axis.comparisons):
        over = f" over all {len(findings.levels)} loads" if several else ""
        told.append(
            f"Small digit: the rank on that axis{over}, 1 plus the number proven better; = marks a shared rank."
        )
    return " ".join([*told, *beside])


# --- rows --------------------------------------------------------------------------------------------------------


def _groups(findings: ScenarioFindings) -> Iterator[Group]:
    """Those without a fault, those that lost too much, and each that did something wrong with how it did, last those
    of whom no trial is left."""
    for peers, standings in groupby(findings.standings, key=lambda standing: standing.peers):
        ground, kind = peers
        kinds = {one.kind for one in findings.standings if one.ground == ground}
        apart = f"{_on(findings, ground)}{'Ranked separately: ' if len(kinds) > 1 else ''}"
        if kind == 2:
            for standing in standings:
                yield Group(f"{apart}{_faults(standing.faults)}", (_row(findings, standing),))
        else:
            lossy = f"more than {quantities.share(findings.loss_bound)} lost" if kind == 1 and len(kinds) > 1 else ""
            reason = f"{apart}{lossy}" if lossy else _on(findings, ground).removesuffix(": ")
            yield Group(reason, tuple(_row(findings, standing) for standing in standings), lossy=kind == 1)
    ranked = {standing.contestant for standing in findings.standings}
    for faulty in findings.faulty:
        if faulty.contestant not in ranked:
            yield Group(f"No valid trial: {_faults(faulty.faults)}", (Row(faulty.contestant, ()),))


def _on(findings: ScenarioFindings, ground: int) -> str:
    """Which cores those of a ground could use, with a colon; nothing where all could use the same."""
    groups = findings.ground.together
    return f"On {ground_words.usable_words(groups[ground].cores)}: " if len(groups) > 1 else ""


def _faults(faults: Sequence[Fault]) -> str:
    return quantities.listed([fault_words.fault(fault) for fault in faults])


def _row(findings: ScenarioFindings, standing: Standing) -> Row:
    if not findings.axes:
        return Row(standing.contestant, (_own_cell(findings, standing),))
    peers = {one.contestant for one in findings.standings if one.ground == standing.ground}
    mark = company.mark(findings.company)
    cells = [_cell(axis, standing.contestant, peers, mark) for axis in findings.axes]
    if findings.may_lose:
        cells.insert(1, Cell(loss.largest(standing), warns=standing.lossy))
    return Row(standing.contestant, tuple(cells))


def _cell(axis: Axis, contestant: str, peers: Collection[str], mark: str) -> Cell:
    score = axis.score(contestant)
    if score is None or score.value is None:
        return Cell(quantities.DASH)
    figure = f"{METRICS[axis.metric].speak(score.value.value)}{mark}"
    if score.rank is None or not any(one.decidable for one in axis.comparisons):
        return Cell(figure, axis.bound)
    ranks = [other.rank for other in axis.scores if other.contestant in peers]
    return Cell(figure, axis.bound, _rank(score.rank, shared=score.shared), _is_best(score.rank, ranks))


def _own_cell(findings: ScenarioFindings, standing: Standing) -> Cell:
    """Of a metric that stands alone."""
    if not math.isfinite(standing.value):
        return Cell(quantities.DASH)
    figure = f"{verdict.value(findings.scenario, standing.value)}{company.mark(findings.company)}"
    if standing.rank is None or not any(one.decidable for one in findings.comparisons):
        return Cell(figure, standing.bound)
    ranks = [other.rank for other in findings.standings if other.ground == standing.ground]
    return Cell(figure, standing.bound, _rank(standing.rank, shared=standing.shared), _is_best(standing.rank, ranks))


def _rank(rank: int, *, shared: bool) -> str:
    return f"{rank}=" if shared else str(rank)


def _is_best(rank: int, ranks: Sequence[int | None]) -> bool:
    return rank == 1 and any(other is not None and other > 1 for other in ranks)
